"""Applying opts: one predicate, with a reason for each refusal, for apply, menus and search.

Sections: The memory budget of a kernel; Applying opts; Opts in tensor code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from workbench.base.errors import KernelOptError
from workbench.base.target import Target
from workbench.base.trace import Match, recording, unobserved
from workbench.ir.nest.fragments import lane_kernel
from workbench.ir.nest.loops import GROUP_DIMENSIONS, group_excess, group_shape, statements
from workbench.ir.nest.recompute import item_kernel
from workbench.ir.nest.storage import excess
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, WrittenOpt, closed
from workbench.ir.opt.heuristic.step import HeuristicStep, HeuristicSteps
from workbench.ir.opt.kinds.padto import PADTO
from workbench.ir.opt.opt import Opt, OptKind, OptOps, Refusal, amounts_hint, ranges

# --------------------------------------------------------------------------------------------------
# The memory budget of a kernel: the memory that it needs, and the memory that a device has.
#
# There are two limits: one for the stages of a work-group, which a GPU holds in local memory, and
# one for the arrays of the statement tree, whose sizes depend on the loop order. Both are checked
# before lowering, which checks the second again. A row that was too large before an opt is
# recomputed at each read, and may be too large after the opt, too.


def stage_bytes(kernel: UOp) -> int:
    """Return the bytes of all stages of a work-group: the bytes of each stage, times the lanes and
    work-items that have their own copy."""
    total = 0
    for stage in (n for n in statements(kernel) if n.op is Ops.STAGE):
        each = [r.extent for r in stage.ranges if _has_own_copy(r)]
        shape = stage.buffers, *stage.memory_shape
        total += stage.dtype.itemsize * math.prod((*shape, *each))
    return total


def refuse_bytes(opt: Opt, kernel: UOp, next_kernel: UOp, target: Target) -> Refusal | None:
    """Return why `next_kernel`, the result of `opt` on `kernel`, needs too much memory, or None.
    If `kernel` did not fit either, rows are recomputed at each read before the check."""
    refusal = _refusal(opt, lane_kernel(next_kernel, target), target)
    before = refusal and _refusal(opt, lane_kernel(kernel, target), target)
    if before is None:
        return refusal
    if _fills_a_row(opt, kernel) and opt.axis not in ranges(item_kernel(kernel, target)):
        because = f"{opt.axis} fills a row that is computed where it is read: {before.because}"
        return Refusal(because, "opts before it that share the row, or another axis")
    return _refusal(opt, item_kernel(next_kernel, target), target)


def _fills_a_row(opt: Opt, kernel: UOp) -> bool:
    axis = ranges(kernel).get(str(opt.axis))
    stages = (n for n in statements(kernel) if n.op is Ops.STAGE)
    return any(axis in closed(stage) for stage in stages)


def _refusal(opt: Opt, kernel: UOp, target: Target) -> Refusal | None:
    """Return why the arrays of a kernel do not fit, or None."""
    needed = stage_bytes(kernel)
    limit = target.shared_bytes if target.has_groups else target.scratch_bytes
    if needed <= limit:
        over = excess(kernel, target)
        return None if over is None else Refusal(str(over), opt.op.less_memory(over))
    because = f"it needs {needed:,} bytes of local memory, and this device gives {limit:,}"
    return Refusal(because, opt.op.less_memory(None))


def refuse_items(next_kernel: UOp, target: Target) -> Refusal | None:
    """Return why no work-group of `next_kernel` fits the target, or None."""
    if not target.has_groups:
        return None
    shape = group_shape(lane_kernel(next_kernel, target))
    because = group_excess(shape, target)
    if not because:
        return None
    is_deep = len(shape) > GROUP_DIMENSIONS
    return Refusal(because, "a LOCAL or GROUP less" if is_deep else "a smaller amount")


def _has_own_copy(axis: UOp) -> bool:
    return axis.axis_kind.is_lane or axis.axis_kind.is_work_item


# --------------------------------------------------------------------------------------------------
# Applying opts.


def resolve(kernel: UOp, opt: Opt, target: Target | None = None) -> Opt:
    """Return `opt` with the names of axes in `kernel` in place of integers. A kind with `on_target`
    returns the opt for `target`; without a target it is unchanged."""
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
    """Return why `opt` is not legal on `kernel` for `target`, or None."""
    tried = _outcome(kernel, opt, target)
    return tried if isinstance(tried, Refusal) else None


def _outcome(kernel: UOp, opt: Opt, target: Target) -> UOp | Refusal:
    """Return the kernel after an opt, or the refusal: the opt is applied to know the memory that
    the new kernel needs."""
    if not isinstance(opt, Opt) or not isinstance(opt.op, OptKind):
        return Refusal(f"{opt!r:.60} is not an opt", 'Opt(OptOps.UPCAST, "g0", 4)')
    with unobserved():
        named = resolve(kernel, opt, target)
        outcome = _named_outcome(kernel, named, target)
        if isinstance(outcome, Refusal) and opt.op.argument == "amount":
            return _or_padded(kernel, named, _with_amounts(kernel, named, outcome, target), target)
        return outcome


def _named_outcome(kernel: UOp, opt: Opt, target: Target) -> UOp | Refusal:
    """Return the kernel after an opt with named axes, or the refusal. Hints of other amounts or of
    PADTO are left out, since checking them applies more opts."""
    if OptOps.is_own(opt.op):
        return _apply_checked(kernel, opt, target)
    try:
        return _apply_checked(kernel, opt, target)
    except Exception as error:  # a user's code must not hide other opts
        because = f"{opt.op.name} raised {type(error).__name__}: {error}"
        return Refusal(because, "fix it, and register it again")


def _apply_checked(kernel: UOp, opt: Opt, target: Target) -> UOp | Refusal:
    refusal = opt.op.why_not(kernel, opt, target)
    if refusal is not None:
        return _incomplete(opt, refusal) or refusal
    next_kernel = opt.op.apply(kernel, opt)
    refusal = refuse_items(next_kernel, target)
    return refusal or refuse_bytes(opt, kernel, next_kernel, target) or next_kernel


def _incomplete(opt: Opt, refusal: Refusal) -> Refusal | None:
    """Return the refusal of an opt without its axis or argument; None for other refusals."""
    argument = {"amount": "an amount", "input": "an input"}.get(opt.op.argument)
    is_whole = opt.axis is not None and opt.arg is not None
    if argument is None or is_whole or "None" not in refusal.because:
        return None
    return Refusal(f"it takes an axis and {argument}", refusal.hint)


def apply_if_legal(kernel: UOp, opt: Opt, target: Target) -> UOp | None:
    """Return `kernel` with `opt` applied, its axes by name; None if it is not legal."""
    outcome = _named_outcome(kernel, opt, target)
    return None if isinstance(outcome, Refusal) else outcome


def _with_amounts(kernel: UOp, opt: Opt, refusal: Refusal, target: Target) -> Refusal:
    """Return the refusal; if it has no hint, the legal amounts become its hint."""
    if refusal.hint:
        return refusal
    extent = ranges(kernel)[str(opt.axis)].extent
    hint = amounts_hint(
        opt, extent, lambda other: apply_if_legal(kernel, other, target) is not None
    )
    return Refusal(refusal.because, hint)


def _or_padded(kernel: UOp, opt: Opt, refusal: Refusal, target: Target) -> Refusal:
    """Return the refusal, with PADTO added to the hint if the opt would be legal on the padded
    axis."""
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

    Errors: KernelOptError if the opt is not legal.
    """
    outcome = _outcome(kernel, opt, target)
    if isinstance(outcome, Refusal):
        raise refusal_error(opt, outcome, where)
    named = resolve(kernel, opt, target)
    with recording(f"opt-{opt.op.name.lower()}", opt.op.caption, kernel) as record:
        if record.matches is not None:  # applied again, now with the observer
            outcome = opt.op.apply(kernel, named)
            record.matches.append(Match(named, kernel, outcome))
        record.after = outcome
    return outcome, named


