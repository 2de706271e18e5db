"""Offers: the legal next opts of a kernel with their effect, and why others are not legal.

Sections: Offers; Phrases of nodes as rows of a record.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.device import Device
from workbench.base.dtypes import dtypes
from workbench.base.errors import WorkbenchError
from workbench.cost.predicted_cost import PredictedSpeedup, predicted_speedups
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt import apply as opts
from workbench.ir.opt.heuristic.default_opts import next_steps
from workbench.ir.opt.heuristic.register_tile import unit_axis
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.opt import Opt, OptKind, OptOps
from workbench.ir.rewriting.rewrite import rules_in_force, without
from workbench.ir.text.phrases import LEAVES, TENSOR, Part, Phrase, Slot, call_parts, phrase, typed
from workbench.ir.text.printer import LETTERS, RESERVED, own_name
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds
from workbench.search.moves import in_turns
from workbench.viz.model.graph import family_of
from workbench.viz.schema.record import Reading, Role, SlotRow, ValuesOf
from workbench.viz.schema.variant import OfferRow, RefusedRow

# --------------------------------------------------------------------------------------------------
# Offers.

MOST_REFUSED = 60
"""Most refused opts that are listed: one for each op, axis and reason."""
MOST_PREDICTED = 40
"""Most lists of opts of one kernel that are predicted: each takes about ten milliseconds."""
FEWEST_PREDICTED = 4
"""Fewest opts of one kernel that are predicted, however large it is."""
PREDICTED_NODES = 8_000
"""Most nodes that are lowered to predict opts of one kernel: a large one gets fewer predictions,
but at least FEWEST_PREDICTED."""

MOST_DIVIDING = 28
"""Most opts that divide the work among those that are predicted first; the others are opts of all
kinds."""
LEAST_GAIN = 1.01
"""Least predicted speed-up of several opts together: else single ones are enough."""

Opts = tuple[Opt, ...]
NextRows = tuple[list[OfferRow], list[RefusedRow]]


class OfferLists:
    """The next opts of kernels, listed once for equal kernels: a model of equal layers has many.
    They are listed again when the speeds that predict them have changed."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], tuple[Speeds | None, NextRows]] = {}

    def of(self, kernel: Kernel, speeds: Speeds | None) -> NextRows:
        """Return `next_rows` of a kernel with the opts and rules that are registered."""
        registered = tuple(OptOps), rules_in_force()
        key = kernel.ast, kernel.device, kernel.rules_off, *registered
        if Device[kernel.device].has_hardware:
            speeds = None  # its figures are published
        earlier = self._rows.get(key)
        if earlier is None or earlier[0] != speeds:
            earlier = self._rows[key] = speeds, next_rows(kernel, speeds)
        return earlier[1]


def next_rows(kernel: Kernel, speeds: Speeds | None) -> NextRows:
    """Return the legal opts of a kernel, best first, also those of a step of the default opts
    together, and the refused ones with the reason. Of refused opts that differ only in the amount
    and have the same reason, the first is listed.

    Best is the greatest predicted speed-up; opts without a prediction follow, in the order in which
    a search tries them. The page lists, measures and counts opts in this order. Without `speeds`
    nothing is predicted, except for a machine with published figures.
    """
    with without(kernel.rules_off):
        legal, refused = opts.legality(kernel.ast, Device[kernel.device].target)
    first: dict[tuple[OptKind, object, str], Opt] = {}
    for opt, because in refused.items():
        first.setdefault((opt.op, opt.axis, because), opt)
    listed = set(in_turns([*first.values()])[:MOST_REFUSED])
    refusals = [RefusedRow(str(o), refused[o]) for o in first.values() if o in listed]
    singles, steps = in_turns(legal), _steps(kernel)
    lists = [step.opts for step in steps] + [(opt,) for opt in _promising(kernel, singles)]
    predictions = _predicted(kernel, lists, speeds)
    offers = [_offer(kernel, opt, predictions.get((opt,))) for opt in singles]
    offers += [
        _step_offer(step, found) for step in steps
        if (found := predictions.get(step.opts)) and (found.ratio or 0.0) >= LEAST_GAIN
    ]  # fmt: skip
    offers.sort(key=lambda offer: -(offer.predicted or 0.0))
    return offers, refusals


def offer_rows(kernel: Kernel) -> list[OfferRow]:
    """Return the legal opts of a kernel, as the action table has them, without predictions."""
    return [_offer(kernel, opt, None) for opt in kernel.legal_opts()]


def _steps(kernel: Kernel) -> list[HeuristicStep]:
    """Return the steps of the default opts that would fire on a kernel as it is and have several
    opts, which may gain only together: a loop order makes the tile small that a copy then holds."""
    with without(kernel.rules_off):
        steps = next_steps(kernel.ast, Device[kernel.device].target)
    return [step for step in steps if len(step.opts) > 1]


def _promising(kernel: Kernel, singles: Sequence[Opt]) -> list[Opt]:
    """Return opts in the order in which they are predicted: those that divide the work among lanes,
    threads or work-items are most of the first ones, of the unit-stride axis before others."""
    unit = unit_axis(kernel.ast)
    name = None if unit is None else unit.axis_name
    dividing = sorted((o for o in singles if o.op.makes), key=lambda opt: opt.axis != name)
    first = dividing[:MOST_DIVIDING]
    return [*first, *(opt for opt in singles if opt not in first)]


