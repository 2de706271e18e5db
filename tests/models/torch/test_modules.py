"""Modules of torch.nn through load_model, held against PyTorch: values, state and names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import LONG
from workbench import ModelError, Tensor, WorkbenchError, explore, load_model
from workbench.models.torch.nodes import load_rows
from workbench.models.torch.table import ROWS as OPERATORS
from workbench.models.torch.values import from_torch, to_torch

T = torch.nn


def normal(*shape: int) -> Any:
    return torch.randn(*shape)


def whole(high: int, *shape: int) -> Any:
    return torch.randint(0, high, shape)


X2, X3, X4, X5 = (3, 6), (2, 4, 9), (2, 4, 8, 7), (1, 2, 4, 5, 6)
Row = tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]
ROWS: dict[str, tuple[Row, ...]] = {}
"""Two modules of each kind, with inputs: (make the module, make its inputs)."""


def entered(name: str, shape: tuple[int, ...], *modules: Callable[[], Any]) -> None:
    ROWS[name] = tuple((make, lambda: (normal(*shape),)) for make in modules)


entered("Linear", X2, lambda: T.Linear(6, 3), lambda: T.Linear(6, 1, bias=False))
entered("Identity", X2, T.Identity, T.Identity)
entered("Flatten", X4, T.Flatten, lambda: T.Flatten(2))
entered("Unflatten", X2, lambda: T.Unflatten(1, (2, 3)), lambda: T.Unflatten(1, (3, 2, 1)))
entered("Conv1d", X3, lambda: T.Conv1d(4, 6, 3), lambda: T.Conv1d(4, 4, 2, 2, 1, groups=2))
entered(
    "Conv2d",
    X4,
    lambda: T.Conv2d(4, 6, 3, padding=1),
    lambda: T.Conv2d(4, 6, (2, 3), (2, 1), (1, 0), (1, 2), 2, padding_mode="reflect"),
)
entered("Conv3d", X5, lambda: T.Conv3d(2, 3, 3), lambda: T.Conv3d(2, 4, 2, 2, 1, groups=2))
entered(
    "ConvTranspose1d",
    X3,
    lambda: T.ConvTranspose1d(4, 6, 3),
    lambda: T.ConvTranspose1d(4, 4, 3, 2, 1, 1, 2),
)
entered(
    "ConvTranspose2d",
    X4,
    lambda: T.ConvTranspose2d(4, 6, 3),
    lambda: T.ConvTranspose2d(4, 4, (3, 2), 2, 1, 1, 2, dilation=2),
)
entered("MaxPool1d", X3, lambda: T.MaxPool1d(2), lambda: T.MaxPool1d(3, 2, 1, ceil_mode=True))
entered("MaxPool2d", X4, lambda: T.MaxPool2d(2), lambda: T.MaxPool2d(3, 2, 1, ceil_mode=True))
entered("MaxPool3d", X5, lambda: T.MaxPool3d(2), lambda: T.MaxPool3d((1, 2, 3), 1))
entered("AvgPool1d", X3, lambda: T.AvgPool1d(2), lambda: T.AvgPool1d(3, 2, 1))
entered(
    "AvgPool2d",
    X4,
    lambda: T.AvgPool2d(2),
    lambda: T.AvgPool2d(3, 2, 1, count_include_pad=False, ceil_mode=True),
)
entered(
    "AvgPool3d", X5, lambda: T.AvgPool3d(2), lambda: T.AvgPool3d(3, 2, 1, True, divisor_override=3)
)
entered("LPPool2d", X4, lambda: T.LPPool2d(2, 2), lambda: T.LPPool2d(1, 3, 2))
entered("AdaptiveAvgPool1d", X3, lambda: T.AdaptiveAvgPool1d(3), lambda: T.AdaptiveAvgPool1d(4))
entered(
    "AdaptiveAvgPool2d", X4, lambda: T.AdaptiveAvgPool2d(1), lambda: T.AdaptiveAvgPool2d((3, 5))
)
entered(
    "AdaptiveMaxPool2d", X4, lambda: T.AdaptiveMaxPool2d(2), lambda: T.AdaptiveMaxPool2d((3, 5))
)
entered(
    "AdaptiveMaxPool3d", X5, lambda: T.AdaptiveMaxPool3d(2), lambda: T.AdaptiveMaxPool3d((3, 2, 4))
)
entered("ReLU", X2, T.ReLU, lambda: T.ReLU(inplace=True))
entered("ReLU6", X2, T.ReLU6, T.ReLU6)
entered("ELU", X2, T.ELU, lambda: T.ELU(0.5))
entered("SELU", X2, T.SELU, T.SELU)
entered("CELU", X2, T.CELU, lambda: T.CELU(2.0))
entered("GELU", X2, T.GELU, lambda: T.GELU("tanh"))
entered("SiLU", X2, T.SiLU, T.SiLU)
entered("Mish", X2, T.Mish, T.Mish)
entered("Sigmoid", X2, T.Sigmoid, T.Sigmoid)
entered("LogSigmoid", X2, T.LogSigmoid, T.LogSigmoid)
entered("Tanh", X2, T.Tanh, T.Tanhshrink)
entered("Softplus", X2, T.Softplus, lambda: T.Softplus(2, 1))
entered("Softsign", X2, T.Softsign, T.Softsign)
entered("Softshrink", X2, T.Softshrink, lambda: T.Hardshrink(0.2))
entered("Hardtanh", X2, T.Hardtanh, lambda: T.Hardtanh(-0.3, 0.7))
entered("Hardswish", X2, T.Hardswish, T.Hardsigmoid)
entered("LeakyReLU", X2, T.LeakyReLU, lambda: T.LeakyReLU(0.3))
entered("PReLU", X3, T.PReLU, lambda: T.PReLU(4))
entered("RReLU", X2, lambda: T.RReLU().eval(), lambda: T.RReLU(0.1, 0.2).eval())
entered("Threshold", X2, lambda: T.Threshold(0.1, 20), lambda: T.Threshold(-1, 0))
entered("GLU", X2, T.GLU, lambda: T.GLU(1))
entered("Softmax", X3, lambda: T.Softmax(1), lambda: T.Softmax(-1))
entered("Softmin", X3, lambda: T.Softmin(1), lambda: T.Softmin(2))
entered("LogSoftmax", X3, lambda: T.LogSoftmax(1), lambda: T.LogSoftmax(0))
entered("Softmax2d", X4, T.Softmax2d, T.Softmax2d)
entered("BatchNorm1d", X3, lambda: T.BatchNorm1d(4), lambda: T.BatchNorm1d(4).eval())
entered(
    "BatchNorm2d",
    X4,
    lambda: T.BatchNorm2d(4, momentum=0.3),
    lambda: T.BatchNorm2d(4, affine=False).eval(),
)
entered(
    "BatchNorm3d", X5, lambda: T.BatchNorm3d(2), lambda: T.BatchNorm3d(2, track_running_stats=False)
)
entered("GroupNorm", X4, lambda: T.GroupNorm(2, 4), lambda: T.GroupNorm(4, 4, affine=False))
entered(
    "InstanceNorm2d",
    X4,
    lambda: T.InstanceNorm2d(4),
    lambda: T.InstanceNorm2d(4, affine=True, track_running_stats=True),
)
entered("LayerNorm", X3, lambda: T.LayerNorm(9), lambda: T.LayerNorm((4, 9), bias=False))
entered("RMSNorm", X3, lambda: T.RMSNorm(9), lambda: T.RMSNorm((4, 9), eps=1e-3))
entered(
    "LocalResponseNorm", X4, lambda: T.LocalResponseNorm(2), lambda: T.LocalResponseNorm(3, 0.1)
)
entered("Dropout", X2, lambda: T.Dropout().eval(), lambda: T.Dropout(0.0))
entered("PixelShuffle", X4, lambda: T.PixelShuffle(2), lambda: T.PixelShuffle(1))
entered("PixelUnshuffle", (2, 1, 4, 6), lambda: T.PixelUnshuffle(2), lambda: T.PixelUnshuffle(1))
entered("ChannelShuffle", X4, lambda: T.ChannelShuffle(2), lambda: T.ChannelShuffle(4))
entered(
    "Upsample",
    X4,
    lambda: T.Upsample(scale_factor=2),
    lambda: T.Upsample((5, 11), mode="bilinear", align_corners=True),
)
entered("ConstantPad2d", X4, lambda: T.ConstantPad2d((1, 2, 0, 1), 3.0), lambda: T.ZeroPad2d(-1))
entered(
    "ReflectionPad2d", X4, lambda: T.ReflectionPad2d(2), lambda: T.ReflectionPad2d((1, 0, 2, 1))
)
entered(
    "ReplicationPad2d", X4, lambda: T.ReplicationPad2d(2), lambda: T.ReplicationPad2d((1, 0, 3, 1))
)
entered("CircularPad2d", X4, lambda: T.CircularPad2d(2), lambda: T.CircularPad2d((1, 0, 3, 1)))
entered("Unfold", X4, lambda: T.Unfold(2), lambda: T.Unfold((3, 2), 1, 1, 2))
entered("Fold", (2, 12, 20), lambda: T.Fold((5, 6), 2), lambda: T.Fold((8, 10), 2, stride=2))
entered(
    "LSTM",
    (3, 2, 4),
    lambda: T.LSTM(4, 5),
    lambda: T.LSTM(4, 3, 2, batch_first=True, bidirectional=True),
)
entered("GRU", (3, 2, 4), lambda: T.GRU(4, 5), lambda: T.GRU(4, 3, 2, bias=False))
entered("RNN", (3, 2, 4), lambda: T.RNN(4, 5), lambda: T.RNN(4, 3, nonlinearity="relu"))
entered(
    "TransformerEncoderLayer",
    (2, 5, 8),
    lambda: T.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
    lambda: T.TransformerEncoderLayer(8, 4, 16, activation="gelu", norm_first=True).eval(),
)
ROWS["Embedding"] = (
    (lambda: T.Embedding(10, 4), lambda: (whole(10, 2, 3),)),
    (lambda: T.Embedding(10, 4, padding_idx=2), lambda: (whole(10, 5),)),
)
ROWS["EmbeddingBag"] = (
    (lambda: T.EmbeddingBag(10, 4), lambda: (whole(10, 3, 5),)),
    (lambda: T.EmbeddingBag(10, 4, mode="max"), lambda: (whole(10, 6), torch.tensor([0, 2, 2]))),
)
ROWS["Bilinear"] = (
    (lambda: T.Bilinear(3, 4, 5), lambda: (normal(2, 3), normal(2, 4))),
    (lambda: T.Bilinear(3, 4, 1, bias=False), lambda: (normal(3), normal(4))),
)
ROWS["MultiheadAttention"] = (
    (lambda: T.MultiheadAttention(8, 2).eval(), lambda: (normal(5, 2, 8),) * 3),
    (
        lambda: T.MultiheadAttention(8, 4, kdim=6, vdim=5, batch_first=True).eval(),
        lambda: (normal(2, 3, 8), normal(2, 4, 6), normal(2, 4, 5)),
    ),
)
ROWS["CosineSimilarity"] = (
    (lambda: T.CosineSimilarity(), lambda: (normal(3, 4), normal(3, 4))),
    (lambda: T.PairwiseDistance(1), lambda: (normal(3, 4), normal(3, 4))),
)
ROWS["CrossEntropyLoss"] = (
    (lambda: T.CrossEntropyLoss(), lambda: (normal(4, 5), whole(5, 4))),
    (lambda: T.CrossEntropyLoss(label_smoothing=0.1), lambda: (normal(2, 5, 3), whole(5, 2, 3))),
)
ROWS["losses"] = (
    (lambda: T.MSELoss(), lambda: (normal(4, 5), normal(4, 5))),
    (lambda: T.SmoothL1Loss(beta=0.3), lambda: (normal(4, 5), normal(4, 5))),
)
ROWS["NLLLoss"] = (
    (lambda: T.NLLLoss(), lambda: (normal(4, 5), whole(5, 4))),
    (lambda: T.NLLLoss(ignore_index=1, reduction="sum"), lambda: (normal(4, 5), whole(5, 4))),
)
ROWS["BCEWithLogitsLoss"] = (
    (lambda: T.BCEWithLogitsLoss(), lambda: (normal(4, 5), torch.rand(4, 5))),
    (lambda: T.KLDivLoss(reduction="batchmean"), lambda: (normal(4, 5), torch.rand(4, 5))),
)


def cases() -> Iterator[Any]:
    for name, rows in ROWS.items():
        for place in range(len(rows)):
            yield pytest.param(name, place, id=f"{name} {place}")


@pytest.mark.parametrize(("name", "place"), list(cases())[:: 1 if LONG else 8])
def test_a_module_computes_what_torch_computes(name: str, place: int) -> None:
    """Its outputs, and the buffers that it writes, of two calls one after the other."""
    torch.manual_seed(len(name) + place)
    make, inputs = ROWS[name][place]
    module = make()
    theirs = copy.deepcopy(module)
    model = load_model(module)
    for _ in range(2):
        arguments = inputs()
        got, want = model(*[a.clone() for a in arguments]), theirs(*arguments)
        for ours, expected in zip(leaves(got), leaves(want), strict=True):
            torch.testing.assert_close(to_torch(ours), expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(module.buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    return [] if value is None else [value]


def test_parameters_are_on_the_memory_of_the_module() -> None:
    module = T.Linear(3, 2)
    model = load_model(module, torch.ones(1, 3))
    with torch.no_grad():
        module.weight.fill_(2)
        module.bias.zero_()
    assert model(np.ones((1, 3), np.float32)).tolist() == [[6.0, 6.0]]


class TiedWeights(T.Module):  # type: ignore[misc, name-defined]
    """A layer whose weights are those of the embedding before it, and another, whose parameters a
    loss of the first output does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.unused = T.Embedding(5, 4), T.Linear(4, 2)
        self.linear = T.Linear(4, 5, bias=False)
        self.linear.weight = self.embedding.weight

    def forward(self, x: Any) -> Any:
        y = self.embedding(x).tanh()
        return self.linear(y), self.unused(y)


