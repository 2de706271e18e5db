"""Pickles of public values: they name no module that may move, and are read in any process."""

from __future__ import annotations

import copy
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import (
    AxisType,
    Device,
    Kernel,
    Opt,
    OptOps,
    Refusal,
    Tensor,
    Variable,
    dtypes,
    explore,
    nn,
    pickles,
)


def kernel() -> Kernel:
    x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8)).realize()
    (kernel,) = explore((x @ x + 1).relu()).kernels
    return kernel


def leaf() -> Tensor:
    return Tensor([1.0, 2.0], requires_grad=True)


# fmt: off
VALUES: dict[str, Callable[[], Any]] = {
    "tensor": lambda: Tensor([1, 2]).realize(),
    "expression": lambda: Tensor([[1.0, 2.0]]).softmax(1).cast("float16"),
    "view": lambda: Tensor(np.ones((3, 4), np.float32)).realize()[1:, ::2].permute(1, 0),
    "leaf": leaf,
    "convolution": lambda: Tensor.rand(1, 2, 5, 5).conv2d(Tensor.rand(3, 2, 3, 3), padding=1),
    "kernel": kernel,
    "kernel with opts": lambda: kernel().optimized(),
    "kernel of text": lambda: Kernel.from_text(kernel().to_text()),
    "kernels without opts": lambda: kernel().original,
    "search": lambda: kernel().search(budget_s=0.2, progress=False),
    "check": lambda: kernel().check("PYTHON"),
    "time": lambda: kernel().time("PYTHON", 0),
    "counts": lambda: kernel().counts,
    "bottleneck": lambda: kernel().bound(),
    "axes": lambda: kernel().axes,
    "opt": lambda: Opt(OptOps.UPCAST, "g0", 4),
    "opt kind": lambda: OptOps.SPLIT,
    "axis kind": lambda: AxisType.GLOBAL,
    "refusal": lambda: Refusal("no", "yes"),
    "target": lambda: Device["CUDA:H100"].target,
    "dtype": lambda: dtypes.float16.vec(4),
    "variable": lambda: Variable("n", 1, 10).bind(3),
    "linear": lambda: nn.Linear(2, 3), "embedding": lambda: nn.Embedding(2, 3),
    "cell": lambda: nn.LSTMCell(2, 3), "conv": lambda: nn.Conv1d(2, 3, 1),
    "transposed conv": lambda: nn.ConvTranspose2d(2, 3, 1), "batch": lambda: nn.BatchNorm(2),
    "group": lambda: nn.GroupNorm(1, 2), "instance": lambda: nn.InstanceNorm(2),
    "layer": lambda: nn.LayerNorm(2), "layer 2d": lambda: nn.LayerNorm2d(2),
    "rms": lambda: nn.RMSNorm(2),
    "sgd": lambda: nn.optim.SGD([leaf()]), "adam": lambda: nn.optim.Adam([leaf()]),
    "optimizers": lambda: nn.optim.OptimizerGroup(nn.optim.SGD([leaf()])),
}
# fmt: on


@pytest.mark.parametrize("name", VALUES)
def test_a_pickle_names_no_module_that_may_move(name: str) -> None:
    value = VALUES[name]()
    data = pickle.dumps(value)
    texts = [arg for _, arg, _ in pickletools.genops(data) if isinstance(arg, str)]
    assert {t for t in texts if t.startswith("workbench")} <= {"workbench.pickles"}
    for copied in (pickle.loads(data), copy.copy(value), copy.deepcopy(value)):
        assert type(copied) is type(value)
        if isinstance(value, Tensor):
            assert copied.tolist() == value.tolist()
        elif isinstance(value, Kernel):
            assert copied.to_text() == value.to_text()
    assert pickle.dumps(pickle.loads(data)) if isinstance(value, Kernel) else True


def test_every_name_is_that_of_something() -> None:
    for name, module in pickles._MODULES.items():
        thing = getattr(import_module(module), name)
        assert pickles.reference(thing) == name and pickles.referred(name) is thing


class Own(nn.Linear):
    """A layer of somebody's own, which a pickle names by its module."""


def test_a_class_of_the_users_own_is_itself() -> None:
    assert type(pickle.loads(pickle.dumps(Own(2, 3)))) is Own
    assert pickles.reference(Own) is Own


def test_a_process_that_never_imported_the_package_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(pickle.dumps((kernel(), nn.Linear(2, 2), Opt(OptOps.UPCAST, "g0", 4))))
    script = "import pickle, sys; print(*map(repr, pickle.load(open(sys.argv[1], 'rb'))))"
    command = [sys.executable, "-W", "ignore", "-c", script, str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.startswith("Kernel(") and "Opt(OptOps.UPCAST, 'g0', 4)" in output
