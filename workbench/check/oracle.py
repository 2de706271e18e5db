"""The oracle: the states of a kernel's compilation, compared with the reference.

The reference interpreter runs kernels, the emulator runs statement trees, and the device runs
programs. Each result is compared with the reference as in `check/nearness.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.base.trace import PassRecord, observe, unobserved
from workbench.check.answer import CheckResult, blank, lane_steps, reduce_steps
from workbench.check.bisect import SCHEDULING, FirstWrongRewrite, first_wrong
from workbench.check.nearness import References, nearness, rounded_otherwise, usual_nearness
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.rewrite import without
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]
MOST_STEPS = 1 << 22
"""Most lane-steps of a kernel whose states are all computed."""


@dataclass(frozen=True)
class StateReference:
    """The expected outputs of a kernel: `compute(widen)` returns an array for each of `slots`, in
    float64 (`widen`) or in its own dtype; `steps` is the length of the longest reduction."""

    slots: Sequence[int]
    compute: Callable[[bool], Sequence[Array]]
    steps: int

    @cached_property
    def wide(self) -> dict[int, Array]:
        """The results in float64."""
        return dict(zip(self.slots, self.compute(True), strict=True))

    @cached_property
    def narrow(self) -> dict[int, Array]:
        """The results in their own dtypes."""
        return dict(zip(self.slots, self.compute(False), strict=True))

    @cached_property
    def others(self) -> list[dict[int, Array]]:
        """The results in their own dtypes, with other roundings."""
        runs = rounded_otherwise(lambda: list(self.compute(False)))
        return [dict(zip(self.slots, run, strict=True)) for run in runs]

    def problem(self, actual_arrays: Mapping[int, Array]) -> str:
        """Return how `actual_arrays`, by slot, differ from the reference; "" if they do not."""
        for slot, want in self.wide.items():
            actual = actual_arrays[slot].reshape(want.shape)
            references = References(want, want, (), self.steps)
            result = usual_nearness(actual, references)
            if not result.ok:
                narrow, *others = [
                    run[slot].reshape(want.shape) for run in (self.narrow, *self.others)
                ]
                references = references._replace(narrow=narrow, others=others)
                result = nearness(actual, references)
            if result.ok:
                continue
            if not dtypes.from_numpy(actual.dtype).is_float:
                return f"{result.error:,.0f} of {actual.size:,} elements differ"
            return f"the greatest error is {result.error:.3g} (tolerance {result.limit:.3g})"
        return ""


def check_size(kernel: UOp) -> None:
    """Errors: WorkbenchError for a kernel that is too large to be computed repeatedly."""
    steps = lane_steps(kernel)
    if steps > MOST_STEPS:
        because = f"a state takes {steps:,} steps, and up to {MOST_STEPS:,} are computed"
        raise WorkbenchError(
            "this kernel is too large to bisect", because, "the same on smaller shapes"
        )


def reference_of(kernel: UOp, inputs: Sequence[Array], slots: Sequence[int]) -> StateReference:
    """Return the result of the reference interpreter for a kernel.

    Errors: WorkbenchError where it takes too many steps to repeat for every state.
    """
    check_size(kernel)
    empty = blank(inputs, slots)
    return StateReference(
        slots, lambda widen: interpret_kernel(kernel, empty, widen), reduce_steps(kernel)
    )


class KernelOracle:
    """Checks the states of one kernel: graphs, statement trees and programs."""

    def __init__(self, reference: StateReference, inputs: Sequence[Array], target: Target):
        self.reference, self.target = reference, target
        self.inputs = blank(inputs, tuple(reference.slots))

    def __call__(self, state: Any) -> str | None:
        run = self._runner(state)
        if run is None:
            return None
        try:
            with unobserved():
                return self.reference.problem(run(state))
        except Exception as error:  # any error: the state before had none
            return f"it fails: {error}"

    def _runner(self, state: Any) -> Callable[[Any], dict[int, Array]] | None:
        if isinstance(state, UOp):
            if any(n.op in (Ops.WMMA, Ops.WARP_SHUFFLE) for n in state.toposort()):
                return None  # the lanes of a warp compute it together
            if state.op is Ops.SINK:
                return None if state.arg is None else self._interpreted
            is_whole = not _slots_differ(state) and not _is_of_one_item(state)
            return self._emulated if is_whole else None
        return self._ran if hasattr(state, "bind") else None

    def _interpreted(self, kernel: UOp) -> dict[int, Array]:
        slots = sorted(self.reference.slots)
        results = interpret_kernel(_ordered(kernel), self.inputs)
        return dict(zip(slots, results, strict=True))

    def _emulated(self, block: UOp) -> dict[int, Array]:
        emulator = Device.emulator
        source = emulator.render(block, ())
        params = [dtype for dtype, _ in source.params]
        return self._run_on(emulator.name, emulator.load(source), params)

    def _ran(self, program: Any) -> dict[int, Array]:
        return self._run_on(self.target.device, program)

    def _run_on(self, device: str, program: Any, params: Sequence[DType] = ()) -> dict[int, Array]:
        """Run a program on copies of the inputs; `params` has the dtypes of its arguments, where
        they are not the kernel's own: low-precision floats may be integers in it."""
        buffers = []
        for slot, array in enumerate(self.inputs):
            own = dtypes.from_numpy(array.dtype)
            dtype = params[slot] if slot < len(params) and params[slot].bits else own
            buffers.append(Buffer.of(device, dtype, array.reshape(-1)))
        program(buffers)
        return {
            slot: buffers[slot].to_numpy().view(self.inputs[slot].dtype)
            for slot in self.reference.slots
        }


