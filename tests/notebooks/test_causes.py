"""What the chapters say that kernels wait for is what the product says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import nbformat
import numpy as np
import pytest

from tests.notebooks.test_course import kernel
from tests.support import ROOT
from workbench import Opt, OptOps, Tensor, explore
from workbench.base.target import Target
from workbench.cost.bottleneck import bottleneck
from workbench.cost.kernel_cost import Cost, cost
from workbench.ir.opt.apply import apply_opt
from workbench.measure.speeds import Rate, Speeds

# Two machines with registers of 16 floats and 1 MiB of L2. One begins an FMA on such a register in
# each cycle and has a quick L3 cache; the other begins two, and its L3 cache is slow.
W = 16
CACHES = (("L1", 32 << 10), ("L2", 1 << 20), ("L3", 32 << 20))
ONE = Target("LLVM", vector_bytes=4 * W, vector_registers=32, caches=CACHES,
             fma_starts=((32, 2), (64, 1)), ways=(("L2", 8),))  # fmt: skip
TWO = replace(ONE, fma_starts=((64, 2),), ways=(("L2", 16),))


def speeds(peak: float, l3: float, in_sets: Mapping[str, float]) -> Speeds:
    bandwidths = {"L1": 3.8e11, "L2": 1.2e11, "L3": l3, "memory": 1.5e10}
    read = {level: Rate(speed, 2 * speed) for level, speed in bandwidths.items()}
    peaks = {"f32": Rate(peak, 2 * peak), "f64": Rate(peak / 2, peak)}
    return Speeds(
        peaks, read, read, fma_s=4 / 3e9, scalar_s=0.5 / 3e9, launch_s=1e-6,
        hand_over_s=5e-6, in_sets=in_sets,
    )  # fmt: skip


FEW_SETS = {"1": 2.4e10, "2": 3.1e10, "4": 6.6e10}
MACHINES = {"one": (ONE, speeds(9e10, 7.5e10, FEW_SETS)), "two": (TWO, speeds(1.8e11, 3.5e10, {}))}


def opt(op: str, axis: str, amount: object) -> Opt:
    return Opt(OptOps[op], axis, amount)  # type: ignore[arg-type]


LANES, ROWS = opt("UPCAST", "g1", 2 * W), opt("UPCAST", "g0", 4)
TURNED, PACKED = opt("ORDER", "g1", "g0"), opt("STAGE", "g1", 2)
TILES = [opt("SPLIT", "g0", 16), opt("SPLIT", "g1", 16), opt("ORDER", "g1", "g2")]
OPTS, MATMUL = "04_opts_by_hand", "05_matmul_to_the_peak"
PRODUCT, SMALL = (512,) * 3, (48, 256, W)
LATENCY, BUSY, PORTS = "FMA latency", "arithmetic", "load ports"
L2, L3, SCALAR = "L2 bandwidth", "L3 bandwidth", "no vector lanes"
ROWS_OUTSIDE = [opt("ORDER", "r0", "g0")]
CAUSES: dict[str, tuple[str, tuple[int, ...], list[Opt], str, str]] = {
    "960 column sums": (OPTS, (960, 960), [], "add latency", "add latency"),
    "1,024 column sums": (OPTS, (1024, 1024), [], L3, L3),
    "rows outside": (OPTS, (960, 960), ROWS_OUTSIDE, SCALAR, SCALAR),
    **{f"{n} transpose": (OPTS, (n, n, 0), [], *2 * [L3 if n == 1024 else L2])
       for n in (960, 1008, 1024, 1040)},
    **{f"{n} in tiles": (OPTS, (n, n, 0), TILES, *2 * [L2 if n == 1024 else SCALAR])
       for n in (960, 1008, 1024, 1040)},
    "plain product": (MATMUL, PRODUCT, [], L3, L3),
    "tile": (MATMUL, PRODUCT, [LANES, ROWS], BUSY, L3),
    "g1 outside": (MATMUL, PRODUCT, [LANES, ROWS, TURNED], BUSY, L3),
    "packed": (MATMUL, PRODUCT, [LANES, ROWS, TURNED, PACKED], BUSY, BUSY),
    "small plain": (MATMUL, SMALL, [], LATENCY, LATENCY),
    **{
        f"{n} sums": (MATMUL, SMALL, [opt("UPCAST", "g1", W), *rows], one, two)
        for n, one, two in ((1, LATENCY, LATENCY), (2, LATENCY, LATENCY), (4, BUSY, LATENCY),
                            (8, BUSY, PORTS), (12, BUSY, PORTS))
        for rows in [[opt("UPCAST", "g0", n)] if n > 1 else []]
    },
}  # fmt: skip
"""Chapter, sizes (a transpose: with a 0), opts, and the cause on each machine."""


def priced(
    sizes: tuple[int, ...], opts: list[Opt], machine: str, l2_bytes: int = 1 << 20
) -> tuple[Cost, Target]:
    if sizes[-1] == 0:
        data = Tensor(np.zeros(sizes[:2], np.float32)).realize()
        plain = explore(data.permute(1, 0) + 1).kernels[0].ast
    else:
        plain = kernel(*sizes).ast
    graph = plain
    target, machine_speeds = MACHINES[machine]
    for each in opts:
        graph, _ = apply_opt(graph, each, target)
    caches = tuple((name, l2_bytes if name == "L2" else size) for name, size in CACHES)
    target = replace(target, caches=caches)
    return cost(graph, target, machine_speeds, plain), target


def text_of(chapter: str) -> str:
    notebook = nbformat.read(ROOT / "notebooks" / f"{chapter}.ipynb", as_version=4)
    return "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", CAUSES)
def test_a_chapter_names_the_cause_that_the_product_names(name: str, machine: str) -> None:
    chapter, sizes, opts, *words = CAUSES[name]
    told = words[list(MACHINES).index(machine)]
    assert bottleneck(*priced(sizes, opts, machine)).what == told
    assert f"**{told}**" in text_of(chapter)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_figures_of_chapter_four(machine: str) -> None:
    """Where not L2 but the additions hold up column sums, what a power of two fetches, and what
    tiles save."""
    sums, _ = priced((960, 960), [], machine)
    assert sums.seconds["core"] > sums.seconds["L2"] > sums.seconds["L3"]
    text = text_of(OPTS)
    moved = [
        priced(sizes, opts, machine)[0].bytes_from["L3"] >> 20
        for sizes, opts in (((1024, 1024), []), ((1024, 1024, 0), []), ((1024, 1024, 0), TILES))
    ]
    assert moved == [64, 72, 12]
    assert "From L3 come 64 MiB" in text and "from L3 come 12 MiB instead of 72" in text


@pytest.mark.parametrize("machine", MACHINES)
def test_the_figures_of_chapter_five(machine: str) -> None:
    """Packing saves what comes from L3, where L2 is no larger than a matrix."""
    text = text_of(MATMUL)
    for width, of_place, of_copy in ((16, 146, 21), (8, 162, 37)):
        tile = [opt("UPCAST", "g1", 2 * width), ROWS, TURNED]
        place, copy = (priced(PRODUCT, opts, machine) for opts in (tile, [*tile, PACKED]))
        moved = [priced_cost.bytes_from["L3"] >> 20 for priced_cost, _ in (place, copy)]
        assert moved == [of_place, of_copy]
        assert f"vectors of {width} floats" in text and f"instead of {of_place}" in text
        assert "L3" not in str(bottleneck(*copy))
    larger = bottleneck(*priced(PRODUCT, [], machine, 2 << 20)).what
    assert larger == (L2 if machine == "one" else LATENCY)
    assert f"**{larger}**" in text


def test_what_a_core_needs_follows_from_what_it_begins() -> None:
    why = {
        (machine, n): bottleneck(
            *priced(
                SMALL,
                [opt("UPCAST", "g1", W)] + ([opt("UPCAST", "g0", n)] if n > 1 else []),
                machine,
            )
        ).why
        for machine in MACHINES
        for n in (1, 8, 12)
    }
    assert "needs 4" in why["one", 1] and "needs 8" in why["two", 1]
    assert why["one", 8].startswith("nothing but 8 multiply-adds")
    assert why["two", 8].startswith("9 loads for 8 multiply-adds")
    assert why["two", 12].startswith("13 loads for 12 multiply-adds")
    assert "9 loads for 8 FMAs" in text_of(MATMUL)
