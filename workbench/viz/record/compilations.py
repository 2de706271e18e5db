"""What variants were compiled to: sources, programs and failures, each worked out once."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.device import Device
from workbench.base.trace import PassRecord
from workbench.kernel.kernel import Compiled, Kernel
from workbench.pipeline import Recorded
from workbench.viz.record.links import loaded, readable
from workbench.viz.record.passes import Owner


class Compilations:
    """The compilations of variants, by variant and device; `kernels` has the Kernel per variant,
    as it is now."""

    def __init__(self, kernels: Sequence[Kernel]):
        self._kernels = kernels
        self._programs: dict[Owner, Compiled] = {}
        self._sources: dict[int, Recorded] = {}
        self._failures: dict[tuple[Owner, str], tuple[PassRecord, ...]] = {}

    def source(self, variant: int) -> Recorded:
        """Return a variant up to its readable source, lowered and rendered once."""
        cached = self._sources.get(variant)
        if cached is None:
            cached = self._sources[variant] = readable(self._kernels[variant])
        return cached

    def program(self, variant: int) -> Compiled:
        """Return a variant compiled for its device."""
        kernel, owner = self._kernels[variant], self.owner(variant)
        cached = self._programs.get(owner)
        if cached is None:
            is_read = kernel.device == Device.reader.name
            cached = self._programs[owner] = (
                loaded(kernel, self.source(variant)) if is_read else kernel.compile()
            )
        return cached

    def passes_before(self, variant: int, error: Exception) -> tuple[PassRecord, ...]:
        """Return the passes of a variant up to the error that compiling it ends with. Compiled
        again, it would mostly fail again."""
        failure = self.owner(variant), str(error)
        if failure not in self._failures:
            kernel = self._kernels[variant]
            self._failures[failure] = kernel.observed(kernel.device)
        return self._failures[failure]

    def owner(self, variant: int) -> Owner:
        """Return the owner of the passes that compile a variant for its device."""
        return Owner(variant, self._kernels[variant].device)
