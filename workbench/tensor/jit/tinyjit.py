"""TinyJit: a function of tensors, captured once and then replayed.

The first call runs the function. The second runs it too, and captures the kernels and copies
that it launches. Later calls launch them again, on the memory of their own inputs: nothing is
scheduled, and the function's Python code does not run. The name and its meaning are tinygrad's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import update_wrapper
from inspect import Parameter, signature
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import finalize

from workbench.base import recording
from workbench.base.context import (
    BEAM,
    DEFAULT_FLOAT,
    DEFAULT_INT,
    DEV,
    JIT,
    NOOPT,
    TRAINING,
    TUNING,
    values_of,
)
from workbench.base.errors import JitError
from workbench.base.files import Unpicklable
from workbench.base.interrupts import free_rlock
from workbench.base.recording import clock_ns, note, span
from workbench.base.situation import situation
from workbench.execution.capture import is_capturing, noting_roots
from workbench.execution.realize import running
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rules_in_force
from workbench.ir.schedule.schedule import base
from workbench.tensor.autograd.leaves import gradients_flow
from workbench.tensor.base import tensors_alive
from workbench.tensor.jit.capture import capture, compute_results
from workbench.tensor.jit.function_replay import FunctionReplay
from workbench.tensor.jit.guard import NumberChanges
from workbench.tensor.jit.holders import reached
from workbench.tensor.jit.parts import Path
from workbench.tensor.jit.quick_call import MISSED
from workbench.tensor.jit.results import compute_at, rebindings
from workbench.tensor.jit.state import MemoryWritten, buffer_of, compute
from workbench.tensor.tensor import Tensor
from workbench.tensor.variable_operators import tensors, without_tensors
from workbench.tensor.versions import VersionedMemory, noting_writes

P = ParamSpec("P")
R = TypeVar("R")
_SETTINGS = (DEV, NOOPT, BEAM, TUNING, JIT, DEFAULT_FLOAT, DEFAULT_INT, TRAINING)
"""Settings on which the kernels of a function depend."""
_captures = free_rlock()
"""The lock of captures: a capture gives all memory new BUFFERs."""


class TinyJit(Unpicklable, Generic[P, R]):
    """A function whose kernels are captured at its second call and replayed from the third on.

    Tensors among the arguments, also inside lists, tuples and dicts, are the inputs; they are
    computed first if necessary. Their shapes, dtypes and devices, and all other arguments, must be
    those of the second call. Memory of tensors that are not arguments is state. A replay reads it
    at each call; it writes state and arguments where the function does. The result has the
    structure of the function's result. Its tensors are new at each call, with memory of their own,
    so that earlier results are unchanged. But an input, a tensor of the state, or a view of one of
    these, is returned as such: each side sees what is written to the other.

    Where the function binds an attribute, an item or a variable to another tensor, a replay does
    so, too. Where it makes a new tuple, dict or object with tensors, the replay fills a copy of the
    present one. A replay has no other effects of its Python code. If a name that the
    function reaches is bound to another tensor or number between two calls, the function is
    captured anew. If it changes a number itself, two captures in succession show whether its
    kernels depend on that: if so, it warns, and its Python code runs at each call. A number that
    matters later (after ten calls, or every fourth time) is not found: keep it outside. What it
    reads of a clock, a file, or the random numbers of Python and NumPy stays as it was at the
    capture; a change in os.environ is found.

    A gradient that the function leaves in `.grad` is that of a run of its Python code, and a replay
    sets it to None: do the optimiser's step in the function, or return the gradient.

    No gradient flows through a result from the second call on: it has no expression. One that would
    reach a tensor with requires_grad=True by such a result is refused: do the loss and its gradient
    in the function, or detach() the result, which is then a constant.

    Random numbers are drawn anew at each call: the same ones that the function would draw.

    Errors: JitError for a function that a replay could not repeat: it neither computes nor returns
    a tensor, reads values, takes a numpy array, advances an iterator, calls .replace(), or writes
    or binds anew a tensor with two names; and for a later call that does not fit.
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
        """The number of kernels and copies of a replay; 0 before there is one. Kernels that depend
        on state alone run again only when it has changed."""
        captured = self._state.captured
        return 0 if captured is None else captured.replay.count

    def launch(self) -> None:
        """Run the kernels of the last call once more, on the same memory, for timing.

        Errors: JitError before the capture.
        """
        with self._state.lock, running:  # a quick call holds the second lock alone
            if self._state.captured is None:
                raise JitError("nothing has been captured", "that takes two calls", "call it first")
            self._state.captured.replay.launch()

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """Return the method bound to `owner`: each object, equal ones too, has a capture of its own
        as long as it lives.

        Errors: JitError for an object without weak references, with __slots__ alone.
        """
        if owner is None:
            return self
        jit: TinyJit[Any, Any] = object.__new__(TinyJit)
        jit._function, jit._states = self._function.__get__(owner, kind), {}
        jit._state = self._states.get(id(owner)) or self._state_for(owner)
        return jit

    def _state_for(self, owner: Any) -> _State:
        """Return a new state for an object; it is freed with the object."""
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
        captured = self._state.captured
        quick = None if captured is None else captured.quick
        if quick is not None and not kwargs and quick.situation is situation():
            start_ns = clock_ns() if recording.active else 0
            result: R = quick(self._function, args)
            if result is not MISSED:
                if start_ns:
                    note(start_ns, clock_ns(), "replay", _name_of(self._function))
                return result
        if is_capturing():  # another function captures this one's kernels with its own
            return self._function(*args, **kwargs)
        if not JIT.value:
            return self._function(*args, **kwargs)
        state = self._state
        with state.lock:
            if state.situation != (now := _situation()):
                state.calls, state.captured, state.situation = 0, None, now
            if kwargs:
                kwargs = state.in_order(self._function, kwargs)
                if tuple(kwargs) != state.names and {*kwargs} == {*state.names}:
                    # The function sees the order, and the capture has another order.
                    return _first_run(self._function, args, kwargs, _State())
            root = self._function, args, kwargs
            captured = state.captured
            if captured is not None and captured.has_other_state(root):
                state.bound = [*dict.fromkeys((*state.bound, *captured.changed_paths))]
                state.captured = captured = state.changes = None
            is_flat = not kwargs and all(type(argument) is Tensor for argument in args)
            inputs: list[Any] = [*args] if is_flat else list(tensors((args, kwargs)))
            if captured is not None and not captured.is_aliased(inputs, root):
                with span("replay", _name_of(self._function)):
                    result = captured(root, inputs)
                return result
            if state.calls == 0:
                result = _first_run(self._function, args, kwargs, state)
            elif state.captured is not None or state.written.is_aliased(inputs):
                # What is written by one name would be read by another: the Python code runs.
                return _first_run(self._function, args, kwargs, _State())
            else:
                with _captures, span("capture", _name_of(self._function)):
                    compute(state.used)
                    compute_at(root, state.bound)
                    captured, result, state.bound = capture(
                        self._function, args, kwargs, is_first=state.calls == 1
                    )
                state.captured = state.settled(captured)
                state.used = []
            state.calls += 1
            return result


