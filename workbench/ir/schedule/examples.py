"""An example graph for each rule of scheduling that is in no other table."""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.node.construct import read, reduce_axis
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import axis, buffer, tensor
from workbench.ir.schedule.cost import SPLIT_WORK

_I = axis("g0", 4)
_J = axis("r1", 8)
_VALUES = buffer(1, 4, 8)
"""A value in memory."""
_ROWS = UOp(Ops.CONTIGUOUS, _VALUES.dtype, (_VALUES, _I, axis("f0", 8)), (1,))
"""The same, its rows kept in the kernel."""

EXAMPLES: dict[str, UOp] = {
    "split-reduction": tensor(Ops.REDUCE_AXIS, buffer(1, SPLIT_WORK), (Ops.ADD, (0,))),
    "open-row": read(_ROWS, _I, _J),
    "push-through-op": read(_VALUES + _VALUES, _I, _J),
    "push-through-movement": read(tensor(Ops.PERMUTE, _VALUES, (1, 0)), _J, _I),
    "push-through-pad": read(tensor(Ops.PAD, _VALUES, ((0, 0), (2, 0))), _I, axis("g1", 10)),
    "open-reduction": read(reduce_axis(_VALUES, (1,), Ops.ADD), _I, UOp.index(0)),
    "load-memory": read(_VALUES, _I, _J),
    "read-position": read(UOp(Ops.IOTA, dtypes.int32, (), 4), _I),
    "read-constant": read(UOp.const(dtypes.float32, 2.0), _I),
}
