"""A graph for each rule of scheduling that is in no other table, in which it fires."""

from __future__ import annotations

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import buffer, tensor
from workbench.ir.schedule.cost import SPLIT_WORK

EXAMPLES: dict[str, UOp] = {
    "split-reduction": tensor(Ops.REDUCE_AXIS, buffer(1, SPLIT_WORK), (Ops.ADD, (0,))),
}
