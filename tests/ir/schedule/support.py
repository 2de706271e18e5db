"""Expressions that tests of scheduling share, how they are planned, and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workbench import Context, Tensor
from workbench.execution import realize
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Schedule
from workbench.ir.verify.verify import verify

Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


A, B, C = numbers(64, 48), numbers(48, 64), numbers(64)


def planned(*tensors: Tensor) -> Schedule:
    return realize.planned([t.uop for t in tensors])[0]


def kernels(*tensors: Tensor) -> list[UOp]:
    """Return the kernels that would compute `tensors`, each verified."""
    roots = [item.kernel for item in planned(*tensors).items if item.kernel is not None]
    for kernel in roots:
        verify(kernel, "kernel")
    return roots


def agrees(tensor: Tensor, expected: Array, within: float = 1e-4) -> None:
    for device in ("LLVM", "PYTHON"):
        with Context(DEV=device):
            actual = tensor.to(device).numpy()
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=within, atol=within)


def softmax(x: Tensor) -> Tensor:
    e = (x - x.max(1, keepdim=True)).exp()
    return e / e.sum(1, keepdim=True)


def variance(x: Tensor) -> Tensor:
    apart = x - x.mean(1, keepdim=True)
    return (apart * apart).mean(1)


def stacked(x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        x = Tensor.stack(x, x)[0]
    return x


# Name -> how many kernels the results need, and what makes the results.
COUNTS: dict[str, tuple[int, Callable[[], tuple[Tensor, ...]]]] = {
    "elementwise chain": (1, lambda: (((Tensor(A) * 2 + 1).exp() - 3).relu().sqrt(),)),
    "matmul + bias + relu": (1, lambda: ((Tensor(A) @ Tensor(B) + Tensor(C)).relu(),)),
    "two dependent matmuls": (2, lambda: (Tensor(A) @ Tensor(B) @ Tensor(A),)),
    "two independent matmuls": (2, lambda: (Tensor(A) @ Tensor(B) + Tensor(B.T) @ Tensor(A.T),)),
    "softmax of short rows": (1, lambda: (softmax(Tensor(A[:8, :8])),)),
    "softmax of long rows": (1, lambda: (softmax(Tensor(A)),)),
    "variance of rows": (1, lambda: (variance(Tensor(A)),)),
    "a reduction of all": (1, lambda: (Tensor(A).sum(),)),
    "movement alone": (1, lambda: (Tensor(A).permute(1, 0).flip(0).pad(((1, 1), (0, 2))),)),
    "x + x.T": (1, lambda: ((x := Tensor(A[:48])) + x.T,)),
    "a diamond": (1, lambda: ((x := Tensor(A) * 2).exp() + x.relu(),)),
    "a reshape": (0, lambda: (Tensor(A).reshape(48, 64),)),
    "a host array": (0, lambda: (Tensor(A),)),
    "x + 0": (0, lambda: (Tensor(A) + 0,)),
    "x * 1": (0, lambda: (Tensor(A) * 1,)),
    "x - 0 / 1 * 1": (0, lambda: ((Tensor(A) - 0) / 1 * 1,)),
    "flip of flip": (0, lambda: (Tensor(A).flip(0).flip(0),)),
    "a piece of what is stacked": (0, lambda: (Tensor.stack(Tensor(A), Tensor(A) + 1)[0],)),
    "a piece of a stack, again and again": (0, lambda: (stacked(Tensor(3.0), 24),)),
    "a constant": (0, lambda: (Tensor(3.0),)),
    "full": (0, lambda: (Tensor.full((4, 5), 3.0),)),
    "full().sum()": (0, lambda: (Tensor.full((4, 5), 3.0).sum(),)),
    "arithmetic of constants": (0, lambda: ((Tensor.ones(4, 5) * 2 + 1).exp().max(1).reshape(4),)),
    "zeros moved": (0, lambda: (Tensor.zeros(4, 5).permute(1, 0).flip(0)[1:],)),
    "an empty tensor": (0, lambda: (Tensor(A)[:0] * 2,)),
    "a sum over nothing": (0, lambda: (Tensor(A)[:, :0].sum(1),)),
    "arange": (1, lambda: (Tensor.arange(10),)),
    "two outputs": (2, lambda: (Tensor(A) + 1, Tensor(B) * 2)),
    "one output twice": (1, lambda: ((x := Tensor(A) + 1), x)),
    "an output inside another": (1, lambda: ((x := Tensor(A) @ Tensor(B)), x.exp())),
    "contiguous in the middle": (2, lambda: ((Tensor(A) + 1).contiguous() * 2,)),
    "contiguous of a buffer": (0, lambda: (Tensor(A).contiguous(),)),
}  # fmt: skip
