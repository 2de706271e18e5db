"""Short texts of numbers, shapes, errors and opts, the same in text and in HTML.

Sections: Short texts of numbers, shapes and errors, the same in text and in HTML; Opts as rows,
with their short labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.base.errors import WorkbenchError, cut
from workbench.base.errors import plural as plural
from workbench.base.errors import shape_text as shape_text
from workbench.ir.opt.opt import Opt, OptOps
from workbench.measure.timing import bytes_text as bytes_text
from workbench.viz.schema.record import OptKindRow
from workbench.viz.schema.variant import OptRow

# --------------------------------------------------------------------------------------------------
# Short texts of numbers, shapes and errors, the same in text and in HTML.

LABEL = 40
"""Most characters of a label; a longer one ends in an ellipsis."""


def short(text: str) -> str:
    """Return `text` as a label: one line of at most LABEL characters."""
    return cut(" ".join(text.split()), LABEL)


def paragraphs(text: str) -> str:
    """Return a text whose paragraphs are one line each, however its source breaks them."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def figure_text(value: float) -> str:
    """Return a number with separated thousands; three digits if it is not whole."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}"


def three_digits(value: float) -> str:
    """Return a number with three digits, or all before the point: "213", "21.3", "2.13"."""
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
    """Return a count with its name: "reuse 64"; one named "tile bytes" is "tile 20 KiB"."""
    words = name.split()
    if "bytes" not in words:
        return f"{name} {figure_text(count)}"
    words.remove("bytes")
    return f"{' '.join(words)} {bytes_text(round(count))}"


def brief_bytes(text: str) -> str:
    """Return a text of bytes in a few letters: "<= 20 KiB" becomes "≤20K"."""
    count, _, unit = text.replace("<= ", "≤").partition(" ")
    return count + unit.removesuffix("iB").removesuffix("B")


def kernel_number(place: int) -> int:
    """Return the number of a kernel in the page, in pictures and in text, which count from 1.
    `place` counts from 0, as in `Exploration.kernels`."""
    return place + 1


def explained(make: Callable[[], str]) -> str:
    """Return the text of `make()`, or of its error: a rule may raise anything."""
    try:
        return make()
    except Exception as error:
        return error_text(error)


def error_text(error: BaseException) -> str:
    """Return the text of an error: what / because / try of a WorkbenchError; others with their
    class."""
    if isinstance(error, WorkbenchError):
        return str(error)
    return f"{type(error).__name__}: {error}"


# --------------------------------------------------------------------------------------------------
# Opts as rows, with their short labels.

WHOLE = "whole"
"""The word for an amount of 0, the whole axis."""


def opt_row(opt: Opt) -> OptRow:
    """Return the row of an opt."""
    amount = opt.arg if opt.op.argument == "amount" else None
    axis = opt.axis if isinstance(opt.axis, str) else ""
    return OptRow(
        words=opt_words(opt),
        op=opt.op.name,
        axis=axis,
        amount=amount if isinstance(amount, int) else None,
    )


def opt_words(opt: Opt) -> str:
    """Return an opt in words: "UPCAST g1 4", "UPCAST g1 whole" for the whole axis."""
    is_whole = opt.op.argument == "amount" and opt.arg == 0
    parts = (opt.op.name, opt.axis, WHOLE if is_whole else opt.arg)
    return " ".join(str(part) for part in parts if part is not None)


def opts_words(opts: Sequence[Opt]) -> str:
    """Return a list of opts in words: "UPCAST g1 4, UNROLL r0 8"."""
    return ", ".join(map(opt_words, opts))


def opt_kind_rows() -> dict[str, OptKindRow]:
    """Return a row for every kind of opt, a user's kinds too, by name."""
    return {kind.name: OptKindRow(kind.here, kind.on_a_gpu) for kind in OptOps}
