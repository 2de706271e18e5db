"""Kernels and goldens that the tests of the pictures share."""

from __future__ import annotations

import os
from difflib import unified_diff

import numpy as np

from tests.support import ROOT
from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore

TARGET = Target("LLVM")
GOLDEN = ROOT / "tests" / "viz" / "golden"


def array(*shape: int) -> Tensor:
    """Return a float tensor of small, fixed numbers."""
    values = np.arange(np.prod(shape), dtype=np.float32) % 7 - 3
    return Tensor(values.reshape(shape), device="LLVM")


def matmul() -> Exploration:
    """Return the exploration of a 6x8 by 8x4 matmul with bias and relu."""
    y = (array(6, 8) @ array(8, 4) + array(4)).relu()
    return explore(y)


def softmax(ask: str = "") -> Exploration:
    """Return the exploration of a softmax: two kernels on the same shape; with a question."""
    x = array(64, 48)
    e = (x - x.max(axis=1, keepdim=True)).exp().contiguous()
    return explore(e / e.sum(axis=1, keepdim=True), ask=ask)


def kernel_of(tensor: Tensor) -> UOp:
    """Return the graph of the last kernel that computes `tensor`."""
    return explore(tensor).kernels[-1].ast


def check_golden(name: str, text: str) -> None:
    """Compare `text` with a file in golden/; WORKBENCH_UPDATE_GOLDEN=1 writes it instead."""
    path = GOLDEN / name
    assert text.count("\n") < 80, "a golden longer than this is not read by anybody"
    if os.environ.get("WORKBENCH_UPDATE_GOLDEN"):
        path.write_text(text + "\n", encoding="utf-8")
    golden = path.read_text(encoding="utf-8")
    assert text + "\n" == golden, "\n".join(unified_diff(golden.splitlines(), text.splitlines()))