def test_parameters_have_the_gradients_of_pytorch() -> None:
    module, x = TiedWeights(), torch.tensor([1, 2, 4])
    module(x)[0].square().sum().backward()
    model = load_model(module)
    state = model.state_dict()
    for tensor in state.values():
        tensor.requires_grad_()
    model(x)[0].square().sum().backward()
    wanted = dict(module.named_parameters(remove_duplicate=False))
    assert {name for name, tensor in state.items() if tensor.grad is None} == {
        "unused.weight",
        "unused.bias",
    }
    assert all(parameter.grad is None for parameter in module.unused.parameters())
    for name in ("embedding.weight", "linear.weight"):
        torch.testing.assert_close(to_torch(state[name].grad), wanted[name].grad)


def test_a_model_takes_arrays_of_each_library() -> None:
    module = T.ReLU()
    model = load_model(module)
    values = [[-1.0, 2.0]]
    for x in (Tensor(values), torch.tensor(values), np.array(values, np.float32)):
        assert model(x).tolist() == [[0.0, 2.0]]


def test_a_function_takes_tensors_of_pytorch() -> None:
    x = torch.randn(3, 4)
    ex = explore(lambda a: np.tanh(a) * a.sum(), x)
    np.testing.assert_allclose(ex.run()[0], np.tanh(x.numpy()) * x.numpy().sum(), rtol=1e-5)


