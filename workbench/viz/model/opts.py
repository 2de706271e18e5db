"""Opts as rows, with their short labels."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.ir.opt.opt import Opt, OptOps
from workbench.viz.schema.record import OptKindRow
from workbench.viz.schema.variant import OptRow

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
    """Return a row for every kind of opt, those of a user among them, by name."""
    return {kind.name: OptKindRow(kind.here, kind.on_a_gpu) for kind in OptOps}
