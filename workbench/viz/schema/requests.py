"""What the page may ask, and with what: a type a request, named by its field "do"."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

MOST_TEXT = 400_000
MOST_AT_ONCE = 16
"""Variants that one request may name."""
MOST_SECONDS = 600.0

Place = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=MOST_TEXT)]
Seconds = Annotated[float, Meta(gt=0, le=MOST_SECONDS)]
Variants = Annotated[list[Place], Meta(min_length=1, max_length=MOST_AT_ONCE)]
Positions = Annotated[dict[str, int], Meta(max_length=MOST_AT_ONCE)]


class Request(Struct, tag_field="do", kw_only=True, forbid_unknown_fields=True):
    """What every request has: the number that its reply carries."""

    id: int | None = None


class ApplyRequest(Request, tag="apply"):
    """Apply an opt to a variant."""

    variant: Place
    opt: Text


class PasteRequest(Request, tag="paste"):
    """Apply a list of opts to the un-optimised kernel of a variant."""

    variant: Place
    text: Text


class AutoRequest(Request, tag="auto"):
    """Apply the default opts to a kernel."""

    kernel: Place


class CodeRequest(Request, tag="code"):
    """Write a variant in a language."""

    variant: Place
    language: Text


class OffersRequest(Request, tag="offers"):
    """Say what can be done next to a variant."""

    variant: Place


class PinRequest(Request, tag="pin"):
    """Pin a variant; null: none."""

    variant: Place | None


class NoteRequest(Request, tag="note"):
    """Set the note of a variant."""

    variant: Place
    text: Text


class DeviceRequest(Request, tag="device"):
    """Go on with another device."""

    name: Text


class MeasureRequest(Request, tag="measure"):
    """Time variants in turns, with cold caches where that is asked."""

    variants: Variants
    cold: bool | None = None


class CheckRequest(Request, tag="check"):
    """Hold the result of a variant against the reference."""

    variant: Place


class EditRequest(Request, tag="edit"):
    """Run source that was edited by hand."""

    variant: Place
    language: Text
    text: Text


class BaselineRequest(Request, tag="baseline"):
    """Time the baselines."""


class ValuesRequest(Request, tag="values"):
    """Compute the value of a node at positions of its axes, at a step of a pass."""

    variant: Place | None
    place: Place = field(name="pass")
    step: int
    node: Place
    at: Positions


class WhyNotRequest(Request, tag="why_not"):
    """Say why a rule does not fire at a node."""

    place: Place = field(name="pass")
    step: int
    node: Place
    rule: Place


class RuleOffRequest(Request, tag="rule_off"):
    """Switch a rule off, or on again, for a variant `of` a kernel; by place, or by name."""

    kernel: Place | None
    rule: Place | Text
    on: bool | None
    of: Place | None = None


class BisectRequest(Request, tag="bisect"):
    """Find the first rewrite after which a variant is wrong."""

    variant: Place


class ReplanRequest(Request, tag="replan"):
    """Plan again with a value stored, fused, or left to the scheduler (null)."""

    node: Place
    store: bool | None


class PlansRequest(Request, tag="plans"):
    """Time this plan beside the one before it."""


class SearchRequest(Request, tag="search"):
    """Search for faster opts for so many seconds."""

    variant: Place
    budget_s: Seconds


class StopJobs(Request, tag="stop"):
    """Drop what is under way."""


class PingRequest(Request, tag="ping"):
    """Say how many patches there were; the whole record where the page does not `have` all."""

    have: int | None = None
