"""Layers against PyTorch's, with the same weights, by the same names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import by_rows
from tests.tensor.agree import numbers
from workbench import Context, Tensor, dtypes, nn
from workbench.base.errors import DTypeError, ShapeError
from workbench.nn.state import get_state_dict, load_state_dict

T = torch.nn
ROWS: list[tuple[str, Callable[[], Any], Callable[[], Any], tuple[int, ...]]] = [
    ("Linear", lambda: nn.Linear(5, 3), lambda: T.Linear(5, 3), (2, 4, 5)),
    (
        "Linear without bias",
        lambda: nn.Linear(5, 3, bias=False),
        lambda: T.Linear(5, 3, bias=False),
        (5,),
    ),
    ("Conv1d", lambda: nn.Conv1d(2, 4, 3), lambda: T.Conv1d(2, 4, 3), (2, 2, 7)),
    (
        "Conv1d same",
        lambda: nn.Conv1d(2, 4, 3, padding="same", dilation=2),
        lambda: T.Conv1d(2, 4, 3, padding="same", dilation=2),
        (2, 2, 9),
    ),
    ("Conv2d", lambda: nn.Conv2d(2, 4, 3), lambda: T.Conv2d(2, 4, 3), (2, 2, 6, 5)),
    (
        "Conv2d strides",
        lambda: nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups=2, bias=False),
        lambda: T.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups=2, bias=False),
        (2, 4, 7, 6),
    ),
    (
        "Conv2d same",
        lambda: nn.Conv2d(2, 3, (3, 5), padding="same"),
        lambda: T.Conv2d(2, 3, (3, 5), padding="same"),
        (1, 2, 6, 7),
    ),
    (
        "Conv3d",
        lambda: nn.Conv2d(2, 3, (2, 3, 2)),
        lambda: T.Conv3d(2, 3, (2, 3, 2)),
        (1, 2, 4, 5, 3),
    ),
    (
        "ConvTranspose1d",
        lambda: nn.ConvTranspose1d(2, 3, 3, 2, 1, 1),
        lambda: T.ConvTranspose1d(2, 3, 3, 2, 1, 1),
        (2, 2, 5),
    ),
    (
        "ConvTranspose2d",
        lambda: nn.ConvTranspose2d(2, 3, 3),
        lambda: T.ConvTranspose2d(2, 3, 3),
        (2, 2, 4, 3),
    ),
    (
        "ConvTranspose2d strides",
        lambda: nn.ConvTranspose2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 0), (1, 2), 2, False),
        lambda: T.ConvTranspose2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 0), 2, False, (1, 2)),
        (2, 4, 3, 5),
    ),
    ("BatchNorm", lambda: nn.BatchNorm(3), lambda: T.BatchNorm2d(3), (4, 3, 2, 5)),
    (
        "BatchNorm 3d",
        lambda: nn.BatchNorm3d(3, eps=0.1, affine=False),
        lambda: T.BatchNorm3d(3, eps=0.1, affine=False),
        (4, 3, 2, 2, 2),
    ),
    ("BatchNorm 1d", lambda: nn.BatchNorm(3), lambda: T.BatchNorm1d(3), (4, 3)),
    (
        "BatchNorm of batches",
        lambda: nn.BatchNorm2d(3, track_running_stats=False),
        lambda: T.BatchNorm2d(3, track_running_stats=False),
        (4, 3, 2, 5),
    ),
    ("LayerNorm", lambda: nn.LayerNorm(5), lambda: T.LayerNorm(5), (2, 3, 5)),
    (
        "LayerNorm of two axes",
        lambda: nn.LayerNorm((3, 5), eps=0.1),
        lambda: T.LayerNorm((3, 5), eps=0.1),
        (2, 3, 5),
    ),
    (
        "LayerNorm without weights",
        lambda: nn.LayerNorm(5, elementwise_affine=False),
        lambda: T.LayerNorm(5, elementwise_affine=False),
        (2, 5),
    ),
    ("GroupNorm", lambda: nn.GroupNorm(2, 6), lambda: T.GroupNorm(2, 6), (2, 6, 3, 3)),
    (
        "GroupNorm without weights",
        lambda: nn.GroupNorm(3, 6, eps=0.1, affine=False),
        lambda: T.GroupNorm(3, 6, eps=0.1, affine=False),
        (2, 6, 3),
    ),
    (
        "InstanceNorm",
        lambda: nn.InstanceNorm(3),
        lambda: T.InstanceNorm2d(3, affine=True),
        (2, 3, 4, 4),
    ),
    (
        "InstanceNorm without weights",
        lambda: nn.InstanceNorm(3, affine=False),
        lambda: T.InstanceNorm1d(3),
        (2, 3, 8),
    ),
    ("RMSNorm", lambda: nn.RMSNorm(6), lambda: T.RMSNorm(6, eps=1e-6), (2, 4, 6)),
    (
        "RMSNorm without weights",
        lambda: nn.RMSNorm(6, 0.1, elementwise_affine=False),
        lambda: T.RMSNorm(6, 0.1, elementwise_affine=False),
        (2, 6),
    ),
]
"""Name, layer, PyTorch's, shape of the input."""


