"""What accesses cost a warp, by their indexes: as the emulator counts them when it runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.kernel.support import upcast
from workbench.backends.device import Device
from workbench.backends.program.launch import launch_shape
from workbench.cost.gpu.memory_traffic import WarpAccess, warp_accesses
from workbench.emulator.emulate import emulate
from workbench.ir.opt.opt import Opt, OptOps
from workbench.kernel.kernel import Kernel
from workbench.pipeline import stages
from workbench.tensor.tensor import Tensor
from workbench.viz import explore

TARGET = Device["CUDA:H100"].target


def array(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def local(axis: str, amount: int) -> Opt:
    return Opt(OptOps.LOCAL, axis, amount)


def kernel(tensor: Tensor, *opts: Opt) -> Kernel:
    return explore(tensor, device="CUDA:H100").kernels[-1].apply(*opts)


def accesses(k: Kernel) -> tuple[list[WarpAccess], int]:
    """Return the accesses of a kernel, and its work-groups."""
    built = stages(k.ast, TARGET, "linear").linear
    return warp_accesses(built, TARGET.warp_lanes), math.prod(launch_shape(built).grid)


A, B = array(64, 32), array(32, 64)
X = array(64, 64)
CASES = {
    "add": (X + X, (local("g0", 32),)),
    "add of vectors": (X + X, (upcast("g0", 4), local("g0", 32))),
    "strided vectors": (X * 2, (upcast("g0", 8), local("g0", 32))),
    "transpose": (X.T + X, (local("g1", 32),)),
    "transpose the other way": (X.T + X, (local("g0", 32),)),
    "both": (X.T + X, (local("g0", 8), local("g1", 16))),
    "matmul": (A @ B, (local("g1", 32),)),
    "matmul in tiles": (A @ B, (local("g1", 16), local("g0", 8), upcast("g0", 4))),
    "matmul with tiles filled ahead": (
        A @ B,
        (
            local("g0", 16), local("g1", 8), Opt(OptOps.SPLIT, "r0", 8),
            Opt(OptOps.ORDER, "r0", "l0"), Opt(OptOps.STAGE, "r0", 1),
            Opt(OptOps.STAGE, "r0", 2), Opt(OptOps.PIPELINE, "r0", 3),
        ),
    ),
    "few work-items": (X + 1, (local("g0", 8),)),
    "halo": (X[:, 3:35] + 1, (local("g1", 32),)),
    "rows": (X.sum(1), (local("g0", 32),)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_the_emulator_counts(name: str) -> None:
    tensor, opts = CASES[name]
    k = kernel(tensor, *opts)
    rows, groups = accesses(k)
    trace = emulate(k)
    for place, space in (("global", "global"), ("shared", "shared")):
        total = trace.total(space)
        mine = [a for a in rows if a.place == place]
        assert groups * sum(a.requests for a in mine) == total.requests
        assert groups * sum(a.wanted_bytes for a in mine) == total.bytes_wanted
        predicted = groups * sum(a.transactions for a in mine)
        assert predicted == pytest.approx(total.transactions, rel=0.1), "alignment"


@pytest.mark.parametrize("machine", ["CUDA:H100", "HIP:MI300X", "OPENCL:Iris Xe"])
def test_a_tile_in_shared_memory(machine: str) -> None:
    """By warps of 32, 64 and 16 work-items."""
    a, b = array(32, 32), array(32, 32)
    k = explore(a @ b, device=machine).kernels[-1]
    k = k.apply(local("g1", 16), local("g0", 16), Opt(OptOps.STAGE, "g0", 1))
    target = Device[machine].target
    built = stages(k.ast, target, "linear").linear
    groups = math.prod(launch_shape(built).grid)
    total = emulate(k).total("shared")
    shared = [a for a in warp_accesses(built, target.warp_lanes) if a.place == "shared"]
    assert shared and total.transactions
    assert groups * sum(a.least for a in shared) == total.least
    assert groups * sum(a.transactions for a in shared) == pytest.approx(
        total.transactions, rel=0.1
    )


def test_neighbours_share_sectors() -> None:
    rows, _ = accesses(kernel(X + 1, local("g0", 32)))
    assert [(a.transactions, a.least) for a in rows] == [(4, 4), (4, 4)]
    rows, _ = accesses(kernel(X.T + X, local("g1", 32)))
    assert sorted(a.transactions for a in rows) == [4, 4, 32]
    assert all(a.least == 4 for a in rows)


def test_an_index_from_memory_has_a_sector_for_each() -> None:
    index = Tensor(np.arange(64, dtype=np.int32)[::-1].copy())
    rows, _ = accesses(kernel(X[index] + 1, local("g0", 32)))
    assert max(a.transactions for a in rows) == 32
