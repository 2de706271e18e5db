"""A tensor core as data: the tiles that one instruction multiplies, and their layouts.

Sections: Layouts of a tensor core's tiles; A tensor core as data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from workbench.base.dtypes import DType
from workbench.pickles import pickled

# --------------------------------------------------------------------------------------------------
# Layouts of a tensor core's tiles: the lane of a warp that holds each element.
#
# The lanes of a warp multiply an M x K tile by a K x N tile, and add an M x N tile: C += A @ B.
# Each lane holds a few elements of each tile, its fragment. In all of these layouts a bit of an
# element's row or column is a bit of the lane's number or of the element's number in the lane. So a
# layout is the list of these bits, and index arithmetic, the emulator and pictures follow from it:
#
#     Fragment("k1 k2 m0 m1 m2", "k0 m3 k3")
#     lane 6 = 0b00110: bit 1 is k2, bit 2 is m0;  element 3 = 0b011: bit 0 is k0, bit 1 is m3
#     so lane 6 holds, as its element 3, row 1 + 8 = 9 and column 1 + 4 = 5 of A

ROWS = "m"
COLUMNS = "n"
STEPS = "k"
NO_AXIS = "-"


class BitRun(NamedTuple):
    """Consecutive bits of a number that are consecutive bits of a position: `bits` bits, from bit
    `begin` on, of a lane's number (`is_lane`) or an element's number are the bits, from bit `place`
    on, of the position along `axis`."""

    axis: str
    place: int
    is_lane: bool
    begin: int
    bits: int


@pickled
class Fragment(NamedTuple):
    """The layout of a tile. `lane` names each bit of a lane's number, from the lowest on: "k1" is
    bit 1 of the position along K, "-" is nothing: lanes that differ in it hold the same elements.
    `element` likewise names each bit of the number of an element in its lane."""

    lane: str
    element: str = ""

    @property
    def per_lane(self) -> int:
        """The number of elements in a lane."""
        return 1 << len(self.element.split())

    def size(self, axis: str) -> int:
        """Return the length of the tile along an axis."""
        bits = (*self.lane.split(), *self.element.split())
        return 1 << sum(bit[0] == axis for bit in bits)

    def position(self, lane: int, element: int) -> dict[str, int]:
        """Return the position along each axis of an element of a lane."""
        position: dict[str, int] = {}
        for number, bits in ((lane, self.lane), (element, self.element)):
            for place, bit in enumerate(bits.split()):
                if bit != NO_AXIS:
                    value = (number >> place & 1) << int(bit[1:])
                    position[bit[0]] = position.get(bit[0], 0) + value
        return position

    def runs(self, axis: str) -> Iterator[BitRun]:
        """Yield the runs of bits that make up a position along an axis."""
        for is_lane, bits in ((True, self.lane.split()), (False, self.element.split())):
            begin = 0
            while begin < len(bits):
                letter, first = bits[begin][0], bits[begin][1:]
                count = 1
                while letter == axis and bits[begin:][count : count + 1] == [
                    f"{axis}{int(first) + count}"
                ]:
                    count += 1
                if letter == axis:
                    yield BitRun(axis, int(first), is_lane, begin, count)
                begin += count


class RowLayout(NamedTuple):
    """How a warp reads a fragment as rows of matrices: in the layout `rows` each lane has one row,
    whose elements are neighbours along `axis`. `transposed`: the fragment has the matrices' columns
    in place of their rows."""

    rows: Fragment
    axis: str
    transposed: bool

    @property
    def matrices(self) -> int:
        """The number of matrices, each of 8 rows of 16 bytes."""
        return 1 << sum(bit != NO_AXIS for bit in self.rows.lane.split()[_ROW_BITS:])


_WORD_BYTES = 4
_ROW_BYTES = 16
_ROW_BITS = 3
_LANE_BITS = 5


def row_layout(fragment: Fragment, axis: str, itemsize: int) -> RowLayout | None:
    """Return how a warp of 32 lanes reads a fragment as rows of 16 bytes along `axis`; None if the
    fragment does not consist of such rows.

    Afterwards lane n has, of each matrix, the word n % 4 of row n // 4. If transposed, with
    elements of 2 bytes, it has column n // 4 of the rows 2 * (n % 4) and 2 * (n % 4) + 1.
    """
    lane, element = fragment.lane.split(), fragment.element.split()
    if itemsize > _WORD_BYTES:
        return None
    in_word = (_WORD_BYTES // itemsize).bit_length() - 1
    count = (_ROW_BYTES // itemsize).bit_length() - 1
    if len(lane) != _LANE_BITS or NO_AXIS in lane or len(element) < in_word:
        return None
    across, down = [*element[:in_word], *lane[:2]], lane[2:]
    rest = element[in_word:]
    straight = [f"{across[0][0]}{n}" for n in range(count)]
    if across != straight or down != [f"{down[0][0]}{n}" for n in range(_ROW_BITS)]:
        return None
    if len(rest) > _LANE_BITS - _ROW_BITS:
        return None
    transposed = axis == down[0][0]
    if transposed and count != _ROW_BITS:
        return None
    row, numbers = (down, across) if transposed else (across, down)
    fill = [NO_AXIS] * (_LANE_BITS - _ROW_BITS - len(rest))
    rows = Fragment(" ".join([*numbers, *rest, *fill]), " ".join(row))
    return RowLayout(rows, axis, transposed)


def is_transposed(rows: Fragment, fragment: Fragment) -> bool:
    """Whether a fragment that lanes read in the layout `rows` has the columns of the matrices: the
    rows then run along the axis of the highest bit of the fragment's lanes."""
    return rows.element[0] == fragment.lane.split()[-1][0]


# --------------------------------------------------------------------------------------------------
# A tensor core as data.


@pickled
class TensorCore(NamedTuple):
    """A kind of instruction that multiplies tiles. `operand` is the dtype of A and B, `accumulator`
    that of C.

    It adds `k` products to each element of C. The products are exact; the order of the sum, and its
    rounding, depend on the device. `rounds_to` names the format to which it first rounds its
    operands, "" if it does not.
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
        """Its sizes M, N and K, as in the opt TC: "16x8x16"."""
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
    """Return why the layouts of a tensor core are wrong; "" if each element of a tile is in one
    place, or in several lanes that hold copies."""
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