@dataclass(slots=True)
class _State:
    """The number of calls of a function, or of a method of one object, and its capture."""

    calls: int = 0
    captured: FunctionReplay | None = None
    situation: tuple[Any, ...] = ()
    """The rules and settings of the capture."""
    names: tuple[str, ...] = ()
    """The order of the keyword arguments of the capture."""
    lock: RLock = field(default_factory=free_rlock)
    used: list[VersionedMemory] = field(default_factory=list)
    """Memory that was not computed when the first call read it: it is state."""
    written: MemoryWritten = field(default_factory=MemoryWritten)
    """What the first call wrote."""
    bound: list[Path] = field(default_factory=list)
    """The paths at which the function binds tensors anew, and those of constants that changed."""

    changes: NumberChanges | None = None
    """The changes of the last capture, while it is unknown whether kernels depend on them."""
    is_warned: bool = False

    def settled(self, captured: FunctionReplay | None) -> FunctionReplay | None:
        """Return `captured` if it may be replayed; None if its kernels depend, or may depend, on
        numbers that the function changes."""
        before = self.changes
        self.changes = None if captured is None else captured.changes
        if captured is None or self.changes is None:
            return captured
        if before is None:
            return None
        if before.runs_like(self.changes):
            return captured
        if not self.is_warned:
            self.changes.warn()
            self.is_warned = True
        return None

    def in_order(self, function: Callable[..., Any], kwargs: Any) -> Any:
        """Return keyword arguments in the order of the first call. A function with **kwargs sees
        the order: it gets them as they are."""
        names = tuple(kwargs)
        if not self.calls:
            self.names = names
        if names == self.names or {*names} != {*self.names} or _takes_any(function):
            return kwargs
        return {name: kwargs[name] for name in self.names}


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _takes_any(function: Callable[..., Any]) -> bool:
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is Parameter.VAR_KEYWORD for p in parameters)


def _situation() -> tuple[Any, ...]:
    """Return what a function may depend on besides its arguments and state: rules and settings."""
    return (*rules_in_force(), gradients_flow(), *values_of(_SETTINGS))


def _first_run(
    function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any], state: _State
) -> R:
    """Run `function`, compute its result and what it wrote or bound anew, and return the result.
    `state` gets what it wrote, the paths that it bound anew, and the memory of values that it used
    before they were computed."""
    before, root = tensors_alive(), (function, args, kwargs)
    earlier = reached([((), root)])
    with noting_roots() as roots, noting_writes() as written:
        result = function(*args, **kwargs)
        bindings = rebindings(earlier, reached([((), root)]))
        compute_results([result, bindings.new], written)
    state.bound = bindings.paths
    for memory in dict.fromkeys(written):
        buffer_of(memory)  # a known constant, too, may have another value at the next call
    used = set(UOp.sink(*roots).toposort())
    waiting = [t for t in before if t.uop in used and base(t.uop).op is not Ops.BUFFER]
    for tensor in waiting:
        tensor._share(tensor)
    state.used = [m for t in waiting if (m := t._memory) is not None]
    compute(state.used)
    of_inputs = {t._memory for t in tensors((args, kwargs))}
    others_by_path = reached([((), (function, *without_tensors((args, kwargs))))]).tensors
    others = {t._memory for t in others_by_path.values()}
    # Memory of an argument with another name may be written by that name: it is then no input.
    names = {m for m in written if m not in of_inputs or m in others}
    state.written = MemoryWritten(names, any(m in of_inputs for m in written))
    return result
