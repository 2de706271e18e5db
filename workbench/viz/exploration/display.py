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
    set once they are shown; `view` is the selection in the page; `baselines` are functions to
    compare with, by name; `ask` names a question ("": none), whose answer is hidden, with its
    hints, until there is a `guess` (None: none yet); `on` is the device that the kernels are for
    ("": the tensors'); `runs` are the last two Runs of the kernels, the latest
    last."""

    session: Any = None
    view: ViewState = field(default_factory=ViewState)
    baselines: dict[str, Callable[[], object]] = field(default_factory=dict)
    ask: str = ""
    guess: str | None = None
    on: str = ""
    runs: tuple[Any, ...] = ()

    @property
    def waits(self) -> str:
        """The text that is shown while a question waits for a guess; "" if none waits."""
        if not self.ask or self.guess is not None:
            return ""
        return f"{question_of(self.ask).text} Guess in the workbench, or by ex.guess(..)."

    def hides(self, table: str) -> bool:
        """Whether a table of the exploration would answer the question that waits."""
        return bool(self.waits) and table in question_of(self.ask).tables
