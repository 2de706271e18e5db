"""What can be done next to a kernel: possible opts with what they do, and why others are not."""

from __future__ import annotations

import math
from typing import Any

from workbench.backends.device import Device
from workbench.ir.ops import Ops
from workbench.ir.opt import apply as opts
from workbench.ir.opt.opt import Opt, OptOps, axes
from workbench.ir.uop import UOp
from workbench.kernel.kernel import Kernel

MOST_REFUSED = 60
"""Refused opts that are listed; equal reasons stand once per op and axis."""


def next_rows(kernel: Kernel) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the possible opts of a kernel in the order of the action table, and those that are
    not, with the reason: of what differs only in its amount and has the same reason, the first."""
    legal, refused = opts.judged(kernel.ast, Device[kernel.device].target)
    found: dict[tuple[OptOps, object, str], dict[str, Any]] = {}
    for opt, refusal in refused.items():
        key = opt.op, opt.axis, refusal.because
        found.setdefault(key, {"opt": str(opt), "why": refusal.because})
    offers = [_offer(kernel.ast, opt) for opt in legal]
    return offers, list(found.values())[:MOST_REFUSED]


def _offer(kernel: UOp, opt: Opt) -> dict[str, Any]:
    does, on_gpu = opts.meaning(opt.op)
    return {
        "opt": str(opt),
        "op": opt.op.name,
        "does": does,
        "on_gpu": on_gpu,
        "predicted": None,
        "why": why(kernel, opt) or does,
        "measured": None,
    }


def why(kernel: UOp, opt: Opt) -> str:
    """Return what an opt would change, in figures of this kernel; "" where none is certain."""
    if opt.op not in (OptOps.UPCAST, OptOps.UNROLL):
        return ""
    axis = next((a for a in axes(kernel) if a.name == opt.axis), None)
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    if axis is None or not isinstance(opt.arg, int) or len(reduces) != 1:
        return ""
    inside = reduces[0].src[0].ranges
    if not any(r.axis_name == axis.name for r in inside):
        return ""
    lanes = math.prod(r.extent for r in inside if r.axis_kind.is_lane)
    amount = opt.arg or axis.size
    things = "sums" if reduces[0].arg is Ops.ADD else "partial results"
    return f"{lanes * amount:,} {things} in flight, now {lanes:,}"
