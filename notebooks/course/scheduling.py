"""Chapter 3: reasons as text, and checks of exercises about indexes and kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course.ask import Verdict, failure, number, right, wrong
from course.look import Text
from workbench import Exploration, Kernel, Tensor, explore
from workbench.ir.node.ops import Ops
from workbench.ir.schedule.plan import Decision
from workbench.viz.exploration.tables import Decisions


def reasons(ex: Exploration) -> Text:
    """Return a line for each value that is stored, and for each that would be computed more than
    once, with the reason and its figures. Copies of data to the device are left out."""
    return Text(Decisions(filter(_is_telling, ex.decisions)))


def figures(ex: Exploration, op: Ops) -> dict[str, int]:
    """Return the figures of the decision about the value that `op` makes."""
    (decision,) = (d for d in ex.decisions if d.node.op is op and d.estimates)
    return {name: int(figure) for name, figure in decision.estimates.items()}


def _is_telling(decision: Decision) -> bool:
    if decision.stored:
        return decision.node.op is not Ops.COPY
    most = decision.estimates.get("evaluations", 0)
    return most > decision.estimates.get("elements", 0)


def check_index(position: Callable[[int, int], int]) -> Verdict:
    """`position(i, j)`: which element of the 24 does [i, j] of the view read?"""
    view = np.arange(24).reshape(4, 6).T[::-1]
    for i, j in np.ndindex(view.shape):
        try:
            said = position(i, j)
            element = number(said)
        except Exception as error:  # a reader's function may raise anything
            return wrong(f"at [{i}, {j}] it fails: {failure(error)}")
        if element != view[i, j]:
            return wrong(f"[{i}, {j}] reads element {view[i, j]}, and yours says {said}")
    return right("and a load in a kernel would have the same arithmetic in its index")


def check_two_kernels(y: Tensor, expected: Tensor) -> Verdict:
    """`y` must be what `expected` is, in two kernels, the first of which stores the row sums."""
    if not isinstance(y, Tensor) or y.shape != expected.shape:
        return wrong(f"it should be a tensor of shape {expected.shape}")
    ex = explore(y)
    rows = expected.shape[0]
    if not ex.kernels:
        return wrong(
            "it has been computed already, and what was computed is remembered: write it down"
            " again, on fresh data"
        )
    if len(ex.kernels) == 1 and _reads(ex.kernels[0], rows):
        return wrong(
            f"the {rows} sums are in memory already: realize() computed them at once. Ask for "
            "them without computing anything yet"
        )
    if len(ex.kernels) != 2:
        return wrong(
            f"it is {len(ex.kernels)} kernel(s): something must ask for the row sums to be in "
            "memory, and nothing else must"
        )
    stored = ex.kernels[0].estimates
    if ex.kernels[0].shape not in ((rows, 1), (rows,)):
        return wrong(f"its first kernel stores {ex.kernels[0].shape}, not {rows} row sums")
    if not np.allclose(_on_copies(y).numpy(), _on_copies(expected).numpy()):
        return wrong("the values have changed")
    return right(f"two kernels, the first with {stored.flops:,} operations")


def _on_copies(y: Tensor) -> Tensor:
    """Return an expression on copies of its data. What is computed is remembered: of `y` itself
    nothing must be, or the reader who runs the cell again has no kernel."""
    graph = y.uop
    data = [node for node in graph.toposort() if node.op is Ops.BUFFER]
    copies = {node: Tensor(y._with(node).numpy()).realize().uop for node in data}
    return y._with(graph.substitute(copies))


def _reads(kernel: Kernel, size: int) -> bool:
    """Whether a kernel has an input of `size` elements."""
    inputs = (n.arg for n in kernel.ast.toposort() if n.op is Ops.PARAM)
    return any(slot > 0 and elements == size for slot, elements in inputs)


def check_evaluations(count: Any, ex: Exploration) -> Verdict:
    """`count`: how often would EXP2 be computed if it were fused?"""
    counted = figures(ex, Ops.EXP2)
    count = number(count)
    if count is None or count <= 0:
        return wrong("it should be a number, of how often exp2 would be computed")
    if count == counted["elements"]:
        return wrong("that is the number of elements; but how often is each of them read?")
    if count != counted["evaluations"]:
        missing, rest = divmod(counted["evaluations"], count)
        loops = [f"{n:,}" for n in (50, 64, 1000, 50 * 64, 50 * 1000) if n == missing]
        return wrong(
            "every step of every loop around the product would compute it once"
            + "".join(f"; a loop of {loop} is missing" for loop in loops if not rest)
        )
    return right("every step of the three loops: 50 x 64 x 1000")
