"""The ranking of candidates by a model, for machines on which they cannot run.

The numbers are those that the page predicts with; they have no noise, and nobody compares answers.
Candidates that may be the best are compiled, where a compiler for the machine is here: it says how
many registers they take, which is estimated for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.cost.predicted_cost import predicted_cost
from workbench.ir.node.uop import UOp
from workbench.kernel.registers import compiled_registers
from workbench.search.candidate import Measured, Patience, SearchStopped

HOPELESS = 1.5
"""How much slower than the best one so far a candidate is estimated that is not compiled."""


@dataclass(frozen=True, slots=True)
class ByPrediction:
    """Predicts kernels that compute what `kernel` does, on `target`; before each, `stop` is
    asked."""

    kernel: UOp
    target: Target
    stop: Callable[[], bool] = lambda: False

    def __call__(
        self, against: UOp, kernels: Sequence[UOp], patience: Patience | None, thorough: bool
    ) -> Iterator[Measured]:
        for kernel in kernels:
            if self.stop():
                raise SearchStopped
            yield self._one(against, kernel)

    def _one(self, against: UOp, kernel: UOp) -> Measured:
        try:
            other_s = self._seconds(against, True)
            seconds = other_s
            if kernel is not against:
                seconds = self._seconds(kernel, False)
            if kernel is not against and seconds < HOPELESS * other_s:
                seconds = self._seconds(kernel, True)
        except WorkbenchError as error:
            return Measured(error=f"{error.what}: {error.because}")
        return Measured(seconds, seconds / other_s)

    def _seconds(self, kernel: UOp, compiles: bool) -> float:
        """Errors: as `predicted_cost`."""
        registers = compiled_registers(kernel, self.target.device) if compiles else None
        cost = predicted_cost(kernel, self.target, original=self.kernel, registers=registers)
        return cost.predicted_s
