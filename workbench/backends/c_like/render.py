"""A kernel as text in a language like C: the program of one work-item, or C that keeps its loops.

    __kernel void name(__global float *p0, __global const float *p1) {
      __local float As[256];
      const int g0 = get_group_id(1);
      const int l0 = get_local_id(0);
      float acc0 = 0.0f;
      for (int r0 = 0; r0 < 16; r0++) {  // reduce
        if (l0 < 8) {
          As[l0] = p1[r0*8 + l0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);

Axes and accumulators keep their names; a value that is used once, and is short, stands where it is
used. Where a statement became several lines, a comment above them says what they compute.

This file writes the nodes in their order and the loops, and decides which values get names;
`values.py` writes expressions, `storage.py` loads, stores and registers, and a dialect has the
words of a language.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from workbench.backends.c_like.dialect import ArrayPart, Dialect, Parameter
from workbench.backends.c_like.helpers import Helpers
from workbench.backends.c_like.storage import WorkItemMemory, WorkItemRegisters
from workbench.backends.c_like.values import Values
from workbench.backends.program.analysis import ProgramAnalysis, about, analyse, needs_wide
from workbench.backends.program.inlining import LEAVES, TRANSPARENT, plan_inlining
from workbench.backends.program.text import (
    ATOM,
    CodeWriter,
    Follower,
    Source,
    deserves_comment,
    identifier,
    signature,
)
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.base.tensor_cores import is_transposed
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp, leaves


def render(
    dialect: Dialect, block: UOp, linear: tuple[UOp, ...], target: Target, tree: UOp | None = None
) -> Source:
    """Return the text of a linear program in a dialect. Comments follow the statement tree `block`,
    and quote `tree`, the same tree before exp2 and the like were decomposed.

    Errors: LanguageError for a dtype or an operation that the language lacks.
    """
    info: KernelInfo = linear[0].arg
    plan = analyse(linear, target)
    dialect.warp_lanes = target.warp_lanes
    dialect.serial_items = target.serial_items
    dialect.alignment_bytes = target.alignment_bytes
    name = identifier(info.name, dialect.reserved)
    writer = _Writer(dialect, name, plan, Follower(block, tree), linear, target)
    parameters = writer.parameters()
    writer.body(linear)
    used = frozenset(p.dtype.scalar.name for p in plan.params) | writer.types
    before = "\n".join([*dialect.preamble(used), *dialect.declarations.values()]).strip("\n")
    head = [before, ""] if before else []
    head += [*writer.outside, *("// " + words for words in _about(info, plan, block))]
    head += dialect.head(name, parameters, plan.launch)
    head = "\n".join(head).split("\n")  # a function may have several lines
    needs_only_text = dialect.needs_only_text
    return Source(
        name=name,
        language=dialect.language.name,
        text="\n".join([*head, *writer.text.lines, "}", ""]),
        params=signature(plan.params),
        scratch_bytes=0 if plan.on_stack else plan.scratch_bytes,
        launch=plan.launch,
        block=None if needs_only_text else block,
        lines=((),) * len(head) + (*writer.text.positions, (), ()),
        linear=() if needs_only_text else linear,
        shared_bytes=writer.shared_bytes,
    )


def _about(info: KernelInfo, plan: ProgramAnalysis, block: UOp) -> list[str]:
    """Return the comment above the function: the arguments, and the axes without a loop."""
    title = info.name.replace("\\", "/")  # \ at its end would join two lines
    lanes = {r for r in leaves([block], Ops.RANGE) if r.axis_kind.is_lane}
    return about(title, plan) + [
        f"  {axis.axis_name}  0..{axis.extent - 1} at once ({axis.axis_kind.words})"
        for axis in sorted(lanes, key=lambda r: r.axis_name)
    ]


_SHORT_INDEX = 40  # characters; arithmetic up to this is repeated, longer gets a name
_SHORT_VALUE = 72


class _Writer:
    """Writes one node after another."""

    def __init__(
        self,
        dialect: Dialect,
        name: str,
        plan: ProgramAnalysis,
        follower: Follower,
        linear: Sequence[UOp],
        target: Target,
    ):
        self.text, self.follower = CodeWriter({*dialect.reserved, name}), follower
        self.inlining = plan_inlining(linear)
        self._inline: dict[UOp, tuple[int, ...]] = {}
        """Inlined values, with the positions of the nodes in them."""
        self._statement_at = 0
        """The first line of the statement that is being written."""
        self.dialect, self.plan = dialect, plan
        helpers, values, memory = dialect.parts or (Helpers, Values, WorkItemMemory)
        self.helpers: Helpers = helpers(dialect)
        dialect.wide = dialect.wide or needs_wide(linear)
        unrounded = _stored_casts(linear) if dialect.rounds_stores else frozenset()
        self.values: Values = values(dialect, self.helpers, self._define, unrounded)
        written = {n.place.param for n in linear if n.op is Ops.STORE}
        self.memory: WorkItemMemory = memory(dialect, self.values, self.text, written)
        self.registers = WorkItemRegisters(dialect, self.values, self.text, linear)
        self.fused = _fused(linear, dialect, self.inlining.once)
        """LOADs that are written with their one use, a copy or an EXCHANGE."""
        self.copies_async, self.target = target.copies_async, target
        sets = {n.src[0] for n in linear if n.op is Ops.SET}
        self.own_registers = sum(n.dtype.itemsize for n in sets) // REGISTER_BYTES
        self.types = frozenset(n.dtype.scalar.name for n in linear)
        self.outside: list[str] = []
        """Lines before the kernel: the arrays of a group, in some languages."""
        self.axes: dict[UOp, str] = {}
        self.loops: list[UOp] = []
        """The axes of the open loops."""

    def parameters(self) -> list[Parameter]:
        """Name the arguments and arrays, declare the arrays, and return the arguments."""
        dialect, plan, names = self.dialect, self.plan, self.memory.names
        parameters = []
        for param in plan.params:
            names[param] = name = self.text.unique(f"p{param.slot}")
            is_written = param in self.memory.written
            parameters.append(Parameter(param.slot, name, param.dtype.scalar, is_written))
        for line in dialect.arguments(parameters):
            self.text.put(line)
        shared = [define for define in plan.scratch if define.space == "shared"]
        shared_bytes = self._offsets(shared)
        of_launch = 0 < dialect.most_array_bytes < shared_bytes
        self.shared_bytes = shared_bytes if of_launch else 0
        if any(define.buffers > 1 for define in shared):
            items = math.prod(plan.launch.group)
            registers = items * (self.own_registers + OTHER_REGISTERS)
            groups = unit_groups(shared_bytes, registers, self.target)
            dialect.unit_groups = groups if groups <= FEW_GROUPS else 0
        arrays = list[ArrayPart]()
        for define, offset in plan.scratch.items():
            names[define] = name = self.text.unique(define.name)
            dtype, size = define.dtype.scalar, size_of(define)
            is_shared = define.space == "shared"
            if of_launch if is_shared else not plan.on_stack:
                offset = self.offsets.get(define, offset)
                arrays.append(ArrayPart(dialect.in_memory(dtype), name, size, offset))
            elif not is_shared:
                self.text.put(dialect.array(dtype, name, size, define in plan.padded))
            elif dialect.shares_outside:
                self.outside.append(dialect.shared_array(dtype, name, size))
            else:
                self.text.put(dialect.shared_array(dtype, name, size))
        for line in dialect.launch_arrays(arrays, plan.slots) if arrays else ():
            self.text.put(line)
        return parameters

    def _offsets(self, shared: Sequence[UOp]) -> int:
        """Place the arrays of a group one after the other; return the bytes of all."""
        total = 0
        self.offsets: dict[UOp, int] = {}
        for define in shared:
            self.offsets[define] = total
            nbytes = size_of(define) * define.dtype.itemsize
            total += -(-nbytes // ARRAY_BYTES) * ARRAY_BYTES
        return total

    def body(self, linear: Sequence[UOp]) -> None:
        """Write the nodes of a linear program."""
        self._statement_at = len(self.text.lines)
        for position, node in enumerate(linear):
            self.text.at = ()
            for register in self.inlining.begins.get(position, ()):
                self.registers.begin(register, node)
            self._write(position, node)
        if self.loops:
            raise CompileError("render", f"the loop over {self._innermost} does not end")

    def _write(self, position: int, node: UOp) -> None:
        op = node.op
        self.text.at = self._written_with(position, node)
        if op is Ops.SPECIAL:
            assert node.role is not None
            number = self.dialect.number(node.role, node.dimension)
            self.text.put(self.dialect.define(*self._axis(node.axis), number))
        elif op is Ops.LOOP:
            self._loop(node)
        elif op is Ops.IF:
            self.text.put(f"if ({self.values.scalar(node.condition)[0]}) {{")
            self._open()
            self.follower.open_if()
        elif op is Ops.ENDLOOP:
            self._end(node)
        elif op is Ops.ENDIF:
            self._close()
        elif op is Ops.BLOCK:
            if position:
                raise CompileError("render", "BLOCK is not the first node of the program")
        elif op is Ops.BARRIER:
            is_plain = node.arg is None or not self.copies_async
            words = self.dialect.barrier
            self.text.put(words if is_plain else self.dialect.barrier_but(node.arg))
            self._statement_at = len(self.text.lines)
        elif op is Ops.SET:
            self.registers.set(node)
            self._finish_statement(node)
        elif op is Ops.STORE:
            self._store(node)
            self._finish_statement(node)
        elif node in self.fused:
            self._inline[node] = self.text.at
        elif op is Ops.EXCHANGE:
            self._exchange(node)
        elif op in TRANSPARENT:
            self._inline[node] = self.text.at
        elif op not in LEAVES and position not in self.inlining.unused:
            self._value(position, node)

    def _store(self, node: UOp) -> None:
        value = node.src[1]
        if value not in self.fused:
            self.memory.store(node)
            return
        is_async = self.copies_async and node.place.param.arg.buffers > 1
        self.memory.copy(node, self.helpers if is_async else None)

    # values

    def _exchange(self, node: UOp) -> None:
        """Write an EXCHANGE of the rows of a warp, and name the registers that this lane gets."""
        before, after = node.arg
        matrices = node.dtype.itemsize // REGISTER_BYTES
        transposed = is_transposed(before, after)
        element = self.memory.element(node.src[0].place)
        words = self.helpers.exchange(matrices, transposed, element)[0]
        name = self.text.numbered(self._stem(node.src[0]))
        kind = self.values.type(dtypes.uint32.vec(matrices))
        self.text.put(self.dialect.define(kind, name, words))
        self.values.wholes[node] = name, ATOM

    def _value(self, position: int, node: UOp) -> None:
        """Inline a value if that is allowed and its expression is short, else name it."""
        text = self.memory.load(node) if node.op is Ops.LOAD else self.values.compute(node)
        self.values.parts.pop(node, None)
        self.values.wholes.pop(node, None)
        if isinstance(text[0], str):
            self._whole(position, node, (text[0], text[1]))
        else:
            self._lanes(position, node, text)

    def _whole(self, position: int, node: UOp, text: tuple[str, int]) -> None:
        self.values.wholes[node] = text
        is_wide_load = node.op is Ops.LOAD and node.dtype.count > 1
        # beside && or || not all lanes of a warp would execute it
        is_shuffle_of_bool = node.op is Ops.WARP_SHUFFLE and node.dtype.is_bool
        is_named = is_wide_load and not self.values.loads_inline or is_shuffle_of_bool
        may_stand = not is_named and self._is_short(position, text[0])
        if node.op is Ops.EXTRACT or may_stand:
            self._inline[node] = self.text.at
            return
        self._inline.pop(node, None)
        self._define(node)

    def _define(self, node: UOp) -> None:
        name, words = self.text.numbered(self._stem(node)), self.values.wholes[node][0]
        self.text.put(self.dialect.define(self.values.type_of(node), name, words))
        self.values.wholes[node] = name, ATOM

    def _lanes(self, position: int, node: UOp, lanes: tuple[tuple[str, int], ...]) -> None:
        self.values.parts[node] = lanes
        if self._is_short(position, max((words for words, _ in lanes), key=len)):
            self._inline[node] = self.text.at
            return
        self._inline.pop(node, None)
        kind, stem = (self.values.type(node.dtype.scalar), self._stem(node))
        if self.values.is_split(node.dtype):
            names = [self.text.numbered(stem) for _ in lanes]
            for name, (words, _) in zip(names, lanes, strict=True):
                self.text.put(self.dialect.define(kind, name, words))
            self.values.parts[node] = tuple((name, ATOM) for name in names)
            return
        name, whole = self.text.numbered(stem), self.values.whole(node)[0]
        self.text.put(self.dialect.define(self.values.type(node.dtype), name, whole))
        del self.values.parts[node]
        self.values.wholes[node] = name, ATOM

    def _written_with(self, position: int, node: UOp) -> tuple[int, ...]:
        """Return the positions of a node and of all nodes inlined in its expression."""
        inside = [self._inline[s] for s in node.src if s in self._inline]
        return tuple(dict.fromkeys([position, *chain(*inside)])) if inside else (position,)

    def _is_short(self, position: int, words: str) -> bool:
        """Whether the value at a position may, and should, stand where it is used."""
        if position in self.inlining.anywhere and len(words) <= _SHORT_INDEX:
            return True
        return position in self.inlining.once and len(words) <= _SHORT_VALUE

    def _stem(self, node: UOp) -> str:
        """Return the first part of a value's name, by its op."""
        if node.op is Ops.LOAD:
            return f"{self.memory.names[node.place.param]}_v"
        if node.dtype is dtypes.index:
            return "at"
        return "is" if node.dtype.is_bool else "v"

    # statements

    def _open(self) -> None:
        """Indent what follows: the last line opened a loop or an IF."""
        self.text.depth += 1
        self._statement_at = len(self.text.lines)

    def _close(self) -> None:
        """Write the end of the innermost loop or IF."""
        self.text.depth -= 1
        self.text.put("}")
        self.follower.close()
        self._statement_at = len(self.text.lines)

    def _finish_statement(self, node: UOp) -> None:
        """Write a comment above the lines of a statement of the tree, if this SET or STORE
        completes the statement, and it took several lines or a vector."""
        leaf = self.follower.write(node)
        if leaf is None:
            return
        at, self._statement_at = self._statement_at, len(self.text.lines)
        if deserves_comment(leaf, len(self.text.lines) - at):
            self.text.comment(self.follower.comment(leaf), at)
            self._statement_at = len(self.text.lines)

    def _axis(self, axis: UOp) -> tuple[str, str]:
        """Return the type and the name of an axis."""
        if axis not in self.axes:
            self.axes[axis] = self.text.unique(axis.axis_name)
        self.values.wholes[axis] = self.axes[axis], ATOM
        return self.values.type(dtypes.index), self.axes[axis]

    def _loop(self, node: UOp) -> None:
        axis = node.axis
        kind, name = self._axis(axis)
        head = self.dialect.loop(kind, name, *self.dialect.bounds(node.role, axis.extent))
        self.text.put(f"{head}  // {axis.axis_kind.words}")
        self.loops.append(axis)
        self._open()
        self.follower.open(axis)

    def _end(self, node: UOp) -> None:
        if not self.loops or self.loops[-1] is not node.axis:
            names = self._innermost if self.loops else "nothing"
            raise CompileError("render", f"the loop over {names} is not the one that ends")
        self.loops.pop()
        self._close()

    @property
    def _innermost(self) -> str:
        return self.axes[self.loops[-1]]