def _slots_differ(block: UOp) -> bool:
    """Whether a parameter has two dtypes: lowering has replaced low-precision floats by integers in
    some nodes only."""
    params = {n for n in block.toposort() if n.op is Ops.PARAM}
    return len({p.slot for p in params}) < len(params)


def _is_of_one_item(block: UOp) -> bool:
    """Whether a statement tree describes a single work-item, which the emulator cannot run: it has
    a SPECIAL, or storage of a work-item (not shared) that several loops over work-items use.
    """
    nodes = block.toposort()
    loops = [n for n in nodes if n.op is Ops.LOOP and n.arg == "item"]
    inner = {n for loop in loops for n in loop.toposort() if n is not loop}
    of_loops = [set(loop.toposort()) for loop in loops if loop not in inner]
    own = [n for n in nodes if n.op is Ops.DEFINE and n.arg.space != "shared"]
    return any(n.op is Ops.SPECIAL for n in nodes) or any(
        sum(place in nodes for nodes in of_loops) > 1 for place in own
    )


def _ordered(kernel: UOp) -> UOp:
    """Return a kernel whose loop order has no axis that a rewrite has removed."""
    present = {n.axis_name for n in kernel.toposort() if n.op is Ops.RANGE}
    return construct.in_order(kernel, [n for n in kernel.arg.order if n in present])


def observed(
    original: UOp, opts: Sequence[Opt], rules_off: Sequence[str], device: str
) -> tuple[PassRecord, ...]:
    """Return the records of the passes from a kernel with `opts` to its program. After an error,
    the last record has it."""
    with without(rules_off), observe() as watching, suppress(Exception):
        stages(original, device, opts=opts)
    return tuple(watching.records)


def bisected(
    original: UOp,
    records: Sequence[PassRecord],
    device: str,
    inputs: Sequence[Array],
    verdict: Callable[[Sequence[Array]], CheckResult],
) -> FirstWrongRewrite | None:
    """Return the first rewrite of the `observed` passes that makes a kernel wrong on `inputs` (an
    array per slot), or None. Where `verdict` rejects the results of `original` itself, scheduling
    made the error. Errors: as `reference_of`."""
    with unobserved():
        reference = reference_of(original, inputs, original.outputs)
        result = verdict([reference.narrow[slot] for slot in original.outputs])
    if not result.ok:
        problem = f"{result}; `bisect` of the exploration says which rewrite it was"
        return FirstWrongRewrite(SCHEDULING, 0, 0, None, None, original, problem)
    oracle = KernelOracle(reference, inputs, Device[device].target)
    return first_wrong(records, oracle)
