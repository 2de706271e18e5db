"""Opts as values: what to do, to which axis, by how much. They print as Python that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from workbench.ir.node.axis import AXIS_ORDER, AxisType
from workbench.ir.node.memo import remembered
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


class OptOps(Enum):
    """The kinds of opt. Each is a file in this folder; SWAP is a case of ORDER."""

    SPLIT = "SPLIT"
    UPCAST = "UPCAST"
    UNROLL = "UNROLL"
    LOCAL = "LOCAL"
    THREAD = "THREAD"
    GROUP = "GROUP"
    GROUPTOP = "GROUPTOP"
    STAGE = "STAGE"
    PADTO = "PADTO"
    ORDER = "ORDER"
    SWAP = "SWAP"
    NOLOCALS = "NOLOCALS"
    TC = "TC"

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"


@dataclass(frozen=True, slots=True)
class Opt:
    """One opt: `Opt(OptOps.UPCAST, "g1", 4)`.

    `axis` is a name, or an integer: the position among the axes that the op applies to, as
    they are listed (so for UNROLL it counts from the first reduce axis, and for ORDER, SWAP
    and STAGE among the loops). `arg` is an amount (0: the whole axis) or, for ORDER and SWAP,
    another axis; for STAGE the slot of the input. NOLOCALS takes neither.
    """

    op: OptOps
    axis: str | int | None = None
    arg: int | str | None = None

    def __repr__(self) -> str:
        parts = [
            repr(self.op),
            *[repr(p) for p in (self.axis, self.arg) if p is not None],
        ]
        return f"Opt({', '.join(parts)})"

    def __str__(self) -> str:
        def quoted(part: object) -> str:
            return f'"{part}"' if isinstance(part, str) else repr(part)

        parts = [quoted(p) for p in (self.axis, self.arg) if p is not None]
        op = self.op.name if isinstance(self.op, OptOps) else repr(self.op)
        return f"{op}({', '.join(parts)})"


class Axis(NamedTuple):
    """An axis of a kernel as people see it."""

    name: str
    kind: AxisType
    size: int


class Refusal(NamedTuple):
    """Why an opt is not legal, and what would be."""

    because: str
    hint: str = ""


OUTPUT_KINDS = frozenset(
    {AxisType.GLOBAL, AxisType.LOOP, AxisType.LOCAL, AxisType.FILL}
)
REDUCE_KINDS = frozenset({AxisType.REDUCE, AxisType.GROUP_REDUCE})


@remembered
def ranges(kernel: UOp) -> Mapping[str, UOp]:
    """Return the RANGEs of a kernel by axis name, in the order in which axes are listed."""
    position = {name: i for i, name in enumerate(kernel.arg.order)}
    found = [n for n in kernel.toposort() if n.op is Ops.RANGE]
    found.sort(
        key=lambda r: (
            AXIS_ORDER[r.axis_kind],
            position.get(r.axis_name, 0),
            r.axis_name,
        )
    )
    return {r.axis_name: r for r in found}


def axes(kernel: UOp) -> tuple[Axis, ...]:
    """Return the axes of a kernel: by kind, then in loop order."""
    return tuple(
        Axis(r.axis_name, r.axis_kind, r.extent) for r in ranges(kernel).values()
    )
