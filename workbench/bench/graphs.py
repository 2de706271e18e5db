"""Expressions to measure: a matmul, those of the tour, and graphs of any size."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.ir.text.printer import to_text
from workbench.kernel.kernel import Kernel
from workbench.tensor.tensor import Tensor


def matmul(n: int) -> Tensor:
    """Return relu(a @ b + c), n x n."""
    a, b, c = (Tensor(np.ones(s, np.float32)) for s in ((n, n), (n, n), (n,)))
    return (a @ b + c).relu()


def matmul_kernel(n: int) -> Kernel:
    """Return the un-optimised kernel of `matmul(n)`."""
    items = matmul(n).schedule()
    kernel = next(i.kernel for i in reversed(items) if i.kernel is not None)
    return Kernel.from_text(to_text(kernel))


def digits() -> Tensor:
    """Return the tour's first expression: which of 1,280 known digits is most like each new one."""
    return (_random(512, 64) @ _random(64, 1280)).argmax(axis=1)


def blurred() -> Tensor:
    """Return the tour's second expression: rows of images mixed with their neighbours."""
    rows = _random(512, 8, 8).pad(((0, 0), (1, 1), (0, 0)))
    return (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4


def _random(*shape: int) -> Tensor:
    rng = np.random.default_rng(0)
    return Tensor(rng.standard_normal(shape, dtype=np.float32)).realize()


def chain(tensor: Any, count: int) -> Any:
    """Return an expression of at least `count` UOps, made with the class `tensor`.

    It is a chain, in which each link uses its input and x. Each twentieth link adds a diamond: the
    transposed value and the sum of its columns.
    """
    x = tensor(np.ones((16, 16), np.float32)).realize()
    y = x
    while sum(n.op.name != "DETACH" for n in y.uop.toposort()) < count:
        for step in range(100):
            y = (y * 0.5 + x).relu()
            if step % 20 == 0:
                y = y.permute(1, 0) + y.sum(axis=0)
    return y
