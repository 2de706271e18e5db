"""A language that kernels are shown in: what a page needs to know to show a text of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """`name` is the tab's label, `title` says what it is. The others are regular expressions
    that Python and JavaScript read alike: `head` matches the line where the kernel begins (""
    where nothing stands before it), `comment` a comment, `word` what is set in bold."""

    name: str
    title: str
    comment: str
    word: str
    head: str = ""