def _predicted(
    kernel: Kernel, lists: Sequence[Opts], speeds: Speeds | None
) -> dict[Opts, PredictedSpeedup]:
    """Return the predictions for the first lists of opts; {} if the machine's speeds are unknown,
    or the kernel cannot be predicted."""
    has_hardware = Device[kernel.device].has_hardware
    if speeds is None and not has_hardware:
        return {}
    affordable = PREDICTED_NODES // len(kernel.ast.toposort())
    most = max(FEWEST_PREDICTED, min(MOST_PREDICTED, affordable))
    machine = None if has_hardware else speeds
    try:
        found = predicted_speedups(kernel.ast, lists[:most], kernel.target, machine)
        return {prediction.opts: prediction for prediction in found}
    except WorkbenchError:  # offers need no prediction
        return {}


def _step_offer(step: HeuristicStep, prediction: PredictedSpeedup) -> OfferRow:
    """Return the row of the opts of a step together."""
    does = f"{step.name}, a step of the default opts: {step.why}"
    return OfferRow(
        opt=", ".join(map(str, step.opts)),
        op=step.opts[0].op.name,
        axes=list(dict.fromkeys(name for opt in step.opts for name in _axes(opt))),
        does=does,
        on_gpu=does,
        predicted=prediction.ratio,
        why=f"auto's {step.name}: {prediction.why or step.why}",
        measured=None,
        spread=None,
        differs=False,
        seconds=None,
    )


def _axes(opt: Opt) -> list[str]:
    return [name for name in (opt.axis, opt.arg) if isinstance(name, str)]


def _offer(kernel: Kernel, opt: Opt, prediction: PredictedSpeedup | None) -> OfferRow:
    """Return the row of an opt. Numbers in its reason are those of the kernel after it, as the
    bottleneck has them: which lanes become one vector is known only then. Without a prediction the
    reason is what an opt of this kind does."""
    has_groups = Device[kernel.device].target.has_groups
    caption = opt.op.on_a_gpu if has_groups else opt.op.here
    return OfferRow(
        opt=str(opt),
        op=opt.op.name,
        axes=_axes(opt),
        does=opt.op.here,
        on_gpu=opt.op.on_a_gpu,
        predicted=None if prediction is None else prediction.ratio,
        why=(prediction and prediction.why) or caption,
        measured=None,
        spread=None,
        differs=False,
        seconds=None,
    )


# --------------------------------------------------------------------------------------------------
# Phrases of nodes as rows of a record: nodes that differ only in their sources share a row.

MOST_WORDS = 200
"""Most characters of a part: an argument may be long."""
ROLES: dict[Ops, Role] = {
    Ops.CONST: "constant", Ops.SINK: "join", Ops.RANGE: "axis", Ops.INDEX: "place",
    Ops.LOOP: "loop", Ops.REDUCE: "loop", Ops.STAGE: "loop", Ops.ACCUMULATE: "loop",
    Ops.LOAD: "access", Ops.STORE: "access", Ops.GRADIENT: "due",
}  # fmt: skip


class Readings:
    """The table of phrases, each once."""

    def __init__(self) -> None:
        self.listed: list[Reading] = []
        self._places: dict[tuple[object, ...], int] = {}

    def add(self, node: UOp, arg: str, shape: str, label: str, values: ValuesOf) -> int:
        """Return the place of the phrase of `node`; `arg`, `shape` and `label` are its values in
        the columns of the record, `values` says how its values can be computed."""
        memory = label if node.op is Ops.BUFFER else ""  # it may be the user's name
        of_sources = _of_sources(node), values
        key = node.op, node.dtype, len(node.src), arg, shape, memory, of_sources
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.listed)
            self.listed.append(_reading(node, label, values))
        return place


def _of_sources(node: UOp) -> object:
    """Return the part of a node's phrase that depends on its sources."""
    match node.op:
        case Ops.WHERE:
            return node.src[2].op
        case Ops.END:
            return node.src[0].op
        case Ops.LOOP:
            return node.axis.arg, node.axis.extent
        case Ops.RANGE:
            return node.extent
    return None


def _reading(node: UOp, label: str, values: ValuesOf) -> Reading:
    own = phrase(node)
    name = _name(node)
    is_void = node.dtype is dtypes.void
    return Reading(
        family=family_of(node.op),
        parts=[name or label] if node.op in LEAVES else _parts(own.parts),
        binds=own.binds,
        line=own.line,
        negated=_parts(own.negated),
        root=_parts(own.root),
        statement=_parts(own.statement),
        box=_parts(_box(node, own, label)),
        body=own.body,
        is_leaf=node.op in LEAVES,
        rank=node.slot if node.op is Ops.PARAM else 0,
        name=name,
        letter=LETTERS.get(node.op, "v"),
        typed="" if is_void else typed(node),
        is_tensor=node.op in TENSOR,
        is_index=node.dtype is dtypes.index and node.op is not Ops.STAGE,
        values=values,
        role=ROLES.get(node.op, ""),
        size=node.extent if node.op is Ops.RANGE else None,
    )


def _box(node: UOp, own: Phrase, label: str) -> tuple[Part, ...]:
    """Return the parts in the box of a node; () where they are those of its phrase."""
    row = OPS[node.op]
    if own.line == "never":
        return ()
    if row.symbol and row.label != row.symbol:
        first, sign, second = own.parts
        return first, str(sign).replace(row.symbol, row.label), second
    return () if row.symbol else call_parts(label, len(node.src))


def _name(node: UOp) -> str:
    """Return a node's own name; "" where it is reserved, or not an ASCII identifier."""
    name = own_name(node)
    is_usable = name.isidentifier() and name.isascii() and name not in RESERVED
    return name if is_usable else ""


def _parts(parts: Sequence[Part]) -> list[str | SlotRow]:
    return [
        SlotRow(*part)
        if isinstance(part, Slot)
        else part
        if len(part) <= MOST_WORDS
        else f"{part[:MOST_WORDS]}\u2026"
        for part in parts
    ]
