"""The default opts for a device with work-groups, an ordered table of steps.

transposed-tile  a square of a transposed operand in shared memory
tensor-tile      a product on tensor cores: tiles for each warp, warps for each work-group
product-tile     a tile of a product for each work-group, with its operands in shared memory
group-rows       reductions along rows of neighbours, each row by a work-group
group-columns    a long reduction with few results, in parts
vectors          a vector of neighbours for each work-item
work-items       the outputs of a work-group, neighbours by neighbouring work-items
short-sums       reductions of a few steps, unrolled
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.group_sums import group_columns, group_rows
from workbench.ir.opt.heuristic.group_tiles import product_tile, transposed_tile
from workbench.ir.opt.heuristic.reductions import short_sums
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.heuristic.tensor_tiles import tensor_tile
from workbench.ir.opt.heuristic.work_groups import vectors, work_items

GROUP_STEPS: tuple[Callable[[UOp, Target], HeuristicStep | None], ...] = (
    transposed_tile,
    tensor_tile,
    product_tile,
    group_rows,
    group_columns,
    vectors,
    work_items,
    short_sums,
)
