"""Every method of Tensor has code in every language of work-items that has its dtypes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.support import LONG
from tests.tensor.cases.case import Case
from tests.tensor.cases.table import cases
from workbench import Tensor, explore
from workbench.base.errors import LanguageError
from workbench.kernel.kernel import Kernel

MACHINES = ("CUDA:H100", "METAL:M3", "OPENCL:Iris Xe", "WEBGPU:BROWSER")
WORDS = ("sort", "topk", "__getitem__")
"""Methods that need integers of 64 bits, or take them."""


@cache
def rows() -> tuple[Case, ...]:
    """Return the rows that a run tries: in the long profile all of them."""
    listed = [case for _, case in cases()]
    wide = [case for case in listed if any(w in case.name for w in WORDS)]
    return tuple(listed if LONG else [*wide[::3], *listed[::25]])


def kernels(case: Case, machine: str) -> list[Kernel]:
    results = case.ours(case.our_tensors(case.inputs(case.dtypes[0])))
    tensors = [t for t in results if isinstance(t, Tensor)]
    return list(explore(*tensors, device=machine).kernels) if tensors else []


def repeated_and_padded() -> Tensor:
    return Tensor.empty(7).repeat(2).pad(((3, 1),)) + 1


def indexed_apart() -> Tensor:
    rows, columns = Tensor([0, 2, 1]), Tensor([1, 3, 0])
    return Tensor.empty(3, 4, 5)[rows, :, columns]


@pytest.mark.parametrize("make", [repeated_and_padded, indexed_apart])
def test_small_tensors_need_no_wide_indexes(make: Callable[[], Tensor]) -> None:
    """Also where a position before the first, which nobody reads, is divided."""
    for kernel in explore(make(), device="WEBGPU:BROWSER").kernels:
        assert kernel.code_for("WEBGPU:BROWSER")


@pytest.mark.parametrize("machine", MACHINES)
def test_code_of_every_method(machine: str) -> None:
    codes = 0
    for case in rows():
        for kernel in kernels(case, machine):
            try:
                codes += bool(kernel.code_for(machine))
            except LanguageError:
                dtypes = {n.dtype.scalar.name for n in kernel.ast.toposort()}
                assert "float64" in dtypes, (case.name, machine)
    assert codes >= len(rows()) // 2
