"""The geometry of the tensor graph's picture, which still and live pictures are drawn from."""

from __future__ import annotations

import re

import pytest

from tests.agreement.expressions import case
from tests.support import count
from tests.viz.support import array, softmax
from workbench.viz import Exploration, explore
from workbench.viz.record.nodes import Lines, Nodes
from workbench.viz.record.plan import plan_picture
from workbench.viz.schema.plan import PlanPicture
from workbench.viz.still.picture import MOST_BENDS, NODE, curve

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def drawn(exploration: Exploration) -> PlanPicture:
    lines = Lines()
    plan = plan_picture(exploration, Nodes(lines, exploration.lines), lines)
    assert plan is not None
    return plan


@pytest.mark.parametrize("seed", range(count(200)))
def test_everything_is_inside_and_nothing_overlaps(seed: int) -> None:
    drawing = drawn(explore(case(seed).run("LLVM")[0]))
    for box in drawing.nodes:
        assert 0 <= box.x and box.x + box.w <= drawing.width
        assert 0 <= box.y and box.y + box.h <= drawing.height
    for i, one in enumerate(drawing.nodes):
        for other in drawing.nodes[:i]:
            beside = one.x + one.w <= other.x or other.x + other.w <= one.x
            assert beside or one.y + one.h <= other.y or other.y + other.h <= one.y


@pytest.mark.parametrize("seed", range(count(200)))
def test_lines_run_down_from_source_to_target(seed: int) -> None:
    drawing = drawn(explore(case(seed).run("LLVM")[0]))
    for edge in drawing.edges:
        source, target = drawing.nodes[edge.a], drawing.nodes[edge.b]
        first, last = edge.route[0], edge.route[-1]
        assert first.y == pytest.approx(source.y + source.h)
        assert last.y == pytest.approx(target.y)
        assert target.x <= last.x <= target.x + target.w
        heights = [point.y for point in edge.route]
        assert heights == sorted(heights)


def test_a_line_straight_down_needs_two_points() -> None:
    assert curve(((5.0, 0.0), (5.0, 90.0))) == "M5.0 0.0V90.0"
    for edge in drawn(softmax()).edges:
        for a, b, c in zip(edge.route, edge.route[1:], edge.route[2:], strict=False):
            assert not a.x == b.x == c.x


def test_lines_of_a_tall_picture_bend_at_few_layers() -> None:
    x = softmax().tensors[0]
    y = x
    for _ in range(120):
        y = (y * 0.5 + x).relu()
    drawing = drawn(explore(y))
    assert drawing.height > 3 * MOST_BENDS * NODE
    assert max(len(edge.route) for edge in drawing.edges) <= 2 * MOST_BENDS + 2


def test_a_long_chain_of_movement_is_a_short_box() -> None:
    x, w = array(2, 3, 12, 12), array(4, 3, 3, 3)
    labels = [n.label for n in drawn(explore(x.conv2d(w, padding=1))).nodes]
    chains = [label for label in labels if label.count("\u00b7") == 2]
    assert any(re.search(r"\d+ more", label) for label in chains)
    assert max(map(len, labels)) < 40


def test_regions_hold_what_their_kernel_computes() -> None:
    drawing = drawn(softmax())
    assert [row.kernel for row in drawing.regions] == [0, 1]
    for kernel in 0, 1:
        inside = {i for i, n in enumerate(drawing.nodes) if n.kernels[:1] == [kernel]}
        bands = [e.band for e in drawing.edges if {e.a, e.b} <= inside]
        patches = [drawing.nodes[place].patch for place in inside]
        assert all(part.startswith("M") and part.endswith("Z") for part in bands + patches)
        for part in bands:  # down on the right and up on the left, as the patches go
            x, y, *_ = map(float, NUMBER.findall(part))
            back = part.index("L")
            left, low = map(float, NUMBER.findall(part[back:])[:2])
            assert low > y and x > left - 200
