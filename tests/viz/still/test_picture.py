"""The geometry of the tensor graph's picture, which still and live pictures are drawn from."""

from __future__ import annotations

import re

import pytest

from tests.agreement.expressions import case
from tests.support import count
from tests.viz.support import array, softmax
from workbench.viz import Exploration, explore
from workbench.viz.model.graph import folded
from workbench.viz.still.picture import MOST_BENDS, NODE, Picture, curve, picture

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def drawn(exploration: Exploration) -> Picture:
    return picture(folded(exploration.graph))


@pytest.mark.parametrize("seed", range(count(200)))
def test_everything_is_inside_and_nothing_overlaps(seed: int) -> None:
    drawing = drawn(explore(case(seed).run("LLVM")[0]))
    for box in drawing.boxes:
        assert 0 <= box.x - box.width / 2 and box.x + box.width / 2 <= drawing.width
        assert 0 <= box.y - box.height / 2 and box.y + box.height / 2 <= drawing.height
    for i, one in enumerate(drawing.boxes):
        for other in drawing.boxes[:i]:
            apart = abs(one.x - other.x) >= (one.width + other.width) / 2
            assert apart or abs(one.y - other.y) >= (one.height + other.height) / 2


@pytest.mark.parametrize("seed", range(count(200)))
def test_lines_run_down_from_source_to_target(seed: int) -> None:
    drawing = drawn(explore(case(seed).run("LLVM")[0]))
    places = {n.number: i for i, n in enumerate(drawing.graph.nodes)}
    for edge, route in zip(drawing.graph.edges, drawing.routes, strict=True):
        source, target = (drawing.boxes[places[n]] for n in (edge.source, edge.target))
        (_, top), (x, bottom) = route[0], route[-1]
        assert top == source.y + source.height / 2
        assert bottom == pytest.approx(target.y - target.height / 2)
        assert abs(x - target.x) <= target.width / 2
        heights = [y for _, y in route]
        assert heights == sorted(heights)


def test_a_line_straight_down_needs_two_points() -> None:
    assert curve(((5.0, 0.0), (5.0, 90.0))) == "M5.0 0.0V90.0"
    for route in drawn(softmax()).routes:
        for a, b, c in zip(route, route[1:], route[2:], strict=False):
            assert not a[0] == b[0] == c[0]


def test_lines_of_a_tall_picture_bend_at_few_layers() -> None:
    x = softmax().tensors[0]
    y = x
    for _ in range(120):
        y = (y * 0.5 + x).relu()
    drawing = drawn(explore(y))
    assert drawing.height > 3 * MOST_BENDS * NODE
    assert max(map(len, drawing.routes)) <= 2 * MOST_BENDS + 2


def test_a_long_chain_of_movement_is_a_short_box() -> None:
    x, w = array(2, 3, 12, 12), array(4, 3, 3, 3)
    labels = [n.label for n in drawn(explore(x.conv2d(w, padding=1))).graph.nodes]
    chains = [label for label in labels if label.count("\u00b7") == 2]
    assert any(re.search(r"\d+ more", label) for label in chains)
    assert max(map(len, labels)) < 40


def test_regions_hold_what_their_kernel_computes() -> None:
    drawing = drawn(softmax())
    assert len(drawing.regions) == 2
    for kernel, path in enumerate(drawing.regions):
        inside = [n for n in drawing.graph.nodes if n.kernels[:1] == (kernel,)]
        numbers = {n.number for n in inside}
        lines = [e for e in drawing.graph.edges if {e.source, e.target} <= numbers]
        parts = path.split("M")[1:]
        assert len(parts) == len(inside) + len(lines)
        assert all(part.endswith("Z") for part in parts)
        bands = [part for part in parts if "a" not in part]
        for part in bands:  # down on the right and up on the left, as the patches go
            x, y, *_ = map(float, NUMBER.findall(part))
            back = part.index("L")
            left, low = map(float, NUMBER.findall(part[back:])[:2])
            assert low > y and x > left - 200
