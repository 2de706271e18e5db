"""A question of a record, and the parts of it that are hidden until the reader guesses."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct


class HiddenPart(Struct, forbid_unknown_fields=True, frozen=True):
    """What stands at a path into the record until the reader guesses: `value`; or of a table the
    rows that have the fields `only`. A step of a path is a field, or "*" for every row.
    """

    path: list[str]
    value: Any = None
    only: dict[str, Any] | None = None


class QuestionRow(Struct, forbid_unknown_fields=True):
    """A question. The first of `answers`, paths into the record, that leads to a value is its
    answer; a step there may be fields that a row must have, and a list counts. `judgement` says how
    a guess is judged: by how far off it is, within a `factor`, whether it is the same, which parts
    are. An answer is shown in `unit`s, of which each is `scale`. `choices` are what one may guess
    ([]: a number)."""

    name: str
    text: str
    judgement: Literal["number", "factor", "choice", "set"]
    answers: list[list[Any]]
    hides: list[HiddenPart]
    unit: str
    scale: float
    factor: float
    choices: list[str]
