"""The capture of a function: it runs once on stand-ins, and its launches are recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from workbench.base.errors import JitError
from workbench.debug import debug_print
from workbench.execution.buffers import another, read
from workbench.execution.capture import capturing, noting_others, noting_roots
from workbench.execution.memory_plan import value_in_memory, without_detach
from workbench.execution.replay import Replay
from workbench.ir.node.construct import is_known
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import base
from workbench.search.realization import tuned
from workbench.tensor.base import tensors_alive
from workbench.tensor.creation.random import noting_draws
from workbench.tensor.jit.containers import ObjectResults
from workbench.tensor.jit.flows import CapturedFlows, CapturedTensors, FlowOfOutputs
from workbench.tensor.jit.function_capture import FunctionCapture
from workbench.tensor.jit.function_replay import FunctionReplay
from workbench.tensor.jit.guard import (
    Guard,
    NumberChanges,
    TensorMeaning,
    Uses,
    has_gradients,
    is_at,
    roots_of,
)
from workbench.tensor.jit.holders import Reached, reached
from workbench.tensor.jit.parts import LENGTH, Path, words_of
from workbench.tensor.jit.results import (
    Computed,
    Outline,
    ReboundPlaces,
    Results,
    is_whole,
    name_conflict,
    rebindings,
)
from workbench.tensor.jit.state import (
    CapturedState,
    captured_state,
    gradients_alive,
    input_node,
    kind_of,
    memory_by_buffer,
    tensor_of,
)
from workbench.tensor.tensor import Tensor
from workbench.tensor.variable_operators import changed, tensors, with_tensors, without_tensors
from workbench.tensor.versions import VersionedMemory, noting_writes, replacements


def capture(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], is_first: bool
) -> tuple[FunctionReplay | None, Any, list[Path]]:
    """Run `function`; return its capture, its result, and the paths of the tensors that it binds
    anew. The capture is None, and the next call may make one, in these cases:

        a tensor that it binds anew or writes had no memory of its own: the next call gives it some
        another thread computed or wrote what the function uses: a replay would leave that out
        the function cannot be captured with the present tensors, and this is not the first try

    The function gets tensors on new BUFFERs. No value that was computed before depends on them, so
    all that depends on the inputs is computed, and captured, here.

    Errors: JitError for a numpy array among the arguments; and if the function cannot be captured,
    and `is_first`.
    """
    name = getattr(function, "__name__", type(function).__name__)
    others = without_tensors((args, kwargs))
    _refuse_arrays(others, name)
    with noting_others() as by_others:
        run = _CaptureRun(function, args, kwargs, name)
        changed_inputs = run.changed_inputs()
        outline = run.outline()
        nodes = [*outline.nodes]
        written_inputs = {n: len(nodes) + k for k, n in enumerate(changed_inputs)}
        nodes += [input_node(t) for t in changed_inputs.values()]
        state = captured_state(run.captured, run.memory, run.written, nodes, run.gradients)
        flows = run.flows(state, outline)
        result, bound = run.result_of(outline, nodes, name), run.bindings.paths
    if run.uses(by_others):
        return None, result, bound
    refusal = run.refusal(state, name)
    if refusal is not None and is_first:
        raise refusal
    if refusal is not None or not (run.has_memory_bound() and run.has_written_memory()):
        return None, result, bound
    replay = run.replay(state, nodes)
    debug_print(1, f"TinyJit: {name} captured, {replay.count} kernels and copies")
    for n in replay.unread(len(run.arguments)):
        debug_print(1, f"TinyJit: no kernel of {name} reads input {n}")
    kinds = [kind_of(t) for t in run.arguments]
    captured = FunctionCapture(
        name, replay, kinds, others, outline.structure, outline.rebound, state,
        ReboundPlaces(run.bindings, state.read), run.guard(state, outline), written_inputs,
        run.draws, run.steady(state), run.changes(name), flows,
    )  # fmt: skip
    return FunctionReplay(captured), result, bound


class _CaptureRun:
    """The run of a function under capture, and the record of what it did."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
    ):
        self.root = function, args, kwargs
        self.arguments = list(tensors((args, kwargs)))
        self._inputs = [_stand_in(t) for t in self.arguments]
        self.memory, self.gradients = memory_by_buffer(), gradients_alive()
        self._versions = {memory: memory.value for memory in self.memory.values()}
        self.existing = [t for t in tensors_alive() if isinstance(t, Tensor)]
        memories = [t._memory for t in self.existing]
        count = replacements.count
        roots = roots_of(function, args, kwargs)
        reached_before, own = reached(roots), set(self.memory.values())
        self._twice_named = reached_before.twice_named()
        self.meanings = {
            path: TensorMeaning.of(tensor, own) for path, tensor in reached_before.tensors.items()
        }
        self.stand_ins = [Tensor(node) for node in self._inputs]
        originals = [Tensor(node) for node in self._inputs]  # so none is overwritten in place
        own_args, own_kwargs = with_tensors((args, kwargs), iter(self.stand_ins))
        own_root = ((), (function, own_args, own_kwargs))
        before = reached([own_root])
        with (
            capturing() as self.captured,
            noting_roots() as self._computed,
            noting_writes() as self.written,
            noting_draws() as draws,
        ):
            self.result = function(*own_args, **own_kwargs)
            after = reached([own_root])
            self._after, self.bindings = after.tensors, rebindings(before, after)
            bound = {id(tensor) for tensor in self.bindings.old}
            same = [t for t in self.existing if id(t) not in bound]
            self.objects = ObjectResults(name, before, same)
            results = [*self.objects.tensors_of(self.result)]
            compute_results([results, self.bindings.new], self.written)
        del originals
        self.draws = draws
        self._compare(reached_before, reached(roots))
        pairs = zip(self.existing, memories, strict=True)
        self._replaced = count != replacements.count and any(
            t._memory is not memory for t, memory in pairs
        )

    def _compare(self, before: Reached, after: Reached) -> None:
        """Note the values that the function reached, and those that it changed itself."""
        self._leaves = {p: has_gradients(t) for p, t in after.tensors.items()}
        self._iterators = before.iterators
        self._paths = {*before.values, *after.values}
        same = {p: v for p, v in before.values.items() if is_at(p, after.values, v)}
        changed = [p for p in before.values if p in after.values and p not in same]
        self._values, self._changed = same, [p for p in changed if p[-1] != LENGTH]

    def outline(self) -> Outline:
        """Return the outline of the result, and of what the function binds anew."""
        return Outline(
            self.result,
            self.bindings,
            self.stand_ins,
            self.existing,
            self.memory.values(),
            self.objects,
        )

    def uses(self, nodes: Collection[UOp]) -> bool:
        """Whether one of `nodes` is part of what was computed or written."""
        if not nodes:
            return False
        roots = [*self._computed, *[m.value for m in self.written]]
        graph = UOp.sink(*roots, *without_detach(roots)).toposort()
        return not {*graph}.isdisjoint(nodes)

    def changed_inputs(self) -> dict[int, Tensor]:
        """Return the stand-ins that have other values now, by the numbers of the arguments."""
        pairs = zip(self.stand_ins, self._inputs, strict=True)
        return {n: t for n, (t, node) in enumerate(pairs) if t.uop is not node}

    def replay(self, state: CapturedState, nodes: Sequence[UOp]) -> Replay:
        """Return the replay of what has run, whose outputs are `nodes`."""
        read = set(state.read)
        reads = [node for node, memory in self.memory.items() if memory in read]
        rewritten = {self.captured.root(value_in_memory(m.value)) for _, m in state.written}
        keys = [draw.node for draw in self.draws]
        steady = [reads[n] for n in self.steady(state)]
        inputs = [*self._inputs, *reads, *keys]
        return Replay(self.captured, inputs, nodes, tuned, rewritten, steady)

    def flows(self, state: CapturedState, outline: Outline) -> list[FlowOfOutputs]:
        """Return what the outputs flow from: those of the outline, the arguments that the function
        writes, and the new versions of the state. The stand-ins, and what the function computed
        from them, get the origins of the arguments."""
        numbers = {memory: n for n, memory in enumerate(state.read)}
        names = {memory: name for name, memory in self.memory.items() if memory in numbers}
        inputs = self.changed_inputs()
        of_capture = CapturedTensors(
            self._inputs,
            self.stand_ins,
            [*inputs],
            [(names[memory], self._versions[memory]) for memory in state.read],
            numbers,
            [memory for _, memory in state.written],
            {id(tensor): placeholder for placeholder, tensor in outline.tensors},
            {*map(id, self.existing)},
        )
        flows = CapturedFlows(of_capture)
        changed = [tensor.uop for tensor in inputs.values()]
        versions = [memory.value for _, memory in state.written]
        grouped = flows.grouped([*outline.expressions, *changed, *versions])
        flows.note_inputs(self.arguments)
        return grouped

    def changes(self, name: str) -> NumberChanges | None:
        """Return the numbers and texts that the function changed itself, with what ran; None if it
        changed none."""
        if not self._changed:
            return None
        places: dict[UOp, int] = {}
        items = [
            (item.kernel, [places.setdefault(b, len(places)) for b in item.buffers])
            for item in self.captured.items
        ]
        written = {b for item in self.captured.items for b in item.outputs}
        sources = {*written, *self._inputs, *self.memory, *[d.node for d in self.draws]}
        data = [read(b).tobytes() for b in places if self.captured.root(b) not in sources]
        return NumberChanges(name, self._changed, items, data, without_tensors(self.result))

    def steady(self, state: CapturedState) -> list[int]:
        """Return which of `state.read` the function neither writes nor binds anew, by number."""
        bound = {t._memory for t in self.bindings.old}
        others = state.memory_written(False) | {m for m in bound if m is not None}
        return [n for n, m in enumerate(state.read) if m not in others]

    def result_of(self, outline: Outline, nodes: Sequence[UOp], name: str) -> Any:
        """Write the arguments that the function wrote, bind what it bound, and return its result,
        with the user's tensors instead of the stand-ins."""
        for place, stand_in in self.changed_inputs().items():
            self.arguments[place].assign(stand_in)
        own = {
            id(placeholder): tensor
            for placeholder, tensor in outline.tensors
            if not isinstance(placeholder, Computed)
            or is_whole(tensor)
            or not self._is_bound(tensor)
        }
        results = Results(nodes, self.arguments, self.bindings.old, own)
        result = results.filled(outline.structure)
        self.bindings.bind(self.root, results.filled(outline.rebound), name)
        return result

    def guard(self, state: CapturedState, outline: Outline) -> Guard:
        """Return the check of what a replay assumes of the tensors that the function reaches."""
        computed = set(UOp.sink(*self._computed).toposort())
        nodes = {s.node for s in self.meanings.values() if s.node in computed}
        memory = {*state.read, *state.memory_written(False), *outline.memory_named}
        # Equal constants are one node: a view tells one tensor from another.
        viewed = {*outline.memory_named}
        constants = {id(t) for t in self.existing if t._memory in viewed and is_known(base(t.uop))}
        tensors = outline.existing_named | self._twice_named | constants
        uses = Uses(memory, nodes, tensors)
        return Guard(
            self.meanings, self._values, self._paths, self._leaves, self.bindings.all_paths, uses
        )

    def has_written_memory(self) -> bool:
        """Whether all earlier tensors that were written have memory that a replay can write; if
        not, the next call gives it to them."""
        own, written = set(self.memory.values()), set(self.written)
        return all(t._memory in own for t in self.existing if t._memory in written)

    def refusal(self, state: CapturedState, name: str) -> JitError | None:
        """Return the error if a replay could not repeat the function: it does nothing, advances an
        iterator, writes a tensor with two names, or calls .replace(); else None."""
        changed_inputs, paths = self.changed_inputs(), self.bindings.paths
        does_nothing = not (self.captured.items or self.written or changed_inputs or paths)
        if does_nothing and not list(tensors(self.result)):
            return JitError(
                f"cannot capture {name}",
                "it ran no kernel, wrote no tensor and returned none: a replay would do nothing",
                "the function without TinyJit",
            )
        if self._iterators:
            return JitError(
                f"cannot capture {name}",
                f"it reaches the iterator {words_of(self._iterators[0])}, which a replay would not "
                "advance",
                "next() outside of the function, and the value as an argument",
            )
        written = state.memory_written(False)
        refusal = name_conflict(self.bindings, self._after, written, name)
        if refusal is not None:
            return refusal
        written = state.memory_written(bool(changed_inputs))
        if any(t._memory in written for t in self.arguments):
            return JitError(
                f"cannot capture {name}",
                "an argument is also a tensor that it reaches by another name, and it is written",
                "the function without TinyJit, or a .clone() of the argument",
            )
        if self._replaced:
            return JitError(
                f"cannot capture {name}",
                "it calls .replace() on a tensor that there was before: a replay would not do that",
                ".assign(value), which writes to the tensor",
            )
        return None

    def has_memory_bound(self) -> bool:
        """Whether each tensor that was bound anew was a whole memory, or an argument."""
        own, stand_ins = set(self.memory.values()), {id(t) for t in self.stand_ins}
        return all(
            id(t) in stand_ins or (t._memory in own and is_whole(t)) for t in self.bindings.old
        )

    def _is_bound(self, tensor: Tensor) -> bool:
        return any(tensor is t for t in self.bindings.new)


def compute_results(result: Any, written: Sequence[VersionedMemory] = ()) -> list[Tensor]:
    """Compute the tensors of a result, and memory that was written, together; return the tensors of
    the result."""
    outputs = list(tensors(result))
    both = outputs + [tensor_of(m) for m in dict.fromkeys(written)]
    if both:
        both[0].realize(*both[1:])
    return outputs


def _stand_in(tensor: Tensor) -> UOp:
    """Return a new BUFFER, in a tensor's shape, on the memory of an argument."""
    return another(input_node(tensor), tensor.shape)


def _refuse_arrays(others: Any, name: str) -> None:
    """Raise JitError for numpy arrays as arguments, which would be constants."""

    def refuse_array(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            raise JitError(
                f"cannot capture {name}",
                "one of its arguments is a numpy array: it would be the same in each replay",
                "Tensor(array)",
            )

    changed(others, refuse_array)