def _stored_casts(linear: Sequence[UOp]) -> frozenset[UOp]:
    """Return the casts of floats to float16 that nothing but stores reads."""
    casts = {
        n
        for n in linear
        if n.op is Ops.CAST and n.dtype.scalar is dtypes.float16 and n.src[0].dtype.is_float
    }
    for node in linear:
        read = node.src[:1] + node.src[2:] if node.op is Ops.STORE else node.src
        casts.difference_update(read)
    return frozenset(casts)


OTHER_REGISTERS = 48
"""Registers of a work-item besides those that SETs write: an estimate."""


FEW_GROUPS = 2
"""If a compute unit has room for at most this many groups, the compiler is given their number, so
that it can use more registers. Given a larger number, it would spill registers without need."""


def unit_groups(shared_bytes: int, registers: int, target: Target) -> int:
    """Return how many groups a compute unit has room for, if each needs `shared_bytes` and
    `registers`; 0 where the hardware is not known."""
    hardware = target.hardware
    if hardware is None or not hardware.unit_shared_bytes:
        return 0
    needed = shared_bytes + hardware.group_shared_bytes
    by_registers = hardware.unit_registers // registers
    return min(hardware.unit_shared_bytes // needed, by_registers)


REGISTER_BYTES = 4
ARRAY_BYTES = 16
"""An array of a group begins at a multiple of this."""


def _fused(linear: Sequence[UOp], dialect: Dialect, once: set[int]) -> set[UOp]:
    """Return the LOADs that are written with their one use: an EXCHANGE, or a STORE that copies."""
    users: dict[UOp, list[UOp]] = {}
    for node in linear:
        for source in node.src:
            if source.op is Ops.LOAD:
                users.setdefault(source, []).append(node)
    fused = set()
    for position, node in enumerate(linear):
        if node.op is not Ops.LOAD or position not in once:
            continue
        uses = users.get(node, [])
        is_copy = all(n.op is Ops.STORE and _is_copy(n, dialect) for n in uses)
        if uses and (is_copy or all(n.op is Ops.EXCHANGE for n in uses)):
            fused.add(node)
    return fused


def _is_copy(store: UOp, dialect: Dialect) -> bool:
    """Whether a STORE copies a LOAD of an argument to an array of the group as one statement."""
    memory, load = store.place.param, store.src[1]
    if memory.op is not Ops.DEFINE or memory.space != "shared" or len(store.src) > 2:
        return False
    if load.op is not Ops.LOAD or load.place.param.op is not Ops.PARAM:
        return False
    has_no_vector = load.dtype.count > 1 and not dialect.has_vector(load.dtype)
    return not load.dtype.is_bool and (has_no_vector or memory.arg.buffers > 1)
