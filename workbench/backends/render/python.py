"""The PYTHON device's renderer: the statement tree itself, and its text to read."""

from __future__ import annotations

from workbench.backends.render.source import Source, signature
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
        params=signature(leaves([block], Ops.PARAM)),
        block=block,
    )
