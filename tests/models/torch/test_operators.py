"""The table of ATen's operators: complete by reflection, and each row against PyTorch on samples
that PyTorch's own tests use."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.peers import peer, torch
from tests.support import LONG
from workbench import ModelError, Tensor, load_model
from workbench.base.errors import DTypeError
from workbench.models.torch.nodes import is_random, load_rows
from workbench.models.torch.table import REFUSED, ROWS
from workbench.models.torch.values import to_torch

load_rows()
GROUPS = 8
"""Of operators, each compared by one test."""


def test_every_core_operator_has_a_row_or_a_reason() -> None:
    assert [name for name in core() if name not in ROWS and name not in REFUSED] == []


def core() -> Iterator[str]:
    """Yield the names of the operators that this version of PyTorch counts as core."""
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, _, name = full.partition("::")
        if namespace == "aten":
            packet, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
            if torch.Tag.core in operator.tags:
                yield name


@pytest.mark.skipif(not LONG, reason="PyTorch takes 10 s to load its samples")
@pytest.mark.parametrize("group", range(GROUPS))
def test_rows_compute_what_torch_computes_on_its_own_samples(group: int) -> None:
    """The first sample of each operator, and another; what has no row is refused by name."""
    infos = samples()[group::GROUPS]
    wrong, compared = [], 0
    for info in infos:
        each = list(info.sample_inputs("cpu", torch.float32))
        for sample in each[:1] + random.Random(0).sample(each[1:], min(len(each) - 1, 1)):
            try:
                compared += agrees(info, sample)
            except Exception as error:
                wrong.append(f"{info.name}: {type(error).__name__}: {error}")
    assert not wrong, "\n\n".join(wrong)
    assert compared >= len(infos) // 2


def samples() -> list[Any]:
    """Return PyTorch's table of its operators with samples, of those over real numbers."""
    peer("expecttest")  # the table's module imports it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    outside = ("fft", "sparse", "torch.ops", "jiterator")
    usual = [i for i in op_db if torch.float32 in i.supported_dtypes("cpu")]
    open_values = "empty"  # of memory as it is
    return [i for i in usual if not i.name.startswith(outside) and open_values not in i.name]


class Applied(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A function of tensors at places in a structure of arguments."""

    def __init__(self, function: Any, leaves: list[Any], structure: Any):
        super().__init__()
        self.function, self.leaves, self.structure = function, leaves, structure

    def forward(self, *tensors: Any) -> Any:
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, torch.Tensor) else x for x in self.leaves]
        arguments, options = torch.utils._pytree.tree_unflatten(leaves, self.structure)
        return self.function(*arguments, **options)


def agrees(info: Any, sample: Any) -> bool:
    """Compare one sample; return False where it is refused by name, or draws random numbers."""
    leaves, structure = torch.utils._pytree.tree_flatten(
        ((sample.input, *sample.args), sample.kwargs)
    )
    with Draws() as draws:
        want = computed(info.op, leaves, structure)
    if draws.is_random:
        return False
    tensors = [copy.deepcopy(x) for x in leaves if torch.is_tensor(x)]  # views, too
    try:
        results = load_model(Applied(info.op, leaves, structure))(*tensors)
    except (ModelError, DTypeError) as error:
        assert error.because and error.where
        return False
    got = [x for x in torch.utils._pytree.tree_leaves(results) if isinstance(x, Tensor)]
    label = f"{info.name} {[tuple(t.shape) for t in tensors]} {sample.kwargs}"
    for ours, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(
            to_torch(ours),
            theirs,
            rtol=1e-4,
            atol=1e-5,
            equal_nan=True,
            msg=lambda m: f"{label}: {m}",
        )
    return True


def computed(function: Any, leaves: list[Any], structure: Any) -> list[Any]:
    """Return the tensors that PyTorch computes of copies of arguments."""
    pytree = torch.utils._pytree
    arguments, options = pytree.tree_unflatten(copy.deepcopy(leaves), structure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of operators that PyTorch will take away
        results = function(*arguments, **options)
    return [x for x in pytree.tree_leaves(results) if torch.is_tensor(x)]


class Draws(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
    """A note whether operators that PyTorch calls draw random numbers."""

    is_random = False

    def __torch_dispatch__(self, function: Any, _: Any, arguments: Any, options: Any = None) -> Any:
        self.is_random = self.is_random or is_random(function)
        return function(*arguments, **(options or {}))


@pytest.mark.parametrize("name", ["item", "nonzero"])
def test_what_needs_values_is_refused_with_the_line(name: str) -> None:
    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x * x.sum().item() if name == "item" else torch.nonzero(x)

    with pytest.raises(ModelError, match=r"test_operators.py, line \d+"):
        load_model(Net(), torch.ones(3))


EFFECTS: dict[str, Any] = {
    "linalg_inv_ex": lambda x: torch.linalg.inv(x),
    "cond": lambda x: torch.cond(torch.tensor(True), lambda y: y * 2, lambda y: y + 1, (x,)),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_what_has_effects_or_functions_is_refused_by_name(name: str) -> None:
    structure = torch.utils._pytree.tree_flatten(((0,), {}))[1]
    x = torch.eye(3)
    with pytest.raises(ModelError, match=rf"cannot compute {name} of the module(.|\n)*, line \d+"):
        load_model(Applied(EFFECTS[name], [x], structure), x)


def test_a_dtype_that_is_not_here_is_refused_with_the_line() -> None:
    structure = torch.utils._pytree.tree_flatten(((0,), {}))[1]
    x = torch.ones(3)
    with pytest.raises(DTypeError, match=r"no dtype complex64 here(.|\n)*, line \d+"):
        load_model(Applied(lambda x: x.to(torch.complex64).real, [x], structure), x)


VIEWS: dict[str, tuple[Any, Any]] = {
    "part-of-a-value": (lambda x: (x * 2)[1:].as_strided((4,), (1,), 0), lambda x: x),
    "turned-value": (lambda x: (x * 2).T.as_strided((4,), (1,)), lambda x: x),
    "part-of-an-input": (lambda x: x.as_strided((4,), (1,), 0), lambda x: x[1:]),
    "view-of-such-a-part": (lambda x: x.view(-1).as_strided((4,), (1,), 0), lambda x: x[:2]),
    "turned-input": (lambda x: x.as_strided((4,), (1,)), lambda x: x.T),
}
"""A function, and its input of a matrix that fills its memory."""


@pytest.mark.parametrize("name", VIEWS)
def test_strides_of_a_view_are_refused(name: str) -> None:
    function, view = VIEWS[name]
    x = torch.arange(12.0).reshape(3, 4)
    structure = torch.utils._pytree.tree_flatten(((x,), {}))[1]
    model = load_model(Applied(function, [x], structure))
    if view(x) is not x:  # a graph for inputs of these sizes does not serve views
        whole = view(x).contiguous().clone()
        torch.testing.assert_close(to_torch(model(whole)), function(whole))
    with pytest.raises(ModelError, match=r"cannot compute as_strided(.|\n)*view of other memory"):
        model(view(x))


def test_strides_of_a_buffer_that_is_a_view_are_refused() -> None:
    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.arange(12.0).reshape(3, 4)[1:])

        def forward(self, x: Any) -> Any:
            return x + self.rows.as_strided((4,), (1,), 0)

    with pytest.raises(ModelError, match="cannot compute as_strided"):
        load_model(Net(), torch.ones(4))
