"""Programs over long rows have code on every device and machine, without opts and with the default
ones, and compute what numpy does: a row that a work-item cannot hold is no reason to refuse it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support import LONG
from workbench import Tensor, explore
from workbench.backends.device import Device

Array = np.ndarray[Any, Any]
LENGTHS = (1, 1025, 4097, 8192, 16_385, 40_000) if LONG else (8192,)
MACHINES = ("CUDA:H100", "METAL:M3", "OPENCL:Iris Xe", "WEBGPU:BROWSER")


def exponentials(x: Array) -> Array:
    return np.exp(x - x.max(1, keepdims=True))


def softmax(x: Array) -> Array:
    return exponentials(x) / exponentials(x).sum(1, keepdims=True)


def centred(x: Array) -> Array:
    return x - x.mean(1, keepdims=True)


PROGRAMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "softmax": (Tensor.softmax, softmax),
    "log_softmax": (Tensor.log_softmax, lambda x: np.log(softmax(x))),
    "layernorm": (Tensor.layernorm, lambda x: centred(x) / np.sqrt(x.var(1, keepdims=True) + 1e-5)),
    "std": (lambda x: x.std(1), lambda x: x.std(1, ddof=1)),
    "cumsum": (lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
    "argmax": (lambda x: x.argmax(1), lambda x: x.argmax(1)),
    "rows of sums": (
        lambda x: x.reshape(2, -1, 1).expand(2, x.shape[1], 2).exp().sum(2).softmax(),
        lambda x: softmax(2 * np.exp(x)),
    ),
    "two rows": (
        lambda x: x.softmax().layernorm() + x.layernorm(),
        lambda x: (
            centred(softmax(x)) / np.sqrt(softmax(x).var(1, keepdims=True) + 1e-5)
            + centred(x) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        ),
    ),
}


def row(length: int) -> Array:
    return np.random.default_rng(length).standard_normal((2, length))


@pytest.mark.parametrize("name", PROGRAMS if LONG else [*PROGRAMS][:-1])
def test_long_rows_have_code_everywhere(name: str) -> None:
    for length in LENGTHS:
        y = PROGRAMS[name][0](Tensor(row(length).astype(np.float32)))
        for device in Device.machine_names() if LONG else MACHINES:
            for kernel in explore(y, device=device).kernels:
                for each in (kernel, kernel.optimized()):
                    assert each.code_for(device), (length, device)


@pytest.mark.parametrize("name", PROGRAMS)
def test_long_rows_are_right(name: str) -> None:
    """With the default opts, on the emulator: work-items of a group share what one cannot hold."""
    build, oracle = PROGRAMS[name]
    x = row(8192).astype(np.float32)
    last = explore(build(Tensor(x)), device="CUDA:H100").kernels[-1].optimized()
    wanted = oracle(x.astype(np.float64))
    assert np.allclose(last.run()[0], wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS if LONG else ["layernorm"])
def test_a_row_that_is_computed_again_is_right(name: str) -> None:
    """Without opts a work-item has a whole row, which the emulator goes through step by step."""
    build, oracle = PROGRAMS[name]
    x = row(1025).astype(np.float32)
    last = explore(build(Tensor(x)), device="WEBGPU:BROWSER").kernels[-1]
    wanted = oracle(x.astype(np.float64))
    assert np.allclose(last.run()[0], wanted, rtol=1e-3, atol=1e-5)


def test_a_page_opens_with_the_code_of_a_long_row() -> None:
    """And it has the pass that computes the row where it is read."""
    y = Tensor(row(8192).astype(np.float32)).softmax()
    kernel = explore(y, device="CUDA", target="H100").kernels[0]
    names = [record.name for record in kernel.compile().passes]
    assert "recompute-rows" in names
    short = explore(Tensor(row(64).astype(np.float32)).softmax(), device="CUDA:H100")
    names = [record.name for record in short.kernels[0].compile().passes]
    assert "recompute-rows" not in names
