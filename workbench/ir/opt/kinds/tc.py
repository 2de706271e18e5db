"""TC: tiles of a matrix product, each by one instruction of a tensor core.

No device here has tensor cores, so that it is refused everywhere, in words: lists of opts that
were found on a GPU can be read, and say what to do without.
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, OptKind, Refusal


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal:
    """Return why `opt` is not legal on `kernel`: it never is."""
    return Refusal(
        f"there are no tensor cores on {target.device}",
        "the list without TC; UPCAST of two output axes makes a tile in vector registers",
    )


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` as it is: the opt is refused before."""
    return kernel


TC = OptKind(
    "TC",
    here="(none) there are no tensor cores",
    on_a_gpu="the work-items of a warp multiply two small matrices in one instruction",
    why_not=why_not,
    apply=apply,
    argument="",
)
