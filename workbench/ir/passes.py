"""A pass is a named, documented value: a rule table or a function from IR to IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.ir.rewrite import RuleSet, rewrite
from workbench.trace import recording


@dataclass(frozen=True, slots=True)
class Pass:
    """One stage of a pipeline. `doc` says what holds after it; `run` is a RuleSet or a function."""

    name: str
    doc: str
    run: RuleSet | Callable[..., Any]

    def __call__(self, state: Any, *context: Any) -> Any:
        """Return the state after the pass; recorded where an observer watches."""
        if isinstance(self.run, RuleSet):
            return rewrite(state, self.run, name=self.name, doc=self.doc)
        with recording(self.name, self.doc, state) as record:
            record.after = self.run(state, *context)
            return record.after
