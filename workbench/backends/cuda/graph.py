"""Graphs of launches on an NVIDIA GPU (CUDA C++ Programming Guide, "CUDA Graphs")."""

from __future__ import annotations

from typing import Any

from workbench.backends.cuda.driver import CudaDriver
from workbench.backends.cuda.runtime import CudaLaunch
from workbench.backends.gpu.addresses import LaunchGraph


class CudaGraph(LaunchGraph[CudaLaunch]):
    """A graph that a builder of cuda-core records."""

    def build(self) -> Any:
        return CudaDriver.current().explain("CUDA cannot build a graph", self._built)

    def launch(self, graph: Any) -> None:
        driver = CudaDriver.current()
        driver.explain("CUDA cannot launch a graph", lambda: graph.launch(driver.stream))

    def _built(self) -> Any:
        driver = CudaDriver.current()
        driver.gpu.set_current()
        builder = driver.gpu.create_graph_builder()
        builder.begin_building()
        for launch in self.launches:
            launch.enqueue(driver, builder)
        return builder.end_building().complete()
