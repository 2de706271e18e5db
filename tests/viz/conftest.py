"""What tests of pictures and pages share: a rule that raises."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from workbench.ir.rewriting.rewrite import RuleSet

Spoil = Callable[[Sequence[RuleSet], str, Exception], None]


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch, nothing_saved: Path) -> Iterator[Spoil]:
    """Make a rule raise, wherever it is tried."""

    def forget() -> None:
        """Sets that were put together from others have compiled their rules, too."""
        gc.unfreeze()  # what is frozen is not listed
        # the type by itself: isinstance asks an object for its class, and some of torch warn
        every_set = [o for o in gc.get_objects() if issubclass(type(o), RuleSet)]
        gc.freeze()
        for rules in every_set:
            rules.__dict__.pop("by_op", None)
            rules._less.clear()

    def make(sets: Sequence[RuleSet], name: str, error: Exception) -> None:
        def raises(node: Any) -> None:
            raise error

        matches = [r for rules in sets for r in rules.rules if r.name == name]
        assert matches
        for rule in matches:
            monkeypatch.setitem(rule.__dict__, "matcher", raises)
        forget()

    yield make
    monkeypatch.undo()
    forget()
