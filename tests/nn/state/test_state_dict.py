"""State dicts: what is in a model, and what is loaded into it."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

from workbench import Tensor, TinyJit, dtypes, nn
from workbench.base.errors import DTypeError, StateError
from workbench.execution.memory_plan import value_in_memory
from workbench.nn.state import get_parameters, get_state_dict, load_state_dict

Pair = namedtuple("Pair", ("first", "second"))


class Net:
    """A model with tensors in every kind of place."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(2, 3), Tensor.relu, nn.Linear(3, 1, bias=False)]
        self.scale = Tensor([2.0])
        self.by_name = OrderedDict(a=Tensor([1]), b=(Tensor([2]), {"c": Tensor([3])}))
        self.pair = Pair(Tensor([4]), 7)
        self.sizes, self.numpy, self.parent = (3, 4), np, self
        self.step = TinyJit(lambda x: x * self.scale)


def test_a_tensor_is_named_by_the_way_to_it() -> None:
    net = Net()
    state = get_state_dict(net)
    assert list(state) == [
        "layers.0.weight",
        "layers.0.bias",
        "layers.2.weight",
        "scale",
        "by_name.a",
        "by_name.b.0",
        "by_name.b.1.c",
        "pair.first",
    ]
    assert state["by_name.b.1.c"] is net.by_name["b"][1]["c"]
    assert get_parameters(net) == list(state.values())
    assert list(get_state_dict(net.layers, "net.layers."))[0] == "net.layers.0.weight"
    assert get_state_dict(net.scale) == {"": net.scale}
    assert get_state_dict({"a": 3, "b": [np.ones(2)]}, tensor_type=int) == {"a": 3}


def test_a_model_takes_values_and_dtypes_of_a_state_dict() -> None:
    state = {"weight": Tensor.rand(3, 2).half(), "bias": Tensor([1, 2, 3])}
    layer = nn.Linear(2, 3)
    weight = layer.weight
    loaded = load_state_dict(layer, state, verbose=False)
    assert loaded[0] is weight and weight.dtype is dtypes.float16
    for name, tensor in get_state_dict(layer).items():
        np.testing.assert_array_equal(tensor.numpy(), state[name].numpy())


def test_one_value_may_be_a_scalar_or_a_list_of_one() -> None:
    model = {"a": Tensor([1.0]), "b": Tensor(2.0)}
    load_state_dict(model, {"a": Tensor(3.0), "b": Tensor([4.0])}, verbose=False)
    assert model["a"].tolist() == [3.0] and model["b"].item() == 4.0


@pytest.mark.parametrize("is_computed", [True, False])
def test_what_is_written_to_a_model_its_state_dict_does_not_see(is_computed: bool) -> None:
    state = {"w": Tensor([1.0, 2.0]) * 2}
    if is_computed:
        state["w"].realize()
    a, b = {"w": Tensor([0.0, 0.0])}, {"w": Tensor([0.0, 0.0])}
    for model in (a, b):
        load_state_dict(model, state, verbose=False)
    a["w"].assign(a["w"] + 1)
    assert [t["w"].tolist() for t in (a, b, state)] == [[3, 5], [2, 4], [2, 4]]
    b["w"].assign([0.0, 0.0]).realize()
    assert [t["w"].tolist() for t in (a, b, state)] == [[3, 5], [0, 0], [2, 4]]


def test_a_leaf_stays_one() -> None:
    layer = nn.Linear(1, 1, bias=False)
    layer.weight.requires_grad_()
    load_state_dict(layer, {"weight": Tensor([[3.0]])}, verbose=False)
    layer(Tensor([2.0])).sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.tolist() == [[2.0]]


def test_consumed_entries_are_removed() -> None:
    state = {"w": Tensor([1.0, 2.0]).realize(), "more": Tensor([1])}
    memory = state["w"].uop
    model = {"w": Tensor([0.0, 0.0])}
    load_state_dict(model, state, strict=False, consume=True, verbose=False)
    assert list(state) == ["more"]
    assert value_in_memory(model["w"].uop) is memory


def test_all_that_does_not_fit_is_said_at_once() -> None:
    layer = nn.Linear(2, 3)
    before = layer.weight.tolist()
    state: dict[str, Any] = {
        "weight": Tensor.zeros(2, 3),
        "scale": Tensor([1.0]),
        "shift": Tensor([1.0]),
    }
    with pytest.raises(StateError) as error:
        load_state_dict(layer, state, verbose=False)
    text = str(error.value)
    assert "missing: 1 key, bias" in text
    assert "unexpected: 2 keys, scale, shift" in text
    assert "weight (the model has (3, 2), the state dict (2, 3))" in text
    assert layer.weight.tolist() == before
    with pytest.raises(StateError, match="another shape"):  # it is wrong in any case
        load_state_dict(layer, state, strict=False, verbose=False)
    del state["weight"]
    assert load_state_dict(layer, state, strict=False, verbose=False) == []


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ([1], "by name"),
        ({"weight": 3, "bias": Tensor([1.0])}, "neither tensors nor arrays: 1 key, weight"),
    ],
)
def test_what_is_not_a_state_dict_is_refused(state: Any, words: str) -> None:
    with pytest.raises(StateError, match=words):
        load_state_dict(nn.Linear(1, 1), state)


def test_many_keys_are_counted() -> None:
    with pytest.raises(StateError, match="12 keys, .*, and 2 more"):
        load_state_dict([], {f"key{n}": Tensor([1]) for n in range(12)})


def test_how_much_was_loaded_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    load_state_dict([Tensor([0.0])], {"0": Tensor([1.0])})
    assert capsys.readouterr().out.startswith("loaded 1 tensors, 0.0 MB, in ")


def test_arguments_of_another_kind_are_refused() -> None:
    layer = nn.Linear(1, 1)
    state = get_state_dict(layer)
    with pytest.raises(DTypeError, match="tensor_type: None does not fit"):
        get_state_dict(layer, tensor_type=None)  # type: ignore[arg-type]
    for name in ("strict", "verbose", "consume", "realize"):
        with pytest.raises(DTypeError, match=f"load_state_dict: {name}: 'no' does not fit"):
            load_state_dict(layer, dict(state), **{name: "no"})  # type: ignore[arg-type]


def test_arrays_are_entries_too() -> None:
    """Of numpy, and of whatever else has values for numpy, as tensors of PyTorch."""
    model = nn.Linear(3, 2)
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)

    class Foreign:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return np.array([5, 6], np.float32)

    entries: Any = {"weight": weight, "bias": Foreign()}
    load_state_dict(model, entries, verbose=False)
    assert model.weight.numpy().tolist() == weight.tolist()
    assert model.bias is not None and model.bias.tolist() == [5, 6]
    assert entries.keys() == {"weight", "bias"}
    load_state_dict(model, entries, verbose=False, consume=True)
    assert not entries
    with pytest.raises(StateError) as refused:
        load_state_dict(model, {"weight": 3, "bias": None})  # type: ignore[dict-item]
    assert "neither tensors nor arrays" in refused.value.because
    assert refused.value.hint == "tensors or arrays as values"
