"""Shared tiles: memory of a work-group through which work-items exchange elements."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.ir.nest.loops import Statement
from workbench.ir.nest.placement import Item
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def is_shared(tile: Statement, reader: Statement) -> bool:
    """Whether a work-item reads elements of a tile that another one wrote: an axis of the
    work-group fills the tile, or stands around the reader and not around the tile."""
    around = {r for r in reader.nest if r.axis_kind.is_work_item}
    return bool(around - set(tile.pre)) or any(r.axis_kind.is_work_item for r in tile.own)


def shared_tiles(items: Sequence[Item]) -> frozenset[UOp]:
    """Return the tiles that a work-group shares: some work-item reads what another one wrote."""
    tiles = {i.statement.node: i.statement for i in items if i.statement.node.op is Ops.STAGE}
    return frozenset(
        node
        for item in items
        for node in item.statement.reads
        if node in tiles and not item.init and is_shared(tiles[node], item.statement)
    )
