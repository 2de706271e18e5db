"""What scheduling hands on: items to run in order, and the decisions that led to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.ir.node.uop import UOp


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a value is stored or fused. `figures` are the numbers that decided, or, where the
    decision was `forced` by whoever asked, those that would have."""

    name: str
    node: UOp
    stored: bool
    reason: str
    figures: Mapping[str, float] = field(default_factory=dict)
    forced: bool = False

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        figures = ", ".join(f"{k} {v:,.0f}" for k, v in self.figures.items())
        value = f"{self.node.op.name.lower()} {list(self.node.shape)}"
        what = f"{self.name} {value}: {self.reason}"
        return what + (f" ({figures})" if figures else "")


@dataclass(frozen=True, slots=True)
class ScheduleItem:
    """One thing to run: a kernel, or (kernel None) a copy between devices.

    `buffers` are BUFFER nodes by PARAM slot, the output first; `node` is the tensor-level value
    that the item computes; `decision` says why it is stored.
    """

    kernel: UOp | None
    buffers: tuple[UOp, ...]
    node: UOp
    decision: Decision

    def __repr__(self) -> str:
        what = "copy" if self.kernel is None else self.kernel.arg.name
        return (
            f"ScheduleItem({what}, {len(self.buffers)} buffers: {self.decision.reason})"
        )


@dataclass(frozen=True, slots=True)
class Schedule:
    """All items in execution order; `stored` maps each stored value to its BUFFER."""

    items: tuple[ScheduleItem, ...]
    stored: Mapping[UOp, UOp]
    decisions: tuple[Decision, ...]
