"""The default opts of a kernel: those of `heuristic`. For GPUs with published figures, steps are
left out that are predicted to gain nothing.

A step for a product or a sum chooses one of its tiles by counts. The model predicts whether the
kernel is faster without the step (its tile is mostly padding, a window has one channel), or without
any opts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, isinf
from typing import NamedTuple

from workbench.backends.native.kept_results import keep_result, kept_result, result_key
from workbench.base.errors import WorkbenchError
from workbench.base.recording import span
from workbench.base.target import Target
from workbench.base.trace import observer, unobserved
from workbench.ir.nest.estimates import least_operations
from workbench.ir.node.rows import nodes_of, numbered, rows_of
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
from workbench.ir.text.printer import to_text
from workbench.measure.kernel_time import seconds_text

OPTIONAL: Mapping[str, Propose] = {
    "tensor-tile": tensor_tile,
    "product-tile": product_tile,
    "group-rows": group_rows,
    "group-columns": group_columns,
}
"""Steps that may be left out, by name. Without one, the next step that applies is used."""
GAIN = 0.8
"""A step is left out if the predicted time without it is below this share of the time with it:
predictions are right within about a fifth."""
_memo = Memo["DefaultOpts"]()
"""Default opts by kernel and target."""


class DefaultOpts(NamedTuple):
    """A kernel with its default opts, those opts, and the steps that proposed them."""

    kernel: UOp
    opts: tuple[Opt, ...]
    steps: HeuristicSteps


class Proposal(NamedTuple):
    """Default opts without some steps, and their predicted time."""

    without: tuple[str, ...]
    result: DefaultOpts
    predicted_s: float


def default_opts(kernel: UOp, target: Target) -> DefaultOpts:
    """Return a kernel (a SINK) with its default opts for a target, memoised for equal kernels. If
    the code gives the kernel opts, these are its default. An observer sees the steps that are used.

    Errors: KernelOptError for an opt in the code that is not legal.
    """

    def decided() -> DefaultOpts:
        with span("compile", kernel):
            return _decide(kernel, target)

    return _memo.value((kernel, target), decided, is_seen=observer() is not None)


def _decide(kernel: UOp, target: Target) -> DefaultOpts:
    own_opts = opts_from_code(kernel)
    if own_opts is not None:
        return DefaultOpts(*with_opts_from_code(kernel, own_opts, target))
    if target.hardware is None or not target.has_groups or target.serial_items:
        return _kept(kernel, target)
    with unobserved():
        first, *others = _proposals(kernel, target)
        plain_s = _predicted_s(kernel, target, kernel) if first.predicted_s else inf
    best = min(others, key=lambda c: c.predicted_s, default=first)
    if best.predicted_s >= GAIN * first.predicted_s:
        best = first
    result = best.result
    if observer() is not None:  # again, with the observer
        result = DefaultOpts(*heuristic(kernel, target, _functions(best.without)))
    if best is not first:
        result = _with_reason(result, best, first)
    return _or_plain(kernel, result, best, plain_s)


def _kept(kernel: UOp, target: Target) -> DefaultOpts:
    """Return the result of the heuristic, that of an earlier process if it is kept on disk. (What
    is predicted may depend on the compilers that are installed, and is not kept.)"""
    key = None
    if observer() is None:
        key = result_key("default opts", repr(target), to_text(kernel))
    kept = kept_result(key)
    if kept is not None:
        rows, opts, steps = kept
        return DefaultOpts(nodes_of(rows)[-1], opts, steps)
    result = DefaultOpts(*heuristic(kernel, target))
    keep_result(key, (rows_of(numbered([result.kernel])), result.opts, result.steps))
    return result


def _proposals(kernel: UOp, target: Target) -> Iterator[Proposal]:
    """Yield the default opts, then those without the optional step that was used, then also without
    the step that replaced it, and so on, until the arithmetic alone would take as long."""
    without, fastest_s = tuple[str, ...](), inf
    while True:
        result = DefaultOpts(*heuristic(kernel, target, _functions(without)))
        name = next((s.name for s in result.steps if s.name in OPTIONAL), "")
        if not (name or without):  # no step to leave out, nothing to compare
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
    """Return the predicted time; infinity if the kernel has none."""
    from workbench.cost.predicted_cost import predicted_cost  # not for a processor's kernels

    try:
        return predicted_cost(kernel, target, original=original).predicted_s
    except WorkbenchError:
        return inf


def _least_s(kernel: UOp, target: Target) -> float:
    """Return a lower bound of the time of kernels without tensor cores: that of the arithmetic."""
    hardware = target.hardware
    assert hardware is not None
    sums = [n.dtype.name for n in reduces(kernel)]
    rate = max([hardware.peak(each) for each in ("float32", *sums)])
    return least_operations(kernel) / rate + hardware.launch_s


def _with_reason(result: DefaultOpts, best: Proposal, first: Proposal) -> DefaultOpts:
    names, step_name = " and ".join(best.without), best.without[0]
    proposed = f"{seconds_text(first.predicted_s)} with {step_name}"
    if isinf(first.predicted_s):
        proposed = f"with {step_name} there is no code"
    why = f"predicted are {seconds_text(best.predicted_s)} without {names}, and {proposed}"
    step = HeuristicStep("left-out", (), why)
    return result._replace(steps=HeuristicSteps((step, *result.steps)))


def _or_plain(kernel: UOp, result: DefaultOpts, best: Proposal, plain_s: float) -> DefaultOpts:
    """Return the result, or the kernel without opts if that is predicted to be clearly faster, with
    a step that says so. If it is a little faster, the result has a last step that says that."""
    if plain_s >= best.predicted_s:
        return result
    why = f"predicted are {seconds_text(plain_s)} without opts, and "
    if plain_s < GAIN * best.predicted_s:
        names = " and ".join(step.name for step in best.result.steps)
        why += f"{seconds_text(best.predicted_s)} with {names}"
        return DefaultOpts(kernel, (), HeuristicSteps((HeuristicStep("left-out", (), why),)))
    why += f"{seconds_text(best.predicted_s)} with these, "
    why += "which predictions, right within about a fifth, do not tell apart"
    step = HeuristicStep("kept", (), why)
    return result._replace(steps=HeuristicSteps((*result.steps, step)))
