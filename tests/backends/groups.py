"""A device with work-groups, written here: what a GPU asks of the contract, in Python.

Its language is Python: a kernel is a generator that each work-item runs for itself, and a `yield`
is a barrier. A launch runs the groups of the grid one after the other, and in a group one work-item
after the other, each up to its next barrier: where a barrier is missing, a work-item reads what
nobody has written yet, or what somebody has overwritten.

    def kernel(args, shared, grid, item):

`args` has an array per argument, `shared` the arrays of the group, `grid` and `item` the numbers of
the group and of the work-item along each axis of the launch shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tests.backends.shelf import ShelfMemory
from workbench.backends.device import DeviceInfo
from workbench.backends.memory import Buffer
from workbench.backends.program.analysis import analyse
from workbench.backends.program.launch import LaunchShape
from workbench.backends.program.text import Language, Source, signature
from workbench.base.dtypes import DType, dtypes
from workbench.base.target import Target
from workbench.ir.meaning.values import bitcast_array, cast_array
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp

Array = np.ndarray[Any, Any]
NAME = "GROUPS"
STEPS_TEXT = Language("Steps", "an op a line, to read", "#.*$", r"\bLOAD\b")
PYTHON_TEXT = Language("Work-items", "Python of a work-item", "#.*$", r"\b(?:for|yield)\b")


class Groups(DeviceInfo):
    """The device; `launches` has the shape of each launch."""

    name = NAME
    about = "work-groups in Python"
    how_to_get = "it is always there"
    language = PYTHON_TEXT
    languages = (STEPS_TEXT, PYTHON_TEXT)
    can_abort = False
    memory: ShelfMemory

    def __init__(self) -> None:
        self.memory = ShelfMemory(self.synchronize)
        self.launches: list[LaunchShape] = []

    @property
    def is_available(self) -> bool:
        return True

    def _target(self) -> Target:
        return Target(
            NAME,
            vector_bytes=1,  # a work-item has no vectors
            native_transcendentals=True,
            grid_limits=(1 << 10, 1 << 10),
            group_items=64,
            warp_lanes=8,
            shared_bytes=16 << 10,
        )

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        plan = analyse(linear, self.target)
        text = "\n".join(["def kernel(args, shared, grid, item):", *_lines(linear)])
        name = linear[0].arg.name
        params = signature(plan.params)
        return Source(name, "Python", text, params, launch=plan.launch, block=block)

    def render_as(
        self, language: Language, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        if language is not STEPS_TEXT:
            return super().render_as(language, block, linear, tree)
        text = "\n".join(node.op.name for node in linear)
        places = tuple((place,) for place in range(len(linear)))
        return Source(linear[0].arg.name, "Steps", text, (), lines=places)

    def load(self, source: Source) -> GroupProgram:
        return GroupProgram(self, source)


class GroupProgram:
    """A kernel, whose source is Python."""

    def __init__(self, device: Groups, source: Source):
        self.device, self.source = device, source
        names: dict[str, Any] = {"do": _do, "cast": _cast, "dtypes": dtypes, "np": np}
        exec(source.text, names)
        self.kernel, self.shared = names["kernel"], names.get("shared_arrays", dict)

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> GroupLaunch:
        return GroupLaunch(self, buffers)


class GroupLaunch:
    """A kernel and its memory."""

    def __init__(self, program: GroupProgram, buffers: Sequence[Buffer]):
        self.program, self.buffers = program, [*buffers]

    def __call__(self, wait: bool = True) -> None:
        source, device = self.program.source, self.program.device
        shape, memory = source.launch, device.memory
        device.launches.append(shape)
        args = [
            argument_of(memory.read(b.handle, b.offset, b.nbytes), b.dtype, slot, source)
            for slot, b in enumerate(self.buffers)
        ]
        assert source.block is not None
        arrays = [n for n in source.block.toposort() if n.op is Ops.DEFINE]
        with np.errstate(all="ignore"):
            for grid in product(*map(range, shape.grid)):
                shared = {d.name: array_of(d) for d in arrays if d.space == "shared"}
                run_group(
                    [
                        self.program.kernel(
                            args,
                            shared,
                            dict(zip(shape.names("grid"), grid, strict=True)),
                            dict(zip(shape.names("item"), item, strict=True)),
                        )
                        for item in product(*map(range, shape.group))
                    ]
                )
        for buffer, argument in zip(self.buffers, args, strict=True):
            if buffer.size:
                memory.write(buffer.handle, buffer.offset, argument.array.tobytes())

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer


def run_group(items: list[Iterator[None]]) -> None:
    """Run work-items to their ends, from barrier to barrier."""
    while items:
        waiting = [item for item in items if next(item, "done") is None]
        assert len(waiting) in (0, len(items)), "not all of a group come to a barrier"
        items = waiting


class Argument:
    """An argument of a launch. Work-items may write the same value to an element, and no other:
    what they computed would depend on the order."""

    def __init__(self, array: Array):
        self.array, self.written = array, dict[int, bytes]()

    def __getitem__(self, index: int) -> Any:
        return self.array[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self.array[index] = value
        data = self.array[index].tobytes()
        if self.written.setdefault(int(index), data) != data:
            raise RaceError(f"element {index} is written with different values")


class RaceError(Exception):
    """Work-items write different values to one element."""


def argument_of(data: bytes, dtype: DType, slot: int, source: Source) -> Argument:
    """Return memory as a kernel reads it: lowering may have turned low-precision floats into their
    bits, and masked lanes read element 0, which an empty buffer lacks."""
    if slot < len(source.params) and source.params[slot][0].bits:
        dtype = source.params[slot][0]
    return Argument(np.frombuffer(bytearray(data or bytes(16)), dtype.numpy))


def array_of(define: UOp) -> Array:
    """Return an array that is full of conspicuous values."""
    dtype = define.dtype
    poison = np.nan if dtype.is_float else dtype.min
    return np.full(int(np.prod(define.memory_shape)), poison, dtype.numpy)


# the renderer


def _lines(linear: Sequence[UOp]) -> Iterator[str]:
    """Yield the lines of the function's body, from a linear program without vectors."""
    names: dict[UOp, str] = {}
    depth = 1
    for node in linear:
        if node.op in (Ops.ENDLOOP, Ops.ENDIF):
            depth -= 1
            continue
        yield from ("    " * depth + line for line in _statement(node, names))
        depth += node.op in (Ops.LOOP, Ops.IF)
    yield "    return"
    yield "    yield"


