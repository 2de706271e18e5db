"""The layout of graphs: layers follow the edges, nothing overlaps, little crosses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import calls_of
from tests.viz.layouts import LARGE, large, sample
from workbench.viz.layout import layered
from workbench.viz.layout.layering import layers_of


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, int]]]:
    count = draw(st.integers(1, 14))
    widths = draw(st.lists(st.floats(10, 120), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = draw(st.lists(pairs, max_size=24))
    return widths, [(min(p), max(p)) for p in edges if p[0] != p[1]]


@given(graphs())
def test_sources_above_and_nothing_overlaps(
    graph: tuple[list[float], list[tuple[int, int]]],
) -> None:
    widths, edges = graph
    layout = layered(widths, edges, gap=10)
    assert min(layout.layer) >= 0
    for (source, target), route in zip(edges, layout.routes, strict=True):
        assert layout.layer[source] < layout.layer[target]
        steps = [layer for _, layer in route]
        assert steps == list(range(layout.layer[source], layout.layer[target] + 1))
    spans = sorted(
        (layer, x - w / 2, x + w / 2)
        for layer, x, w in zip(layout.layer, layout.x, widths, strict=True)
    )
    for (above, _, right), (below, left, _) in zip(spans, spans[1:], strict=False):
        assert above != below or left >= right + 9.99
    assert all(
        -1e-6 <= left and right <= layout.width + 1e-6 for _, left, right in spans
    )


def test_a_ladder_has_no_crossing() -> None:
    # 0 -> 3, 1 -> 2 cross as numbered; the order can undo that
    layout = layered([20.0] * 4, [(0, 3), (1, 2)])
    assert (layout.x[0] < layout.x[1]) == (layout.x[3] < layout.x[2])


def test_a_chain_is_straight() -> None:
    layout = layered([20.0, 80.0, 20.0], [(0, 1), (1, 2)])
    assert len({round(x, 3) for x in layout.x}) == 1


def test_no_nodes() -> None:
    assert layered([], []).width == 0


def test_lines_are_as_short_as_can_be() -> None:
    graph = sample("F500")
    layers = layers_of(len(graph.widths), graph.edges)
    last = list(layers)
    for source, target in graph.edges:
        assert layers[source] < layers[target]
        last[source] = max(last[source], layers[target])
    assert sum(last) - sum(layers) == 637  # the optimum, by linear programming


def test_the_same_graph_gets_the_same_picture() -> None:
    graph = sample("F100")
    assert layered(graph.widths, graph.edges) == layered(graph.widths, graph.edges)


def test_ports_are_in_the_order_of_operands() -> None:
    layout = layered([40.0] * 4, [(0, 3), (1, 3), (2, 3), (0, 3)])
    ends = [route[-1][0] for route in layout.routes]
    assert ends == sorted(set(ends))
    assert all(layout.x[3] - 20 < x < layout.x[3] + 20 for x in ends)


@pytest.mark.parametrize("kind", LARGE)
def test_the_work_grows_with_the_number_of_nodes(kind: str) -> None:
    layers: list[int] = []

    def calls(count: int) -> int:
        def work() -> None:
            layers[:] = layered([40.0] * count, large(kind, count)).layer

        return calls_of(work)

    few, many = calls(200), calls(2_000)
    assert many < 14 * few
    assert len(set(layers)) == (2 if kind == "fan" else 2_000)
