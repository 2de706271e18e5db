"""The page's layout against dot's crossings, from state to state, and on graphs that are too much."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.viz.layouts import (
    BOUNDS,
    BUILDERS,
    FAR,
    LARGE,
    STILL,
    STILL_WHILE_BUILDING,
    Functions,
    drawn,
    drawn_crossings,
    flat,
    functions_page,
    large,
    lines_through_boxes,
    moves,
    sample,
)


@pytest.fixture(scope="module")
def page() -> Functions:
    return Functions()


@pytest.mark.parametrize("name", BOUNDS)
def test_crosses_little_more_than_dot(page: Functions, name: str) -> None:
    graph = sample(name)
    drawing = drawn(page, graph.widths, graph.edges)
    assert drawn_crossings(drawing) <= BOUNDS[name] * graph.dot_crossings
    assert drawing.stubs <= 0.12 * len(graph.edges)  # those cross nothing
    assert lines_through_boxes(drawing, graph.widths) == 0


def test_the_same_graph_gets_the_same_picture(page: Functions) -> None:
    graph = sample("F100")
    one, other = (drawn(page, graph.widths, graph.edges) for _ in range(2))
    assert (one.places, one.pieces) == (other.places, other.pieces)


def test_lines_run_from_the_source_to_the_port_and_only_downward(page: Functions) -> None:
    graph = sample("F100")
    drawing = drawn(page, graph.widths, graph.edges)
    ports: dict[int, list[float]] = {}
    for (source, target), pieces in zip(graph.edges, drawing.pieces, strict=True):
        if pieces is None:
            continue
        way = [tuple(point) for piece in pieces for point in flat(piece)]
        heights = [y for _, y in way]
        assert heights == sorted(heights)
        assert abs(way[0][0] - drawing.places[source][0]) < 0.1
        assert abs(way[-1][0] - drawing.places[target][0]) < graph.widths[target] / 2
        ports.setdefault(target, []).append(way[-1][0])
    assert len(ports) > 50
    assert all(ends == sorted(ends) for ends in ports.values()), "operands in order"


def test_a_rewrite_leaves_the_rest_in_its_place(browser: Any) -> None:
    page = functions_page(browser)
    all_moves = moves(page)
    page.context.close()
    by_builders = [move for move in all_moves if move.name in BUILDERS]
    by_rules = [move for move in all_moves if move.name not in BUILDERS]
    for view in ("whole", "near"):
        for moves_of, share in ((by_rules, STILL[view]), (by_builders, STILL_WHILE_BUILDING)):
            in_view = [move for move in moves_of if move.view == view]
            far = [move for move in in_view if move.most >= 1]
            assert len(in_view) >= 40
            assert len(far) <= (1 - share) * len(in_view), far
    # a number and no share: these kernels may come to take fewer rewrites that move nothing
    assert sum(move.most >= 1 for move in by_rules) <= FAR
    assert sum(move.overlaps for move in all_moves) == 0
    assert sum(move.through for move in all_moves) == 0
    for view in ("whole", "near"):
        in_view = [move for move in all_moves if move.view == view]
        edges, stubs, points, on = (
            sum(getattr(move, name) for move in in_view)
            for name in ("edges", "stubs", "points", "on")
        )
        assert on <= 0.03 * points, (view, on, points)
        assert stubs <= 0.2 * edges, (view, stubs, edges)


@pytest.mark.parametrize("kind", LARGE)
def test_ten_thousand_nodes_do_not_hang(page: Functions, kind: str) -> None:
    count = 10_000
    edges = large(kind, count)
    drawing = drawn(page, [40.0] * count, edges)
    layers = 2 if kind == "fan" else count
    assert len({y for _, y in drawing.places}) == layers


def test_two_thousand_nodes_are_laid_out(page: Functions) -> None:
    count, pick = 2_000, random.Random(0)
    edges = [(max(0, i - pick.randrange(1, 90)), i) for i in range(1, count)] * 2
    edges += [(pick.randrange(i), i) for i in range(1, count, 2)]
    drawing = drawn(page, [80.0] * count, edges)
    assert len(set(drawing.places)) == count
