"""The base of devices with work-groups: kernels in a dialect, for this machine or another.

Sections: The base of devices with work-groups; The Target of a common GPU, for kernels that are
read or emulated on a machine without one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache

from workbench.backends.c_like.dialect import Dialect
from workbench.backends.contract import KEPT_PROGRAMS, DeviceInfo, Program
from workbench.backends.gpu.driver import GpuDriver
from workbench.backends.llvm_ir.gpu_targets import GpuTarget
from workbench.backends.memory import Memory
from workbench.backends.native.host_memory import host_memory
from workbench.backends.program.text import Language, Source
from workbench.base.interrupts import no_fork
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# The base of devices with work-groups.


class WorkGroupDevice(DeviceInfo):
    """A device with work-groups. It runs kernels where its `driver` finds a GPU; `program` makes
    the Program of a Source."""

    memory: Memory = host_memory
    has_groups = True
    gpu_target: GpuTarget | None = None
    """LLVM's target for its GPU, in whose language its kernels can be read, too; None: there is
    none."""
    driver: type[GpuDriver] | None = None
    program: Callable[[Source], Program]

    @property
    def languages(self) -> tuple[Language, ...]:
        gpu = self.gpu_target
        return super().languages + (() if gpu is None else (gpu.language,))

    @property
    def is_available(self) -> bool:
        with no_fork:
            return self.driver is not None and self.driver.gpu_here() is not None

    @property
    def absence(self) -> str:
        return super().absence if self.driver is None else self.driver.why_absent()

    @property
    def has_hardware(self) -> bool:
        return self.is_available and self.target.hardware is not None

    @property
    def is_lost(self) -> bool:
        return self.driver is not None and self.driver.is_lost()

    def _target(self) -> Target:
        return self._driver().target()

    @abstractmethod
    def dialect(self) -> Dialect:
        """Return a new dialect, which writes one kernel."""

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        return self.render_for(self.target, block, linear, tree)

    def render_for(
        self, target: Target, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        with no_fork:
            from workbench.backends.c_like.render import render

            dialect = self.dialect()
        return render(dialect, block, linear, target, tree)

    def render_as(
        self, language: Language, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        return self.render_as_for(self.target, language, block, linear, tree)

    def render_as_for(
        self,
        target: Target,
        language: Language,
        block: UOp,
        linear: tuple[UOp, ...],
        tree: UOp | None = None,
    ) -> Source:
        gpu = self.gpu_target
        if gpu is None or language is not gpu.language:
            return super().render_as(language, block, linear, tree)
        with no_fork:
            from workbench.backends.llvm_ir.gpu_code import gpu_source
        return gpu_source(gpu, gpu.processor(target), linear, target)

    def load(self, source: Source) -> Program:
        """Return the Program of a Source, the same one for the same text."""
        if not self.is_available:
            raise self.missing()
        return _program(type(self).program, source)

    def synchronize(self) -> None:
        if self.queues:
            self._driver().wait()

    def flush(self) -> None:
        if self.queues:
            self._driver().flush()

    def _driver(self) -> GpuDriver:
        assert self.driver is not None
        with no_fork:
            return self.driver.current()


@lru_cache(maxsize=KEPT_PROGRAMS)
def _program(kind: Callable[[Source], Program], source: Source) -> Program:
    return kind(source)


# --------------------------------------------------------------------------------------------------
# The Target of a common GPU, for kernels that are read or emulated on a machine without one.


def common_gpu(name: str) -> Target:
    """Return a Target with limits that nearly every GPU has."""
    return Target(
        name,
        vector_bytes=16,
        native_transcendentals=True,
        grid_limits=(1 << 31, 1 << 16, 1 << 16),
        group_items=256,
        group_limits=(256, 256, 64),
        warp_lanes=32,
        shared_bytes=32 << 10,
        stack_bytes=1 << 30,
        scratch_bytes=16 << 10,
    )
