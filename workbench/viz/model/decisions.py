"""The scheduler's decisions as rows: the value, its storage, the reason, and the numbers.

Sections: The scheduler's decisions as rows; Kernels that only draw random numbers, and those that
draw the weights of a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.base.dtypes import dtypes
from workbench.ir.meaning.threefry import PARITY
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.cost import TILE_REUSE
from workbench.ir.schedule.plan import Decision
from workbench.kernel.kernel import Kernel
from workbench.viz.model.loops import BY_OTHERS
from workbench.viz.model.phases import WEIGHTS
from workbench.viz.model.title import value_name
from workbench.viz.model.words import count_text, shape_text, short, three_digits
from workbench.viz.schema.plan import CostChoice, DecisionRow
from workbench.viz.schema.variant import NamedNumber

# --------------------------------------------------------------------------------------------------
# The scheduler's decisions as rows.

MOST_DECISIONS = 60
"""Most decisions printed in one place; `Exploration.decisions` has them all."""


def decision_row(
    decision: Decision,
    node: int = -1,
    kernel: int | None = None,
    title: str = "",
    python: str = "",
    user: str = "",
    on: str = "",
) -> DecisionRow:
    """Return the row of a decision: why a value is stored or fused. `node` is the value's position
    in a record, `kernel` the kernel that computes it, `python` code that prints the decision,
    `user` the user's name for the value; `title` is that of the kernel that ends with it; `on` is
    the device that kernels are for ("": the tensors')."""
    name, shape = value_name(decision.node, on), shape_text(decision.node.shape)
    named = f"{user} = {title or name}" if user else title or name
    estimates = decision.estimates.items()
    choices = cost_choices(decision)
    is_costly = any(choice.wins and choice.cost > 0 for choice in choices)
    return DecisionRow(
        node=node,
        name=f"{short(named)} {shape}",
        value=f"{name} {shape}",
        stored=decision.stored,
        reason=decision.reason,
        estimates=[NamedNumber(k.replace("_", " "), v) for k, v in estimates],
        choices=choices,
        tradeoff=is_costly and not decision.stored,
        rank=None,
        costs=cost_sentences(decision),
        kernel=kernel,
        forced=decision.forced,
        is_requested=decision.name in BY_OTHERS,
        is_copy=decision.node.op is Ops.COPY,
        python=python,
        rewritten_by=None,
        rewrites=[],
    )


def printed_decisions(decisions: Sequence[Decision], on: str = "") -> list[DecisionRow]:
    """Return rows of the decisions that are printed in one place (`on`: as in `decision_row`)."""
    printed = decisions[:MOST_DECISIONS]
    return ranked([decision_row(decision, on=on) for decision in printed], printed)


def ranked(rows: list[DecisionRow], decisions: Sequence[Decision]) -> list[DecisionRow]:
    """Return `rows` of `decisions`, with a rank for each that explains why there are not more
    kernels: the values that are fused although that costs something, the dearest first. Without
    any, one value has a rank: that at which a kernel would have ended most naturally. A reduction
    comes before any other value, then the dearest, then the nearest to the inputs."""
    fused = [place for place, row in enumerate(rows) if not row.stored and row.choices]

    def interest(place: int) -> tuple[float, bool, float, int]:
        row, node = rows[place], decisions[place].node
        dearest = max(choice.cost for choice in row.choices)
        is_reduction = node.op is Ops.REDUCE_AXIS
        cost = dearest if row.tradeoff else 0.0
        return cost, is_reduction, dearest, place

    fused.sort(key=interest, reverse=True)
    explaining = [place for place in fused if rows[place].tradeoff] or fused[:1]
    for rank, place in enumerate(explaining):
        rows[place].rank = rank
    return rows


CHOICES = {
    "cost_of_masks": "fuse it, and test each read for the padding",
    "cost_of_lost_tile": "fuse it, and keep no tile of results in registers",
    "cost_to_recompute": "fuse it: compute it at each read",
    "cost_to_stage": "fuse it, and keep a row of it in the kernel",
    "cost_to_store": "store it, and read it back",
}
"""The choice that each cost of a decision stands for. Of the costs to fuse that a decision has, the
last one is the least."""


def cost_choices(decision: Decision) -> list[CostChoice]:
    """Return the choices that a decision compared, with their costs; [] if there was only one."""
    costs = {name: decision.estimates[name] for name in CHOICES if name in decision.estimates}
    fusing = [name for name in costs if name != "cost_to_store"]
    winner = "cost_to_store" if decision.stored else fusing[-1] if fusing else ""
    return [CostChoice(CHOICES[name], cost, name == winner) for name, cost in costs.items()]


def cost_sentences(decision: Decision) -> str:
    """Return the estimates of a decision as sentences; "" if cost did not decide."""
    estimates = decision.estimates
    elements, evaluations = estimates.get("elements"), estimates.get("evaluations")
    if not elements or evaluations is None:
        return ""
    storing = estimates["cost_to_store"]
    if "cost_of_masks" in estimates:
        masks = _operations(estimates["cost_of_masks"])
        return (
            f"Fused, {evaluations:,.0f} reads would be tested for the padding: {masks} more. "
            f"Storing it and reading it back takes as long as {_operations(storing)}."
        )
    if "cost_of_lost_tile" in estimates:
        lost = _operations(estimates["cost_of_lost_tile"])
        return (
            "Fused, a product of matrices would keep no tile of results in registers: "
            f"{lost} more. "
            f"Storing it and reading it back takes as long as {_operations(storing)}."
        )
    recompute_cost = estimates.get("cost_to_recompute", 0.0)  # 0: not known before a plan, too
    each = f"each of its {elements:,.0f} elements" if elements != 1 else "its one element"
    more = f": as long as {_operations(recompute_cost)} more, with its reads"
    more = more if recompute_cost > 0 else ""
    if decision.forced and 0 < recompute_cost < evaluations - elements:
        more += f", as a tile of results in registers uses each {TILE_REUSE:.0f} times"
    often = _times_text(evaluations / elements)
    if decision.stored:
        return (
            f"Fused, {each} would be computed {often}{more}. "
            f"Storing it and reading it back takes as long as {_operations(storing)}."
            f"{_ways_to_fuse(estimates)}"
        )
    if "cost_to_stage" in estimates:
        return (
            f"Without that row, {each} would be computed {often}{more}. Keeping the row takes "
            f"as long as {_operations(estimates['cost_to_stage'])}, "
            f"storing all of it as long as {_operations(storing)}."
        )
    if evaluations <= elements:  # the reason says that it costs nothing
        what, them = (
            (f"its {elements:,.0f} elements", "them")
            if elements != 1
            else ("its one element", "it")
        )
        cost = _operations(storing)
        return f"Storing {what} and reading {them} back would take as long as {cost}."
    return (
        f"Fused, {each} is computed {often}{more}. "
        f"Storing it and reading it back would take as long as {_operations(storing)}."
    )


def _ways_to_fuse(estimates: Mapping[str, float]) -> str:
    """Return sentences on a stored value: what a row of it costs, and whether it would be fused."""
    storing, row = estimates["cost_to_store"], estimates.get("cost_to_stage")
    keeping = "" if row is None else f" Keeping a row of it takes as long as {_operations(row)}."
    costs = [estimates.get("cost_to_recompute"), row]
    is_cheap = any(cost is not None and cost < storing for cost in costs)
    return keeping + (" By cost alone it would be fused." if is_cheap else "")


def _operations(cost: float) -> str:
    """Return a cost of the scheduler, in which reads count, as the time of so many operations."""
    count = round(cost)
    return f"{count_text(count)} {'operation' if count == 1 else 'operations'}"


def _times_text(times: float) -> str:
    text = three_digits(times)
    whole = text.rstrip("0").rstrip(".") if text.endswith(("0.0", ".00")) else text
    return "once" if times <= 1 else f"{whole} times"


# --------------------------------------------------------------------------------------------------
# Kernels that only draw random numbers, and those that draw the weights of a model.

FEWEST = 2
"""Fewest kernels that are worth a hint, or are folded."""
KEY = (dtypes.uint32, 2)
REDUCTIONS = {Ops.REDUCE_AXIS, Ops.REDUCE}


def draws_numbers(kernel: UOp) -> bool:
    """Whether a kernel computes random numbers, and reads nothing but a generator's key. A kernel
    that reduces them does not count: it computes a mean, or a share of hits."""
    nodes = kernel.toposort()
    written = {memory for n in nodes if n.op is Ops.STORE for memory in n.src[0].src}
    read = [n for n in nodes if n.op is Ops.PARAM and n not in written]
    is_key = all((memory.dtype, memory.arg[1]) == KEY for memory in read)
    is_drawn = any(n.op is Ops.CONST and n.arg == PARITY for n in nodes)
    return is_key and is_drawn and not any(n.op in REDUCTIONS for n in nodes)


def folded_kernels(kernels: Sequence[Kernel]) -> list[int]:
    """Return the positions of the kernels that draw the weights of a model, which are one fold; []
    if all kernels do, or fewer than FEWEST. The page's weightKernels() does the same."""
    places = [k for k, kernel in enumerate(kernels) if kernel.phases == (WEIGHTS,)]
    return places if FEWEST <= len(places) < len(kernels) else []


def weights_hint(kernels: Sequence[Kernel]) -> str:
    """Return how a plan gets rid of the kernels that draw weights; "" if there are few."""
    count = len(folded_kernels(kernels))
    if not count:
        return ""
    return (
        f"{count} of {len(kernels)} kernels draw the weights of a model, once, before the others."
        " Tensor.realize(*nn.state.get_parameters(model)) draws them now."
    )
