"""Kernels that several tests look at: on data of their own, and of text."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.tools.kernels import EXAMPLES
from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.ir.text.printer import to_text

DEVICES = ("LLVM", "PYTHON")
Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


A, B, C = numbers(48, 80), numbers(80, 64, seed=1), numbers(64, seed=2)


def matmul() -> Kernel:
    """matmul + bias + relu, 48 x 64 x 80, on data of its own."""
    (kernel,) = explore((Tensor(A) @ Tensor(B) + Tensor(C)).relu()).kernels
    return kernel


def text_kernel(name: str, seed: int = 0) -> Kernel:
    return Kernel.from_text(to_text(EXAMPLES[name].graph), seed)


UPCAST = Opt(OptOps.UPCAST, "g1", 8)
TILE = (UPCAST, Opt(OptOps.UPCAST, "g0", 4), Opt(OptOps.LOCAL, "g0", 4))
