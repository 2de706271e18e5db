"""The memory of replays: their own, shared by values on the way, and no more at each call."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from tests.tensor.jit.support import held
from workbench import Tensor, TinyJit
from workbench.backends.native.host_memory import host_memory


@pytest.mark.parametrize("is_computed", [True, False])
def test_what_outlives_the_function_stays_as_it_was(is_computed: bool) -> None:
    """Replays use memory of their own for values on the way: nobody else reads it."""
    outside: list[Tensor] = []

    @TinyJit
    def function(x: Tensor) -> Tensor:
        first = (x + 1).contiguous()
        outside.append(first.realize() if is_computed else first * 1.5)
        for _ in range(4):
            first = (first * 2).contiguous().realize()
        return first

    for n in range(4):
        assert function(held(np.full(3, n, np.float32))).tolist() == [16.0 * (n + 1)] * 3
    scale = 1.0 if is_computed else 1.5
    assert [t.tolist() for t in outside] == [[scale] * 3, [2 * scale] * 3]


def test_memory_does_not_grow() -> None:
    call = TinyJit(lambda x: (x * 2).contiguous() + 1)
    x = held(np.ones(1 << 16, np.float32))
    for _ in range(3):
        call(x)
    gc.collect()
    before = host_memory.pool.used_bytes
    for _ in range(50):
        call(x)
    gc.collect()
    assert host_memory.pool.used_bytes <= before


def test_values_on_the_way_share_memory() -> None:
    """However long the chain: the input, two values on the way, and the result."""

    @TinyJit
    def chain(x: Tensor) -> Tensor:
        for _ in range(8):
            x = (x + 1).contiguous()
        return x

    x = Tensor(np.zeros(1 << 18, np.float32)).realize()
    gc.collect()
    before, size = host_memory.pool.used_bytes, x.nbytes()
    for number in range(5):
        y = chain(x + number)
        np.testing.assert_array_equal(y.numpy(), np.full(1 << 18, 8 + number))
    del y
    gc.collect()
    assert (
        host_memory.pool.used_bytes - before <= 5 * size
    )  # it was 9, the last input and result with them
