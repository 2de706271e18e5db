"""What the CUDA device uses of cuda-core and cuda-bindings is there, as far as that shows without a
GPU."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from tests.backends.cuda.fake import FakeDevice
from workbench.base.installation import install_command

core: Any = pytest.importorskip("cuda.core", reason=install_command("cuda"))
PARAMETERS = {
    core.Device.get_all_devices: (),
    core.Device.set_current: ("device",),
    core.Device.create_stream: ("device",),
    core.Stream.sync: ("stream",),
    core.ObjectCode.from_cubin: (b"cubin",),
    core.ObjectCode.get_kernel: ("code", "name"),
    core.Device.create_graph_builder: ("device",),
    core.graph.GraphBuilder.begin_building: ("builder",),
    core.graph.GraphBuilder.end_building: ("builder",),
    core.graph.GraphBuilder.complete: ("builder",),
    core.graph.Graph.launch: ("graph", "stream"),
    core.launch: ("stream", "config", "kernel", 1, 2),
}


@pytest.mark.parametrize("function", PARAMETERS, ids=lambda f: f.__name__)
def test_calls_fit(function: Any) -> None:
    inspect.signature(function).bind(*PARAMETERS[function])


def test_events_have_a_clock() -> None:
    options = core.EventOptions(timing_enabled=True)
    assert options.timing_enabled
    inspect.signature(core.Stream.record).bind("stream", options=options)
    assert hasattr(core.Event, "__sub__") and hasattr(core.Event, "sync")
    assert hasattr(core.Stream, "handle")


def test_limits_have_these_names() -> None:
    kinds = {type(v).__name__: v for v in vars(core.Device).values()}
    assert {"compute_capability", "name"} <= {*dir(core.Device)} and kinds
    properties = pytest.importorskip("cuda.core._device").DeviceProperties
    for name in vars(FakeDevice.properties):
        assert hasattr(properties, name), name


def test_a_launch_has_a_grid_and_a_block() -> None:
    config = core.LaunchConfig(grid=(5, 1, 1), block=(32, 2, 1))
    assert isinstance(FakeDevice.properties, SimpleNamespace)
    assert (tuple(config.grid), tuple(config.block)) == ((5, 1, 1), (32, 2, 1))
