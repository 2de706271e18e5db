"""How a search ranks candidates for a machine that is not here: by its model, nothing runs.

The numbers are those that the page predicts with; they have no noise, and nobody compares answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.cost.predicted_cost import predicted_cost
from workbench.ir.node.uop import UOp
from workbench.search.candidate import Measured, Patience, SearchStopped


@dataclass(frozen=True, slots=True)
class ByPrediction:
    """Predicts kernels that compute what `kernel` does, on `target`; before each, `stop` is
    asked."""

    kernel: UOp
    target: Target
    stop: Callable[[], bool] = lambda: False

    def __call__(
        self,
        against: UOp,
        kernels: Sequence[UOp],
        patience: Patience | None,
        thorough: bool,
    ) -> Iterator[Measured]:
        for kernel in kernels:
            if self.stop():
                raise SearchStopped
            yield self._one(against, kernel)

    def _one(self, against: UOp, kernel: UOp) -> Measured:
        try:
            seconds = self._seconds(kernel)
        except WorkbenchError as error:
            return Measured(error=f"{error.what}: {error.because}")
        other_s = seconds if kernel is against else self._seconds(against)
        return Measured(seconds, seconds / other_s)

    def _seconds(self, kernel: UOp) -> float:
        """Errors: as `predicted_cost`."""
        cost = predicted_cost(kernel, self.target, original=self.kernel)
        return cost.predicted_s
