"""The check of a kernel: the run that it needs, and the verdict on the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.backends.buffer import Buffer
from workbench.check.answer import CheckResult, compared
from workbench.check.reference import BEFORE_OPTS, Reference, kernel_reference
from workbench.execution.buffers import Array
from workbench.ir.node.uop import UOp


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The `buffers` that a kernel runs on, by slot, the `reference` of its outputs, and the
    `verdict` on them."""

    buffers: Sequence[Buffer]
    reference: Reference
    verdict: Callable[[Sequence[Array]], CheckResult]

    @staticmethod
    def of_kernel(kernel: UOp, buffers: Sequence[Buffer], against: str = BEFORE_OPTS) -> CheckRun:
        """Return the check of an un-optimised kernel beside itself."""
        slots = kernel.outputs
        inputs = arrays(buffers, slots)
        reference = kernel_reference(kernel, slots, inputs, against)
        return CheckRun(buffers, reference, lambda outputs: compared(reference, outputs))


def arrays(buffers: Sequence[Buffer], written: Sequence[int]) -> list[Array]:
    """Return copies of a kernel's inputs by slot, and zeros for its outputs."""
    return [
        np.zeros(b.size, b.dtype.numpy) if slot in written else b.to_numpy()
        for slot, b in enumerate(buffers)
    ]
