"""The glossary: the words of `terms.py`, and the words of other tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from html import escape

from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord
from workbench.ir.node.ops import OPS
from workbench.ir.opt.opt import OptOps
from workbench.viz.glossary.terms import TERMS
from workbench.viz.model.kinds import KIND_LOOKS
from workbench.viz.schema.glossary import TermGroup, TermRow

OP_GROUP = "ops"
"""The group of the words of graphs' nodes."""


@cache
def glossary_rows() -> tuple[TermGroup, ...]:
    """Return the words that no other table of the page's record has: those of the page, and ops."""
    groups = {**TERMS, OP_GROUP: {op.name: info.doc for op, info in OPS.items()}}
    return tuple(_group(name, words) for name, words in groups.items())


class Glossary(dict[str, dict[str, str]]):
    """Meanings by word, in groups; it prints as a text, and in a notebook as groups to unfold."""

    def __str__(self) -> str:
        return "\n\n".join(f"{name}\n{_lines(self[name])}" for name in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "\n".join(_folded(name, words) for name, words in self.items())


def glossary(about: str | Iterable[PassRecord] = ()) -> Glossary:
    """Return the meaning of every word, in groups, as the page has them below `?`: with kinds of
    axes, kinds of opts, and the passes that it is given. `glossary("warp")` has the words that are
    or contain that one, or else those whose meanings do.

    Errors: WorkbenchError for a word that stands nowhere, and for what is neither a word nor
    passes.
    """
    if isinstance(about, str):
        return _about(about)
    try:
        passes = [*about]
    except TypeError:
        passes = [about]  # type: ignore[list-item] # it is refused below
    for other in passes:
        if not isinstance(other, PassRecord):
            because = f"{type(other).__name__} is neither a word nor a pass"
            hint = 'glossary("warp"), or glossary(ex.passes)'
            raise WorkbenchError(f"cannot explain {other!r:.40}", because, hint)
    words = Glossary(
        (group.name, {t.word: t.meaning for t in group.terms}) for group in glossary_rows()
    )
    kinds = {look.letter: f"{look.name}: {look.caption}" for look in KIND_LOOKS.values()}
    opts = {k.name: f"on a processor: {k.here}; on a GPU: {k.on_a_gpu}" for k in OptOps}
    words["loops"] |= kinds
    words["opts"] |= opts
    words["passes"] |= {record.name: record.doc for record in passes if record.doc}
    return words


def _about(word: str) -> Glossary:
    """Return what the glossary says of a word."""
    every, part = glossary(), word.strip().lower()
    by_word = _where(every, lambda name, _: part in name.lower())
    parts = by_word or _where(every, lambda _, meaning: part in meaning.lower())
    if parts and part:
        return parts
    names = [name for words in every.values() for name in words]
    near = get_close_matches(word, names, 1) or ["warp"]
    because = "no word and no meaning has it"
    hint = f'glossary("{near[0]}"), or glossary() for all words'
    raise WorkbenchError(f"there is no word {word!r:.40}", because, hint)


def _where(every: Glossary, fits: Callable[[str, str], bool]) -> Glossary:
    """Return the words that fit, in those of the groups that have any."""
    groups = {
        name: {word: text for word, text in words.items() if fits(word, text)}
        for name, words in every.items()
    }
    return Glossary((name, words) for name, words in groups.items() if words)


def _lines(words: Mapping[str, str]) -> str:
    return "\n".join(f"  {word}: {meaning}" for word, meaning in words.items())


def _folded(name: str, words: Mapping[str, str]) -> str:
    rows = "".join(
        f"<dt><b>{escape(word)}</b></dt><dd>{escape(meaning)}</dd>"
        for word, meaning in words.items()
    )
    head = f"<summary>{escape(name)}: {len(words)} words</summary>"
    return f"<details>{head}<dl>{rows}</dl></details>"


def _group(name: str, words: Mapping[str, str]) -> TermGroup:
    return TermGroup(name, [TermRow(word, meaning) for word, meaning in words.items()])
