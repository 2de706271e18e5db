"""The WASM device computes what numpy does, here and in a JavaScript engine."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import deno
import numpy as np
import pytest

from tests.agreement.hunt import attempts, report
from tests.backends.linear import TARGET
from tests.support import count
from workbench import Opt, OptOps, Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.program.text import Source
from workbench.backends.wasm.wasm_device import WasmMemory
from workbench.backends.wasm.wasm_module import (
    EXPORT,
    MEMORY,
    STACK,
    STACK_BYTES,
    module_of,
    render,
)
from workbench.base.errors import CompileError, DeviceError
from workbench.pipeline import stages

NAME = "WASM"
Array = np.ndarray[Any, Any]
needs_wasmtime = pytest.mark.skipif(
    not Device[NAME].is_available, reason=f"wasmtime is not here: {Device[NAME].how_to_get}"
)


@needs_wasmtime
def test_random_programs_with_random_opts() -> None:
    for attempt in attempts(range(920_000, 920_000 + count(300)), NAME, "mixed"):
        assert not attempt.verdict and not attempt.refusal, report(attempt)


@needs_wasmtime
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_the_remainder_is_exact(name: str) -> None:
    rng = np.random.default_rng(3)
    exponents = rng.uniform(-30, 30, (2, 4000)) * (4 if name == "float64" else 1)
    a, b = (np.exp2(exponents) * rng.choice([-1, 1], (2, 4000))).astype(name)
    special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 3.0], name)
    xs, ys = np.meshgrid(special, special)
    a, b = np.concatenate([a, xs.ravel()]), np.concatenate([b, ys.ravel()])
    actual = Tensor(a, device=NAME).fmod(Tensor(b, device=NAME)).numpy()
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
    np.testing.assert_array_equal(actual, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(expected[number]))


@needs_wasmtime
def test_memory_is_numpys_too() -> None:
    values = np.arange(1000, dtype=np.float32)
    x = Tensor(values, device=NAME).realize()
    np.testing.assert_array_equal(x[64:].numpy(), values[64:])
    np.testing.assert_array_equal(x.to("PYTHON").numpy(), values)
    x[32:64] = 0
    expected = values.copy()
    expected[32:64] = 0
    np.testing.assert_array_equal(x.numpy(), expected)


@needs_wasmtime
def test_memory_grows_in_place() -> None:
    before = Tensor(np.arange(100, dtype=np.int32), device=NAME).realize()
    large = Tensor(np.ones(16 << 20, np.float32), device=NAME) * 2
    assert float(large.sum().item()) == 2.0 * (16 << 20)
    np.testing.assert_array_equal((before + 1).numpy(), np.arange(1, 101))


@needs_wasmtime
def test_what_is_free_is_used_again() -> None:
    memory = WasmMemory()
    a, b, c = (memory.allocate(size, 64) for size in (100, 200, 300))
    places = [memory.wasm_address(memory.address(x)) for x in (a, b, c)]
    assert len({*places}) == 3 and all(place % 64 == 0 for place in places)
    memory.free(a)
    memory.free(b)
    again = memory.allocate(384, 64)
    assert memory.wasm_address(memory.address(again)) == places[0]
    memory.free(c)
    memory.free(again)
    assert memory._gaps == [(places[0], places[2] + 320)]


@needs_wasmtime
def test_an_index_outside_of_memory_is_an_error() -> None:
    x = Buffer.of(NAME, dtypes.float32, np.zeros(64, np.float32))
    text = """define void @k(ptr %p0) {
  %far = getelementptr i8, ptr %p0, i32 2000000000
  store float 1.0, ptr %far, align 4
  ret void
}
"""
    program = Device[NAME].load(Source("k", "LLVM IR", text, ((dtypes.float32, 64),)))
    with pytest.raises(DeviceError, match="out of bounds"):
        program([x])
    assert not x.to_numpy().any()


def test_a_function_that_nothing_has_is_an_error() -> None:
    text = "define float @k(float %a) {\n  %b = call float @llvm.sin.f32(float %a)\n"
    text += "  ret float %b\n}\n"
    with pytest.raises(CompileError, match="WebAssembly has no sinf"):
        module_of(Source("k", "LLVM IR", text, ()))


SCRIPT = f"""
const message = JSON.parse(await new Response(Deno.stdin.readable).text());
const [bytes, addresses, inputs, out, count] = message;
const memory = new WebAssembly.Memory({{initial: 64}});
const stack = new WebAssembly.Global({{value: "i32", mutable: true}}, {STACK_BYTES});
const env = {{{MEMORY}: memory, {STACK}: stack}};
const {{instance}} = await WebAssembly.instantiate(new Uint8Array(bytes), {{env}});
for (const [at, values] of inputs) new Float32Array(memory.buffer, at).set(values);
instance.exports.{EXPORT}(...addresses);
console.log(JSON.stringify([...new Float32Array(memory.buffer, out, count)]));
"""


def in_javascript(source: Source, arrays: list[Array], size: int) -> Array:
    """Run a kernel in the engine that Chromium has; slot 0 is what it writes."""
    addresses, at = [], STACK_BYTES
    for array in arrays:
        addresses.append(at)
        at += -(-array.nbytes // 64) * 64
    inputs = [
        [address, array.ravel().tolist()]
        for address, array in zip(addresses[1:], arrays[1:], strict=True)
    ]
    message = [[*module_of(source)], addresses, inputs, addresses[0], size]
    process = subprocess.run(
        [deno.find_deno_bin(), "eval", SCRIPT],
        input=json.dumps(message),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    return np.array(json.loads(process.stdout), np.float32)


def test_a_module_runs_in_a_javascript_engine() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((32, 32), dtype=np.float32) for _ in range(2))
    kernel = explore(Tensor.empty(32, 32) @ Tensor.empty(32, 32)).kernels[0]
    for opt in (Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UPCAST, "g0", 2)):
        kernel = kernel.apply(opt)
    source = render(stages(kernel.ast, TARGET, "linear").linear, TARGET)
    actual = in_javascript(source, [np.zeros((32, 32), np.float32), a, b], 1024)
    np.testing.assert_allclose(actual.reshape(32, 32), a @ b, rtol=1e-4, atol=1e-5)


def test_what_needs_a_stack_has_one() -> None:
    x = np.random.default_rng(2).standard_normal((16, 16), dtype=np.float32)
    kernel = explore(Tensor.empty(16, 16).softmax(-1)).kernels[-1]
    linear = stages(kernel.ast, TARGET, "linear").linear
    source = render(linear, TARGET)
    assert "alloca" in source.text
    actual = in_javascript(source, [np.zeros((16, 16), np.float32), x], 256)
    shifted = np.exp(x - x.max(-1, keepdims=True))
    expected = shifted / shifted.sum(-1, keepdims=True)
    np.testing.assert_allclose(actual.reshape(16, 16), expected, rtol=1e-5)


def test_indexes_have_32_bits() -> None:
    kernel = explore(Tensor.empty(64, dtype=dtypes.float32) + 1).kernels[0]
    text = render(stages(kernel.ast, TARGET, "linear").linear, TARGET).text
    assert "i64" not in text and "phi i32" in text
