"""The capture of a function: it runs once more, on stand-ins, and what it launches is recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from workbench.base.errors import JitError
from workbench.debug import say
from workbench.execution.buffers import another
from workbench.execution.capture import capturing
from workbench.execution.replay import Replay
from workbench.execution.values import value_in_memory
from workbench.ir.node.constants import is_known
from workbench.ir.node.uop import UOp
from workbench.tensor.creation.random import noting_draws
from workbench.tensor.jit.function_replay import FunctionReplay
from workbench.tensor.jit.inputs import input_node, kind_of
from workbench.tensor.jit.results import outline
from workbench.tensor.jit.state import (
    captured_state,
    gradients_alive,
    memory_by_buffer,
    tensor_of,
)
from workbench.tensor.nest import changed, tensors, with_tensors, without_tensors
from workbench.tensor.tensor import Tensor
from workbench.tensor.versions import VersionedMemory, noting_writes


def capture(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[FunctionReplay, Any]:
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
        capturing() as captured,
        noting_writes() as written,
        noting_draws() as draws,
    ):
        result = function(*own_args, **own_kwargs)
        outputs = compute_results(result, written)
    if not captured.items:
        raise JitError(
            f"cannot capture {name}",
            "it ran no kernel: its result is known, or a view of what is in memory",
            "the function without TinyJit",
        )
    nodes = [n for t in outputs if not is_known(n := value_in_memory(t.uop))]
    changed_inputs = {n: t for n, t in enumerate(stand_ins) if t.uop is not inputs[n]}
    written_inputs = {n: len(nodes) + k for k, n in enumerate(changed_inputs)}
    nodes += [input_node(t) for t in changed_inputs.values()]
    state = captured_state(captured, memory, written, len(nodes), gradients)
    nodes += [value_in_memory(m.value) for _, m in state.written]
    kinds = [kind_of(t) for t in arguments]
    keys = [draw.node for draw in draws]
    reads = [node for node in memory if captured.reads(node)]
    rewritten = {captured.root(value_in_memory(m.value)) for _, m in state.written}
    replay = Replay(captured, [*inputs, *reads, *keys], nodes, rewritten)
    say(1, f"TinyJit: {name} captured, {replay.count} kernels and copies")
    for place, stand_in in changed_inputs.items():
        arguments[place].assign(stand_in)
    _refuse_two_names(arguments, state.memory_written(bool(changed_inputs)), name)
    structure = outline(result)
    return FunctionReplay(
        replay, kinds, others, structure, name, state, written_inputs, draws
    ), result


def compute_results(
    result: Any, written: Sequence[VersionedMemory] = ()
) -> list[Tensor]:
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
