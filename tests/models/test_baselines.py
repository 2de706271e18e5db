"""Runs of models by their frameworks: on the same inputs, whole and by module, and no traces."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peers import peer
from workbench import ModelError, Tensor, explore
from workbench.models import baselines
from workbench.models.baselines import OnnxRun, TorchRun, framework_run, node_times


def network() -> Any:
    torch = peer("torch")

    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.norm = torch.nn.BatchNorm1d(4)

        def forward(self, x: Any) -> Any:
            return self.norm(self.linear(x)) + torch.rand(1)

    return torch.nn.Sequential(Block(), torch.nn.Dropout(0.5))


def test_a_module_takes_its_time_without_those_that_it_calls() -> None:
    """By a clock that ticks once at each look: a call takes a tick, and two for each inside."""
    torch = peer("torch")
    run = TorchRun(network().eval(), [torch.zeros(2, 4)], False)
    ticks = itertools.count()
    times = run.module_times(lambda: float(next(ticks)))
    assert times == {"": 3.0, "0": 3.0, "0.linear": 1.0, "0.norm": 1.0, "1": 1.0}
    hooks = [m for m in run._module.modules() if m._forward_hooks or m._forward_pre_hooks]
    assert not hooks
    assert TorchRun(torch.nn.ReLU(), [torch.zeros(2)], False).module_times() == {}


def test_a_run_leaves_the_module_and_random_numbers_as_they_were() -> None:
    torch = peer("torch")
    module = network().train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.random.get_rng_state()
    run = TorchRun(module, [np.ones((3, 4), np.float32)], False)
    result = run()
    run.module_times()
    assert not result.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_module_is_compiled_by_its_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = peer("torch")
    compiled: list[Any] = []
    monkeypatch.setattr(torch, "compile", lambda module: compiled.append(module) or module)
    module, x = torch.nn.Linear(4, 2).eval(), torch.ones(3, 4)
    eager = framework_run("torch eager", module, [x], [])
    assert eager is not None and compiled == []
    inductor = framework_run("torch.compile", module, [x], [])
    assert compiled == [module] and inductor is not None and inductor.module_times() == {}
    assert "thread" in inductor.about and torch.equal(inductor(), module(x))  # type: ignore[arg-type]
    program = torch.export.export(module, (x,))
    exported = framework_run("mine", program, [Tensor(x.numpy())], [])
    assert exported is not None and torch.equal(exported(), module(x))  # type: ignore[arg-type]


def onnx_file(folder: Path) -> Path:
    onnx = peer("onnx")
    text = """<ir_version: 9, opset_import: ["" : 17]>
    agraph (float[2, 3] x, float[2, 3] y) => (float[2, 3] z) {
      [first] sum = Add(x, y)
      [second] z = Softmax(sum)
    }"""
    path = folder / "net.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_onnx_runtime_takes_a_path_or_bytes_and_times_nodes(tmp_path: Path) -> None:
    peer("onnxruntime")
    path, x = onnx_file(tmp_path), np.float32([[1, 2, 3], [4, 5, 6]])
    sums = np.exp(x + x - (x + x).max(1, keepdims=True))
    for source in (path, str(path), path.read_bytes()):
        run = framework_run("onnxruntime", source, [x, Tensor(x)], [])
        assert isinstance(run, OnnxRun) and "thread" in run.about
        (result,) = run()  # type: ignore[misc]
        np.testing.assert_allclose(result, sums / sums.sum(1, keepdims=True), rtol=1e-5)
    times = OnnxRun(path, [x, x]).module_times()
    assert set(times) == {"first", "second"} and min(times.values()) >= 0
    with pytest.raises(ModelError, match="takes 2 inputs: x, y"):
        OnnxRun(path, [x])


def test_the_time_of_a_node_is_its_median_times_its_calls_in_a_run() -> None:
    durations = {"a": [1, 9, 2], "loop": [1, 1, 3, 5, 9, 3]}
    profile = [
        {"cat": "Node", "name": f"{name}_kernel_time", "dur": us}
        for name, each in durations.items()
        for us in each
    ]
    profile += [{"cat": "Session", "name": "run", "dur": 90}, {"cat": "Node", "name": "a_fence"}]
    assert node_times(profile, 3) == pytest.approx({"a": 2e-6, "loop": 6e-6})


def test_it_runs_on_the_inputs_that_were_explored() -> None:
    torch = peer("torch")
    module, x = torch.nn.Linear(4, 2).eval(), torch.randn(3, 4)
    ex = explore(module, x).baseline("torch eager", module)
    run: Any = ex.display.baselines["torch eager"]
    assert torch.equal(run(), module(x))
    with pytest.raises(ModelError, match=r"(?s)kernels are for input \[3, 4\].*are \[5, 4\]"):
        ex.baseline("torch eager", module, torch.zeros(5, 4))
    with pytest.raises(ModelError, match=r"(?s)model of PyTorch.*torch.onnx.export"):
        ex.baseline("onnxruntime", module)


def test_what_is_missing_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ex = explore(Tensor([1.0, 2.0]) + 1)
    monkeypatch.setattr(baselines, "is_installed", lambda name: False)
    for name, package in (("torch eager", "torch"), ("onnxruntime", "onnxruntime")):
        with pytest.raises(ModelError, match=rf"(?s){package} is not.*pip install {package}$"):
            ex.baseline(name, None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match=r"(?s)onnxruntime is not.*pip install onnxruntime"):
        ex.baseline("onnxruntime", tmp_path / "net.onnx")
    monkeypatch.undo()
    with pytest.raises(ModelError, match=r"(?s)runs models of its own.*torch.compile"):
        ex.baseline("torch.compile", 3)
    assert framework_run("torch eager", lambda: 1, [], []) is None, "a function of the user's"
