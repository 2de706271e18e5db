"""The capture of a function, as a value: what a replay needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.execution.replay import Replay
from workbench.tensor.creation.random import Keys
from workbench.tensor.jit.flows import FlowOfOutputs
from workbench.tensor.jit.guard import Guard, NumberChanges
from workbench.tensor.jit.results import ReboundPlaces
from workbench.tensor.jit.state import CapturedState, Kind
from workbench.tensor.variable_operators import HOLE


@dataclass(frozen=True, slots=True)
class FunctionCapture:
    """The capture of a function `name`.

    `kinds` are those of its inputs, `others` its arguments without tensors, `structure` the outline
    of its result. It binds `places` anew; `rebound` is the outline of what it puts there. `guard`
    checks the tensors that it reaches. `written` has the inputs that it writes, by number, with the
    outputs that are their new values; `draws` its random draws; `steady` the numbers of state
    memory that it does not change; `changes` the numbers and texts that it changed itself, or None;
    `flows` what gradients of its outputs would flow to.
    """

    name: str
    replay: Replay
    kinds: list[Kind]
    others: Any
    structure: Any
    rebound: Any
    state: CapturedState
    places: ReboundPlaces
    guard: Guard
    written: dict[int, int]
    draws: list[Keys]
    steady: list[int]
    changes: NumberChanges | None
    flows: list[FlowOfOutputs]

    @property
    def is_flat(self) -> bool:
        """Whether its arguments are tensors, and nothing else."""
        return bool(self.others == ((HOLE,) * len(self.kinds), {}))
