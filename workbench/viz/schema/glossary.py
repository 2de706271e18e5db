"""The glossary of the page: words in groups, each with its meaning."""

from __future__ import annotations

from msgspec import Struct


class TermRow(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A word, letter or sign, and what it means in a sentence or two, as a list."""

    word: str
    meaning: str


class TermGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Words that are met together."""

    name: str
    terms: list[TermRow]
