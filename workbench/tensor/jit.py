"""TinyJit: a function of tensors, captured once and then replayed.

The first call runs the function. The second runs it too, and captures the kernels and copies
that it launches. Later calls launch them again, on the memory of their own inputs: nothing is
scheduled, and the function's Python code does not run. The name and its meaning are tinygrad's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import finalize

import numpy as np

from workbench import engine
from workbench.backends.buffer import Buffer
from workbench.base.context import JIT
from workbench.base.dtypes import DType
from workbench.base.errors import JitError
from workbench.base.forking import free_rlock
from workbench.base.unpicklable import Unpicklable
from workbench.debug import say
from workbench.ir.node.constants import is_known
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import RulesInForce, rules_in_force
from workbench.ir.schedule.schedule import base
from workbench.replay import Replay
from workbench.tensor.base import tensors_alive
from workbench.tensor.captured_state import (
    CapturedState,
    MemoryWritten,
    buffer_of,
    captured_state,
    compute,
    gradients_alive,
    memory_by_buffer,
    tensor_of,
)
from workbench.tensor.creation.random import Keys, noting_draws
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.nest import (
    HOLE,
    changed,
    same,
    tensors,
    with_tensors,
    without_tensors,
)
from workbench.tensor.operands.arguments import short
from workbench.tensor.tensor import Tensor
from workbench.tensor.versions import VersionedMemory, noting_writes

P = ParamSpec("P")
R = TypeVar("R")
Kind = tuple[Shape, DType, str]
"""The properties of an input that must stay the same: shape, dtype, device."""


class TinyJit(Unpicklable, Generic[P, R]):
    """A function whose kernels are captured at its second call and replayed from the third on.

    Tensors among the arguments, also inside lists, tuples and dicts, are the inputs; they are
    computed first where necessary. Their shapes, dtypes and devices, and all other arguments, must
    be those of the second call. Memory of tensors that are not arguments is state: it is read at
    each call, and written where the function writes it; so are arguments. The result has the
    structure of the function's result; its tensors are new at each call, with memory of their own,
    so that earlier results are unchanged. A result that is a view of an input is a view of the new
    input.

    A gradient that the function leaves in `.grad` is that of a run of its Python code, so after a
    replay it is None: the optimiser's step belongs into the function, or the gradient is returned.

    Random numbers are drawn anew at each call: the same ones that the function would draw.

    Errors: JitError where the function runs no kernel or reads values, and where a later call does
    not fit.
    Also known as: tinygrad's TinyJit; CUDA graphs.

    >>> double = TinyJit(lambda x: x * 2)
    >>> [double(Tensor([n]).realize()).item() for n in range(4)]
    [0, 2, 4, 6]
    """

    def __init__(self, function: Callable[P, R]):
        if not callable(function):
            because = f"{type(function).__name__} cannot be called"
            raise JitError("nothing to capture", because, "TinyJit(lambda x: x * 2)")
        self._function, self._state = function, _State()
        self._states: dict[int, _State] = {}
        update_wrapper(self, function)

    def reset(self) -> None:
        """Drop the capture: the next call is the first again."""
        self._state.calls, self._state.captured = 0, None

    @property
    def count(self) -> int:
        """The number of kernels and copies of a replay; 0 before there is one."""
        captured = self._state.captured
        return 0 if captured is None else captured.replay.count

    def launch(self) -> None:
        """Run the kernels of the last call once more, on the same memory, for timing.

        Errors: JitError before the capture.
        """
        with self._state.lock:
            if self._state.captured is None:
                raise JitError("nothing has been captured", "that takes two calls")
            self._state.captured.replay.launch()

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """Return the method bound to `owner`: each object, equal ones too, has a capture of its own
        as long as it lives.

        Errors: JitError for an object without weak references, having __slots__ alone.
        """
        if owner is None:
            return self
        jit: TinyJit[Any, Any] = object.__new__(TinyJit)
        jit._function, jit._states = self._function.__get__(owner, kind), {}
        jit._state = self._states.get(id(owner)) or self._state_for(owner)
        return jit

    def _state_for(self, owner: Any) -> _State:
        """Return the new state of an object, which is freed with the object."""
        try:
            finalize(owner, self._states.pop, id(owner), None).atexit = False
        except TypeError:
            raise JitError(
                f"cannot capture a method of {type(owner).__name__}",
                "its __slots__ have no __weakref__, which tells when an object is gone",
                'add "__weakref__" to them',
            ) from None
        return self._states.setdefault(id(owner), _State())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if (
            engine.is_capturing()
        ):  # another function captures this one's kernels with its own
            return self._function(*args, **kwargs)
        if not JIT.value:
            return self._function(*args, **kwargs)
        state = self._state
        with state.lock:
            if state.rules != rules_in_force():  # the capture has other rules
                state.calls, state.captured = 0, None
                state.rules = rules_in_force()
            if state.captured is not None and state.captured.has_other_state():
                state.captured = None
            inputs = list(tensors((args, kwargs)))
            if state.captured is not None and not state.captured.is_aliased(inputs):
                result: R = state.captured(args, kwargs)
                return result
            if state.calls == 0:
                result = _first_run(self._function, args, kwargs, state)
            elif state.captured is not None or state.written.is_aliased(inputs):
                # What is written under one name would be read under another: it runs as it is.
                return _first_run(self._function, args, kwargs, _State())
            else:
                compute(state.used)
                state.captured, result = _capture(self._function, args, kwargs)
                state.used = []
            state.calls += 1
            return result


@dataclass(slots=True)
class _State:
    """The number of calls of a function, or of a method of one object, and its capture."""

    calls: int = 0
    captured: _Captured | None = None
    rules: RulesInForce = field(default_factory=rules_in_force)
    """The rules of the capture."""
    lock: RLock = field(default_factory=free_rlock)
    used: list[VersionedMemory] = field(default_factory=list)
    """Memory, not computed then, that the first call read: it is state."""
    written: MemoryWritten = field(default_factory=MemoryWritten)
    """What the first call wrote."""


class _Captured:
    """A capture: the kinds of the inputs, the Replay, and the outline of the result."""

    def __init__(
        self,
        replay: Replay,
        kinds: list[Kind],
        others: Any,
        result: Any,
        name: str,
        state: CapturedState,
        written: dict[int, int],
        draws: list[Keys],
    ):
        self.replay, self._kinds, self._others = replay, kinds, others
        self._result, self._name = result, name
        self._state, self._written, self._draws = state, written, draws
        self._writes = MemoryWritten(state.memory_written(bool(written)), bool(written))
        is_flat = others == ((HOLE,) * len(kinds), {})
        self._flat = [Tensor] * len(kinds) if is_flat else None
        self._inputs_before: list[UOp] = []
        self._memory: list[Buffer] = []

    def has_other_state(self) -> bool:
        """Whether a tensor of the state was replaced since the capture, or written where it was a
        known constant: then it gets memory, which the next capture reads."""
        changes = self._state.changed_constants()
        for memory in changes:
            buffer_of(memory)
        return bool(changes) or self._state.has_other_memory()

    def is_aliased(self, inputs: list[Tensor]) -> bool:
        """Whether inputs share memory with each other, or with state, and that is written."""
        return self._writes.is_aliased(inputs)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = self._inputs(args, kwargs)
        if [tensor.uop for tensor in inputs] != self._inputs_before:
            self._look(inputs)
        state = self._state.before(self._memory)
        keys = [draw.renew() for draw in self._draws]
        outputs = self.replay([*self._memory, *state, *keys])
        nodes = self._state.after(outputs)
        for place, result in self._written.items():
            tensor = inputs[place]
            tensor.assign(_tensor(outputs[result], tensor.shape, nodes)).realize()
        if isinstance(self._result, _FreshTensor):
            return _tensor(outputs[0], self._result.shape, nodes)
        return _filled(self._result, iter(outputs), nodes)

    def _look(self, inputs: list[Any]) -> None:
        """Check that inputs fit, and return their memory. A node has the same memory as long as it
        lives, so inputs of the last call need no second check."""
        memory: list[Buffer] = []
        for tensor, kind in zip(inputs, self._kinds, strict=True):
            buffer = _memory(tensor)
            if (tensor.uop.shape, buffer.dtype, buffer.device) != kind:
                raise self._changed(len(memory), kind, _kind(tensor))
            memory.append(buffer)
        self._memory, self._inputs_before = memory, [tensor.uop for tensor in inputs]

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if not kwargs and [type(a) for a in args] == self._flat:
            return list(args)
        others = without_tensors((args, kwargs))
        if not same(others, self._others):
            raise JitError(
                f"{self._name} is called otherwise than when it was captured",
                f"then it was {_call(self._others)}, and now it is {_call(others)}",
                "the same arguments but for tensors, or .reset() to capture anew",
            )
        return list(tensors((args, kwargs)))

    def _changed(self, place: int, kind: Kind, actual: Kind) -> JitError:
        names = ("shape", "dtype", "device")
        changes = [
            f"its {name} was {was} when {self._name} was captured, and is {now}"
            for name, was, now in zip(names, kind, actual, strict=True)
            if was != now
        ]
        return JitError(
            f"input {place} of {self._name} does not fit",
            "; ".join(changes),
            "another TinyJit for it, or .reset() to capture anew",
        )


def _first_run(
    function: Callable[..., R],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    state: _State,
) -> R:
    """Run `function`, compute its result and what it wrote, and return the result. `state` gets
    what it wrote, and the memory of values that it used and that were not computed before."""
    before = tensors_alive()
    with engine.noting_roots() as roots, noting_writes() as written:
        result = function(*args, **kwargs)
        _realize(result, written)
    for memory in dict.fromkeys(written):
        buffer_of(memory)  # a known value, too, will be another one at the next call
    used = set(UOp.sink(*roots).toposort())
    waiting = [t for t in before if t.uop in used and base(t.uop).op is not Ops.BUFFER]
    for tensor in waiting:
        tensor._share(tensor)
    state.used = [m for t in waiting if (m := t._memory) is not None]
    compute(state.used)
    of_inputs = {t._memory for t in tensors((args, kwargs))}
    # Which name an argument's memory was written by is not known: at the next call it is no input.
    state.written = MemoryWritten(set(written), any(m in of_inputs for m in written))
    return result


def _capture(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[_Captured, Any]:
    """Run `function`, and return its capture and its result.

    It gets tensors on new BUFFERs: no value that was computed before depends on them, so all that
    depends on the inputs is computed, and captured, here.
    """
    name = getattr(function, "__name__", type(function).__name__)
    arguments, others = list(tensors((args, kwargs))), without_tensors((args, kwargs))
    _refuse_arrays(others, name)
    inputs = [_stand_in(t) for t in arguments]
    memory, gradients = memory_by_buffer(), gradients_alive()
    stand_ins = [Tensor(node) for node in inputs]
    own_args, own_kwargs = with_tensors((args, kwargs), iter(stand_ins))
    with (
        engine.capturing() as captured,
        noting_writes() as written,
        noting_draws() as draws,
    ):
        result = function(*own_args, **own_kwargs)
        outputs = _realize(result, written)
    if not captured.items:
        raise JitError(
            f"cannot capture {name}",
            "it ran no kernel: its result is known, or a view of what is in memory",
            "the function without TinyJit",
        )
    nodes = [n for t in outputs if not is_known(n := _computed(t.uop))]
    changed_inputs = {n: t for n, t in enumerate(stand_ins) if t.uop is not inputs[n]}
    written_inputs = {n: len(nodes) + k for k, n in enumerate(changed_inputs)}
    nodes += [_memory_node(t) for t in changed_inputs.values()]
    state = captured_state(captured, memory, written, len(nodes), gradients)
    nodes += [_computed(m.value) for _, m in state.written]
    kinds = [_kind(t) for t in arguments]
    keys = [draw.node for draw in draws]
    reads = [node for node in memory if captured.reads(node)]
    rewritten = {captured.root(_computed(m.value)) for _, m in state.written}
    replay = Replay(captured, [*inputs, *reads, *keys], nodes, rewritten)
    say(1, f"TinyJit: {name} captured, {replay.count} kernels and copies")
    for place, stand_in in changed_inputs.items():
        arguments[place].assign(stand_in)
    _refuse_two_names(arguments, state.memory_written(bool(changed_inputs)), name)
    outline = _outline(result)
    return _Captured(
        replay, kinds, others, outline, name, state, written_inputs, draws
    ), result


def _refuse_two_names(
    arguments: Sequence[Tensor], written: Collection[VersionedMemory], name: str
) -> None:
    """Raise JitError for an argument on memory that is written under another name."""
    if any(t._memory in written for t in arguments):
        raise JitError(
            f"cannot capture {name}",
            "an argument is also a tensor that it reaches by another name, and it is written",
            "the function without TinyJit, or a .clone() of the argument",
        )


def _realize(result: Any, written: Sequence[VersionedMemory] = ()) -> list[Tensor]:
    """Compute the tensors of a result, and memory that was written, together; return the tensors of
    the result."""
    outputs = list(tensors(result))
    both = outputs + [tensor_of(m) for m in dict.fromkeys(written)]
    if both:
        both[0].realize(*both[1:])
    return outputs


def _memory(tensor: Tensor) -> Buffer:
    """Return the memory of an input, computed where necessary; a constant gets memory."""
    return engine.memory_of(_memory_node(tensor))


def _memory_node(tensor: Tensor) -> UOp:
    """Return the BUFFER of a tensor, computed where necessary; a constant gets a new one."""
    node = _computed(tensor.uop)
    if node.op is not Ops.BUFFER:
        node = _computed(tensor.realize().uop)
    if node.op is Ops.BUFFER:
        return node
    constant = Buffer.of(
        tensor.device, tensor.dtype, engine.to_numpy(engine.with_computed(tensor.uop))
    )
    return engine.buffer_on(constant, tensor.shape)


def _computed(node: UOp) -> UOp:
    """Return the BUFFER that a value is in, without RESHAPEs; the value, if it is in none."""
    return base(engine.with_computed(node))


def _stand_in(tensor: Tensor) -> UOp:
    """Return a new BUFFER, in a tensor's shape, on the memory of an argument."""
    return engine.another(_memory_node(tensor), tensor.shape)


