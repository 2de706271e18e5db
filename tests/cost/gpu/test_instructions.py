"""The instructions that operations become: counted in the machine code of NVRTC 13.5 for sm_90."""

from __future__ import annotations

import pytest

from workbench import Tensor, explore
from workbench.backends.device import Device
from workbench.cost.gpu.gpu_cost import GpuCost, gpu_cost
from workbench.cost.gpu.item_work import SPECIAL_FUNCTION, item_work
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.pipeline import stages

H100 = Device["CUDA:H100"].target
X, Y = Tensor.empty(4096, 4096), Tensor.empty(4096, 4096)
SASS = {
    # name: (the expression, special functions of an element, its instructions in SASS)
    "x / y": (X / Y, 1, 10),
    "1 / x": (X.reciprocal(), 1, 10),
    "sqrt": (X.sqrt(), 1, 11),
    "exp": (X.exp(), 2, 15),
    "log": (X.log(), 1, 29),
    "sin": (X.sin(), 1, 25),
    "x * y": (X * Y, 0, 1),
}


def cost(tensor: Tensor) -> GpuCost:
    plain = explore(tensor).kernels[-1].ast
    return gpu_cost(heuristic(plain, H100)[0], H100, plain)


@pytest.mark.parametrize("name", SASS)
def test_an_operation_takes_the_instructions_of_its_machine_code(name: str) -> None:
    tensor, special, total = SASS[name]
    kernel = heuristic(explore(tensor).kernels[-1].ast, H100)[0]
    work = item_work(stages(kernel, H100, upto="linear").linear)
    elements = 4
    assert work.operations.get(SPECIAL_FUNCTION, 0) == special * elements
    counted = sum(work.operations.values()) / elements
    assert total * 0.6 <= counted <= total * 1.2 + 1


@pytest.mark.parametrize(
    "tensor",
    [
        X.softmax(-1), X / Y, X.sqrt(), X.rsqrt(), X.tanh(), X.sigmoid(), X.exp(), X.log(),
        X.sin(), X.gelu(), X.layernorm(),
    ],
)  # fmt: skip
def test_what_reads_and_writes_large_arrays_is_bound_by_memory(tensor: Tensor) -> None:
    result = cost(tensor)
    assert result.limit == "memory"
    assert result.seconds["arithmetic"] < 0.7 * result.seconds["memory"]
