"""A tensor core as data: the tiles that one instruction multiplies, and their layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from workbench.base.dtypes import DType
from workbench.base.tensor_cores.layout import COLUMNS, NO_AXIS, ROWS, STEPS, Fragment


class TensorCore(NamedTuple):
    """One kind of instruction. `operand` is the dtype of A and B, `accumulator` that of C.

    It adds all `k` products of an element to it; products are exact, and what is rounded on the way
    to the sum, and in which order it adds, is the device's. `rounds_to` names the format that it
    rounds its operands to first, "" where it takes them as they are.
    """

    m: int
    n: int
    k: int
    operand: DType
    accumulator: DType
    lanes: int
    a: Fragment
    b: Fragment
    c: Fragment
    instruction: str
    rounds_to: str = ""

    @property
    def shape(self) -> str:
        """Its sizes, as in the opt TC: "16x8x16" are M, N and K."""
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def operand_format(self) -> str:
        """The format in which it takes A and B: `rounds_to`, or the dtype of the operands."""
        return self.rounds_to or self.operand.name

    @property
    def fragments(self) -> Mapping[str, Fragment]:
        """The fragments by the name of their tile."""
        return {"a": self.a, "b": self.b, "c": self.c}

    def __str__(self) -> str:
        rounded = f" as {self.rounds_to}" if self.rounds_to else ""
        return f"{self.shape} {self.operand}{rounded} -> {self.accumulator}"


TILE_AXES = {"a": (ROWS, STEPS), "b": (STEPS, COLUMNS), "c": (ROWS, COLUMNS)}
"""The axes of each tile: its rows and its columns."""


def misfit(core: TensorCore) -> str:
    """Return why the layouts of a tensor core are wrong, "" where each element of a tile is in some
    lane, and in one lane and element unless lanes hold copies."""
    sizes = {ROWS: core.m, COLUMNS: core.n, STEPS: core.k}
    for name, fragment in core.fragments.items():
        if 1 << len(fragment.lane.split()) != core.lanes:
            return f"{name} has other lanes than {core.lanes}"
        bits = [*fragment.lane.split(), *fragment.element.split()]
        own = sorted(bit for bit in bits if bit != NO_AXIS)
        axes = TILE_AXES[name]
        needed = sorted(
            f"{axis}{place}" for axis in axes for place in range(sizes[axis].bit_length() - 1)
        )
        if own != needed:
            return f"{name} has the bits {' '.join(own)}, not {' '.join(needed)}"
    return ""
