"""The memory of a schedule, in the record, as text, and in a still picture."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tests.viz.record.support import broken, plain
from workbench import Tensor, explore
from workbench.backends.device import Device
from workbench.execution import realize
from workbench.execution.realize import run_item
from workbench.ir.schedule.plan import ScheduleItem
from workbench.pipeline import Tuner
from workbench.viz import Exploration
from workbench.viz.formatters import exploration_bundle
from workbench.viz.record.record import build
from workbench.viz.schema.plan import MemoryChart

SIZES = (96, 200, 64, 128, 200, 32)


def layers() -> Exploration:
    x = Tensor(np.ones((48, 64), np.float32)).realize()
    for size in SIZES:
        weight = np.full((x.shape[1], size), 0.01, np.float32)
        x = (x @ Tensor(weight).realize()).relu()
    return explore(x.sum(1))


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return plain(build(layers(), "full"))


def chart_of(record: dict[str, Any]) -> MemoryChart:
    section = record["panels"]["memory"]
    assert section["error"] is None
    return msgspec.convert(section["data"], MemoryChart)


def test_the_record_has_what_lives_at_each_kernel(record: dict[str, Any]) -> None:
    assert broken(record) == []
    chart = chart_of(record)
    assert len(chart.steps) == len(record["kernels"]) == len(SIZES) + 1
    sizes = [48 * size * 4 for size in SIZES]
    want = [sizes[0], *[a + b for a, b in zip(sizes, sizes[1:], strict=False)]]
    assert [step.bytes for step in chart.steps] == [*want, sizes[-1] + 48 * 4]
    assert chart.peak == 4 and "kernel 5 needs most, 61.5 KiB" in chart.words
    assert [value.is_result for value in chart.values] == [False] * len(SIZES) + [True]
    for step in chart.steps:
        assert step.bytes == sum(chart.values[v].bytes for v in step.values)
        assert step.allocated >= step.bytes
    stored = {d["node"] for d in record["plan"]["decisions"] if d["stored"]}
    assert {value.node for value in chart.values} == stored


def test_what_is_allocated_is_what_a_run_allocates(
    record: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ex, used = layers(), []
    pool = Device[Device.DEFAULT].memory.pool
    before, run = pool.used_bytes, run_item

    def counted(item: ScheduleItem, tuner: Tuner) -> None:
        run(item, tuner)
        used.append(pool.used_bytes - before)

    monkeypatch.setattr(realize, "run_item", counted)
    ex.tensors[0].realize()
    assert used == [step.allocated for step in chart_of(record).steps]


def test_text_and_still_picture_say_the_same(record: dict[str, Any]) -> None:
    ex = layers()
    text = str(ex.pane("memory"))
    chart = chart_of(record)
    assert f"memory: {chart.words}" in text
    marked = [line for line in text.splitlines() if line.endswith("<- the most")]
    assert len(marked) == 1 and marked[0].split()[:3] == ["5", "61.5", "KiB"]
    html = exploration_bundle(ex)["text/html"]
    assert chart.words in html and "&lt;- the most" in html
    alone = explore(Tensor(np.ones(4, np.float32)) + 1)
    assert "Memory: " not in exploration_bundle(alone)["text/html"]
