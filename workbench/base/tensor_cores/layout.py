"""Which lane of a warp holds which element of a tile.

The lanes of a warp multiply an M x K tile by a K x N tile, and add an M x N tile: C += A @ B. Each
lane holds a few elements of each tile, its fragment. In all of these layouts a bit of an element's
row or column is a bit of the lane's number or of the element's number in the lane, so a layout is
the list of these bits, and all else (index arithmetic, the emulator, pictures) follows from it:

    Fragment("k1 k2 m0 m1 m2", "k0 m3 k3")
    lane 6 = 0b00110: bit 1 is k2, bit 2 is m0;  element 3 = 0b011: bit 0 is k0, bit 1 is m3
    so lane 6 holds, as its element 3, row 1 + 8 = 9 and column 1 + 4 = 5 of A
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

ROWS = "m"
COLUMNS = "n"
STEPS = "k"
NO_AXIS = "-"


class BitRun(NamedTuple):
    """Neighbouring bits of a number that are neighbouring bits of a position: `bits` of them, from
    bit `begin` of the number of the lane (`is_lane`) or element, are those from `place` of
    `axis`."""

    axis: str
    place: int
    is_lane: bool
    begin: int
    bits: int


class Fragment(NamedTuple):
    """Where the elements of a tile are. `lane` says, from its lowest bit, what each bit of the
    lane's number is ("k1": bit 1 of the position along K; "-": nothing, the lanes that differ in it
    hold the same elements), and `element` what each bit of the element's number is."""

    lane: str
    element: str = ""

    @property
    def per_lane(self) -> int:
        """The elements that a lane holds."""
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
        """Yield what a position along an axis is made of."""
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
