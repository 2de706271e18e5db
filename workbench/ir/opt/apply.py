"""Applying opts: one predicate with a reason, shared by apply, menus and search."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.base.errors import KernelOptError
from workbench.base.target import Target
from workbench.base.trace import Match, recording, unobserved
from workbench.ir.node.uop import UOp
from workbench.ir.opt.amounts import offered
from workbench.ir.opt.budget import refuse_bytes, refuse_items
from workbench.ir.opt.kinds.padto import PADTO
from workbench.ir.opt.opt import Opt, OptKind, OptOps, Refusal, ranges


def resolve(kernel: UOp, opt: Opt, target: Target | None = None) -> Opt:
    """Return `opt` with its integer axes replaced by the names of those axes in `kernel`, and as
    `target` has it where its kind depends on that."""
    if opt.op.on_target is not None:
        return opt if target is None else opt.op.on_target(kernel, opt, target)
    is_of_two = opt.op.argument == "axis"
    if type(opt.axis) is not int and not (is_of_two and type(opt.arg) is int):
        return opt
    names = _applies_to(kernel, opt.op)
    arg = _named(opt.arg, names) if is_of_two else opt.arg
    return Opt(opt.op, _named(opt.axis, names), arg)


def _applies_to(kernel: UOp, op: OptKind) -> list[str]:
    """Return the axes that an integer counts, in the order in which axes are listed."""
    axes = ranges(kernel)
    if op.applies_to:
        return [name for name, r in axes.items() if r.axis_kind in op.applies_to]
    return [name for name in axes if name in kernel.arg.order]


def _named(axis: str | int | None, names: list[str]) -> str | int | None:
    is_position = type(axis) is int and 0 <= axis < len(names)
    return names[axis] if is_position else axis  # type: ignore[index]


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel` for `target`, or None where it is."""
    tried = _outcome(kernel, opt, target)
    return tried if isinstance(tried, Refusal) else None


def _outcome(kernel: UOp, opt: Opt, target: Target) -> UOp | Refusal:
    """Return the kernel after an opt, or why it is not legal: only that kernel says how much memory
    it needs."""
    if not isinstance(opt, Opt) or not isinstance(opt.op, OptKind):
        return Refusal(f"{opt!r:.60} is not an opt", 'Opt(OptOps.UPCAST, "g0", 4)')
    with unobserved():
        named = resolve(kernel, opt, target)
        outcome = _named_outcome(kernel, named, target)
        if isinstance(outcome, Refusal) and opt.op.argument == "amount":
            return _or_padded(kernel, named, _with_amounts(kernel, named, outcome, target), target)
        return outcome


def _named_outcome(kernel: UOp, opt: Opt, target: Target) -> UOp | Refusal:
    """Return the kernel after an opt with its axes by name, or why it is not legal, without a hint
    of other amounts or of PADTO: those take kernels of their own to check."""
    if OptOps.is_own(opt.op):
        return _apply_checked(kernel, opt, target)
    try:
        return _apply_checked(kernel, opt, target)
    except Exception as error:  # a user's code must not hide other opts
        because = f"{opt.op.name} raised {type(error).__name__}: {error}"
        return Refusal(because, "mend it, and register it again")


def _apply_checked(kernel: UOp, opt: Opt, target: Target) -> UOp | Refusal:
    refusal = opt.op.why_not(kernel, opt, target)
    if refusal is not None:
        return _incomplete(opt, refusal) or refusal
    next_kernel = opt.op.apply(kernel, opt)
    refusal = refuse_items(next_kernel, target)
    return refusal or refuse_bytes(opt, kernel, next_kernel, target) or next_kernel


def _incomplete(opt: Opt, refusal: Refusal) -> Refusal | None:
    """Return the refusal of an opt for a lack of its axis or its argument."""
    argument = {"amount": "an amount", "input": "an input"}.get(opt.op.argument)
    is_whole = opt.axis is not None and opt.arg is not None
    if argument is None or is_whole or "None" not in refusal.because:
        return None
    return Refusal(f"it takes an axis and {argument}", refusal.hint)


def apply_if_legal(kernel: UOp, opt: Opt, target: Target) -> UOp | None:
    """Return `kernel` with `opt` applied, its axes by name; None where it is not legal."""
    outcome = _named_outcome(kernel, opt, target)
    return None if isinstance(outcome, Refusal) else outcome


def _with_amounts(kernel: UOp, opt: Opt, refusal: Refusal, target: Target) -> Refusal:
    """Return the refusal with the legal amounts as its hint, where it has none."""
    if refusal.hint:
        return refusal
    extent = ranges(kernel)[str(opt.axis)].extent
    hint = offered(opt, extent, lambda other: apply_if_legal(kernel, other, target) is not None)
    return Refusal(refusal.because, hint)


def _or_padded(kernel: UOp, opt: Opt, refusal: Refusal, target: Target) -> Refusal:
    """Return the refusal with PADTO in its hint where rounding the axis up would make the opt
    legal."""
    pad = Opt(PADTO, opt.axis, opt.arg)
    padded = refusal if opt.op is PADTO else _named_outcome(kernel, pad, target)
    if isinstance(padded, Refusal) or isinstance(_named_outcome(padded, opt, target), Refusal):
        return refusal
    return Refusal(refusal.because, f"{refusal.hint}, or {pad} first")


def refusal_error(opt: Opt, refusal: Refusal, where: str = "") -> KernelOptError:
    """Return the KernelOptError of a refusal."""
    return KernelOptError(f"cannot apply {opt!s:.60}", refusal.because, refusal.hint, where)


def apply_opt(kernel: UOp, opt: Opt, target: Target, where: str = "") -> tuple[UOp, Opt]:
    """Return `kernel` with `opt` applied, and the opt with its axis by name.

    Errors: KernelOptError where it is not legal; `kernel` is unchanged.
    """
    outcome = _outcome(kernel, opt, target)
    if isinstance(outcome, Refusal):
        raise refusal_error(opt, outcome, where)
    named = resolve(kernel, opt, target)
    with recording(f"opt-{opt.op.name.lower()}", opt.op.caption, kernel) as record:
        if record.matches is not None:  # once more, so that an observer sees it
            outcome = opt.op.apply(kernel, named)
            record.matches.append(Match(named, kernel, outcome))
        record.after = outcome
    return outcome, named


def actions(kernel: UOp, target: Target) -> Iterator[Opt]:
    """Yield the action table: every opt that a menu or a search tries on this kernel."""
    for kind in OptOps:
        for opt in kind.tried(kernel, target):
            yield resolve(kernel, opt, target)


def legal_opts(kernel: UOp, target: Target) -> tuple[Opt, ...]:
    """Return the legal opts of the action table; of those with equal results, the first."""
    return legality(kernel, target)[0]


def legality(kernel: UOp, target: Target) -> tuple[tuple[Opt, ...], dict[Opt, str]]:
    """Return the legal opts of the action table (of those with equal results, the first), and why
    the others are not legal."""
    opts_by_kernel: dict[UOp, Opt] = {}
    refused: dict[Opt, str] = {}
    with unobserved():
        for opt in actions(kernel, target):
            outcome = _named_outcome(kernel, opt, target)
            if isinstance(outcome, Refusal):
                refused[opt] = outcome.because
            elif OptOps.is_own(opt.op):
                opts_by_kernel.setdefault(outcome, opt)
            else:  # the person who registered an opt looks for it
                opts_by_kernel[outcome] = opt
    return tuple(opts_by_kernel.values()), refused
