"""Memory, launches and graphs of launches on GPUs whose kernels take addresses of buffers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from workbench.backends.gpu.driver import GpuDriver
from workbench.backends.memory import Buffer, Bytes, Memory
from workbench.backends.program.launch import grid_size, group_size
from workbench.backends.program.text import Source

KEPT_GRAPHS = 8
"""Built graphs that a LaunchGraph keeps, each for other addresses of buffers."""
L = TypeVar("L", bound="AddressLaunch")


class AddressMemory(Memory):
    """Memory whose handles are addresses. Copies are queued in the stream of the launches; those
    from and to this process's memory return when they are done.

    CUDA and HIP have the same functions: `prefix` begins their names, `allocation` and `release`
    are the two whose names differ.
    """

    alignment_bytes = 256
    offset_bytes = 16
    driver: ClassVar[type[GpuDriver]]
    prefix: ClassVar[str]
    allocation: ClassVar[str]
    release: ClassVar[str]

    @property
    @abstractmethod
    def stream(self) -> Any:
        """The stream of launches and copies, as the driver's functions take it."""

    @abstractmethod
    def apply(self, name: str, arguments: Sequence[Any]) -> Any:
        """Call a function of the driver; return its values without its status: one, or a tuple."""

    def allocate(self, size_bytes: int, alignment_bytes: int) -> int:
        self.driver.current()  # its error says why there is no GPU
        return int(self._call(self.allocation, max(1, size_bytes)))

    def free(self, handle: Any) -> None:
        self._call(self.release, handle)

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        self._copy("HtoD", handle + offset, data.ctypes.data, data.size)
        self.driver.current().wait()

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        self._copy("DtoH", data.ctypes.data, handle + offset, data.size)
        self.driver.current().wait()

    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        self._copy("DtoD", target + target_offset, source + source_offset, size_bytes)

    def available_bytes(self) -> int | None:
        free, _ = self._call("MemGetInfo")
        return int(free)

    def _copy(self, direction: str, to: int, source: int, size_bytes: int) -> None:
        if size_bytes:
            self._call(f"Memcpy{direction}Async", to, source, size_bytes, self.stream)

    def _call(self, name: str, *arguments: Any) -> Any:
        what = f"the GPU refuses {self.prefix}{name}"
        return self.driver.explain(what, lambda: self.apply(name, arguments))


class AddressLaunch:
    """The arguments of a launch. `addresses` has the address of each parameter's buffer by slot, in
    the order of the parameters."""

    def __init__(self, source: Source, buffers: Sequence[Buffer]):
        self.name = source.name
        self.grid, self.group = grid_size(source.launch), group_size(source.launch)
        self.addresses = {slot: _address(buffers[slot]) for slot in source.slots}
        self.buffers = [*buffers]

    def move(self, slot: int, buffer: Buffer) -> None:
        """Bind a slot to another Buffer of the same size and dtype."""
        self.buffers[slot] = buffer
        if slot in self.addresses:
            self.addresses[slot] = _address(buffer)


class LaunchGraph(ABC, Generic[L]):
    """Launches that a GPU runs together, in their order. A call runs each launch on the memory that
    it is bound to at that time. A built graph contains the addresses of buffers: other addresses
    need another graph, and the last KEPT_GRAPHS are kept."""

    def __init__(self, launches: Sequence[L]):
        self.launches = tuple(launches)
        self._graphs: dict[tuple[int, ...], Any] = {}

    def __call__(self) -> None:
        addresses = tuple(p for each in self.launches for p in each.addresses.values())
        graph = self._graphs.pop(addresses, None)
        if graph is None:
            graph = self.build()
        self._graphs[addresses] = graph  # at the end, as the newest
        while len(self._graphs) > KEPT_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        self.launch(graph)

    @abstractmethod
    def build(self) -> Any:
        """Return a graph of the launches, each on the memory that it has now."""

    @abstractmethod
    def launch(self, graph: Any) -> None:
        """Run a graph in the stream of all launches."""


def _address(buffer: Buffer) -> int:
    return int(buffer.handle) + buffer.offset
