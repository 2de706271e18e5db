"""A kernel that runs in the browser."""

from __future__ import annotations

from msgspec import Struct

from workbench.viz.schema.variant import ErrorWords


class PageBuffer(Struct, forbid_unknown_fields=True):
    """A buffer of a kernel, by slot. `data` are its bytes, little-endian, in base64: of an input
    what the kernel reads, of one that is `written` the right answer, which no element may miss by
    more than `tolerance`; "" for a slot that the kernel never touches."""

    dtype: str
    size: int
    written: bool
    data: str
    tolerance: float


class PageData(Struct, forbid_unknown_fields=True):
    """The buffers of a kernel, and what the right answers are those of (`against`); or the `error`
    that says why they are not here."""

    buffers: list[PageBuffer]
    error: ErrorWords | None = None
    against: str = ""
