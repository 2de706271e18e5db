"""Short texts of numbers, shapes and errors, the same in text and in HTML."""

from __future__ import annotations

from collections.abc import Callable

from workbench.base.errors import WorkbenchError
from workbench.base.words import cut
from workbench.base.words import plural as plural
from workbench.base.words import shape_text as shape_text
from workbench.measure.units import bytes_text as bytes_text

LABEL = 40
"""Characters of a label; a longer one ends in an ellipsis."""


def short(text: str) -> str:
    """Return `text` as a label: one line, not long."""
    return cut(" ".join(text.split()), LABEL)


def paragraphs(text: str) -> str:
    """Return a text whose paragraphs are one line each, however its source breaks them."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def figure_text(value: float) -> str:
    """Return a number with separated thousands, without decimals where it is whole."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}"


def three_digits(value: float) -> str:
    """Return a number with the three digits that count: "213", "21.3", "2.13"."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def count_text(count: float) -> str:
    """Return a count in few letters: "9999", "12.0 k", "83.3 M"."""
    for scale, unit in ((1e9, "G"), (1e6, "M")):
        if count >= scale:
            return f"{three_digits(count / scale)} {unit}"
    return f"{three_digits(count / 1e3)} k" if count >= 1e4 else f"{count:.0f}"


def named_count(name: str, count: float) -> str:
    """Return a count with its name: "reuse 64", and "tile 20 KiB" of one named "tile bytes"."""
    words = name.split()
    if "bytes" not in words:
        return f"{name} {figure_text(count)}"
    words.remove("bytes")
    return f"{' '.join(words)} {bytes_text(round(count))}"


def brief_bytes(text: str) -> str:
    """Return bytes as text where there is room for a few letters: "<= 20 KiB" is "≤20K"."""
    count, _, unit = text.replace("<= ", "≤").partition(" ")
    return count + unit.removesuffix("iB").removesuffix("B")


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
