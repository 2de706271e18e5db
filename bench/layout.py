"""The layout of graphs: crossings beside dot's, milliseconds, how still a rewrite is.

    python bench/layout.py

In headless Chromium, and as Python runs it for still pictures and plans. dot is not run: its
crossings are recorded in tests/viz/data. Ends with an error where a graph crosses more than its
bound or takes more than its milliseconds, or too many rewrites move what they left alone. The
milliseconds are the least of some runs.
"""

from __future__ import annotations

import random
import sys
import timeit
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.viz.browser.browser import chromium
from tests.viz.layouts import (
    BOUNDS,
    STILL,
    Drawing,
    Edge,
    drawn,
    drawn_crossings,
    functions_page,
    moves,
    sample,
)
from workbench.viz.javascript import layered

MOST_MS = 200
MOST_LARGE_MS = 1500
"""Budgets: of a graph that is compared with dot, and of one that only has to be drawn in time."""
RUNS = 5


def main() -> int:
    with chromium() as browser:
        page = functions_page(browser)
        print(
            f"{'graph':22}{'nodes':>7}{'edges':>7}{'stubs':>7}{'ours':>7}{'dot':>7}"
            f"{'ratio':>7}{'ms':>8}"
        )
        worse = [name for name, bound in BOUNDS.items() if not is_within(page, name, bound)]
        for name, (count, edges) in large().items():
            drawing = best(page, [80.0] * count, edges)
            print(f"{name:22}{count:7}{len(edges):7}{drawing.stubs:7}{'':21}{drawing.ms:8.0f}")
            worse += [name] if drawing.ms > MOST_LARGE_MS else []
        print()
        worse += moving(page)
    print()
    worse += in_python()
    if worse:
        print("over budget:", ", ".join(worse))
    return int(bool(worse))


def is_within(page: Any, name: str, bound: float) -> bool:
    graph = sample(name)
    drawing = best(page, graph.widths, graph.edges)
    ours, dots = drawn_crossings(drawing), graph.dot_crossings
    print(
        f"{name:22}{len(graph.widths):7}{len(graph.edges):7}{drawing.stubs:7}{ours:7}{dots:7}"
        f"{ours / dots:7.2f}{drawing.ms:8.0f}"
    )
    return ours <= bound * dots and drawing.ms <= MOST_MS


def moving(page: Any) -> list[str]:
    """Say how many rewrites move what they left alone; return the views in which too many do."""
    all_moves, worse = moves(page), []
    for view, share in STILL.items():
        in_view = [move for move in all_moves if move.view == view]
        still = sum(move.most < 1 for move in in_view) / len(in_view)
        print(f"{view}: {still:.1%} of {len(in_view)} rewrites move nothing else by a layer")
        if still < share:
            worse.append(f"rewrites, {view}")
    return worse


def in_python() -> list[str]:
    """Say how long Python waits for layouts; return the graphs that take too long."""
    begun = perf_counter()
    layered([40.0], [])
    print(f"in Python, the first of a process: {perf_counter() - begun:.3f} s")
    graphs = {name: (sample(name).widths, sample(name).edges) for name in BOUNDS}
    count, edges = large()["wide, 2000"]
    worse = []
    for name, graph in {**graphs, "wide, 2000": ([80.0] * count, edges)}.items():
        seconds = min(timeit.repeat(partial(layered, *graph), number=1, repeat=RUNS))
        print(f"{name:22}{len(graph[0]):7}{len(graph[1]):7}{1e3 * seconds:36.0f}")
        worse += [name] if 1e3 * seconds > MOST_LARGE_MS else []
    return worse


def best(page: Any, widths: list[float], edges: list[Edge]) -> Drawing:
    """Return the drawing that took least of some."""
    return min((drawn(page, widths, edges) for _ in range(RUNS)), key=lambda d: d.ms)


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
