"""PIPELINE: tiles of a loop filled some iterations before their use, in alternating buffers.

After STAGE("r0", 1), PIPELINE("r0", 3) on a device with work-groups:

    for r0 in 6 (reduce) {           -> for r0_first in 2 (fill) {
      for a_r1 in 4 (fill) {              barrier
        As[a_r1] = p1[r0*4 + a_r1]        for a_r1 in 4 (fill) {
      }                                     As[r0_first % 3, a_r1] = p1[r0_first*4 + a_r1]
      barrier                             }
      for l0 in 8 (local, item) {       }
        for r1 in 4 (reduce) {          for r0 in 6 (reduce) {
          acc1 += As[r1]                  barrier
        }                                 for l0 in 8 (local, item) {
      }                                     for r1 in 4 (reduce) {
      barrier                                 acc1 += As[r0 % 3, r1]
    }                                       }
                                          }
                                          for a_r1 in 4 (fill) {
                                            As[(r0 + 2) % 3, a_r1] = p1[.. where r0 < 4]
                                          }
                                        }
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.nest.accesses import shared_tiles
from workbench.ir.nest.fragments import lane_kernel
from workbench.ir.nest.loops import place_statements, statements
from workbench.ir.nest.pipelines import fill_loop, possible_pipelines
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import REDUCE_KINDS, Opt, OptKind, Refusal

MIN_BUFFERS = 2
MAX_BUFFERS = 8
"""The least and greatest number of buffers."""


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    if not target.has_groups:
        because = "tiles of this device are not shared: no work-item waits for their fills"
        return Refusal(because, "a device with work-groups")
    if type(opt.arg) is not int or not MIN_BUFFERS <= opt.arg <= MAX_BUFFERS:
        return Refusal(
            f"a number of buffers is {MIN_BUFFERS} to {MAX_BUFFERS}, not {opt.arg!r}", "3"
        )
    axis = str(opt.axis)
    if axis not in kernel.arg.order:
        names = "one of the loops: " + " ".join(kernel.arg.order)
        return Refusal(f"the kernel has no loop {opt.axis!r} that fills tiles", names)
    tiles = _tiles(kernel, axis)
    if not tiles:
        because = f"no tile is filled in each step of {axis}"
        return Refusal(because, f'Opt(OptOps.STAGE, "{axis}", 1) first')
    if any(tile.buffers > 1 for tile in tiles):
        return Refusal(f"the tiles of {axis} have {tiles[0].buffers} buffers already")
    _, items = place_statements(
        statements(lane_kernel(_with_buffers(kernel, tiles, opt.arg), target))
    )
    loops = possible_pipelines(items, shared_tiles(items))
    if all(each.axis.axis_name != axis for each in loops.values()):
        because = (
            f"{axis} does more than fill tiles of arguments and then read them, or its work-items"
            " share none"
        )
        return Refusal(because, "a loop of a reduction, around all readers of its tiles")
    return None


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with `arg` buffers for each tile that the loop fills.

    Rewrite:  As = STAGE(..)   ->   As = STAGE(..) in 3 buffers
    Also known as: software pipelining, double buffering; num_stages (Triton).
    """
    assert isinstance(opt.arg, int)  # checked by `why_not`
    return _with_buffers(kernel, _tiles(kernel, str(opt.axis)), opt.arg)


def _tiles(kernel: UOp, axis: str) -> list[UOp]:
    """Return the STAGEs that each iteration of a loop fills."""
    _, items = place_statements(statements(kernel))
    fills = {i.statement.node: fill_loop(i).axis for i in items if i.statement.node.op is Ops.STAGE}
    return [n for n, loop in fills.items() if loop and loop.axis_name == axis]


def _with_buffers(kernel: UOp, tiles: list[UOp], count: int) -> UOp:
    changes = {
        tile: construct.stage(tile.src[0], tile.src[1:], tile.name, tile.memory_shape, count)
        for tile in tiles
    }
    return kernel.substitute(changes)


PIPELINE = OptKind(
    "PIPELINE",
    here="nothing: no work-item waits for a fill",
    on_a_gpu="the work-group copies the next tiles while it computes, with one barrier a step",
    why_not=why_not,
    apply=apply,
    applies_to=REDUCE_KINDS,
    amounts=(2, 3, 4),
    promise=25,
    less_memory=lambda over: "fewer buffers, or a smaller tile",
)
