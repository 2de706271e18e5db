"""Families of axes: the parts into which opts have split one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.base.trace import unobserved
from workbench.ir.node.axis import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, ranges

Family = tuple[str, ...]


def families(kernel: UOp, opts: Sequence[Opt]) -> tuple[Family, ...]:
    """Return the axes of `kernel` with `opts` (legal ones, by name) in families: those that an
    axis of the plain kernel was split into, the outer part first; what else opts add stands
    alone. After UPCAST("g0", 4) and LOCAL("g0", 2) they are (g0, l0, u0) and (r0).
    """
    groups = [[name] for name in ranges(kernel)]
    for opt in opts:
        with unobserved():
            changed = opt.op.apply(kernel, opt)
        before, after = ranges(kernel), ranges(changed)
        family = next((names for names in groups if opt.axis in names), None)
        for name in [n for n in after if n not in before]:
            if family is not None and after[name].axis_kind is _part(opt, before):
                family.insert(family.index(str(opt.axis)) + 1, name)
            else:
                groups.append([name])
        # the name of a removed axis is free, and another axis may get it
        groups = [[n for n in names if n in after] for names in groups]
        kernel = changed
    return tuple(tuple(names) for names in groups if names)


def _part(opt: Opt, axes: Mapping[str, UOp]) -> AxisType | None:
    """Return the kind of the part that an opt splits off its axis, None where it splits none."""
    if opt.op.argument != "amount":
        return None
    return opt.op.makes or axes[str(opt.axis)].axis_kind
