"""The data of the pane GPU: a run of a kernel, the costs of its lines, the steps of a work-group.
Rows name lines, memories and steps by their places.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Space = Literal["global", "shared", "private"]


class NumberArray(Struct, array_like=True, forbid_unknown_fields=True):
    """Numbers as a list: their kind ("f4" and "f8": floats of 4 and 8 bytes, "i4": integers of 4),
    and their base64, little-endian."""

    kind: Literal["f4", "f8", "i4"]
    data: str


class AccessCosts(Struct, forbid_unknown_fields=True):
    """The costs of a load or store of a line (`node`), of all work-groups together: transactions
    are sectors of global memory, or passes over the banks of shared memory; conflicts are passes
    beyond those that the width needs."""

    node: int
    memory: int
    is_store: bool
    transactions: int
    conflicts: int
    bytes_wanted: int
    bytes_moved: int


class TensorTile(Struct, forbid_unknown_fields=True):
    """A tile of a tensor core. Each lane of a warp holds `each` elements of it: `places` has, by
    lane and element, the place in the tile, row by row."""

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
    """A product by the tensor core at place `core`: `registers` are the names of those that hold
    A, B, C and the result."""

    core: int
    registers: list[str]


class GpuLine(Struct, forbid_unknown_fields=True):
    """A line of the program, `depth` loops deep, with its nodes and the user's lines. `executed`
    counts work-items, `divergent` warps, `barriers` groups that waited, `shuffles` warps whose
    lanes exchanged values. `barrier` is the number of the line's barrier, `product` what a tensor
    core does (null: none). In a shuffle a work-item takes the value of the one whose number is its
    own xor `distance`; elsewhere `distance` is 0. `number` is that of the line in an edited text,
    from 1 (null: the program is not of such a text)."""

    text: str
    number: int | None
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
    """Memory that the program reads or writes; `user` is the user's name for it ("": none)."""

    name: str
    user: str
    space: Space
    dtype: str
    shape: list[int]
    itemsize: int


class AccessStep(Struct, array_like=True, forbid_unknown_fields=True):
    """The access of a step, as a list: each work-item accesses `lanes` elements from its `first`
    on. `active` has a bit for each work-item and lane, base64; `values` a number for each."""

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
    """The values that work-items hold under a name, from each of `steps` on: one value for all
    work-items or one for each; a value has `lanes` lanes. `unwritten` has, by step, a bit for each
    value: whether it depends on unwritten memory."""

    name: str
    lanes: int
    steps: list[int]
    values: list[NumberArray]
    unwritten: dict[int, str]


class GpuFinding(Struct, forbid_unknown_fields=True):
    """A defect or an inefficiency, in words, with its lines, its group, and its steps if the trace
    has those of that group. `items` are its work-items by number, which access `element` of
    `memory` (null: of none)."""

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
    """A run of a kernel as a device with work-groups runs it, and each step of one group. Unless
    the run `is_whole`, only that group ran, and counts are of it alone. `without` is the number of
    a barrier that was removed from the program (null: none).

    `grid`, `items` and `group` are along x, y and z. By step: `line`; `mask`, a place in `masks`
    (bits, base64); `rounds` of loops by name (-1: not in it). `cut` says why the steps end before
    the program does ("": they do not). Units: sector_bytes, bank_bytes are those of a sector of
    global memory and of a word of a bank.
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