def twins(ours: Any, theirs: Any) -> None:
    """Give both layers the same random weights, by name. The names must be the same."""
    rng = np.random.default_rng(1)
    state = {}
    for name, value in theirs.state_dict().items():
        if value.is_floating_point():  # a running variance is above 0
            value.copy_(torch.from_numpy(rng.uniform(0.5, 1.5, value.shape)))
        state[name] = Tensor(value.numpy())
    load_state_dict(ours, state, verbose=False)


@pytest.mark.parametrize(("name", "make", "peer", "shape"), ROWS, ids=[r[0] for r in ROWS])
def test_a_layer_computes_what_pytorch_does(
    name: str, make: Any, peer: Any, shape: tuple[int, ...]
) -> None:
    """Its value, and its gradients to the input and to each weight."""
    ours, theirs = make(), peer().eval()
    twins(ours, theirs)
    names, parameters = zip(*[("", None), *theirs.named_parameters()], strict=True)
    x, other_x = Tensor(numbers(shape)), torch.from_numpy(numbers(shape))
    targets = [get_state_dict(ours).get(name, x).requires_grad_() for name in names]
    y, want = ours(x), theirs(other_x.requires_grad_())
    np.testing.assert_allclose(y.numpy(), want.detach(), rtol=2e-5, atol=2e-5)
    weights = numbers(tuple(want.shape), seed=5)
    (want * torch.from_numpy(weights)).sum().backward()
    gradients = (y * Tensor(weights)).sum().gradient(*targets)
    for gradient, other in zip(gradients, (other_x, *parameters[1:]), strict=True):
        np.testing.assert_allclose(gradient.numpy(), other.grad, rtol=1e-5, atol=5e-4)


