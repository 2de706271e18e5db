"""What Python replies to requests; the requests say which."""

from __future__ import annotations

from msgspec import Struct, field

Value = bool | int | float | str
"""A number, or the name of one that is not finite."""


class NoResult(Struct, forbid_unknown_fields=True):
    """Nothing: what changed comes as a patch."""


class VariantReply(Struct, forbid_unknown_fields=True):
    """The variant that a request made, or led to."""

    variant: int


class RuleReply(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The variant without a rule; where everything began anew, the number of patches."""

    variant: int | None = None
    n: int | None = None


class TimedVariants(Struct, forbid_unknown_fields=True):
    """The variants that were timed because somebody asked."""

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
