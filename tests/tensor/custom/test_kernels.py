"""What kernels written by hand compute, as functions and as IR text, on each device."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.custom.kernels import CASES, Case, add, matmul, numbers, row_sums
from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.base.context import Context
from workbench.base.errors import DTypeError, KernelOptError
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.verify.verify import verify

DEVICES = ["LLVM", "C", "PYTHON"]
TEXT = """
p0 = PARAM.float32 {0, 10}
g0 = RANGE.index 10 {"g0", GLOBAL}
v2 = INDEX.float32 p0, g0
p1 = PARAM.float32 {1, 10}
v4 = INDEX.float32 p1, g0
v5 = LOAD.float32 v4
v6 = MUL.float32 v5, 2.0
v7 = STORE v2, v6
v8 = END v7, g0
SINK v8 {KernelInfo("doubled", ("g0",))}
"""


def outputs_of(case: Case) -> list[Tensor]:
    """Return the results of a kernel; one without outputs of its own writes its argument."""
    memory = [Tensor.empty(shape, dtype=dtype) for shape, dtype in case.outputs]
    tensors = memory + [Tensor(array) for array in case.inputs]
    results = tensors[0].custom_kernel(*tensors[1:], fxn=case.fxn)
    assert len(results) == len(tensors)
    return results[: max(1, len(memory))]


@by_rows("device", DEVICES)
@by_rows("name", CASES)
def test_the_values_are_numpys(name: str, device: str) -> None:
    case = CASES[name]
    expected = case.expected(*case.inputs)
    each = expected if isinstance(expected, tuple) else (expected,)
    with Context(DEV=device):
        results = outputs_of(case)
        for result, values in zip(results, each, strict=True):
            assert result.shape == np.shape(values)
            np.testing.assert_allclose(result.numpy(), values, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["row sums", "two outputs", "in place", "softmax"])
def test_the_reference_interpreter_agrees(name: str) -> None:
    case = CASES[name]
    for result in outputs_of(case):
        verify(result.uop, "tensor")
        memory = [n for n in result.uop.toposort() if n.op.name == "BUFFER"]
        arrays = dict.fromkeys(memory, case.inputs[0])
        values = interpret_tensor(result.uop, arrays)
        np.testing.assert_allclose(result.numpy(), values, rtol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_ir_text_is_a_kernel(device: str) -> None:
    x = numbers(2, 5)
    with Context(DEV=device):
        (y, same) = Tensor.empty(10).custom_kernel(Tensor(x) + 1, fxn=TEXT)
        assert np.array_equal(y.numpy(), (x.reshape(10) + 1) * 2)
        assert np.array_equal(same.numpy(), x + 1)


def test_the_text_of_a_kernel_of_ours_is_a_kernel() -> None:
    a, b = numbers(6, 4), numbers(4, 3)
    item = (Tensor(a).realize() @ Tensor(b).realize()).schedule()[-1]
    assert item.kernel is not None
    text = Kernel.from_text(to_text(item.kernel)).to_text()
    result = Tensor.empty(6, 3).custom_kernel(Tensor(a), Tensor(b), fxn=text)[0]
    np.testing.assert_allclose(result.numpy(), a @ b, rtol=1e-5)


def test_a_function_may_return_the_kernel_or_its_text() -> None:
    x = Tensor(numbers(10))
    expected = (x * 2).tolist()
    (y, _) = Tensor.empty(10).custom_kernel(x, fxn=lambda out, x: TEXT)
    (z, _) = Tensor.empty(10).custom_kernel(x, fxn=lambda out, x: parse(y.uop.src[0].kernel_text))
    assert y.tolist() == z.tolist() == expected


@pytest.mark.parametrize("opts", [True, False])
def test_the_default_opts_are_applied(opts: bool) -> None:
    a, b = numbers(64, 48), numbers(48, 96)
    with Context(NOOPT=int(not opts)):
        c = Tensor.empty(64, 96).custom_kernel(Tensor(a), Tensor(b), fxn=matmul)[0]
        np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4, atol=1e-4)


def test_no_tensor_changes() -> None:
    x, out = Tensor(numbers(4)), Tensor.zeros(4).contiguous().realize()
    before = x.tolist()
    result = out.custom_kernel(x, x, fxn=add)[0]
    assert result.tolist() == [2 * value for value in before]
    assert x.tolist() == before and out.tolist() == [0.0] * 4


def test_constants_and_views_are_operands() -> None:
    x = Tensor(numbers(6, 4)).realize()
    ones, part = Tensor.ones(3, 2), x[1:4, ::2]
    sums = Tensor.empty(3).custom_kernel(ones, fxn=row_sums)[0]
    assert sums.tolist() == [2.0] * 3
    assert Tensor.empty().custom_kernel(
        Tensor(2.5), fxn=lambda out, x: out.__setitem__((), x[()] * 2)
    )[0].item() == 5.0  # fmt: skip
    again = x * 2.5  # the same node, which is no memory of a scalar
    np.testing.assert_array_equal(again.numpy(), x.numpy() * np.float32(2.5))
    sums = Tensor.empty(3).custom_kernel(part, fxn=row_sums)[0]
    np.testing.assert_allclose(sums.numpy(), x.numpy()[1:4, ::2].sum(1), rtol=1e-6)


def test_it_runs_with_the_opts_of_its_code() -> None:
    x = Tensor(numbers(10))
    opts = [Opt(OptOps.UPCAST, "g0", 5)]
    result = Tensor.empty(10).custom_kernel(x, fxn=TEXT, opts=opts)[0]
    (kernel,) = explore(result).kernels
    assert kernel.optimized().applied_opts == tuple(opts)
    assert kernel.opts_in_code == 'the code asks for UPCAST("g0", 5)'
    np.testing.assert_array_equal(result.numpy(), x.numpy() * 2)
    refused = Tensor.empty(10).custom_kernel(x, fxn=TEXT, opts=[Opt(OptOps.UPCAST, "g0", 3)])[0]
    with pytest.raises(KernelOptError, match="which the code asks for") as error:
        refused.realize()
    assert "10 elements" in error.value.because
    with pytest.raises(DTypeError, match="custom_kernel: opts"):
        Tensor.empty(10).custom_kernel(x, fxn=TEXT, opts=4)  # type: ignore[arg-type]