def _kind(tensor: Tensor) -> Kind:
    return tensor.shape, tensor.dtype, tensor.device


@dataclass(frozen=True, slots=True)
class _FreshTensor:
    """Placeholder for a tensor of a result whose memory a replay allocates."""

    shape: Shape


def _outline(result: Any) -> Any:
    """Return a result with a placeholder for each tensor; known tensors stay."""

    def change(leaf: Any) -> Any:
        is_fresh = isinstance(leaf, Tensor) and not is_known(base(leaf.uop))
        return _FreshTensor(leaf.shape) if is_fresh else leaf

    return changed(result, change)


def _filled(outline: Any, memory: Iterator[Buffer], nodes: dict[int, UOp]) -> Any:
    """Return the result of a replay: new tensors on `memory`."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, _FreshTensor):
            return _tensor(next(memory), leaf.shape, nodes)
        return Tensor(leaf.uop) if isinstance(leaf, Tensor) else leaf

    return changed(outline, change)


def _tensor(memory: Buffer, shape: Shape, nodes: dict[int, UOp]) -> Tensor:
    """Return a tensor on memory, without a record of the user's lines. `nodes` are the BUFFERs of
    state by the identity of their memory."""
    node = nodes.get(id(memory))
    if node is None:
        return Tensor._on(engine.buffer_on(memory, shape), memory.device)
    return Tensor._on(reshaped(node, shape), memory.device)


def _refuse_arrays(others: Any, name: str) -> None:
    """Raise JitError for numpy arrays as arguments, which would be constants."""

    def look(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            raise JitError(
                f"cannot capture {name}",
                "one of its arguments is a numpy array: it would be the same in each replay",
                "Tensor(array)",
            )

    changed(others, look)


def _call(others: Any) -> str:
    """Return the arguments of a call as text."""
    args, kwargs = others
    parts = [short(a) for a in args] + [f"{k}={short(v)}" for k, v in kwargs.items()]
    return f"({', '.join(parts)})"
