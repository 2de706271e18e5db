"""Applying opts: one predicate with a reason, shared by apply, menus and search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType

from workbench.errors import KernelOptError
from workbench.ir.opt import (
    group,
    local,
    nolocals,
    order,
    padto,
    split,
    stage,
    tc,
    thread,
    unroll,
    upcast,
)
from workbench.ir.opt.budget import MAKING, holds_stages, refuse_bytes
from workbench.ir.opt.opt import Opt, OptOps, Refusal, ranges
from workbench.ir.uop import UOp
from workbench.target import Target
from workbench.trace import Match, recording, unobserved

_SPLITTING: dict[OptOps, ModuleType] = {
    OptOps.UPCAST: upcast,
    OptOps.UNROLL: unroll,
    OptOps.LOCAL: local,
    OptOps.THREAD: thread,
    OptOps.GROUP: group,
    OptOps.GROUPTOP: group,
    OptOps.SPLIT: split,
    OptOps.PADTO: padto,
}
_TABLE: dict[OptOps, ModuleType] = {
    **_SPLITTING,
    OptOps.ORDER: order,
    OptOps.SWAP: order,
    OptOps.STAGE: stage,
    OptOps.NOLOCALS: nolocals,
    OptOps.TC: tc,
}


def resolve(kernel: UOp, opt: Opt) -> Opt:
    """Return `opt` with integer axes replaced by the names they stand for here."""
    is_of_two = opt.op in (OptOps.ORDER, OptOps.SWAP)
    if type(opt.axis) is not int and not (is_of_two and type(opt.arg) is int):
        return opt
    names = _applies_to(kernel, opt.op)
    arg = _named(opt.arg, names) if is_of_two else opt.arg
    return Opt(opt.op, _named(opt.axis, names), arg)


def _applies_to(kernel: UOp, op: OptOps) -> list[str]:
    """Return the axes that an integer counts, in the order in which axes are listed."""
    found = ranges(kernel)
    if op in _SPLITTING:
        kinds = _SPLITTING[op].APPLIES
        return [name for name, r in found.items() if r.axis_kind in kinds]
    return [name for name in found if name in kernel.arg.order]


def _named(axis: str | int | None, names: list[str]) -> str | int | None:
    is_position = type(axis) is int and 0 <= axis < len(names)
    return names[axis] if is_position else axis  # type: ignore[index]


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel` for `target`, or None where it is."""
    if not isinstance(opt, Opt) or not isinstance(opt.op, OptOps):
        return Refusal(f"{opt!r} is not an opt", 'Opt(OptOps.UPCAST, "g0", 4)')
    with unobserved():
        tried = _tried(kernel, resolve(kernel, opt), target)
    return tried if isinstance(tried, Refusal) else None


def _tried(kernel: UOp, opt: Opt, target: Target) -> UOp | Refusal | None:
    """Return why an opt is not legal; else what it makes, or None where that need not be made to
    know."""
    refusal: Refusal | None = _TABLE[opt.op].why_not(kernel, opt, target)
    if refusal is not None:
        is_split = opt.op in _SPLITTING
        return _or_padded(kernel, opt, refusal, target) if is_split else refusal
    if opt.op not in MAKING and not holds_stages(kernel):
        return None
    made: UOp = _TABLE[opt.op].apply(kernel, opt)
    return refuse_bytes(opt, made, target) or made


def form(kernel: UOp, opt: Opt, target: Target) -> UOp | None:
    """Return `kernel` with an opt of the action table applied; None where it is not legal, with
    no word why: that takes longer."""
    if _TABLE[opt.op].why_not(kernel, opt, target) is not None:
        return None
    made: UOp = _TABLE[opt.op].apply(kernel, opt)
    return made if refuse_bytes(opt, made, target) is None else None


