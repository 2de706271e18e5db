"""The NULL device compiles what any device does, and gives no answer."""

from __future__ import annotations

import numpy as np
import pytest

from tests.agreement.programs import program
from tests.support import count
from workbench import Context, Tensor, explore
from workbench.backends.device import Device
from workbench.base.errors import DeviceError
from workbench.viz.record.record import build

X = np.arange(64, dtype=np.float32).reshape(8, 8)
NAMES = ("NULL", "NULL:C", "NULL:CUDA:H100", "NULL:WEBGPU:BROWSER")


@pytest.mark.parametrize("name", NAMES)
def test_it_compiles_and_runs_nothing(name: str) -> None:
    x = Tensor(X, device=name)
    np.testing.assert_array_equal(x.numpy(), X)
    kernel = explore(x @ x).kernels[-1].optimized()
    compiled = kernel.compile()
    assert compiled.source and compiled["linear"]
    for ask in (kernel.run, kernel.check, kernel.time, (x @ x).realize):
        with pytest.raises(DeviceError, match=f"{name} runs no kernels"):
            ask()


def test_it_has_the_limits_and_the_source_of_a_machine() -> None:
    there, null = Device["CUDA:H100"], Device["NULL:CUDA:H100"]
    assert null is Device["null:cuda:h100"] and null.name == "NULL:CUDA:H100"
    assert null.target.group_items == there.target.group_items
    sources = [
        explore(Tensor(X, device=d.name) + 1).kernels[-1].optimized().compile().source
        for d in (there, null)
    ]
    assert sources[0] == sources[1] and "__global__" in sources[0]


def test_it_has_the_machine_code_of_the_processor() -> None:
    kernels = [explore(Tensor(X, device=d) + 1).kernels[-1] for d in ("NULL", "LLVM")]
    first, second = (kernel.compile().assembly for kernel in kernels)
    assert first == second


def test_random_programs_compile() -> None:
    for seed in range(760_000, 760_000 + count(200)):
        with Context(DEV="NULL"):
            ex = explore(program(seed).tensor("NULL"))
        for kernel in ex.kernels:
            kernel.optimized().compile()


def test_it_is_explored_as_it_is_and_costs_what_its_source_does() -> None:
    y = Tensor(X) + 1
    assert explore(y, device="NULL").device == "NULL"
    kernel, there = (explore(y, device=d).kernels[-1] for d in ("NULL:CUDA:H100", "CUDA:H100"))
    assert str(kernel.cost) == str(there.cost) and "not measured" in str(kernel.cost)
    assert str(kernel.bound()) == str(there.bound())


def test_it_is_nobodys_default_and_no_language_of_a_page() -> None:
    assert Device.DEFAULT != "NULL" and not Device["NULL"].is_available
    record = build(explore(Tensor(X, device="NULL") + 1))
    assert record.variants[0].error is None and record.variants[0].timing is None
    assert "NULL" not in [row.device for row in build(explore(Tensor(X) + 1)).languages]


def test_an_unknown_inner_device_is_told() -> None:
    with pytest.raises(DeviceError, match="no device 'GPU7'"):
        Device["NULL:GPU7"]