def actions(kernel: UOp, target: Target) -> Iterator[Opt]:
    """Yield the opts that a menu or a search tries on this kernel, legal or not."""
    for kind in OptOps:
        for opt in kind.tried(kernel, target):
            yield resolve(kernel, opt, target)


def legal_opts(kernel: UOp, target: Target) -> tuple[Opt, ...]:
    """Return the legal opts of `actions`, one for each resulting kernel: see `legality`."""
    return legality(kernel, target)[0]


def legality(kernel: UOp, target: Target) -> tuple[tuple[Opt, ...], dict[Opt, str]]:
    """Return the legal opts of `actions`, and why the others are not legal. Of several opts with
    the same result, the first of the package is returned; a registered one replaces it."""
    opts_by_kernel: dict[UOp, Opt] = {}
    refused: dict[Opt, str] = {}
    with unobserved():
        for opt in actions(kernel, target):
            outcome = _named_outcome(kernel, opt, target)
            if isinstance(outcome, Refusal):
                refused[opt] = outcome.because
            elif OptOps.is_own(opt.op):
                opts_by_kernel.setdefault(outcome, opt)
            else:  # a user expects to see a registered opt
                opts_by_kernel[outcome] = opt
    return tuple(opts_by_kernel.values()), refused


# --------------------------------------------------------------------------------------------------
# Opts in tensor code: `t.contiguous(arg=opts)` gives the opts of the kernel that stores `t`, and
# `custom_kernel(.., opts=opts)` those of a kernel that the user writes.
#
# A graph has each opt as plain data, (kind, axis, arg), which IR text and files can store.