def _or_padded(kernel: UOp, opt: Opt, refusal: Refusal, target: Target) -> Refusal:
    """Add PADTO to the hint where rounding the axis up would make the opt legal."""
    pad = Opt(OptOps.PADTO, opt.axis, opt.arg)
    if opt.op is OptOps.PADTO or padto.why_not(kernel, pad, target) is not None:
        return refusal
    padded = padto.apply(kernel, pad)
    if _TABLE[opt.op].why_not(padded, opt, target) is not None:
        return refusal
    return Refusal(refusal.because, f"{refusal.hint}, or {pad} first")


def refusal_error(opt: Opt, refusal: Refusal, where: str = "") -> KernelOptError:
    """Return the error that says so."""
    return KernelOptError(f"cannot apply {opt}", refusal.because, refusal.hint, where)


def apply_opt(
    kernel: UOp, opt: Opt, target: Target, where: str = ""
) -> tuple[UOp, Opt]:
    """Return `kernel` with `opt` applied, and the opt with its axis by name.

    Errors: KernelOptError where it is not legal; `kernel` is unchanged.
    """
    refusal = why_not(kernel, opt, target)
    if refusal is not None:
        raise refusal_error(opt, refusal, where)
    named = resolve(kernel, opt)
    doc = caption(opt.op)
    with recording(f"opt-{opt.op.name.lower()}", doc, kernel) as record:
        after: UOp = _TABLE[opt.op].apply(kernel, named)
        record.after = after
        if record.matches is not None:
            record.matches.append(Match(named, kernel, after))
    return after, named


def caption(op: OptOps) -> str:
    """Return what an opt does here (on a CPU) and on a GPU, in one line."""
    here, on_a_gpu = meaning(op)
    return f"{op.name} here: {here}. On a GPU: {on_a_gpu}."


def meaning(op: OptOps) -> tuple[str, str]:
    """Return what an opt does here (on a CPU), and what on a GPU."""
    module = module_of(op)
    return module.HERE, module.ON_A_GPU


def module_of(op: OptOps) -> ModuleType:
    """Return the file of an opt."""
    return _TABLE[op]


def actions(kernel: UOp, target: Target) -> Iterator[Opt]:
    """Yield the action table: every opt that a menu or a search tries on this kernel."""
    found = ranges(kernel)
    for op, module in _SPLITTING.items():
        for name, axis in found.items():
            if axis.axis_kind in module.APPLIES:
                yield from (Opt(op, name, n) for n in amounts(op, target))
    loops = kernel.arg.order
    for outer, inner in zip(loops, loops[1:], strict=False):
        yield Opt(OptOps.ORDER, inner, outer)
    for slot in stage.inputs(kernel):
        yield from (Opt(OptOps.STAGE, axis, slot) for axis in loops)


def amounts(op: OptOps, target: Target) -> Sequence[int]:
    """Return the amounts that the action table has of an op; none where it takes none."""
    if op not in _SPLITTING:
        return ()
    if op is OptOps.THREAD:
        return range(2, target.cores + 1)
    tried: Sequence[int] = _SPLITTING[op].AMOUNTS
    return tried


def legal_opts(kernel: UOp, target: Target) -> tuple[Opt, ...]:
    """Return the legal opts of the action table; equal results are listed once."""
    found: dict[UOp, Opt] = {}
    with unobserved():
        for opt in actions(kernel, target):
            made = form(kernel, opt, target)
            if made is not None:
                found.setdefault(made, opt)
    return tuple(found.values())


def judged(kernel: UOp, target: Target) -> tuple[tuple[Opt, ...], dict[Opt, Refusal]]:
    """Return the legal opts of the action table, equal results once, and why others are not."""
    found: dict[UOp, Opt] = {}
    refused: dict[Opt, Refusal] = {}
    with unobserved():
        for opt in actions(kernel, target):
            tried = _tried(kernel, opt, target)
            if isinstance(tried, Refusal):
                refused[opt] = tried
            else:
                found.setdefault(tried or _TABLE[opt.op].apply(kernel, opt), opt)
    return tuple(found.values()), refused
