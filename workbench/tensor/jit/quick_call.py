"""Calls of a captured function that only computes: what they check is a handful of identities.

A replay in full compares the situation, all that the function reaches, its state and its arguments,
and makes nodes for the results. Most functions write nothing, and most calls find all as it was at
the call before. For these a replay leaves a QuickCall. A call of it compares the tokens and objects
of that call, gives the launches other pointers, and returns tensors whose nodes are made when they
are asked for. Wherever something differs it does nothing, and the replay in full decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from workbench.backends.memory import Buffer
from workbench.base.situation import process_changes, situation
from workbench.execution.buffers import is_overwritten, memory_of
from workbench.execution.realize import running
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import base
from workbench.tensor.autograd.leaves import gradient_changes
from workbench.tensor.autograd.origins import Origin
from workbench.tensor.jit.function_capture import FunctionCapture
from workbench.tensor.jit.guard import FUNCTION
from workbench.tensor.jit.results import Computed
from workbench.tensor.jit.state import Kind
from workbench.tensor.tensor import Tensor
from workbench.tensor.variable_operators import changed

MISSED: Any = object()
"""The result of a quick call that found a change, and did nothing."""
_version_of = attrgetter("version")


def quick_call(capture: FunctionCapture) -> QuickCall | None:
    """Return the quick call of a captured function; None if it does more than to compute new
    tensors from tensors."""
    state, placeholders = capture.state, list[Any]()
    changed(capture.structure, placeholders.append)
    computed = [leaf for leaf in placeholders if isinstance(leaf, Computed)]
    does_more = (
        capture.written or capture.draws or capture.changes or state.written or state.constant
        or state.overwritten or not capture.places.is_empty or not capture.is_flat
        or any(flow.made for _, flow in capture.flows)
    )  # fmt: skip
    if does_more or not computed or not capture.replay.only_computes:
        return None
    plain = (bool, int, float, str, type(None))
    if len(computed) != sum(not isinstance(leaf, plain) for leaf in placeholders):
        return None
    return QuickCall(capture)


class QuickCall:
    """A call of a captured function that compares what it uses with what `note` has noted."""

    def __init__(self, capture: FunctionCapture):
        self._state, self._replay, self._guard = capture.state, capture.replay, capture.guard
        self._read, self._has_constants = self._state.read, bool(self._state.constants_read)
        self._kinds = capture.kinds
        self._types = [Tensor] * len(capture.kinds)
        self._structure = structure = capture.structure
        self._shape = structure.shape if isinstance(structure, Computed) else None
        self.situation: object = None
        """The token of the situation at the last call in full; None: none to compare with."""
        self._nodes: list[UOp | None] = []
        self._memory: list[Any] = []
        self._origins: Sequence[tuple[Origin, ...]] = ()

    def note(self, origins: Callable[[list[Any]], Sequence[tuple[Origin, ...]]]) -> None:
        """Note what the call in full that just ended has checked. `origins` returns the origins of
        the outputs for the inputs of a call."""
        state = self._state
        self.situation = None
        if state.gradients or not self._replay.is_prelude_current:
            return
        self._versions, self._changes = [*map(_version_of, state.read)], process_changes.count
        self._nodes, self._memory = [None] * len(self._kinds), [None] * len(self._kinds)
        self._origin_changes, self._origins_for = -1, origins
        self.situation = situation()

    def __call__(self, function: Any, args: Sequence[Any]) -> Any:
        """Return the result of the function for `args`, or MISSED."""
        if [*map(type, args)] != self._types:
            return MISSED
        with running:
            if self._is_other(function) or not self._takes(args):
                return MISSED
            buffers = self._replay.compute(self._memory)
            if self._shape is None:
                return self._filled(buffers)
            return Tensor._of_replay((buffers[0], self._shape, self._origins[0]))

    def _is_other(self, function: Any) -> bool:
        """Whether the state, or what the function reaches, differs."""
        return (
            process_changes.count != self._changes
            or [*map(_version_of, self._read)] != self._versions
            or not self._guard.is_unchanged([(FUNCTION, function)])
            or (self._has_constants and bool(self._state.changed_constants()))
        )

    def _takes(self, args: Sequence[Any]) -> bool:
        """Take the memory of the arguments; return False if one has none, or another kind."""
        is_other, nodes, kinds = False, self._nodes, self._kinds
        for n, tensor in enumerate(args):
            value = tensor._replayed
            if value is None:
                node = tensor.uop
                if node is nodes[n]:
                    continue
                memory = _memory_under(node, kinds[n])
                if memory is None:
                    return False
                nodes[n] = None  # in case of Ctrl-C before the memory is set
                self._memory[n] = memory
                nodes[n] = node
            else:
                memory, shape, _ = value
                if (shape, memory.dtype, memory.device) != kinds[n]:
                    return False
                nodes[n] = None
                self._memory[n] = memory
            is_other = True
        if is_other or self._origin_changes != gradient_changes.count:
            self._origin_changes = -1
            self._origins = self._origins_for([*args])
            self._origin_changes = gradient_changes.count
        return True

    def _filled(self, buffers: Sequence[Buffer]) -> Any:
        """Return the nest of the result."""
        tensors: dict[int, Tensor] = {}

        def filling(leaf: Any) -> Any:
            if not isinstance(leaf, Computed):
                return leaf
            if id(leaf) not in tensors:
                origins = self._origins[leaf.output]
                value = buffers[leaf.output], leaf.shape, origins
                tensors[id(leaf)] = Tensor._of_replay(value)
            return tensors[id(leaf)]

        return changed(self._structure, filling)


def _memory_under(node: UOp, kind: Kind) -> Buffer | None:
    """Return the memory of a value of this kind that is in memory; else None."""
    under = base(node)
    if under.op is not Ops.BUFFER or is_overwritten(under):
        return None
    memory = memory_of(under)
    return memory if (node.shape, memory.dtype, memory.device) == kind else None