FROM_CODE_REASON = "the code asks for these opts, and no others are chosen"


def opt_rows(opts: Sequence[Opt]) -> tuple[WrittenOpt, ...]:
    """Return opts as the plain data of a graph: (kind, axis, arg) each."""
    return tuple([(opt.op.name, opt.axis, opt.arg) for opt in opts])


def opts_from_code(kernel: UOp) -> tuple[Opt, ...] | None:
    """Return the opts that the code gives the kernel; None if it gives none.

    Errors: KernelOptError for a kind that this process does not have.
    """
    if kernel.arg.opts is None:
        return None
    for name, _, _ in kernel.arg.opts:
        if name not in OptOps.__members__:
            what, because = f"there is no opt {name}", "it was registered elsewhere"
            raise KernelOptError(what, because, "workbench.register it here, too")
    return tuple([Opt(OptOps[name], axis, arg) for name, axis, arg in kernel.arg.opts])


def opts_from_code_text(kernel: UOp, target: Target) -> str:
    """Return a sentence with the opts that the code gives the kernel, or with the error if one is
    not legal; "" if the code gives none."""
    try:
        opts = opts_from_code(kernel)
        if opts is None:
            return ""
        words = ", ".join(map(str, opts)) or "no opts"
        with_opts_from_code(kernel, opts, target)
    except KernelOptError as error:
        return f"{error.what}: {error.because}"
    return f"the code asks for {words}"


def with_opts_from_code(
    kernel: UOp, opts: Sequence[Opt], target: Target
) -> tuple[UOp, tuple[Opt, ...], HeuristicSteps]:
    """Return the kernel with `opts` applied, the opts with named axes, and the step "from-code".
    Errors: KernelOptError for an opt that is not legal."""
    applied: list[Opt] = []
    for opt in opts:
        try:
            kernel, named = apply_opt(kernel, opt, target)
        except KernelOptError as error:
            what = f"{error.what}, which the code asks for"
            raise KernelOptError(what, error.because, error.hint, error.where) from None
        applied.append(named)
    steps = HeuristicSteps((HeuristicStep("from-code", tuple(applied), FROM_CODE_REASON),))
    return kernel, tuple(applied), steps
