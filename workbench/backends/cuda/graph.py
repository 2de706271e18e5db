"""Launches that the GPU runs together: a graph (CUDA C++ Programming Guide, "CUDA Graphs").

It has the addresses of its buffers: for other ones it is built anew, and the last few are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.backends.cuda.driver import CudaDriver
from workbench.backends.cuda.runtime import CudaLaunch

KEPT_GRAPHS = 8


class CudaGraph:
    """Launches in their order; call it to run them, on the memory that they have then."""

    def __init__(self, launches: Sequence[CudaLaunch]):
        self.launches = tuple(launches)
        self._graphs: dict[tuple[int, ...], Any] = {}

    def __call__(self) -> None:
        here = CudaDriver.here()
        places = tuple(p for each in self.launches for p in each.places.values())
        graph = self._graphs.pop(places, None)
        if graph is None:
            graph = here.explain("CUDA cannot build a graph", self._built)
        self._graphs[places] = graph  # the newest again
        while len(self._graphs) > KEPT_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        here.explain("CUDA cannot launch a graph", lambda: graph.launch(here.stream))

    def _built(self) -> Any:
        here = CudaDriver.here()
        here.gpu.set_current()
        builder = here.gpu.create_graph_builder()
        builder.begin_building()
        for launch in self.launches:
            launch.enqueue(here, builder)
        return builder.end_building().complete()
