"""A work-group of a kernel, step by step, and the cost of the whole run: the data of the pane GPU.
Rows name lines, memories and steps by their places.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Space = Literal["global", "shared", "private"]


class NumberArray(Struct, array_like=True, forbid_unknown_fields=True):
    """Numbers as a list: their kind (floats or integers, and the bytes of one), and base64 of them,
    little-endian."""

    kind: Literal["f4", "f8", "i4"]
    data: str


class AccessCosts(Struct, forbid_unknown_fields=True):
    """What the accesses of one line to one memory cost, of all work-groups together: transactions
    are sectors of global memory, or passes over the banks of shared memory; conflicts are passes
    beyond those that the width needs. `node` is the load or the store."""

    node: int
    memory: int
    is_store: bool
    transactions: int
    conflicts: int
    bytes_wanted: int
    bytes_moved: int


class TensorTile(Struct, forbid_unknown_fields=True):
    """A tile of a tensor core, shared out to the lanes of a warp, `each` elements a lane: of each
    lane and of each of its elements, `places` has the place in the tile, row by row."""

    name: str
    rows: int
    columns: int
    each: int
    places: NumberArray


class TensorCoreRow(Struct, forbid_unknown_fields=True):
    """A tensor core, in words, with its tiles A, B and C."""

    text: str
    lanes: int
    tiles: list[TensorTile]


class TileProduct(Struct, forbid_unknown_fields=True):
    """A product by a tensor core (its place): the names of what holds A, B, C and the result."""

    core: int
    registers: list[str]


class GpuLine(Struct, forbid_unknown_fields=True):
    """A line of the program, `depth` loops deep, with its nodes and the user's lines. `executed`
    counts work-items, `divergent` warps, `barriers` groups that waited, `shuffles` warps whose
    lanes exchanged values; `barrier` is the number of the barrier that it is, None for another
    statement; `product` is what a tensor core does. In a shuffle a work-item takes the value of the
    one whose number is its own xor `distance`, 0 elsewhere."""

    text: str
    barrier: int | None
    depth: int
    nodes: list[int]
    lines: list[int]
    accesses: list[AccessCosts]
    executed: int
    divergent: int
    barriers: int
    shuffles: int
    distance: int
    product: TileProduct | None


class GpuMemory(Struct, forbid_unknown_fields=True):
    """Memory that the program reads or writes; `user` is what the user calls it ("": nothing)."""

    name: str
    user: str
    space: Space
    dtype: str
    shape: list[int]
    itemsize: int


class AccessStep(Struct, array_like=True, forbid_unknown_fields=True):
    """An access, as a list. `first` has the first element that each work-item accesses; `lanes`
    elements follow each other. `active` has a bit for each work-item and lane, base64; `values` a
    number for each."""

    step: int
    memory: int
    is_store: bool
    lanes: int
    first: NumberArray
    active: str
    values: NumberArray
    transactions: int
    conflicts: int
    bytes_wanted: int
    bytes_moved: int


class RegisterRow(Struct, forbid_unknown_fields=True):
    """What work-items hold under a name: the value from each of `steps` on, one for all of them or
    one for each, of `lanes` lanes. `unwritten` has the steps whose value depends for some
    work-item on unwritten memory, with a bit for each value."""

    name: str
    lanes: int
    steps: list[int]
    values: list[NumberArray]
    unwritten: dict[int, str]


class GpuFinding(Struct, forbid_unknown_fields=True):
    """A defect, or what is right and slow, in words; the lines that it is at, the group that it
    happened in, and its steps, where that group is the one that is stepped. `items` are the
    work-items by number, `element` what they use of a memory (null: of none)."""

    kind: str
    is_defect: bool
    words: str
    lines: list[int]
    group: list[int]
    steps: list[int]
    items: list[int]
    memory: int | None
    element: int


class GpuTrace(Struct, forbid_unknown_fields=True):
    """A run of a kernel as a device with work-groups runs it, and each step of one group. Where the
    run is not whole, only that group ran, and counts are of it alone. `without` is the number of a
    barrier that was taken away from the program (null: none was).

    `grid`, `items` and `group` are along x, y and z. `line`, `mask` and `rounds` are by step:
    its line, its mask among `masks` (bits, base64), the rounds of loops by name (-1: not in it).
    `cut` says why the steps end before the program does ("": they do not). Units: sector_bytes,
    bank_bytes are those of a sector of global memory and of a word of a bank.
    """

    device: str
    grid: list[int]
    items: list[int]
    group: list[int]
    warp_lanes: int
    sector_bytes: int
    banks: int
    bank_bytes: int
    lines: list[GpuLine]
    memories: list[GpuMemory]
    line: list[int]
    rounds: dict[str, list[int]]
    masks: list[str]
    mask: list[int]
    accesses: list[AccessStep]
    registers: list[RegisterRow]
    cores: list[TensorCoreRow]
    findings: list[GpuFinding]
    is_whole: bool
    without: int | None
    cut: str
