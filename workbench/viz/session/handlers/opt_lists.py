"""Edited lists of opts: their legality, and the variant of a list. A list is applied to the
un-optimised kernel, with the rules off that the variant has off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.ir.opt.apply import apply_if_legal
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.kernel import Kernel
from workbench.viz.model.words import opt_row
from workbench.viz.schema.messages import OptsReply, OptVerdict, VariantReply
from workbench.viz.session.handlers import variant_names
from workbench.viz.session.handlers.variants import variant_of
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import parse_opts


def verdicts(
    session: LiveRecord, variant: int, opts: list[str], place: int | None, amount: int | None
) -> OptsReply:
    """Say of each opt of a list whether it is legal after the legal ones before it; of the opt at
    `place` also the legal amounts. With `amount` that one gets another amount first.

    Errors: ParseError; WorkbenchError where there is no opt at `place`, or it has no amount.
    """
    listed = [opt for text in opts for opt in parse_opts(text)]
    if place is not None:
        listed[place : place + 1] = [_with_amount(listed, place, amount)]
    kernel, amounts, rows = un_optimised(session, variant), list[int](), []
    for number, opt in enumerate(listed):
        if number == place:
            amounts = _legal_amounts(kernel, opt)
        try:
            kernel = kernel.apply(opt)
        except WorkbenchError as error:
            rows.append(OptVerdict(str(opt), opt_row(opt), error.because, error.hint))
        else:
            named = kernel.applied_opts[-1]
            rows.append(OptVerdict(str(named), opt_row(named), "", ""))
    return OptsReply(rows, amounts, ", ".join(row.text for row in rows))


def paste(session: LiveRecord, variant: int, text: str, name: str) -> VariantReply:
    """Apply a whole list of opts to the un-optimised kernel of a variant, and `name` what that is
    ("": it keeps its name, or is called by its opts).

    Errors: ParseError; KernelOptError where one is not legal, and WorkbenchError where another
    variant has that name: then none is applied.
    """
    kernel = un_optimised(session, variant).apply(*parse_opts(text))
    existing = session.recorder.variant_of(variant, kernel)
    if name:
        number = session.row(variant).kernel
        variant_names.require_free(session, number, name, existing)
    place = variant_of(session, kernel, variant)
    if name:
        variant_names.name(session, place, name)
    return VariantReply(place)


def un_optimised(session: LiveRecord, variant: int) -> Kernel:
    """Return the kernel of a variant without opts, with the same rules off."""
    root = session.record.kernels[session.row(variant).kernel].root
    plain, off = session.kernels[root], session.kernels[variant].rules_off
    off_here = [rule for rule in off if rule not in plain.rules_off]
    return plain.without(*off_here) if off_here else plain


def _with_amount(listed: Sequence[Opt], place: int, amount: int | None) -> Opt:
    if place >= len(listed):
        because = f"the list has {len(listed)}"
        raise WorkbenchError(f"there is no opt {place}", because)
    opt = listed[place]
    if amount is None:
        return opt
    if opt_row(opt).amount is None:
        because = f"{opt.op.name} takes none"
        raise WorkbenchError(f"{opt!s:.60} has no amount to change", because)
    return replace(opt, arg=amount)


def _legal_amounts(kernel: Kernel, opt: Opt) -> list[int]:
    """Return the amounts that menus try of an opt, as far as they are legal on a kernel."""
    if opt_row(opt).amount is None:
        return []
    target = Device[kernel.device].target
    with unobserved(), without(kernel.rules_off):
        return [
            amount for amount in opt.op.amounts_on(target)
            if apply_if_legal(kernel.ast, replace(opt, arg=amount), target) is not None
        ]  # fmt: skip