def test_an_operator_without_a_row_is_named_with_its_module_and_line() -> None:
    class Net(T.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.lgamma(x)

    with pytest.raises(ModelError, match=r"lgamma(.|\n)*test_modules.py, line \d+"):
        load_model(T.Sequential(Net()), torch.ones(2))


def test_bfloat16_is_read_and_returned() -> None:
    values = torch.tensor([1.5, -2.0, 3.0], dtype=torch.bfloat16)
    assert to_torch(from_torch(values) * 2).tolist() == [3.0, -4.0, 6.0]


def test_check_names_the_first_operator_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = T.Sequential(T.Linear(4, 5), T.ReLU(), T.Linear(5, 2)), torch.randn(3, 4)
    check = load_model(net).check(x, bisect=True)
    assert check.ok and check.first_wrong is None and len(check.outputs) == 1
    load_rows()
    monkeypatch.setitem(OPERATORS, "relu", lambda x: x.abs())
    check = load_model(net).check(x, bisect=True)
    assert not check.ok and check.first_wrong is not None
    assert check.first_wrong.where.endswith("relu") and check.first_wrong.where.startswith("1")
    assert "the first value that differs: relu" in str(check)


def test_check_allows_what_the_dtype_rounds() -> None:
    net = T.Sequential(T.Linear(8, 8), T.GELU()).to(torch.bfloat16)
    check = load_model(net).check(torch.randn(3, 8).to(torch.bfloat16))
    assert check.ok and check.outputs[0].limit > 1e-3


def test_check_drops_on_both_sides_what_pytorch_drops() -> None:
    net, x = T.Sequential(T.Linear(4, 30), T.Dropout(), T.Linear(30, 2)).train(), torch.randn(3, 4)
    before = torch.get_rng_state()
    check = load_model(net).check(x, bisect=True)
    assert check.ok and check.first_wrong is None
    assert bool((torch.get_rng_state() == before).all())


def test_check_compares_what_is_written_to_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output of a batch in training does not depend on its running mean."""
    name = "_native_batch_norm_legit_functional"
    right = OPERATORS[name]
    net, x = T.Sequential(T.Linear(4, 4), T.BatchNorm1d(4)).train(), torch.randn(6, 4)
    check = load_model(net).check(x, bisect=True)
    assert check.ok and "1.running_mean: equal" in str(check)

    def wrong(*arguments: Any, **options: Any) -> Any:
        output, mean, scale, running_mean, *rest = right(*arguments, **options)
        return (output, mean, scale, running_mean * 2, *rest)

    monkeypatch.setitem(OPERATORS, name, wrong)
    check = load_model(net).check(x, bisect=True)
    assert not check.ok and check.outputs[0].ok and check.first_wrong is not None
    assert check.first_wrong.where.startswith("1") and check.first_wrong.where.endswith(name)


def test_a_module_of_a_class_of_ones_own_is_explored_by_module() -> None:
    class Net(T.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = T.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.first(x).relu()

    kernels = explore(Net(), torch.ones(2, 4)).kernels
    assert [kernel.modules[0].path for kernel in kernels] == ["first"]


def test_a_kernel_has_the_line_of_forward_that_calls_its_operator() -> None:
    class Net(T.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = T.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            y = x * 2
            return self.first(y)

    (kernel,) = explore(T.Sequential(Net()), torch.ones(2, 4)).kernels
    assert kernel.line is not None and kernel.line.text == "return self.first(y)"
    assert kernel.modules[0] == ("0.first", "addmm")


def test_a_kernel_has_the_line_of_a_function_that_forward_calls() -> None:
    def scaled(x: Any) -> Any:
        return torch.tanh(x) * 2

    class Net(T.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return scaled(x)

    (kernel,) = explore(T.Sequential(Net()), torch.ones(2, 4)).kernels
    assert kernel.line is not None and kernel.line.text == "return torch.tanh(x) * 2"


def test_the_largest_reduction_of_a_kernel_names_it() -> None:
    net = T.Sequential(T.Conv2d(8, 8, 3, padding=1), T.ReLU(), T.AdaptiveAvgPool2d(1))
    assert "0" in [k.modules[0].path for k in explore(net, torch.ones(1, 8, 4, 4)).kernels]


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
@pytest.mark.parametrize("make", [lambda: torch.nn.Linear(4, 3), lambda: torch.nn.Conv1d(4, 3, 1)])
def test_an_input_of_another_dtype_than_the_weights_is_refused(make: Any, dtype: Any) -> None:
    x = torch.ones(2, 4, 4)
    model = load_model(make(), x)
    with pytest.raises(WorkbenchError, match="values of one dtype|should be the same"):
        model(x.to(dtype))
