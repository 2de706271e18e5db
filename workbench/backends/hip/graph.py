"""Graphs of launches on an AMD GPU (HIP documentation, "HIP graphs")."""

from __future__ import annotations

from typing import Any
from weakref import finalize

from workbench.backends.gpu.addresses import LaunchGraph
from workbench.backends.hip.driver import HipDriver, call, part
from workbench.backends.hip.runtime import HipLaunch


class HipExecutable:
    """A graph that can be launched; the driver holds it until its last reference ends."""

    def __init__(self, handle: Any):
        self.handle = handle
        finalize(self, call, "GraphExecDestroy", handle).atexit = False


class HipGraph(LaunchGraph[HipLaunch]):
    """A graph of what is captured from the stream."""

    def build(self) -> HipExecutable:
        return HipDriver.explain("HIP cannot build a graph", self._built)

    def launch(self, graph: HipExecutable) -> None:
        driver = HipDriver.current()
        driver.explain(
            "HIP cannot launch a graph", lambda: call("GraphLaunch", graph.handle, driver.stream)
        )

    def _built(self) -> HipExecutable:
        stream, modes = HipDriver.current().stream, part("hip").hipStreamCaptureMode
        call("StreamBeginCapture", stream, modes.hipStreamCaptureModeRelaxed)
        try:
            for launch in self.launches:
                launch.enqueue()
        finally:  # else the stream stays one that runs nothing
            graph = call("StreamEndCapture", stream)
        try:
            return HipExecutable(call("GraphInstantiateWithFlags", graph, 0))
        finally:
            call("GraphDestroy", graph)