def test_layer_norm_of_channels_is_that_of_a_permuted_image() -> None:
    ours, theirs = nn.LayerNorm2d(3), T.LayerNorm(3)
    twins(ours, theirs)
    x = numbers((2, 3, 4, 5))
    image = torch.from_numpy(x).permute(0, 2, 3, 1)
    want = theirs(image).permute(0, 3, 1, 2).detach().numpy()
    np.testing.assert_allclose(ours(Tensor(x)).numpy(), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_a_cell_steps_as_pytorch_s_does(bias: bool) -> None:
    ours, theirs = nn.LSTMCell(4, 3, bias), T.LSTMCell(4, 3, bias)
    twins(ours, theirs)
    steps = numbers((3, 2, 4))
    state, want = None, None
    for x in steps:
        state = ours(Tensor(x), state)
        want = theirs(torch.from_numpy(x), want)
    assert state is not None and want is not None
    for a, b in zip(state, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_an_embedding_looks_rows_up() -> None:
    ours, theirs = nn.Embedding(7, 3), T.Embedding(7, 3)
    twins(ours, theirs)
    index = np.array([[0, 6, 3], [3, 3, 1]])
    want = theirs(torch.from_numpy(index)).detach().numpy()
    np.testing.assert_array_equal(ours(Tensor(index)).numpy(), want)
    second = ours(Tensor(index.T.copy())).schedule()
    assert [item.kernel is None for item in second].count(False) == 1


def test_batch_norm_in_training_uses_its_batch() -> None:
    ours, theirs = nn.BatchNorm(3), T.BatchNorm2d(3).train()
    twins(ours, theirs)
    x = numbers((4, 3, 2, 5))
    with Context(TRAINING=1):
        y = ours(Tensor(x))
        again = ours(Tensor(x + 1))
    want = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(y.numpy(), want, rtol=2e-5, atol=2e-5)
    theirs(torch.from_numpy(x + 1))
    again.realize(*get_state_dict(ours).values())
    for name, value in theirs.state_dict().items():
        tensor = get_state_dict(ours)[name].numpy()
        np.testing.assert_allclose(tensor, value.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "bound"),
    [
        (lambda: nn.Linear(64, 50), 1 / 8),
        (lambda: nn.Conv2d(4, 50, 4), 1 / 8),
        (lambda: nn.Conv2d(8, 50, 4, groups=2), 1 / 128**0.5),
        (lambda: nn.Embedding(50, 100), 0.2),
        (lambda: nn.LSTMCell(50, 64), 1 / 8),
    ],
)
def test_weights_begin_uniform_up_to_a_bound(make: Any, bound: float) -> None:
    Tensor.manual_seed(3)
    for name, tensor in get_state_dict(make()).items():
        values = tensor.numpy()
        if "bias_" in name:
            assert not values.any()
            continue
        assert np.abs(values).max() <= bound and values.dtype == np.float32
        if values.size > 1000:
            assert np.abs(values).max() > 0.99 * bound
            assert abs(values.std() / (bound / 3**0.5) - 1) < 0.05


SEEDED: list[tuple[Callable[[], Tensor], list[float]]] = [
    (
        lambda: nn.Linear(3, 2).weight,
        [0.460642546415329, -0.3451651930809021, 0.03188782557845116, -0.31670859456062317],
    ),
    (
        lambda: nn.Conv2d(1, 2, 2).weight,
        [-0.011340141296386719, -0.15201199054718018, 0.1593245267868042, 0.13647449016571045],
    ),
    (
        lambda: nn.Embedding(2, 2).weight,
        [0.9623149037361145, -0.24352991580963135, 0.6463568210601807, -0.47046273946762085],
    ),
    (
        lambda: nn.LSTMCell(1, 1).weight_hh,
        [-0.840085506439209, 0.14452862739562988, 0.4235680103302002, 0.7485530376434326],
    ),
    (
        lambda: nn.ConvTranspose2d(2, 1, 2).weight,
        [0.08962645381689072, 0.15125702321529388, -0.15568237006664276, 0.3018779754638672],
    ),
]
"""A weight, and the first of its values in tinygrad 0.14 after manual_seed(1337)."""


@pytest.mark.parametrize(("make", "values"), SEEDED)
def test_weights_are_tinygrad_s_for_a_seed(make: Any, values: list[float]) -> None:
    Tensor.manual_seed(1337)
    # The last place may differ: there a product and a sum are rounded once, here twice.
    np.testing.assert_allclose(make().flatten()[:4].numpy(), values, rtol=2e-7)


def test_layers_keep_low_precision() -> None:
    layer = nn.RMSNorm(4, elementwise_affine=False)
    x = Tensor(numbers((2, 4))).half() * 10000
    y = layer(x)
    assert y.dtype is dtypes.float16 and np.isfinite(y.numpy()).all()


def test_a_layer_is_applied_on_the_device_of_its_weights() -> None:
    x = numbers((2, 3, 5, 5))
    layer = nn.Conv2d(3, 4, 3)
    want = layer(Tensor(x)).numpy()
    with Context(DEV="PYTHON"):
        emulated = nn.Conv2d(3, 4, 3)
    load_state_dict(emulated, get_state_dict(layer), verbose=False)
    assert emulated.weight.device == "PYTHON"
    y = emulated(Tensor(x, device="PYTHON"))
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-5, atol=1e-6)


