"""The order of each layer from left to right, so that lines cross little.

A start is a walk from the results up through the operands, one barycenter sweep, and then
moves of single vertices until none helps. The first start takes operands as they come,
others shuffled; the best one is shaken (some vertices that hang together are pushed aside)
and mended again, and kept where that is no worse. How long is counted in steps, not in
seconds, so that a graph always gets the same picture.

Source: Sugiyama, Tagawa, Toda 1981 (barycenter sweeps); Lourenco, Martin, Stuetzle 2003
(iterated local search).
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from workbench.viz.layout.crossings import Order
from workbench.viz.layout.proper import Proper

WORK, STARTS, SHAKES = 9_000_000, 4, 200
"""How many cells of matrices to look at in all; how often to start and to shake at most."""
WORK_PER_VERTEX = 2_500
"""... where that is more."""
WIDEST = 600
"""Graphs with wider rows are left as barycenters order them: their matrices are too big."""
GROUP, SHIFT = 16, 0.6
"""How many vertices a shake pushes at most, and how far, as a share of their row."""
SEED = 1
"""What all shuffles start from: the same graph gets the same picture."""

Rows = list[list[int]]


def ordered(graph: Proper) -> Rows:
    """Return the vertices of each layer from left to right."""
    rows = _walk(graph, None)
    if max(map(len, rows)) > WIDEST:
        _sweep(graph, rows)
        return rows
    random, work = Random(SEED), max(WORK, WORK_PER_VERTEX * len(graph.layer))
    best = _start(graph, None, work)
    for start in range(1, STARTS):
        if best.work < work // 2:
            break
        order = _start(graph, random, best.work, sweep=start % 2 == 0)
        best.work = order.work
        if order.crossings() < best.crossings():
            best = order
    for _ in range(SHAKES):
        fewest, saved = best.crossings(), best.saved()
        if not fewest or best.work <= 0:
            break
        _mend(best, _shake(graph, best, random))
        if best.crossings() > fewest:
            best.restore(saved)
    return best.rows


def _start(
    graph: Proper, random: Random | None, work: int, sweep: bool = True
) -> Order:
    rows = _walk(graph, random)
    if sweep:
        _sweep(graph, rows)
    order = Order(graph, rows, work)
    _mend(order, range(len(rows)))
    return order


def _walk(graph: Proper, random: Random | None) -> Rows:
    """Return rows in which vertices stand as a walk up from the results leaves them."""
    rows: Rows = [[] for _ in range(graph.height)]
    begun: set[int] = set()
    stack = [(v, False) for v, down in enumerate(graph.down) if not down][::-1]
    while stack:
        vertex, is_left = stack.pop()
        if is_left:
            rows[graph.layer[vertex]].append(vertex)
        elif vertex not in begun:
            begun.add(vertex)
            above = graph.up[vertex][::-1]
            if random is not None:
                random.shuffle(above)
            stack.append((vertex, True))
            stack += [(v, False) for v in above if v not in begun]
    return rows


def _sweep(graph: Proper, rows: Rows) -> None:
    """Sort each row, from the top, by the mean place of what leads to its vertices."""
    for above, row in zip(rows, rows[1:], strict=False):
        place = {v: i for i, v in enumerate(above)}
        means = {
            v: sum([place[u] for u in graph.up[v]]) / len(graph.up[v])
            for v in row
            if graph.up[v]
        }
        moved = iter(sorted(means, key=means.__getitem__))
        row[:] = [next(moved) if v in means else v for v in row]


def _mend(order: Order, rows: Iterable[int]) -> None:
    """Improve the rows given, and those beside any that changed, until all are at rest."""
    waiting, downward = set(rows), True
    while waiting:
        for row in sorted(waiting, reverse=not downward):
            waiting.discard(row)
            if order.improve(row):
                waiting |= {row - 1, row + 1} & set(range(len(order.orders)))
        downward = not downward


def _shake(graph: Proper, order: Order, random: Random) -> set[int]:
    """Push some vertices that hang together aside; return the rows whose lines it touches."""
    shift = random.uniform(-SHIFT, SHIFT)
    pushed: dict[int, set[int]] = {}
    for vertex in _group(graph, _crossed(order, random), random):
        pushed.setdefault(graph.layer[vertex], set()).add(vertex)
    touched = set()
    for number, members in pushed.items():
        row = order.row(number)
        far = shift * len(row)
        place = {v: i + far if v in members else i for i, v in enumerate(row)}
        order.set_row(number, sorted(row, key=place.__getitem__))
        touched |= {number - 1, number, number + 1}
    return touched & set(range(graph.height))


def _crossed(order: Order, random: Random) -> int:
    """Return a random vertex; the more lines cross beside its row the likelier."""
    crossings = order.crossings_by_row()
    (above,) = random.choices(range(len(crossings)), crossings)
    return random.choice(order.row(above + random.randrange(2)))


def _group(graph: Proper, vertex: int, random: Random) -> list[int]:
    """Return a vertex and some around it."""
    group, size = [vertex], random.randrange(1, GROUP)
    for member in group:
        beside = graph.up[member] + [v for v, _ in graph.down[member]]
        random.shuffle(beside)
        group += [v for v in dict.fromkeys(beside) if v not in group]
        if len(group) >= size:
            break
    return group[:size]
