"""Products that would meet in one kernel: each keeps its register tile, and small ones stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.ir.schedule.support import agrees, kernels, numbers, planned, softmax
from workbench import Tensor, explore
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.schedule.plan import Decision

AVX2 = Target("LLVM", vector_bytes=32, vector_registers=16)
N = 64
P, Q, R, S = (numbers(N, N, seed=s) for s in range(4))
BATCH = numbers(3, N, N, seed=5)
IMAGE, DOWN, SIDE = numbers(1, 8, 24, 24), numbers(16, 8, 3, 3), numbers(16, 8, 1, 1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = 1 / (1 + np.exp(-x))
    return result


def layer_norm(x: Tensor) -> Tensor:
    apart = x - x.mean(1, keepdim=True)
    return apart * ((apart * apart).mean(1, keepdim=True) + 1e-5).rsqrt()


def np_layer_norm(x: np.ndarray) -> np.ndarray:
    apart = x - x.mean(1, keepdims=True)
    result: np.ndarray = apart / np.sqrt((apart**2).mean(1, keepdims=True) + 1e-5)
    return result


def np_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    result: np.ndarray = e / e.sum(1, keepdims=True)
    return result


def np_conv(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    result: np.ndarray = np.einsum("nchwij,ocij->nohw", windows, w)
    return result


def cell(p: Tensor, q: Tensor, r: Tensor, s: Tensor) -> Tensor:
    return (p @ q).sigmoid() * (p @ r).tanh() + (p @ s).sigmoid() * (q @ r)


# Name -> (how many of its kernels are products, the expression, what numpy says).
MEETINGS: dict[str, tuple[int, Callable[..., Tensor], np.ndarray]] = {
    "a sum of two": (2, lambda p, q, r, s: p @ q + r @ s, P @ Q + R @ S),
    "a gate": (2, lambda p, q, r, s: (p @ q).sigmoid() * (p @ r), sigmoid(P @ Q) * (P @ R)),
    "a matrix with itself": (2, lambda p, q, r, s: p @ p + p @ p.T, P @ P + P @ P.T),
    "four gates": (4, cell, sigmoid(P @ Q) * np.tanh(P @ R) + sigmoid(P @ S) * (Q @ R)),
    "beside a sum of rows": (
        1,
        lambda p, q, r, s: p @ q + r.sum(1, keepdim=True),
        P @ Q + R.sum(1, keepdims=True),
    ),
    "beside a sum of columns": (1, lambda p, q, r, s: p @ q + r.sum(0), P @ Q + R.sum(0)),
    "beside a softmax": (1, lambda p, q, r, s: p @ q * softmax(r), P @ Q * np_softmax(R)),
    "of a normed operand": (1, lambda p, q, r, s: layer_norm(p) @ q, np_layer_norm(P) @ Q),
    "normed, beside another": (
        2,
        lambda p, q, r, s: layer_norm(p @ q) + r @ s,
        np_layer_norm(P @ Q) + R @ S,
    ),
    "a chain and another": (3, lambda p, q, r, s: p @ q @ r + s @ p, P @ Q @ R + S @ P),
    "read twice": (
        1,
        lambda p, q, r, s: (x := p @ q) + x.T * x.sigmoid(),
        P @ Q + (P @ Q).T * sigmoid(P @ Q),
    ),
    "slices of two": (
        2,
        lambda p, q, r, s: (p @ q)[:, :32] + (r @ s)[:, 32:],
        (P @ Q)[:, :32] + (R @ S)[:, 32:],
    ),
    "batches": (2, lambda p, q, r, s: Tensor(BATCH) @ p + Tensor(BATCH) @ q, BATCH @ P + BATCH @ Q),
    "two convolutions": (
        2,
        lambda p, q, r, s: (
            Tensor(IMAGE).conv2d(Tensor(DOWN), padding=1) + Tensor(IMAGE).conv2d(Tensor(SIDE))
        ).relu(),
        np.maximum(
            np_conv(np.pad(IMAGE, ((0, 0), (0, 0), (1, 1), (1, 1))), DOWN) + np_conv(IMAGE, SIDE), 0
        ),
    ),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_no_product_loses_its_tile(name: str) -> None:
    count, build, expected = MEETINGS[name]
    result = build(*map(Tensor, (P, Q, R, S)))
    tiles = 0
    for kernel in kernels(result):
        reductions = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
        named = {step.name for step in heuristic(kernel, AVX2)[2]}
        tiles += "register-tile" in named
        assert "register-tile" not in named or len(reductions) == 1
    assert tiles == count
    agrees(result, expected, within=1e-3)


def decided(tensor: Tensor, name: str) -> list[Decision]:
    return [d for d in planned(tensor).decisions if d.name == name]


def test_a_second_product_is_stored_with_what_is_done_to_it_alone() -> None:
    p, q, r = (Tensor(x) for x in (P, Q, R))
    bias = Tensor(P[0])
    (decision,) = decided((p @ q + bias).relu() * (p @ r).sigmoid(), "store-second-product")
    assert decision.stored and decision.node.op is not Ops.REDUCE_AXIS
    assert decision.estimates["cost_to_store"] < decision.estimates["cost_of_lost_tile"]
    assert "tile of results in registers" in decision.reason


def test_a_sum_beside_a_product_is_stored_with_what_is_done_to_it_alone() -> None:
    p, q, r = (Tensor(x) for x in (P, Q, R))
    result = p @ q * ((r * r).mean(1, keepdim=True) + 1e-5).rsqrt()
    (decision,) = decided(result, "store-beside-product")
    assert decision.node.size == N and decision.node.op is not Ops.REDUCE_AXIS


def test_small_products_stay_in_one_kernel() -> None:
    small = [Tensor(x[:8, :8]) for x in (P, Q, R, S)]
    total = small[0] @ small[1] + small[2] @ small[3]
    assert len(kernels(total)) == 1
    thin = Tensor(P[:, :3]) @ Tensor(Q[:3]) + Tensor(R[:, :3]) @ Tensor(S[:3])
    assert len(kernels(thin)) == 1


def test_who_asks_for_two_products_in_one_kernel_gets_them() -> None:
    p, q, r, s = (Tensor(x) for x in (P, Q, R, S))
    one, other = p @ q, r @ s
    ex = explore(one + other)
    assert len(ex.kernels) == 2
    assert len(ex.replan({one: False, other: False}).kernels) == 1
    (stored,) = (d.node for d in ex.decisions if d.name == "store-second-product")
    plan = ex.replan({stored: False})
    (now,) = (d.node for d in plan.decisions if d.name == "store-second-product")
    assert len(plan.kernels) == 2 and now is not stored