def lstm(*states: Any) -> Any:
    return nn.LSTMCell(3, 4)(Tensor.zeros(2, 3), states)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.Linear(0, 3), ShapeError, "in_features"),
    (lambda: nn.Linear(3, 2.5), DTypeError, "out_features"),  # type: ignore[arg-type]
    (lambda: nn.Linear(3, 4)(Tensor.zeros(2, 5)), ShapeError, r"must be 3"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ShapeError, "divide both 3 and 4"),
    (lambda: nn.Conv2d(3, 4, 3, padding="valid"), ShapeError, "same"),
    (lambda: nn.Conv2d(3, 4, 3, padding="same", stride=2), ShapeError, "stride=1"),
    (lambda: nn.Conv2d(3, 4, (1, 2, 3, 4)), ShapeError, "one, two or three axes"),
    (lambda: nn.Conv1d(3, 4, 3, stride=(1, 1)), ShapeError, "there are 1 axes"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, padding="same"), ShapeError, "transposed"),  # type: ignore[arg-type]
    (lambda: nn.RMSNorm(4)(Tensor.zeros(2, 3)), ShapeError, "must have 4 elements"),
    (lambda: nn.GroupNorm(4, 6), ShapeError, "divide the 6"),
    (lambda: nn.GroupNorm(2, 6)(Tensor.zeros(2, 8, 3)), ShapeError, r"\(batch, 6"),
    (lambda: nn.BatchNorm(3)(Tensor.zeros(2, 4, 4)), ShapeError, r"\(batch, 3"),
    (lambda: nn.LayerNorm(3)(Tensor.zeros(2, 4)), ShapeError, "last axes"),
    (lambda: nn.Embedding(3, 4)(Tensor([1.0])), DTypeError, "integer"),
    (lambda: nn.LSTMCell(3, 4)(Tensor.zeros(3)), ShapeError, r"\(batch, 3\)"),
    (lambda: lstm(Tensor.zeros(1, 4), Tensor.zeros(2, 4)), ShapeError, r"must be \(2, 4\)"),
    (lambda: lstm(Tensor.zeros(2, 4), Tensor.zeros(2, 1)), ShapeError, r"must be \(2, 4\)"),
    (lambda: lstm(Tensor.zeros(2, 4)), DTypeError, "two tensors"),
    (lambda: lstm(Tensor.zeros(2, 4), [0.0]), DTypeError, "must be a tensor"),
    (lambda: nn.BatchNorm(3, track_running_stats="no"), DTypeError, "track_running_stats"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_what_a_layer_cannot_be_is_said(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


NAN, INFINITY = float("nan"), float("inf")
NO_SIZE: list[Any] = ["x", None, 0, -1, 1.5, True, NAN, 2**63]
NO_FLAG: list[Any] = ["x", None, 1.5, (), [True]]
NO_NUMBER: list[Any] = ["x", None, NAN, INFINITY, (), [0.5], 1j, 10**400]
NO_STEP: list[Any] = [*NO_SIZE, (), (1, -1), (1, 1, 1, 1), [0.5], (0, 0)]
NO_PADDING: list[Any] = ["x", None, -1, 1.5, True, NAN, 2**63, (), (1, -1), [0.5]]
BAD_VALUES: dict[str, list[Any]] = {
    "affine": NO_FLAG, "bias": NO_FLAG, "ceil_mode": NO_FLAG, "count_include_pad": NO_FLAG,
    "dilation": NO_STEP, "dim": NO_SIZE, "elementwise_affine": NO_FLAG, "embed_size": NO_SIZE,
    "eps": [*NO_NUMBER, -1], "groups": NO_SIZE, "hidden_size": NO_SIZE, "in_channels": NO_SIZE,
    "in_features": NO_SIZE, "input_size": NO_SIZE, "kernel_size": NO_STEP, "momentum": NO_NUMBER,
    "normalized_shape": [*NO_SIZE, (), (1, 0), ("x",)], "num_channels": NO_SIZE,
    "num_features": NO_SIZE, "num_groups": NO_SIZE, "out_channels": NO_SIZE,
    "out_features": NO_SIZE, "output_padding": [*NO_PADDING, 1, (1, 1)], "padding": NO_PADDING,
    "return_indices": NO_FLAG, "stride": NO_STEP, "sz": NO_SIZE, "track_running_stats": NO_FLAG,
    "vocab_size": NO_SIZE,
}  # fmt: skip
"""Values that a parameter of a layer does not take."""
LAYERS: dict[str, tuple[Any, ...]] = {
    "BatchNorm": (4,), "Conv1d": (4, 4, 3), "Conv2d": (4, 4, 3), "ConvTranspose1d": (4, 4, 3),
    "ConvTranspose2d": (4, 4, 3), "Embedding": (4, 3), "GroupNorm": (2, 4), "InstanceNorm": (4,),
    "LSTMCell": (4, 3), "LayerNorm": (4,), "LayerNorm2d": (4,), "Linear": (4, 3), "RMSNorm": (4,),
}  # fmt: skip
"""Each layer with arguments that it takes."""


def test_every_layer_has_a_row() -> None:
    values = vars(nn).values()
    layers = {v.__name__ for v in values if getattr(v, "__module__", "") == "workbench.nn.layers"}
    assert layers == LAYERS.keys()


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_refuses_values_that_fit_no_input(name: str) -> None:
    """When it is made: an error when it is applied would name another line."""
    make = getattr(nn, name)
    parameters = list(inspect.signature(make).parameters)
    for parameter in parameters:
        usual = dict(zip(parameters, LAYERS[name], strict=False))
        for value in BAD_VALUES[parameter]:
            with pytest.raises((DTypeError, ShapeError)) as caught:
                make(**(usual | {parameter: value}))
                pytest.fail(f"{name}: {parameter}={value!r} is taken")
            assert parameter.removeprefix("elementwise_") in caught.value.what
            assert caught.value.because and "test_layers.py" in caught.value.where


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "conv2d": (Tensor.ones(4, 4, 3, 3),), "conv_transpose2d": (Tensor.ones(4, 4, 3, 3),),
    "layernorm": (), "max_pool2d": (), "avg_pool2d": (),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_refuses_what_the_layer_does(name: str) -> None:
    image = Tensor.ones(2, 4, 8, 8)
    function = getattr(image, name)
    parameters = [p for p in inspect.signature(function).parameters if p in BAD_VALUES]
    assert parameters
    pooling = {"stride": None, "kernel_size": (1, 1, 1, 1)} if "pool" in name else {}  # it does
    for parameter in parameters:
        if parameter == "bias":  # a tensor
            continue
        for value in BAD_VALUES[parameter]:
            if parameter in pooling and pooling[parameter] == value:
                continue
            with pytest.raises((DTypeError, ShapeError)) as caught:
                function(*FUNCTIONS[name], **{parameter: value})
                pytest.fail(f"{name}: {parameter}={value!r} is taken")
            assert caught.value.because


PEERS = {"Conv1d": T.Conv1d, "Conv2d": T.Conv2d, "ConvTranspose2d": T.ConvTranspose2d}
TAKEN: list[tuple[str, dict[str, Any]]] = [
    ("Conv1d", {"padding": "same", "dilation": 3}),
    ("Conv1d", {"stride": (2,), "padding": (1,), "dilation": [2]}),
    ("Conv2d", {"stride": [2, 1], "padding": 0, "groups": 2}),
    ("Conv2d", {"stride": 9, "padding": 5}),
    ("Conv2d", {"padding": (2, 0), "dilation": (1, 2), "kernel_size": (1, 3)}),
    ("ConvTranspose2d", {"output_padding": 1, "dilation": 2}),
    ("ConvTranspose2d", {"output_padding": (0, 2), "stride": 3}),
]


@by_rows(("name", "options"), TAKEN)
def test_a_layer_takes_what_pytorch_s_does(name: str, options: dict[str, Any]) -> None:
    options = {"in_channels": 4, "out_channels": 4, "kernel_size": 3} | options
    shape = (2, 4, 9) if name == "Conv1d" else (2, 4, 9, 8)
    want = PEERS[name](**options)(torch.ones(shape))
    assert getattr(nn, name)(**options)(Tensor.ones(*shape)).shape == tuple(want.shape)


def test_a_size_may_be_a_whole_number_of_numpy() -> None:
    for size in (np.int64(3), np.uint8(3)):
        layer = nn.Conv2d(2, 4, size, padding=size)  # type: ignore[arg-type]
        assert layer.kernel_size == (3, 3) and layer.weight.shape == (4, 2, 3, 3)


def test_a_name_of_a_part_of_nn_is_named_with_its_part() -> None:
    for name, meant in [
        ("SGD", "nn.optim.SGD"),
        ("get_parameters", "nn.state.get_parameters"),
        ("digits", "nn.datasets.digits"),
        ("Liner", "nn.Linear"),
        ("Adan", "nn.optim.Adam"),
    ]:
        with pytest.raises(AttributeError, match=rf"'{name}': did you mean .*\b{meant}\b"):
            getattr(nn, name)
    with pytest.raises(AttributeError, match=r"no attribute 'zzz'$"):
        nn.zzz  # type: ignore[attr-defined]  # noqa: B018
