"""The renderer of the PYTHON device: the statement tree itself, and its readable text."""

from __future__ import annotations

from workbench.backends.program.source import Source, signature
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, leaves
from workbench.ir.text.readable import to_expr


def render(block: UOp) -> Source:
    """Return the tree as a Source: the emulator walks the tree; the text is for reading."""
    return Source(
        name=block.arg.name,
        language="workbench IR",
        text=to_expr(block),
        params=signature(leaves([block], Ops.PARAM)),
        block=block,
    )
