"""The glossary: the words of `terms.py`, and those that have a table of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from html import escape

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


def glossary(passes: Iterable[PassRecord] = ()) -> Glossary:
    """Return the meaning of every word, in groups, as the page has them below `?`: with kinds of
    axes, kinds of opts, and the given passes."""
    words = Glossary(
        (group.name, {t.word: t.meaning for t in group.terms})
        for group in glossary_rows()
    )
    kinds = {
        look.letter: f"{look.name}: {look.caption}" for look in KIND_LOOKS.values()
    }
    opts = {k.name: f"here: {k.here}; on a GPU: {k.on_a_gpu}" for k in OptOps}
    words["loops"] |= kinds
    words["opts"] |= opts
    words["passes"] |= {record.name: record.doc for record in passes if record.doc}
    return words


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
