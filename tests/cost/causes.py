"""Forty kernels whose cause is decided without the model: what they wait for follows from
arithmetic with a machine's published figures, done here by hand, and on the machine at hand from a
sweep (`bench/causes.py`), which changes one thing.

A row's `parts` has the cycles of a run that each resource takes alone. They speak of instructions
and bytes that one counts in the loop nest, and use nothing of `workbench.cost`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench import Opt, OptOps, Tensor
from workbench.base.target import Target
from workbench.measure.speeds import Rate, Speeds

FMA, ADD, LANES, LOADS = "FMA latency", "add latency", "no vector lanes", "load ports"
L2, L3, MEMORY = "L2 bandwidth", "L3 bandwidth", "memory"
BUSY, REGISTERS, LAUNCH = "arithmetic", "registers", "launch"
SEEN = 256
"""Instructions that a core has in flight, about."""


@dataclass(frozen=True)
class Machine:
    """A core: cycles of a multiply-add and of an addition, whole vectors that begin multiplying,
    are loaded and are stored in a cycle, and bytes in a cycle from each level, and of lines that
    all fall into a number of sets of L1."""

    target: Target
    clock_hz: float
    loads: float
    from_l2: float
    from_l3: float
    from_memory: float
    add_cycles: int = 4
    stores: float = 1
    in_sets: tuple[tuple[int, float], ...] = ()

    def rate(self, speed: float, run: int, step: int, count: int) -> float:
        """Return the bytes in a cycle of `count` runs of bytes that are `step` apart."""
        target, line = self.target, self.target.line_bytes
        way = target.cache_sets("L1") * line
        sets = -(-run // line) * (way // math.gcd(way, step))
        if step == run or count <= 2 * target.cache_ways("L1"):
            return speed
        return min(speed, dict(self.in_sets).get(sets, speed))

    @property
    def lanes(self) -> int:
        return self.target.vector_bytes // 4

    @property
    def speeds(self) -> Speeds:
        vector, cycle_s = self.target.vector_bytes, 1 / self.clock_hz
        levels = {
            "L1": self.loads * vector, "L2": self.from_l2, "L3": self.from_l3,
            "memory": self.from_memory,
        }  # fmt: skip
        read = {n: Rate(b / cycle_s, b / cycle_s) for n, b in levels.items()}
        stores = 2 * self.stores * vector / cycle_s
        starts = self.target.starts(vector) / cycle_s
        peak = {
            kind: Rate(2 * vector / size * starts, 2 * vector / size * starts)
            for kind, size in (("f32", 4), ("f64", 8))
        }
        each = {n: cycle_s / self.target.starts(n) for n in (4, 16, 32, 64) if n <= vector}
        return Speeds(
            peak, read, {**read, "L1": Rate(stores, stores)},
            self.target.fma_cycles * cycle_s, each[4], 1000 * cycle_s, 5000 * cycle_s,
            cycle_s, self.add_cycles * cycle_s, {str(n): s for n, s in each.items()},
            in_sets={str(n): b / cycle_s for n, b in self.in_sets},
        )  # fmt: skip


def _target(
    vector_bytes: int,
    registers: int,
    starts: tuple[tuple[int, float], ...],
    sizes: tuple[int, int, int],
    ways: tuple[int, int, int],
) -> Target:
    names = ("L1", "L2", "L3")
    return Target(
        "LLVM", vector_bytes=vector_bytes, vector_registers=registers, fma_starts=starts,
        caches=tuple(zip(names, sizes, strict=True)), cores=1,
        ways=tuple(zip(names, ways, strict=True)), non_temporal_bytes=sizes[-1],
    )  # fmt: skip


ZEN4 = Machine(
    _target(64, 32, ((32, 2), (64, 1)), (32 << 10, 1 << 20, 32 << 20), (8, 8, 16)),
    3.6e9, 1, 29, 22, 8, 3, in_sets=((1, 6.5), (2, 8.5), (4, 17)),
)  # fmt: skip
SERVER = Machine(
    _target(64, 32, ((64, 2),), (48 << 10, 2 << 20, 60 << 20), (12, 16, 15)),
    3e9, 2, 48, 10, 4,
)  # fmt: skip
DESKTOP = Machine(
    _target(32, 16, ((32, 2),), (32 << 10, 256 << 10, 8 << 20), (8, 4, 16)),
    4e9, 2, 32, 16, 8,
)  # fmt: skip
NEON = Machine(
    _target(16, 32, ((16, 2),), (64 << 10, 1 << 20, 32 << 20), (4, 8, 16)),
    2.5e9, 2, 16, 8, 6, 2,
)  # fmt: skip
MADE = {"one FMA of 512 bits": ZEN4, "two of 512 bits": SERVER, "two of 256 bits": DESKTOP,
        "two of 128 bits": NEON}  # fmt: skip

Parts = dict[str, float]


@dataclass(frozen=True)
class Row:
    """A kernel: its expression and its opts for vectors of a number of floats, and the cycles of a
    run by cause."""

    make: Callable[[int], Tensor]
    opts: Callable[[int], list[Opt]]
    parts: Callable[[Machine], Parts]


def data(*shape: int, dtype: type = np.float32) -> Tensor:
    numbers = np.random.default_rng(1).uniform(0.5, 1, shape).astype(dtype)
    return Tensor(numbers, device="LLVM").realize()


def up(axis: str, amount: int) -> Opt:
    return Opt(OptOps.UPCAST, axis, amount)


def order(first: str, second: str) -> Opt:
    return Opt(OptOps.ORDER, first, second)


def product(
    m: int, n: int, k: int, rows: int, vectors: int, form: str = "", size: int = 4
) -> Callable[[Machine], Parts]:
    """Return the cycles of a product of m x k by k x n elements of `size` bytes, in tiles of rows x
    vectors (0: single numbers). `form`: "" runs over columns inside, "turned" outside, "packed"
    also copies each panel side by side."""

    def parts(machine: Machine) -> Parts:
        target = machine.target
        wide = target.vector_bytes // size if vectors else 1
        columns = n if n else wide
        across = max(1, vectors)
        steps = m * columns * k / (rows * across * wide)
        fmas = rows * across
        busy = steps * fmas / target.starts(wide * size)
        loads = steps * (rows / 2 + across / (machine.loads if vectors else 2))
        ahead = SEEN / (fmas + across + 2)
        found = {FMA: steps * target.fma_cycles * k / (k + ahead)}
        if vectors:
            found |= {BUSY: busy, LOADS: loads}
            spilled = fmas + across + 1 - target.vector_registers
            if spilled > 0:  # each is stored and loaded again in every step
                loads += steps * spilled / machine.loads
                stores = steps * spilled / machine.stores
                waits = 8 if target.vector_bytes == 16 else 40  # across two lines
                found = {BUSY: busy, REGISTERS: max(loads, stores, steps * waits)}
        else:
            found[LANES] = max(busy, loads, steps * (fmas + across + 2) / 5)
        run, row = across * wide * size, columns * size
        step = run if form == "packed" else row
        panel_l1, panel_l2 = (k * _taken(target, level, run, step) for level in ("L1", "L2"))
        tile_rows = rows * k * size
        brought = steps * max(run, target.line_bytes)
        if panel_l1 + tile_rows > target.cache_bytes("L1"):
            found[L2] = brought / machine.rate(machine.from_l2, run, step, k)
        both = (k * columns + m * k) * size
        if both > target.cache_bytes("L2"):
            stays = panel_l2 + tile_rows <= target.cache_bytes("L2")
            panels = columns / (across * wide)
            often = panels * m * k * size + k * row
            if stays:  # a line serves all panels that it is a part of
                brought = steps * run
            speed = machine.rate(machine.from_l3, run, step, k)
            found[L3] = (often if form and stays else brought) / speed
        return found

    return parts


def _taken(target: Target, level: str, run: int, step: int) -> int:
    """Return the bytes of a cache that a run of bytes makes useless for others, where runs are
    `step` apart: lines with the same low bits compete for the ways of one set."""
    line = target.line_bytes
    way = target.cache_sets(level) * line
    if step == run:
        return run
    return max(-(-run // line) * line, min(step & -step, way))


def stream(count: int, scalar: int = 0) -> Callable[[Machine], Parts]:
    """Return the cycles of a loop that reads and writes as many floats: from each level that does
    not hold them all. With `scalar` instructions on single numbers for each, if any are."""

    def parts(machine: Machine) -> Parts:
        found: Parts = {LAUNCH: 1000}
        levels = (
            ("L1", L2, machine.from_l2),
            ("L2", L3, machine.from_l3),
            ("L3", MEMORY, machine.from_memory),
        )
        for level, cause, speed in levels:
            if 8 * count > machine.target.cache_bytes(level):
                found[cause] = 8 * count / speed
        if scalar:
            found[LANES] = count * max(1, scalar / 5)
        return found

    return parts


def arithmetic(count: int, instructions: int, cause: str) -> Callable[[Machine], Parts]:
    """Return the cycles of so many instructions for each element, on vectors or single numbers."""

    def parts(machine: Machine) -> Parts:
        wide = 1 if cause == LANES else machine.lanes
        starts = machine.target.starts(4 * wide)
        return {cause: count / wide * instructions / starts, LAUNCH: 1000}

    return parts


def column_sums(rows: int, columns: int) -> Callable[[Machine], Parts]:
    """Return the cycles of sums down columns: each step adds one number, and may fetch its line."""

    def parts(machine: Machine) -> Parts:
        target, steps = machine.target, rows * columns
        found = {ADD: steps * machine.add_cycles * rows / (rows + SEEN / 3.5)}
        taken = [rows * _taken(target, n, 64, 4 * columns) for n in ("L1", "L2")]
        if taken[0] > target.cache_bytes("L1"):
            found[L2] = steps * 64 / machine.rate(machine.from_l2, 64, 4 * columns, rows)
        if taken[1] > target.cache_bytes("L2"):
            found[L3] = steps * 64 / machine.rate(machine.from_l3, 64, 4 * columns, rows)
        return found

    return parts


def transpose(size: int) -> Callable[[Machine], Parts]:
    """Return the cycles of reading down columns and writing along rows."""

    def parts(machine: Machine) -> Parts:
        found = column_sums(size, size)(machine)
        found.pop(ADD)
        found[LANES] = size * size * 1.0  # one store a cycle
        return found

    return parts


def gather(count: int, table: int) -> Callable[[Machine], Parts]:
    """Return the cycles of loads by loaded indexes, a line each where the table is not near."""

    def parts(machine: Machine) -> Parts:
        found = {LANES: count * 1.2}
        touched = min(64 * count, 4 * table)
        levels = (
            ("L1", L2, machine.from_l2),
            ("L2", L3, machine.from_l3),
            ("L3", MEMORY, machine.from_memory),
        )
        for level, cause, speed in levels:
            size = machine.target.cache_bytes(level)
            if touched + 8 * count > size:
                found[cause] = (64 * count * (touched > size) + 16 * count) / speed
        return found

    return parts


def tile(rows: int, vectors: int, form: str = "") -> Callable[[int], list[Opt]]:
    def opts(wide: int) -> list[Opt]:
        chosen = [up("g1", vectors * wide)] if vectors else []
        chosen += [up("g0", rows)] if rows > 1 else []
        chosen += [order("g1", "g0")] if form else []
        return [*chosen, *([Opt(OptOps.STAGE, "g1", 2)] if form == "packed" else [])]

    return opts


def square(n: int, rows: int, vectors: int, form: str = "") -> Row:
    return Row(
        lambda _: data(n, n) @ data(n, n), tile(rows, vectors, form),
        product(n, n, n, rows, vectors, form),
    )  # fmt: skip


def small(rows: int, vectors: int, k: int = 256, size: int = 4) -> Row:
    """Return a product of 48 rows that the first caches hold, as wide as a tile."""
    dtype, across = (np.float32 if size == 4 else np.float64), max(1, vectors)

    def make(wide: int) -> Tensor:
        columns = wide * 4 // size * across
        return data(48, k, dtype=dtype) @ data(k, columns, dtype=dtype)

    def parts(machine: Machine) -> Parts:
        columns = machine.lanes * 4 // size * across
        return product(48, columns, k, rows, vectors, size=size)(machine)

    return Row(make, lambda wide: tile(rows, vectors)(wide * 4 // size), parts)


def sums(rows: int, columns: int) -> Row:
    return Row(
        lambda _: data(rows, columns).sum(axis=0), lambda _: [], column_sums(rows, columns)
    )  # fmt: skip


def turned(n: int) -> Row:
    return Row(lambda _: data(n, n).permute(1, 0) + 1, lambda _: [], transpose(n))


def each(
    count: int, of: Callable[[Tensor], Tensor], parts: Callable[[Machine], Parts], vectors: int
) -> Row:
    opts = lambda wide: [up("g0", vectors * wide)] if vectors else []  # noqa: E731
    return Row(lambda _: of(data(count)), opts, parts)


def added(count: int) -> Row:
    return each(count, lambda x: x + 1, stream(count), 4)


def gathered(count: int, table: int) -> Row:
    numbers = np.random.default_rng(2).integers(0, table, count).astype(np.int32)
    indexes = Tensor(numbers, device="LLVM").realize()
    return Row(lambda _: data(table)[indexes], lambda _: [], gather(count, table))


def long_sum(count: int) -> Row:
    def parts(machine: Machine) -> Parts:
        return {ADD: count * machine.add_cycles, LAUNCH: 1000}

    return Row(lambda _: data(count).sum(), lambda _: [], parts)


ROWS: dict[str, Row] = {
    "1 vector sum": small(1, 1),
    "2 vector sums": small(2, 1),
    "4 vector sums": small(4, 1),
    "8 vector sums": small(8, 1),
    "12 vector sums": small(12, 1),
    "4 x 2 vectors": small(4, 2),
    "8 x 2 vectors": small(8, 2),
    "16 x 2 vectors": small(16, 2),
    "1 vector sum, f64": small(1, 1, 128, 8),
    "2 vector sums, f64": small(2, 1, 128, 8),
    "4 x 2 vectors, f64": small(4, 2, 128, 8),
    "1 number, sums of 1024": small(1, 0, 1024),
    "1 number, sums of 256": small(1, 0),
    "1 number, sums of 8": small(1, 0, 8),
    "512, plain": square(512, 1, 0),
    "512, tile": square(512, 4, 2),
    "960, tile": square(960, 4, 2),
    "1024, tile": square(1024, 4, 2),
    "1056, tile": square(1056, 4, 2),
    "960, columns outside": square(960, 4, 2, "turned"),
    "1024, columns outside": square(1024, 4, 2, "turned"),
    "512, packed": square(512, 4, 2, "packed"),
    "960, packed": square(960, 4, 2, "packed"),
    "1024, packed": square(1024, 4, 2, "packed"),
    "960, 1 vector": square(960, 1, 1),
    "column sums, 128 x 48": sums(128, 48),
    "column sums, 960": sums(960, 960),
    "column sums, 1024": sums(1024, 1024),
    "sum of 6144": long_sum(6144),
    "transpose, 960": turned(960),
    "transpose, 1024": turned(1024),
    "add 8": each(8, lambda x: x + x, stream(8), 0),
    "add, 128 KiB": added(1 << 14),
    "add, 4 MiB": added(1 << 19),
    "add, 256 MiB": added(1 << 25),
    "add, 1 number at a time": each(1 << 14, lambda x: x + 1, stream(1 << 14, 4), 0),
    "sine, 1 number": each(1 << 12, Tensor.sin, arithmetic(1 << 12, 20, LANES), 0),
    "sine": each(1 << 15, Tensor.sin, arithmetic(1 << 15, 20, BUSY), 1),
    "exponential": each(1 << 15, Tensor.exp, arithmetic(1 << 15, 15, BUSY), 1),
    "gather from 128 MiB": gathered(1 << 20, 1 << 25),
    "gather from 8 KiB": gathered(1 << 16, 1 << 11),
}