def _statement(node: UOp, names: dict[UOp, str]) -> Iterator[str]:
    assert node.dtype.count == 1, node
    if node.op is Ops.LOOP:
        assert node.role is None, node
        name, extent = node.axis.axis_name, node.axis.extent
        yield f"for {name} in map(np.int64, range({extent})):"
    elif node.op is Ops.SPECIAL:
        name = node.axis.axis_name
        yield f"{name} = np.int64({node.role}[{name!r}])"
    elif node.op is Ops.IF:
        yield f"if {_value(node.condition, names)}:"
    elif node.op is Ops.BARRIER:
        yield "yield"
    elif node.op is Ops.DEFINE:
        names[node] = node.name
        size = int(np.prod(node.memory_shape))
        where = f"shared[{node.name!r}]"
        own = f"np.zeros({size}, dtypes.named({str(node.dtype)!r}).numpy)"
        yield f"{node.name} = {where if node.space == 'shared' else own}"
    elif node.op is Ops.SET:
        yield f"{_value(node.src[0], names)} = {_value(node.src[1], names)}"
    elif node.op is Ops.STORE:
        place, value, *gate = (_value(s, names) for s in node.src)
        yield f"if {gate[0] if gate else True}: {place} = {value}"
    elif node.op not in (Ops.BLOCK, Ops.INDEX):
        names.setdefault(node, f"v{len(names)}")
        yield f"{names[node]} = {_computed(node, names)}"


def _computed(node: UOp, names: dict[UOp, str]) -> str:
    args = [_value(s, names) for s in node.src]
    if node.op is Ops.LOAD:
        zero = f"dtypes.named({str(node.dtype)!r}).numpy.type(0)"
        return f"{args[0]} if {args[1]} else {zero}" if args[1:] else args[0]
    if node.op in (Ops.CAST, Ops.BITCAST):
        kinds = str(node.src[0].dtype), str(node.dtype)
        return f"cast({node.op.name!r}, {args[0]}, *{kinds})"
    return f"do({node.op.name!r}, {', '.join(args)})"


def _value(node: UOp, names: dict[UOp, str]) -> str:
    if node in names:
        return names[node]
    if node.op is Ops.CONST:
        return f"dtypes.named({str(node.dtype)!r}).numpy.type({_number(node.arg)})"
    if node.op is Ops.RANGE:
        return node.axis_name
    if node.op is Ops.REG:
        return f"{node.name}_{node.first_lane}"
    if node.op is Ops.PARAM:
        return f"args[{node.slot}]"
    if node.op is Ops.AFTER:
        return _value(node.src[0], names)
    assert node.op is Ops.INDEX, node
    return f"{_value(node.src[0], names)}[{_value(node.src[1], names)}]"


def _number(value: object) -> str:
    return f"float({str(value)!r})" if isinstance(value, float) else repr(value)


def _do(op: str, *args: Any) -> Any:
    meaning = OPS[Ops[op]].python
    assert meaning is not None, op
    return meaning(*args)


def _cast(op: str, value: Any, source: str, target: str) -> Any:
    convert = cast_array if op == "CAST" else bitcast_array
    kinds = dtypes.named(source), dtypes.named(target)
    return convert(np.asarray(value), *kinds)[()]
