"""Short texts of numbers, shapes and errors, the same in text and in HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.base.errors import WorkbenchError
from workbench.base.words import cut
from workbench.base.words import plural as plural
from workbench.measure.units import bytes_text as bytes_text

LABEL = 40
"""Characters of a label; a longer one ends in an ellipsis."""


def short(text: str) -> str:
    """Return `text` as a label: one line, not long."""
    return cut(" ".join(text.split()), LABEL)


def shape_text(shape: Sequence[int]) -> str:
    """Return "64x48"; "scalar" for no axes."""
    return "x".join(map(str, shape)) or "scalar"


def figure_text(value: float) -> str:
    """Return a number with separated thousands, without decimals where it is whole."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}"


def kernel_number(place: int) -> int:
    """Return the number of a kernel in the page, in pictures and in text, which count from 1.
    `place` counts from 0, as in `Exploration.kernels`."""
    return place + 1


def explained(make: Callable[[], str]) -> str:
    """Return the text that `make` makes, or that of its error: a rule may raise anything."""
    try:
        return make()
    except Exception as error:
        return error_text(error)


def error_text(error: BaseException) -> str:
    """Return the text of an error: what / because / try, and others with their class."""
    if isinstance(error, WorkbenchError):
        return str(error)
    return f"{type(error).__name__}: {error}"
