"""The layout of graphs as a whole, by the page's engine: layers follow the edges,
nothing overlaps, little crosses; threads, event loops and forks get the same answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT
from tests.viz.layouts import LARGE, large, sample
from tests.viz.record.support import plain
from tests.viz.support import softmax
from workbench.base.child_process import ChildProcess
from workbench.base.errors import WorkbenchError
from workbench.viz import javascript as engine
from workbench.viz.formatters import exploration_bundle
from workbench.viz.javascript import JavaScript, layered
from workbench.viz.record.record import build
from workbench.viz.still import picture

LADDER = [20.0] * 4, [(0, 3), (1, 2)]
FORKED = """
import os, sys
from workbench.viz.javascript import layered
first = layered([20.0, 20.0], [(0, 1)])
child = os.fork()
if child == 0:
    sys.exit(layered([20.0, 20.0], [(0, 1)]) != first)
sys.exit(os.waitpid(child, 0)[1] != 0)
"""
HANGS_S = 120
"""A process that is not done then waits for a thread that only its parent has."""


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
    assert all(-1e-6 <= left and right <= layout.width + 1e-6 for _, left, right in spans)


def test_a_ladder_has_no_crossing() -> None:
    # 0 -> 3, 1 -> 2 cross as numbered; the order can undo that
    layout = layered(*LADDER)
    assert (layout.x[0] < layout.x[1]) == (layout.x[3] < layout.x[2])


def test_a_chain_is_straight() -> None:
    layout = layered([20.0, 80.0, 20.0], [(0, 1), (1, 2)])
    assert len({round(x, 3) for x in layout.x}) == 1


def test_no_nodes() -> None:
    assert layered([], []) == ((), (), (), 0)


def test_lines_are_as_short_as_can_be() -> None:
    graph = sample("F500")
    layers = layered(graph.widths, graph.edges).layer
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
    def passed(count: int) -> int:
        """How often a line passes a layer, those that run together counted once."""
        edges = large(kind, count)
        layout = layered([40.0] * count, edges)
        assert len(set(layout.layer)) == (2 if kind == "fan" else count)
        ways = zip(edges, layout.routes, strict=True)
        return len({(e[0], layer) for e, way in ways for _, layer in way[1:-1]})

    few, many = passed(200), passed(2_000)
    assert few <= 1_500 and many <= 3 * 2_000
    assert many < 14 * max(few, 1)


def test_a_cell_and_its_threads_lay_out() -> None:
    expected = layered(*LADDER)

    async def cell() -> object:
        return layered(*LADDER)

    engine._engine.cache_clear()  # it begins while a loop runs, as in a notebook
    with ThreadPoolExecutor(4) as threads:  # a loop of some browser test may run in this one
        assert threads.submit(lambda: asyncio.run(cell())).result() == expected
        assert set(threads.map(lambda _: layered(*LADDER), range(40))) == {expected}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_lays_out_and_ends() -> None:
    """Both processes end as Python does, which frees what it can."""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=HANGS_S, cwd=ROOT)
    assert run.returncode == 0


def test_a_script_that_fails_or_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither endless recursion, nor a process that somebody ended, is felt by the next call."""
    script = engine._engine()
    with pytest.raises(WorkbenchError, match="stack"):
        script.call("function deeper() { return deeper() + 1 }", None)
    with pytest.raises(WorkbenchError, match="no such thing"):
        script.call("() => { throw new Error('no such thing') }", None)
    assert layered(*LADDER).width
    process = script._lasting.current
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process._process.wait()
    assert layered(*LADDER).width, "one that ended before is replaced"

    def killed(child: ChildProcess, limit_s: float = 1e6) -> Any:
        os.kill(child.pid, signal.SIGKILL)
        return receive(child, limit_s)

    receive = ChildProcess.receive
    with monkeypatch.context() as patch:
        patch.setattr(ChildProcess, "receive", killed)
        with pytest.raises(WorkbenchError, match="has ended"):
            script.call("() => { for (;;) {} }", None)
    assert layered(*LADDER).width


def test_an_interrupted_call_leaves_no_answer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    script = JavaScript("const double = (x) => 2 * x;")
    assert script.call("double", 1) == 2

    def interrupted(child: ChildProcess, limit_s: float = 1e6) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ChildProcess, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            script.call("double", 3)
    assert script.call("double", 4) == 8
    script.end()


def test_without_the_engine_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    picture._layout.cache_clear()
    monkeypatch.setattr(engine, "_engine", engine._engine.__wrapped__)
    monkeypatch.setitem(sys.modules, "py_mini_racer", None)
    with pytest.raises(WorkbenchError, match="V8 cannot be loaded"):
        layered(*LADDER)
    ex = softmax()
    html = exploration_bundle(ex)["text/html"]
    assert "<img" not in html and "pip install mini-racer" in html
    assert plain(build(ex))["plan"]["nodes"] == []
    assert "pip install mini-racer" in caplog.text
