"""A language of kernels: its label, and the patterns that highlight its text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """`name` is the tab's label, `title` its description. The others are regular expressions that
    Python and JavaScript read alike: `head` matches the line where the kernel begins ("" where it
    is the first line), `comment` a comment, `word` a word in bold."""

    name: str
    title: str
    comment: str
    word: str
    head: str = ""
