"""What is saved of an expression: the variants that somebody tried, and what is known of them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from workbench.viz.schema.variant import CheckRow, ErrorWords, SearchRow, TimingRow


class SavedEdit(Struct, forbid_unknown_fields=True):
    """Source that was edited by hand, the device that runs it, and what came of it."""

    device: str
    text: str
    check: CheckRow | None
    error: ErrorWords | None


class SavedVariant(Struct, forbid_unknown_fields=True):
    """A variant: `opts` on a kernel of the plan, or source edited by hand. `timings` are by
    device; `when` it was saved, in seconds of the epoch."""

    kernel: int
    opts: list[str]
    name: str = ""
    note: str = ""
    search: SearchRow | None = None
    pinned: bool = False
    timings: dict[str, TimingRow] = {}
    when: int = 0
    edited: SavedEdit | None = None


class SavedVariants(Struct, forbid_unknown_fields=True):
    """The file of an expression; one of another form will have another name."""

    v: Literal[1]
    variants: list[SavedVariant]
