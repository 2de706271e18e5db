"""The layout of graphs: crossings beside dot's, milliseconds, and how still a rewrite is.

    python bench/layout.py

dot is not run: its crossings are recorded in tests/viz/data. Ends with an error where a
graph crosses more than its bound, or too many rewrites move what they left alone.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.viz.layouts import BOUNDS, Edge, Size, drawn_crossings, moves, sample
from workbench.viz.layout import Layout, arrange

STILL = 0.95
"""The share of rewrites that must move nodes by less than a layer."""


def main() -> int:
    print(
        f"{'graph':22}{'nodes':>7}{'edges':>7}{'ours':>7}{'dot':>7}{'ratio':>7}{'ms':>8}"
    )
    worse = [name for name, bound in BOUNDS.items() if not is_within(name, bound)]
    for name, (count, edges) in large().items():
        _, ms = timed([(80.0, 30.0)] * count, edges)
        print(f"{name:22}{count:7}{len(edges):7}{'':21}{ms:8.0f}")
    found = list(moves())
    still = sum(move.most < 1 for move in found) / len(found)
    print(
        f"\n{still:.1%} of {len(found)} rewrites move what they left alone by less than a layer"
    )
    if worse:
        print("crosses too much:", ", ".join(worse))
    return int(bool(worse) or still < STILL)


def is_within(name: str, bound: float) -> bool:
    graph = sample(name)
    layout, ms = timed(graph.sizes, graph.edges)
    ours, dots = drawn_crossings(layout), graph.dot_crossings
    print(
        f"{name:22}{len(graph.sizes):7}{len(graph.edges):7}{ours:7}{dots:7}"
        f"{ours / dots:7.2f}{ms:8.0f}"
    )
    return ours <= bound * dots


def timed(sizes: list[Size], edges: list[Edge]) -> tuple[Layout, float]:
    """Return the layout and the milliseconds of this process that it took."""
    begun = time.process_time()
    layout = arrange(sizes, edges)
    return layout, 1e3 * (time.process_time() - begun)


def large() -> dict[str, tuple[int, list[Edge]]]:
    """Return graphs that only have to be drawn in time: (nodes, edges)."""
    pick = random.Random(0)
    wide = [(max(0, i - pick.randrange(1, 90)), i) for i in range(1, 2_000)] * 2
    wide += [(pick.randrange(i), i) for i in range(1, 2_000, 2)]
    chain = [(i, i + 1) for i in range(9_999)]
    skips = [(pick.randrange(i), i) for i in range(2, 10_000)]
    return {
        "wide, 2000": (2_000, wide),
        "chain, 10000 deep": (10_000, chain),
        "skips, 10000 deep": (10_000, chain + skips),
    }


if __name__ == "__main__":
    sys.exit(main())
