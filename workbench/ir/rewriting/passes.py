"""Passes: named, documented values, each a rule table or a function from IR to IR."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from workbench.base.trace import PassStep, Recording, merged, recording
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import RuleSet, rewrite


@dataclass(frozen=True, slots=True)
class Pass:
    """One stage of a pipeline. `doc` says what holds after it; `run` is a RuleSet or a function,
    which may apply `rules` to a state that it makes, or is made of named `steps`."""

    name: str
    doc: str
    run: RuleSet | Callable[..., Any]
    rules: RuleSet | None = None
    steps: tuple[PassStep, ...] = ()

    @property
    def table(self) -> RuleSet | None:
        """The rules of the pass, if it has any."""
        return self.run if isinstance(self.run, RuleSet) else self.rules

    def __call__(self, state: Any, *context: Any) -> Any:
        """Return the state after the pass; recorded where an observer watches."""
        if isinstance(self.run, RuleSet):
            return rewrite(state, self.run, name=self.name, doc=self.doc)
        with self.recording(state) as record:
            record.after = self.run(state, *context)
            return record.after

    def recording(self, state: Any) -> Recording:
        """Return a context that records one run, for who calls `run` itself: because it returns
        more than a state, or takes other arguments."""
        return recording(self.name, self.doc, state)

    def merged(self) -> AbstractContextManager[None]:
        """Return a context in which runs of this pass on many expressions are recorded as one
        run."""
        return merged(self.name, UOp.sink)


def tables(*passes: Pass) -> dict[str, RuleSet]:
    """Return the rules of the passes that are rules, by the name of the pass."""
    return {p.name: p.table for p in passes if p.table is not None}
