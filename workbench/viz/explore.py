"""`explore(*tensors)`: schedule tensors under observation."""

from __future__ import annotations

from workbench.base.display import register
from workbench.base.errors import WorkbenchError
from workbench.base.source import calls
from workbench.kernel.kernel import Kernel
from workbench.tensor.tensor import Tensor
from workbench.viz import exploration, formatters
from workbench.viz.exploration import Exploration
from workbench.viz.page.panel import pane_of
from workbench.viz.pane import Pane
from workbench.viz.session.show import LivePage


def explore(
    *tensors: Tensor, show: str = "", without: tuple[str, ...] = ()
) -> Exploration:
    """Return the Exploration of `tensors`: the kernels that would compute them, and why.

    It computes nothing. As the last line of a notebook cell it is the workbench; `show` names one
    pane of it: "loops", "plan", "rewrites", "code" or "results". `without` names rules that are
    switched off, from scheduling to code.

    Errors: WorkbenchError for a value that is not a Tensor, for no tensor at all, and for a pane or
    a rule that does not exist.
    """
    _check(tensors)
    if not isinstance(show, str) or show:
        pane_of(show, "explore(y, show={})")
    formatters.register_all()
    page = LivePage()
    register(Exploration, page.bundle)
    register(Pane, page.pane_bundle)
    return exploration.of(tensors, page, {}, _names(without), show, calls())


def _names(without: object) -> tuple[str, ...]:
    if isinstance(without, str):
        return (without,)
    if isinstance(without, (tuple, list)):
        return tuple(map(str, without))
    because = f"{type(without).__name__} is not a tuple of names"
    raise WorkbenchError("cannot read these rules", because, 'without=("form-fma",)')


def _check(tensors: tuple[object, ...]) -> None:
    if not tensors:
        raise WorkbenchError(
            "nothing to explore", "explore() takes tensors", "explore(a + b)"
        )
    for place, value in enumerate(tensors, 1):
        if isinstance(value, Tensor):
            continue
        kind = type(value).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise WorkbenchError(
            f"cannot explore argument {place}, {article} {kind}",
            "only the expression that a Tensor stands for can be scheduled",
            _instead(value),
        )


def _instead(value: object) -> str:
    """Return what to do with a value that is not a Tensor."""
    if isinstance(value, Exploration):
        return "the tensors again, or the exploration alone as the cell's last line"
    if isinstance(value, Kernel):
        return "explore(y) of the tensor; a kernel has .compile(), .time(), .check()"
    if isinstance(value, (list, tuple)) and value:
        if all(isinstance(v, Tensor) for v in value):
            return "explore(*tensors)"
    return "Tensor(...) on the data first"
