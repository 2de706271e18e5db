"""The WEBGPU device computes what numpy does, through whatever GPU wgpu finds; SwiftShader and
lavapipe are some."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.agreement.hunt import attempts, report
from tests.agreement.test_special_values import quotient, remainder
from tests.backends.gpu.checks import (
    check_an_error_names_the_line_and_the_operation,
    check_memory,
    check_time,
)
from tests.support import count
from workbench import Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError

NAME = "WEBGPU"
SUBNORMAL = re.compile(r"e[-+](?:3[89]|4\d|3\d\d)\b")
"""Numbers below the normal ones, for which an implementation may take 0; and those of which the
reciprocal is one."""
NOT_FINITE = re.compile(r"not -?(?:nan|inf)\b")
"""An implementation may take it that no float is infinite, or no number."""
pytestmark = pytest.mark.usefixtures("driver")


@pytest.fixture(scope="module")
def driver() -> None:
    if not Device[NAME].is_available:
        pytest.skip(f"no GPU for WebGPU: {Device[NAME].how_to_get}")


def test_random_programs() -> None:
    """What the language lacks, such as float64, is refused."""
    right = 0
    for attempt in attempts(range(740_000, 740_000 + count(1000)), NAME, "mixed"):
        if attempt.refusal or SUBNORMAL.search("\n".join(attempt.program.lines)):
            continue
        if NOT_FINITE.search(attempt.verdict):
            continue
        assert not attempt.verdict, report(attempt)
        right += 1
    assert right >= count(1000) // 5


def test_memory_is_the_drivers() -> None:
    check_memory(NAME)


@pytest.mark.parametrize("size", [1, 3, 4, 7, 1025])
def test_bytes_that_fill_no_word(size: int) -> None:
    values = np.arange(size, dtype=np.uint8)
    buffer, other = (Buffer(NAME, dtypes.uint8, size) for _ in range(2))
    buffer.copy_in(values)
    other.copy_from(buffer)
    np.testing.assert_array_equal(other.to_numpy(), values)


def test_what_it_writes_over_an_input() -> None:
    """A buffer that is written cannot be bound to be read, too."""
    values = np.arange(512, dtype=np.float32)
    x = Tensor(values, device=NAME).realize()
    x.assign(x * 2 + 1)
    np.testing.assert_array_equal(x.numpy(), values * 2 + 1)


def test_a_time() -> None:
    check_time(NAME)


def test_an_error_of_the_compiler_names_the_line() -> None:
    text = "@compute @workgroup_size(1)\nfn wrong() {\n  let x: f32 = undefined_name;\n}\n"
    source = Source("wrong", "WGSL", text, ())
    with pytest.raises(CompileError) as error:
        Device[NAME].load(source).bind([])
    assert error.value.line == 3 and "undefined_name" in str(error.value)


def test_too_many_buffers_are_refused() -> None:
    xs = [Tensor(np.ones(4, np.float32), device=NAME).realize() for _ in range(40)]
    kernel = explore(sum(xs[1:], xs[0])).kernels[-1]
    with pytest.raises(CompileError, match="it has 41 buffers"):
        kernel.run()


def test_an_error_in_a_line_of_a_kernel_names_its_operation() -> None:
    check_an_error_names_the_line_and_the_operation(NAME)


def test_quotients_and_remainders_are_exact() -> None:
    """Of floats of all sizes: a long division of integers, since WGSL's % is rounded."""
    rng = np.random.default_rng(6)
    bits = rng.integers(0, 1 << 32, (2, 1000), np.uint32).view(np.float32)
    b = rng.standard_normal(1000).astype(np.float32)
    a = (np.exp2(rng.uniform(-3, 30, b.size)) * np.roll(b, 1)).astype(np.float32)
    a, b = np.concatenate([bits[0], a]), np.concatenate([bits[1], b])
    is_number = np.isfinite(a) & np.isfinite(b)
    a, b = a[is_number], b[is_number]
    x, y = (Tensor(values, device=NAME).realize() for values in (a, b))
    for got, want in ((x // y, quotient(a, b)), (x % y, remainder(a, b))):
        actual = got.numpy()
        clear = np.abs(want) >= np.finfo(np.float32).tiny
        np.testing.assert_array_equal(actual[clear], want[clear])
    floor_mod = remainder(np.float32([7, -7, 7, -7]), np.float32([3, 3, -3, -3]))
    seven = Tensor(np.float32([7, -7, 7, -7]), device=NAME)
    three = Tensor(np.float32([3, 3, -3, -3]), device=NAME)
    np.testing.assert_array_equal((seven % three).numpy(), floor_mod)
