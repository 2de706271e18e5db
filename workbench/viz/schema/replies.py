"""Replies of Python to the requests of a page."""

from __future__ import annotations

from msgspec import Struct, field

from workbench.viz.schema.variant import CodeRow, ErrorWords, OptRow

Value = bool | int | float | str
"""A number, or the name of one that is not finite."""


class NoResult(Struct, forbid_unknown_fields=True):
    """Nothing: what changed comes as a patch."""


class VariantReply(Struct, forbid_unknown_fields=True):
    """The variant that a request made, or led to."""

    variant: int


class OptVerdict(Struct, forbid_unknown_fields=True):
    """An opt of a list: as Python, for people, and, where it is not legal after those before it,
    why, and what to try ("" and "": it is legal)."""

    text: str
    row: OptRow
    because: str
    hint: str = field(name="try")


class OptsReply(Struct, forbid_unknown_fields=True):
    """A list of opts, each with its verdict, and as Python; `amounts` are the legal ones of the opt
    that was named."""

    opts: list[OptVerdict]
    amounts: list[int]
    text: str


class EditedCode(Struct, forbid_unknown_fields=True):
    """Source that is being edited, compiled: the source itself and its machine code; none where
    there is an error."""

    code: list[CodeRow]
    error: ErrorWords | None


class RuleReply(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The variant without a rule; where everything began anew, the number of patches."""

    variant: int | None = None
    n: int | None = None


class TimedVariants(Struct, forbid_unknown_fields=True):
    """The variants that were timed on request."""

    variants: list[int]


class PatchCount(Struct, forbid_unknown_fields=True):
    """Everything began anew: the number of patches."""

    n: int


class StoppedJobs(Struct, forbid_unknown_fields=True):
    """How many jobs were dropped."""

    stopped: int


class WholeRecord(Struct, forbid_unknown_fields=True):
    """The number of patches that there were, and the packed record (null: the page has it)."""

    n: int
    record: str | None


class NodeValue(Struct, forbid_unknown_fields=True):
    """The value of a node at a position, or the first of several, and what all are like."""

    value: Value | list[Value]
    least: Value | None = field(name="min")
    greatest: Value | None = field(name="max")
    nan: int
    shape: list[int]


class WhyNotReply(Struct, forbid_unknown_fields=True):
    """Why a rule does not fire: the places in its text where the part begins and ends that
    failed."""

    text: str
    caret_start: int
    caret_end: int
    because: str


class BisectReply(Struct, forbid_unknown_fields=True):
    """The first wrong rewrite in words, and where it stands; no pass where there is none."""

    text: str
    place: int | None = field(name="pass")
    step: int
