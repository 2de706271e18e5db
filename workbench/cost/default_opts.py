"""The default opts of a kernel: those that the steps of `heuristic` propose; for machines with
work-groups and published figures without the steps that are predicted to gain nothing.

A step that shares out a product or a sum chooses among its own tiles by counts. Whether the kernel
is faster without any (a tile that is mostly padding, a window over one channel) says the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isinf
from typing import NamedTuple

from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.base.trace import observer, unobserved
from workbench.cost.predicted_cost import predicted_cost
from workbench.ir.nest.estimates import estimate
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import opts_from_code, with_opts_from_code
from workbench.ir.opt.heuristic.default_opts import Propose, heuristic
from workbench.ir.opt.heuristic.group_sums import group_columns, group_rows
from workbench.ir.opt.heuristic.group_tiles import product_tile
from workbench.ir.opt.heuristic.register_tile import reduces
from workbench.ir.opt.heuristic.step import HeuristicStep, HeuristicSteps
from workbench.ir.opt.heuristic.tensor_tiles import tensor_tile
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.passes import Memo
from workbench.measure.kernel_time import seconds_text

OPTIONAL: Mapping[str, Propose] = {
    "tensor-tile": tensor_tile,
    "product-tile": product_tile,
    "group-rows": group_rows,
    "group-columns": group_columns,
}
"""Steps that may be left out, by name; the next one that applies then takes the kernel."""
GAIN = 0.8
"""Share of the time that is predicted without a step, at most, for it to be left out: predictions
are right within about a fifth."""
_memo = Memo["DefaultOpts"]()
"""Default opts of a kernel and a target."""


class DefaultOpts(NamedTuple):
    """A kernel with its default opts, those opts, and the steps that they come from."""

    kernel: UOp
    opts: tuple[Opt, ...]
    steps: HeuristicSteps


class Proposal(NamedTuple):
    """Default opts without some steps, and their predicted time."""

    without: tuple[str, ...]
    result: DefaultOpts
    predicted_s: float


def default_opts(kernel: UOp, target: Target) -> DefaultOpts:
    """Return a kernel (a SINK) with its default opts for a target; equal kernels are decided once.
    An observer sees the steps of the opts that are chosen. Where the code asks for opts, these are
    the default.

    Errors: KernelOptError for one of the code's that is not legal.
    """
    return _memo.value(
        (kernel, target), lambda: _decide(kernel, target), is_seen=observer() is not None
    )


def _decide(kernel: UOp, target: Target) -> DefaultOpts:
    own_opts = opts_from_code(kernel)
    if own_opts is not None:
        return DefaultOpts(*with_opts_from_code(kernel, own_opts, target))
    if target.hardware is None or not target.has_groups or target.serial_items:
        return DefaultOpts(*heuristic(kernel, target))
    with unobserved():
        first, *others = _proposals(kernel, target)
    best = min(others, key=lambda c: c.predicted_s, default=first)
    if best.predicted_s >= GAIN * first.predicted_s:
        best = first
    result = best.result
    if observer() is not None:  # it is to see the steps
        result = DefaultOpts(*heuristic(kernel, target, _functions(best.without)))
    return result if best is first else _with_reason(result, best, first)


def _proposals(kernel: UOp, target: Target) -> Iterator[Proposal]:
    """Yield what is proposed, then without the step that shared out the kernel, then without the
    one that did so instead, as long as what is left could be faster."""
    without, fastest_s = tuple[str, ...](), float("inf")
    while True:
        result = DefaultOpts(*heuristic(kernel, target, _functions(without)))
        name = next((s.name for s in result.steps if s.name in OPTIONAL), "")
        if not (name or without):  # there is nothing to compare with
            yield Proposal(without, result, 0.0)
            return
        predicted_s = _predicted_s(result.kernel, target, kernel)
        yield Proposal(without, result, predicted_s)
        fastest_s = min(fastest_s, predicted_s)
        if not name or fastest_s <= _least_s(kernel, target):
            return
        without = (*without, name)


def _functions(names: tuple[str, ...]) -> tuple[Propose, ...]:
    return tuple(OPTIONAL[name] for name in names)


def _predicted_s(kernel: UOp, target: Target, original: UOp) -> float:
    """Return the predicted time, infinite for what cannot be lowered."""
    try:
        return predicted_cost(kernel, target, original=original).predicted_s
    except WorkbenchError:
        return float("inf")


def _least_s(kernel: UOp, target: Target) -> float:
    """Return a time that no kernel without tensor cores is faster than: that of its arithmetic."""
    hardware = target.hardware
    assert hardware is not None
    sums = [n.dtype.name for n in reduces(kernel)]
    rate = max([hardware.peak(each) for each in ("float32", *sums)])
    return estimate(kernel).flops / rate + hardware.launch_s


def _with_reason(result: DefaultOpts, best: Proposal, first: Proposal) -> DefaultOpts:
    names, step_name = " and ".join(best.without), best.without[0]
    proposed = f"{seconds_text(first.predicted_s)} with {step_name}"
    if isinf(first.predicted_s):
        proposed = f"with {step_name} there is no code"
    why = f"predicted are {seconds_text(best.predicted_s)} without {names}, and {proposed}"
    step = HeuristicStep("left-out", (), why)
    return result._replace(steps=HeuristicSteps((step, *result.steps)))
