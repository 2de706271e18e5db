"""The PYTHON device's renderer: the statement tree itself, and its text to read."""

from __future__ import annotations

from workbench.backends.render.source import Source
from workbench.dtypes import DType, dtypes
from workbench.ir.expr import to_expr
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp, leaves
from workbench.target import Target


def render(block: UOp, target: Target) -> Source:
    """Return the tree as a Source: the emulator walks the tree, people read the text."""
    return Source(
        name=block.arg.name,
        language="workbench IR",
        text=to_expr(block),
        params=_params(block),
        block=block,
    )


def _params(block: UOp) -> tuple[tuple[DType, int], ...]:
    """Return (dtype, elements) by slot; a slot that nothing uses is void and empty."""
    found = {p.arg[0]: (p.dtype, p.arg[1]) for p in leaves([block], Ops.PARAM)}
    slots = range(max(found, default=-1) + 1)
    return tuple(found.get(slot, (dtypes.void, 0)) for slot in slots)
