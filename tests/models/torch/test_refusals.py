"""What cannot be read or computed of PyTorch's: the words, and that PyTorch prints nothing more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.peers import torch
from workbench import ModelError, WorkbenchError, explore, load_model
from workbench.base.errors import DeviceError

T = torch.nn


class Branching(T.Module):  # type: ignore[misc, name-defined]
    def forward(this, x: Any) -> Any:  # not every network says self
        return x * 2 if x.sum() > 0 else x


class Caching(T.Module):  # type: ignore[misc, name-defined]
    """A network that returns an object, as those of transformers do."""

    config = SimpleNamespace(use_cache=True)

    def forward(self, x: Any) -> Any:
        return x * 2, SimpleNamespace(keys=x)


@pytest.mark.parametrize("make", [lambda m: explore(m), lambda m: load_model(m)()])
def test_inputs_that_are_missing_are_named(make: Any) -> None:
    with pytest.raises(ModelError, match=r"needs its inputs(.|\n)*Linear\(input: torch.Tensor\)"):
        make(T.Linear(3, 2))


def test_what_cannot_be_exported_is_said_with_module_and_line(capfd: Any) -> None:
    net = T.Sequential(T.Linear(3, 3), Branching())
    with pytest.raises(ModelError, match=r"value of a tensor(.|\n)*1: .*test_refusals.py, line"):
        load_model(net, torch.ones(1, 3))
    with pytest.raises(ModelError, match=r"same reduction dim(.|\n)*where .*0"):
        explore(net, torch.ones(2, 5))
    assert capfd.readouterr() == ("", "")


def test_a_cache_among_the_results_is_named_with_the_option_that_leaves_it_out() -> None:
    with pytest.raises(ModelError, match=r"SimpleNamespace(.|\n)*config.use_cache = False"):
        explore(Caching(), torch.ones(2))


def test_tensors_without_values_are_refused() -> None:
    net, x = T.Linear(3, 2), torch.ones(1, 3)
    for module, given in ((T.Linear(3, 2, device="meta"), x), (net, x.to("meta"))):
        with pytest.raises(DeviceError, match=r"device meta(.|\n)*to_empty"):
            load_model(module, given)


@pytest.mark.parametrize("function", [load_model, explore])
@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("net.pt", "load_state_dict(torch.load('net.pt'))"),
        ("net.safetensors", "load_state_dict(safetensors.torch.load_file('net.safetensors'))"),
        ("net.pt2", "torch.export.load('net.pt2')"),
    ],
)
def test_files_of_pytorch_are_refused_with_what_reads_them(
    function: Any, path: str, hint: str
) -> None:
    with pytest.raises(WorkbenchError) as refused:
        function(path)
    assert hint in refused.value.hint


def test_an_error_of_a_row_names_the_operator_and_its_module() -> None:
    model = load_model(T.Sequential(T.ReLU(), T.Linear(3, 2)))
    with pytest.raises(WorkbenchError, match=r"cannot compute addmm(.|\n)*int64(.|\n)*where .*1"):
        model.check(torch.ones(2, 3, dtype=torch.int64), bisect=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "fast"}, "there is no mode 'fast'(.|\n)*max-autotune"),
        ({"options": {"beam": 2}}, "no setting beam(.|\n)*BEAM"),
        ({"options": {"BEAM": "x"}}, "cannot set BEAM"),
        ({"options": [1]}, "options does not take"),
    ],
)
def test_modes_and_options_that_are_not_here_are_refused(options: Any, words: str) -> None:
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=words):
        torch.compile(T.ReLU(), backend="workbench", **options)(torch.ones(2))


def test_a_view_that_pytorch_cannot_decompose_is_refused() -> None:
    class Windows(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            windows = x.unfold(-2, 5, 2)
            return torch.baddbmm(windows, windows, windows.mT @ windows).clone().view(-1)

    x = torch.randn(5, 2)
    assert Windows()(x).shape == (10,)
    with pytest.raises(ModelError, match="cannot decompose the module") as refused:
        load_model(Windows())(x)
    assert "Cannot view" in refused.value.because and "reshape" in refused.value.hint
