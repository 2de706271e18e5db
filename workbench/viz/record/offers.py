"""Offers: the legal next opts of a kernel with their effect, and why others are not legal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.cost.predicted_speedup import PredictedSpeedup, predicted_speedups
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt import apply as opts
from workbench.ir.opt.opt import Opt, OptKind, OptOps, axes
from workbench.ir.rewriting.rewrite import rules_in_force, without
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds
from workbench.search.moves import in_turns
from workbench.viz.schema.variant import OfferRow, RefusedRow

MOST_REFUSED = 60
"""Refused opts that are listed; equal reasons stand once per op and axis."""
MOST_PREDICTED = 40
"""Most opts of one kernel that are predicted: each takes about ten milliseconds."""
FEWEST_PREDICTED = 4
"""Fewest opts of one kernel that are predicted, however many kernels there are."""
PREDICTED_NODES = 8_000
"""Most nodes that are lowered for predictions: of a large kernel fewer opts are predicted."""

NextRows = tuple[list[OfferRow], list[RefusedRow]]


class OfferLists:
    """The next opts of kernels. A model of equal layers has equal kernels: they are listed once."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], NextRows] = {}

    def of(self, kernel: Kernel, speeds: Speeds | None) -> NextRows:
        """Return `next_rows` of a kernel with the opts and rules that are registered."""
        registered = tuple(OptOps), rules_in_force()
        same = kernel.ast, kernel.device, kernel.rules_off, *registered
        if same not in self._rows:
            self._rows[same] = next_rows(kernel, speeds)
        return self._rows[same]


def next_rows(kernel: Kernel, speeds: Speeds | None) -> NextRows:
    """Return the legal opts of a kernel, best first, and opts that are not legal, with the reason:
    of those that differ only in the amount and have the same reason, the first. Without `speeds`
    nothing is predicted.

    Those that are predicted to gain most are best, then as a search tries them: the page lists
    them, and they are measured and counted, in this order.
    """
    with without(kernel.rules_off):
        legal, refused = opts.legality(kernel.ast, Device[kernel.device].target)
    first: dict[tuple[OptKind, object, str], Opt] = {}
    for opt, because in refused.items():
        first.setdefault((opt.op, opt.axis, because), opt)
    listed = set(in_turns([*first.values()])[:MOST_REFUSED])
    refusals = [RefusedRow(str(o), refused[o]) for o in first.values() if o in listed]
    most_promising = in_turns(legal)
    predictions = _predicted(kernel, most_promising, speeds)
    offers = [_offer(kernel, opt, predictions.get(opt)) for opt in most_promising]
    offers.sort(key=lambda offer: -(offer.predicted or 0.0))
    return offers, refusals


def offer_rows(kernel: Kernel) -> list[OfferRow]:
    """Return the legal opts of a kernel, as the action table has them, without predictions."""
    return [_offer(kernel, opt, None) for opt in kernel.legal_opts()]


def _predicted(
    kernel: Kernel, legal: Sequence[Opt], speeds: Speeds | None
) -> dict[Opt, PredictedSpeedup]:
    """Return the predictions for the first of `legal` opts."""
    has_hardware = Device[kernel.device].has_hardware
    if speeds is None and not has_hardware:
        return {}
    affordable = PREDICTED_NODES // len(kernel.ast.toposort())
    most = max(FEWEST_PREDICTED, min(MOST_PREDICTED, affordable))
    try:
        return {
            o.opt: o
            for o in predicted_speedups(
                kernel.ast, legal[:most], kernel.target, None if has_hardware else speeds
            )
        }
    except WorkbenchError:  # offers need no prediction
        return {}


def _offer(kernel: Kernel, opt: Opt, prediction: PredictedSpeedup | None) -> OfferRow:
    has_groups = Device[kernel.device].target.has_groups
    caption = opt.op.on_a_gpu if has_groups else opt.op.here
    return OfferRow(
        opt=str(opt),
        op=opt.op.name,
        axes=[name for name in (opt.axis, opt.arg) if isinstance(name, str)],
        does=opt.op.here,
        on_gpu=opt.op.on_a_gpu,
        predicted=None if prediction is None else prediction.ratio,
        why=(prediction and prediction.why) or why(kernel.ast, opt) or caption,
        measured=None,
        spread=None,
        differs=False,
        seconds=None,
    )


def why(kernel: UOp, opt: Opt) -> str:
    """Return the effect of an opt, in numbers of this kernel; "" where none is certain."""
    if opt.op.makes is None or not opt.op.makes.is_lane:
        return ""
    axis = next((a for a in axes(kernel) if a.name == opt.axis), None)
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    if axis is None or not isinstance(opt.arg, int) or len(reduces) != 1:
        return ""
    inside = reduces[0].src[0].ranges
    if not any(r.axis_name == axis.name for r in inside):
        return ""
    lanes = math.prod(r.extent for r in inside if r.axis_kind.is_lane)
    amount = opt.arg or axis.size
    return f"{lanes * amount:,} independent accumulators, now {lanes:,}"
