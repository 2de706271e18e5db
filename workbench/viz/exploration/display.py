"""The display state of explored tensors, with an open question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench.viz.exploration.questions import question_of
from workbench.viz.schema.messages import ViewState


@dataclass(slots=True)
class Display:
    """The state of displayed tensors, which lives as long as they do. `session` (of viz/session) is
    set once they are shown; `view` is the selection in the page; `baselines` are rows to compare
    with, by name; `ask` names the question whose answer, with its hints, is hidden until there is a
    `guess` ("": none); `on` is the device that kernels are
    for, where that is another than the tensors' ("": it is not)."""

    session: Any = None
    view: ViewState = field(default_factory=ViewState)
    baselines: dict[str, Callable[[], object]] = field(default_factory=dict)
    ask: str = ""
    guess: str | None = None
    on: str = ""

    @property
    def waits(self) -> str:
        """What is printed, and shown, while a question waits for a guess; "" where none does."""
        if not self.ask or self.guess is not None:
            return ""
        return f"{question_of(self.ask).text} Guess in the workbench, or by ex.guess(..)."

    def hides(self, table: str) -> bool:
        """Whether a table of the exploration would answer the question that waits."""
        return bool(self.waits) and table in question_of(self.ask).tables
