"""What the chapters say that kernels wait for is what the product says."""

from __future__ import annotations

from dataclasses import replace

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

# A machine like the one of the chapters' pictures: its registers hold 16 floats, it begins two FMAs
# in a cycle, and its L2 cache has 1 MiB.
W = 16
CACHES = (("L1", 32 << 10), ("L2", 1 << 20), ("L3", 32 << 20))
TARGET = Target("LLVM", vector_bytes=4 * W, vector_registers=32, caches=CACHES)
_READ = {"L1": 3.8e11, "L2": 1.2e11, "L3": 3.5e10, "memory": 1.5e10}
READ = {level: Rate(speed, 2 * speed) for level, speed in _READ.items()}
PEAK = {
    "f32": Rate(180e9, 360e9),
    "f64": Rate(90e9, 180e9),
}  # of 192, as it is measured
SPEEDS = Speeds(
    PEAK, READ, READ, fma_s=4 / 3e9, scalar_s=0.5 / 3e9, launch_s=1e-6, hand_over_s=5e-6
)


def opt(op: str, axis: str, amount: object) -> Opt:
    return Opt(OptOps[op], axis, amount)  # type: ignore[arg-type]


LANES, ROWS = opt("UPCAST", "g1", 2 * W), opt("UPCAST", "g0", 4)
TURNED, PACKED = opt("ORDER", "g1", "g0"), opt("STAGE", "g1", 2)
TILES = [opt("SPLIT", "g0", 16), opt("SPLIT", "g1", 16), opt("ORDER", "g1", "g2")]
OPTS, MATMUL = "04_opts_by_hand", "05_matmul_to_the_peak"
SUMS, TRANSPOSE, PRODUCT, SMALL = (960, 960), (1024, 1024), (512,) * 3, (48, 256, W)
CAUSES: dict[str, tuple[str, tuple[int, ...], list[Opt], str]] = {
    "column sums": (OPTS, SUMS, [], "add latency"),
    "rows outside": (OPTS, SUMS, [opt("ORDER", "r0", "g0")], "no vector lanes"),
    "transpose": (OPTS, TRANSPOSE, [], "L3 bandwidth"),
    "transpose in tiles": (OPTS, TRANSPOSE, TILES, "L2 bandwidth"),
    "plain product": (MATMUL, PRODUCT, [], "L3 bandwidth"),
    "tile": (MATMUL, PRODUCT, [LANES, ROWS], "L3 bandwidth"),
    "g1 outside": (MATMUL, PRODUCT, [LANES, ROWS, TURNED], "L3 bandwidth"),
    **{
        f"{n} sums": (MATMUL, SMALL, [opt("UPCAST", "g1", W), *rows], words)
        for n, words in ((1, "FMA latency"), (2, "FMA latency"), (4, "FMA latency"),
                         (8, "load ports"), (12, "load ports"))
        for rows in [[opt("UPCAST", "g0", n)] if n > 1 else []]
    },
}  # fmt: skip


def priced(sizes: tuple[int, ...], opts: list[Opt], l2_bytes: int = 1 << 20) -> Cost:
    if sizes == TRANSPOSE:
        data = Tensor(np.zeros(sizes, np.float32)).realize()
        plain = explore(data.permute(1, 0) + 1).kernels[0].ast
    else:
        plain = kernel(*sizes).ast
    graph = plain
    for each in opts:
        graph, _ = apply_opt(graph, each, TARGET)
    caches = tuple((name, l2_bytes if name == "L2" else size) for name, size in CACHES)
    return cost(graph, replace(TARGET, caches=caches), SPEEDS, plain)


@pytest.mark.parametrize("name", CAUSES)
def test_a_chapter_names_the_cause_that_the_product_names(name: str) -> None:
    chapter, sizes, opts, words = CAUSES[name]
    assert bottleneck(priced(sizes, opts), TARGET).what == words
    text = (ROOT / "notebooks" / f"{chapter}.ipynb").read_text(encoding="utf-8")
    assert f"**{words}**" in text


def test_the_figures_behind_these_causes() -> None:
    """Chapter 4: not L2 but the additions, and what tiles save. Chapter 5: packing saves what
    comes from L3, where L2 is no larger than a matrix."""
    sums = priced(SUMS, [])
    assert sums.seconds["core"] > sums.seconds["L2"] > sums.seconds["L3"]
    moved = [priced(TRANSPOSE, opts).bytes_from["L3"] >> 20 for opts in ([], TILES)]
    assert moved == [72, 12]
    text = (ROOT / "notebooks" / f"{MATMUL}.ipynb").read_text(encoding="utf-8")
    for width, of_place, of_copy in ((16, 146, 21), (8, 162, 37)):
        tile = [opt("UPCAST", "g1", 2 * width), ROWS, TURNED]
        place, copy = (priced(PRODUCT, opts) for opts in (tile, [*tile, PACKED]))
        moved = [variant_cost.bytes_from["L3"] >> 20 for variant_cost in (place, copy)]
        assert moved == [of_place, of_copy]
        assert f"vectors of {width} floats" in text and f"instead of {of_place}" in text
        assert "L3" not in bottleneck(copy, TARGET).what
    large = priced(PRODUCT, [], 2 << 20)
    assert bottleneck(large, TARGET).what == "FMA latency"
    (eight, twelve) = (
        bottleneck(
            priced(SMALL, [opt("UPCAST", "g1", W), opt("UPCAST", "g0", n)]), TARGET
        )
        for n in (8, 12)
    )
    assert eight.why.startswith("9 loads for 8 multiply-adds")
    assert twelve.why.startswith("13 loads for 12 multiply-adds")
