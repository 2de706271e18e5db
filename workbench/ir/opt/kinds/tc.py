"""TC: tiles of a matrix product, each by one instruction of a tensor core.

No device here has tensor cores, so it is refused everywhere; lists of opts that a search on a GPU
found can still be read, and the refusal says what to use instead.
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, OptKind, Refusal


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal:
    """Return why `opt` is not legal on `kernel`, which is true of every kernel."""
    return Refusal(
        f"there are no tensor cores on {target.device}",
        "the list without TC; UPCAST of two output axes makes a tile in vector registers",
    )


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` unchanged; `why_not` refuses the opt before."""
    return kernel


TC = OptKind(
    "TC",
    here="(none) there are no tensor cores",
    on_a_gpu="the work-items of a warp multiply two small matrices in one instruction",
    why_not=why_not,
    apply=apply,
    argument="",
)
