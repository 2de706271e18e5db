"""`torch.compile(module, backend="workbench")`, held against PyTorch as it runs without it."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.models.torch.test_modules import ROWS as MODULES
from tests.models.torch.test_modules import TiedWeights
from tests.peers import torch
from tests.support import LONG
from workbench.base.context import BEAM, Context
from workbench.execution.realize import realize
from workbench.models.torch.nodes import load_rows
from workbench.models.torch.table import ROWS as OPERATORS
from workbench.tensor import tensor

T = torch.nn


@pytest.fixture(autouse=True)
def _no_graphs_of_other_tests() -> Iterator[None]:
    load_rows()  # tests replace some
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="workbench", **options)


def check(function: Any, *inputs: Any, calls: int = 3) -> None:
    """Compare calls; the first runs node by node, the second captures, later ones replay."""
    ours = compiled(function)
    for call in range(calls):
        arguments = [x + call if x.is_floating_point() else x for x in inputs]
        torch.testing.assert_close(ours(*arguments), function(*arguments), rtol=1e-4, atol=1e-5)


class Attention(T.Module):  # type: ignore[misc, name-defined]
    """A block of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = T.LayerNorm(8), T.Linear(8, 24), T.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(self.norm(x)).reshape(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = T.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


def pictures() -> Any:
    return T.Sequential(
        T.Conv2d(3, 4, 3, padding=1), T.BatchNorm2d(4), T.ReLU(), T.MaxPool2d(2), T.Flatten(),
        T.Linear(64, 5),
    )  # fmt: skip


def test_the_backend_has_its_name() -> None:
    assert "workbench" in torch._dynamo.list_backends()


def test_a_model_gives_what_pytorch_gives() -> None:
    with torch.no_grad():
        check(Attention(), torch.randn(2, 5, 8))
        check(pictures().eval(), torch.randn(2, 3, 8, 8))


@pytest.mark.parametrize(("make", "shape"), [(Attention, (2, 5, 8)), (pictures, (2, 3, 8, 8))])
def test_steps_of_training_are_those_of_pytorch(
    make: Callable[[], Any], shape: tuple[int, ...]
) -> None:
    module = make()
    theirs = copy.deepcopy(module)
    ours = compiled(module)
    optimisers = [torch.optim.SGD(m.parameters(), 0.1, 0.9) for m in (module, theirs)]
    for _ in range(3):
        x = torch.randn(*shape)
        for forward, optimiser in zip((ours, theirs), optimisers, strict=True):
            optimiser.zero_grad()
            forward(x).square().mean().backward()
            optimiser.step()
    for one, other in zip(module.state_dict().values(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_a_parameter_that_the_loss_does_not_use_has_zeros_as_of_other_backends() -> None:
    """PyTorch without a compiler has None: AOTAutograd differentiates all outputs together."""
    module, x = TiedWeights(), torch.tensor([1, 2, 4])
    found = []
    for backend in ("aot_eager", "workbench"):
        torch._dynamo.reset()
        module.zero_grad()
        torch.compile(module, backend=backend)(x)[0].square().sum().backward()
        found.append([parameter.grad for parameter in module.parameters()])
    torch.testing.assert_close(found[1], found[0])
    assert not found[1][1].any()  # unused.weight


def test_the_results_of_a_first_call_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, each gradient would schedule again what it shares with the others."""
    schedules = []

    def counted(*arguments: Any) -> Any:
        schedules.append(arguments)
        return realize(*arguments)

    monkeypatch.setattr(tensor, "realize", counted)
    module = T.Sequential(*[layer for _ in range(6) for layer in (T.Linear(4, 4), T.Tanh())])
    compiled(module)(torch.randn(3, 4)).sum().backward()
    assert len(schedules) == 2  # forward and backward


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({"mode": "max-autotune"}, 2),
        ({"options": {"BEAM": 3}}, 3),
        ({"mode": "reduce-overhead"}, 0),
    ],
)
def test_modes_and_options_are_settings(
    options: Any, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths = []
    monkeypatch.setitem(OPERATORS, "relu", lambda x: (widths.append(BEAM.value), x.relu())[1])
    with Context(NOOPT=1):  # nothing is searched
        x = torch.randn(3)
        torch.testing.assert_close(compiled(T.ReLU(), **options)(x), x.relu())
    assert widths == [width]


def test_an_operator_without_a_row_runs_in_pytorch_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "workbench"):
        check(lambda x: torch.lgamma(x.abs() + 1).cumsum(0) * 2, torch.randn(3, 4))
    named = [record.getMessage() for record in caplog.records]
    assert len(named) == 1 and "aten.lgamma.default" in named[0]


def test_a_gradient_may_be_sparse() -> None:
    module = torch.nn.Embedding(6, 3, sparse=True)
    compiled = torch.compile(module, backend="workbench")
    compiled(torch.tensor([0, 2, 2, 5])).sum().backward()
    gradient = module.weight.grad
    assert gradient.is_sparse
    assert gradient.to_dense().sum(1).tolist() == [3, 0, 6, 0, 0, 3]


def test_an_operator_with_effects_runs_in_pytorch() -> None:
    module = T.Linear(4, 4)

    def inverted(x: Any) -> Any:
        y = module(x)
        return torch.linalg.inv(y @ y.T + torch.eye(4)) * 2

    check(inverted, torch.randn(4, 4))


def test_random_numbers_are_those_of_pytorch() -> None:
    def dropped(x: Any) -> Any:
        return T.functional.dropout(x.exp(), 0.4) + torch.rand_like(x) * T.functional.dropout(x)

    x, ours = torch.randn(4, 5), compiled(dropped)
    for seed in range(3):
        torch.manual_seed(seed)
        got = ours(x)
        torch.manual_seed(seed)
        torch.testing.assert_close(got, dropped(x))


def test_a_graph_may_break() -> None:
    def branches(x: Any) -> Any:
        y = x * 2
        return y.sin() if y.sum() > 0 else y.cos()

    ours = compiled(branches)
    for x in (torch.ones(3), -torch.ones(3), torch.ones(3)):
        torch.testing.assert_close(ours(x), branches(x))


def test_sizes_may_differ_from_call_to_call() -> None:
    module = T.Sequential(T.Linear(6, 8), T.GELU(), T.Linear(8, 3))

    def with_sizes(x: Any) -> Any:
        return module(x) / x.shape[0] + torch.arange(x.shape[0]).unsqueeze(1)

    ours = compiled(with_sizes, dynamic=True)
    for size in (2, 5, 3, 5, 5):
        x = torch.randn(size, 6)
        torch.testing.assert_close(ours(x), with_sizes(x))


def test_views_share_memory_whatever_the_sizes() -> None:
    def viewed(x: Any) -> Any:
        y = x * 2
        return y, y.t(), y[1:], x.view(-1), x[:, 1:]

    ours = compiled(viewed, dynamic=True)
    for size in (3, 5, 2):
        x = torch.randn(size, 4)
        pairs = list(zip(ours(x), viewed(other := x.clone()), strict=True))
        for mine, theirs in pairs:
            mine.add_(1)
            theirs.add_(1)
        torch.testing.assert_close(x, other)
        for mine, theirs in pairs:
            torch.testing.assert_close(mine, theirs, check_stride=True)


def test_arguments_that_are_written_hold_the_values() -> None:
    def running(x: Any, total: Any) -> Any:
        total += x.sum(0)
        return total * 2

    x, ours = torch.randn(3, 4), compiled(running)
    one, other = torch.zeros(4), torch.zeros(4)
    for _ in range(3):
        torch.testing.assert_close(ours(x, one), running(x, other))
        torch.testing.assert_close(one, other)


def test_results_stay_as_they_are() -> None:
    module = T.Sequential(T.Linear(6, 8), T.Tanh())
    ours, x = compiled(module), torch.randn(5, 6)
    results = [ours(x + n) for n in range(6)]
    for n, result in enumerate(results):
        torch.testing.assert_close(result, module(x + n))


SHARED: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "copy": lambda x: (x.clone(),),
    "equal": lambda x: (x * 2, x * 2, (x * 2).clone()),
    "equal-sums": lambda x: (x.sum(), x.sum(), x.sum()[None]),
    "view": lambda x: ((y := x * 2), y.view(4, 3), y.t()),
    "parts": lambda x: ((y := x.t() * 2), *y.chunk(2, 0)),
    "view-of-an-input": lambda x: (x.view(4, 3), x * 2),
}


@pytest.mark.parametrize("name", SHARED)
def test_results_share_memory_where_those_of_pytorch_do(name: str) -> None:
    function, ours = SHARED[name], compiled(SHARED[name])
    for _ in range(3):
        x = torch.randn(3, 4)
        other = x.clone()
        mine, theirs = ours(x), function(other)
        for results in (mine, theirs):
            for n, result in enumerate(results):
                result.add_(n + 1)  # all that is on the same memory changes
        torch.testing.assert_close((*mine, x), (*theirs, other))


def test_parameters_that_get_other_memory_are_read_there() -> None:
    module, x = T.Linear(6, 4), torch.randn(2, 6)
    ours = compiled(module)
    with torch.no_grad():
        for n in range(5):
            torch.testing.assert_close(ours(x), module(x))
            module.weight.mul_(1.5)
            if n % 2:
                module.weight.data = torch.randn(4, 6)


def test_results_have_the_strides_of_pytorch() -> None:
    def turned(x: Any) -> Any:
        return (x + 1).transpose(0, 1) * 2

    x = torch.randn(3, 4)
    for ours, theirs in zip(map(compiled(turned), (x, x)), map(turned, (x, x)), strict=True):
        assert ours.stride() == theirs.stride()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # dynamo
@pytest.mark.parametrize("name", [*MODULES][:: 1 if LONG else 40])
def test_modules_give_what_pytorch_gives_with_gradients(name: str) -> None:
    for make, inputs in MODULES[name]:
        module = make()
        theirs = copy.deepcopy(module)
        given = inputs()
        arguments, copies = (
            [x.clone().requires_grad_(x.is_floating_point()) for x in given] for _ in range(2)
        )
        of_ours, of_theirs = ([x.clone() for x in each] for each in (arguments, copies))
        ours, wanted = compiled(module)(*of_ours), theirs(*of_theirs)  # some write to theirs
        for one, other in zip(leaves(ours), leaves(wanted), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        seeds = [other.detach() for other in leaves(wanted)]
        for values in (ours, wanted):
            pairs = [p for p in zip(leaves(values), seeds, strict=True) if p[0].requires_grad]
            if pairs:
                torch.autograd.backward(*map(list, zip(*pairs, strict=True)))
        named = [*arguments, *module.parameters()]
        for one, other in zip(named, [*copies, *theirs.parameters()], strict=True):
            assert (one.grad is None) == (other.grad is None)
            if one.grad is not None:
                torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-4)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    return [] if value is None else [value]
