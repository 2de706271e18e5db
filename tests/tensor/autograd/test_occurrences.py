"""Each Tensor object is a target of its own, also where others have the same value, in whatever way
it was made. Compared with torch, where each result of an operation is another object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import by_rows, count
from workbench import Tensor, TinyJit, nn
from workbench.base.errors import GradientError
from workbench.ir.text.printer import to_text

A = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
"""What the tensors of this file have, of shape (2, 3)."""
Unary = Callable[[Any], Any]


def lists(tensors: list[Tensor]) -> list[Any]:
    return [t.tolist() for t in tensors]


def same(x: Any) -> Any:
    """Return another object of torch's with the value of `x`."""
    return x.view_as(x)


# What returns a tensor of the same shape: by its name, here and in torch (None: the same code).
UNARY: dict[str, tuple[Unary, Unary | None]] = {
    "multiplied": (lambda x: x * 2.0, None),
    "plus 0": (lambda x: x + 0.0, None),
    "minus 0": (lambda x: x - 0.0, None),
    "times 1": (lambda x: x * 1.0, None),
    "divided by 1": (lambda x: x / 1.0, None),
    "twice negative": (lambda x: x.neg().neg(), None),
    "squared": (lambda x: x * x, None),
    "exp": (lambda x: x.exp(), None),
    "tanh": (lambda x: x.tanh(), None),
    "sigmoid": (lambda x: x.sigmoid(), None),
    "sin": (lambda x: x.sin(), None),
    "all of it": (lambda x: x[:], None),
    "an ellipsis": (lambda x: x[...], None),
    "transposed twice": (lambda x: x.T.T, None),
    "not permuted": (lambda x: x.permute(0, 1), None),
    "an axis for itself": (lambda x: x.transpose(1, 1), None),
    "in the same shape": (lambda x: x.reshape(2, 3), None),
    "flat and back": (lambda x: x.reshape(-1).reshape(2, 3), None),
    "expanded to its shape": (lambda x: x.expand(2, 3), None),
    "an axis more and less": (lambda x: x.unsqueeze(0).squeeze(0), None),
    "nothing to squeeze": (lambda x: x.squeeze(1), None),
    "flipped": (lambda x: x.flip(0), None),
    "not rolled": (lambda x: x.roll(0, 0), None),
    "rolled": (lambda x: x.roll(1, 1), None),
    "no padding": (lambda x: x.pad((0, 0, 0, 0)), same),
    "pieces joined": (lambda x: x[:1].cat(x[1:]), lambda x: torch.cat([x[:1], x[1:]])),
    "sums, repeated": (lambda x: x.sum(1, keepdim=True).expand(2, 3), None),
    "chosen": (lambda x: (x > 0.1).where(x, 0.5), lambda x: torch.where(x > 0.1, x, 0.5)),
    "a tensor of a tensor": (lambda x: Tensor(x), same),
    "a tensor of its node": (lambda x: Tensor(x.uop), same),
    "cloned": (lambda x: x.clone(), None),
    "cast there and back": (lambda x: x.float().double(), None),
    "detached": (lambda x: x.detach(), lambda x: x.detach().requires_grad_()),
}  # fmt: skip
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any] | None]] = {
    "added": (lambda x, y: x + y, None),
    "product": (lambda x, y: x * y, None),
    "difference": (lambda x, y: x - y, None),
    "quotient": (lambda x, y: x / (y * y + 1.0), None),
    "matmul": (lambda x, y: (x @ y.T) @ y, None),
    "layer": (lambda x, y: (x @ y.T).tanh() @ x, None),
    "stacked": (lambda x, y: x.stack(y).sum(0), lambda x, y: torch.stack([x, y]).sum(0)),
}  # fmt: skip


@by_rows("name", UNARY)
def test_each_result_is_a_target_of_its_own(name: str) -> None:
    ours, theirs = UNARY[name]
    results = []
    for function, base in [
        (ours, Tensor(A) * 1.5),
        (theirs or ours, torch.tensor(A, requires_grad=True) * 1.5),
    ]:
        a, b, c = function(base), function(base), function(base)
        assert len({id(t) for t in (a, b, c, base)}) == 4
        loss = (a * 3 + b * b * 5 + c * base).sum()
        targets = a, b, c, base
        if isinstance(loss, Tensor):
            results.append([g.numpy() for g in loss.gradient(*targets)])
        else:
            results.append([g.numpy() for g in torch.autograd.grad(loss, targets)])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-6)


@by_rows("name", UNARY)
def test_each_result_may_be_a_leaf(name: str) -> None:
    make = UNARY[name][0]
    y = Tensor(A) * 1.5
    a, b = make(y).requires_grad_(), make(y).requires_grad_()
    (a * 3 + b * 5 + make(y) * 7).sum().backward()
    assert a.grad is not None and b.grad is not None and y.grad is None
    assert lists([a.grad, b.grad]) == [[[3.0] * 3] * 2, [[5.0] * 3] * 2]


def helper(x: Tensor) -> Tensor:
    half = x * 0.5
    return half.tanh()


LINEAR = nn.Linear(3, 2)
PAIRS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "of a helper": lambda y: (helper(y), helper(y)),
    "of a comprehension": lambda y: tuple([t * 2 for t in (y, y)]),  # type: ignore[return-value]
    "of a layer": lambda y: (LINEAR(y), LINEAR(y)),
    "views of views": lambda y: (y[:1][:, 1:], y[:1][:, 1:]),
    "stored twice": lambda y: (y.contiguous(), y.contiguous()),
    "computed": lambda y: ((y * 2).realize(), (y * 2).realize()),
    "computed later": lambda y: realized(y * 2, y * 2),
    "equal memory": lambda y: ((y + 0).realize().detach(), y.realize()),
    "written": lambda y: (added(y * 2), added(y * 2)),
    "written in part": lambda y: (part_written(y * 2), part_written(y * 2)),
    "without gradients": lambda y: Tensor.no_grad()(lambda: (y * 2, y * 2))(),
    "a broadcast operand": lambda y: (y.sum(0).expand(2, 3), y + y.sum(0)),
    "of a captured function": lambda y: CAPTURED(y.realize()),
}  # fmt: skip


def realized(*tensors: Tensor) -> Any:
    Tensor.realize(*tensors)
    return tensors


def added(x: Tensor) -> Tensor:
    x += 1.0
    return x


def part_written(x: Tensor) -> Tensor:
    x[0] = 1.0
    return x


@TinyJit
def CAPTURED(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, x * 2


@pytest.mark.parametrize("name", PAIRS)
def test_equal_values_are_two_targets(name: str) -> None:
    for _ in range(3):  # a captured function is replayed from the third call on
        a, b = PAIRS[name](Tensor(A) * 1.5)
        da, db = (a * 3 + b * 5 + a.detach() * 7).sum().gradient(a, b)
        np.testing.assert_array_equal(da.numpy(), np.full(a.shape, 3.0))
        np.testing.assert_array_equal(db.numpy(), np.full(b.shape, 5.0))


def test_a_target_that_was_computed_from_another_one_is_refused() -> None:
    y = (Tensor(A) * 1.5).realize()
    a = (y + 0).realize()
    with pytest.raises(GradientError, match="computed before"):
        (a * 3 + y * 5).sum().gradient(a, y)
    assert (a * 3).sum().gradient(a)[0].tolist() == np.full(a.shape, 3.0).tolist()


def test_what_is_no_target_is_handed_on_once() -> None:
    """A gradient has the kernels that it has where common values have one name."""
    w, b = Tensor(np.ones((3, 3), np.float32)).realize(), Tensor.ones(3)
    inputs = [Tensor(np.full((2, 3), n, np.float32)).realize() for n in range(4)]

    def kernels(transposed: Callable[[], Tensor]) -> list[str]:
        state = inputs[0]
        for x in inputs[1:]:
            state = (x @ transposed() + state @ transposed() + b).tanh()
        g = state.square().sum().gradient(w, b, inputs[0])
        items = g[0].schedule(*g[1:])
        return [to_text(i.kernel) for i in items if i.kernel is not None]

    once = w.T
    assert kernels(lambda: w.T) == kernels(lambda: once)


def test_a_gradient_is_differentiated_by_one_of_two_equal_values() -> None:
    results = []
    for x in (Tensor(A), torch.tensor(A, requires_grad=True)):
        a, b = x.exp(), x.exp()
        loss = (a * a * b + x).sum()
        both: Any = [a, b, x]
        if isinstance(loss, Tensor):
            (g,) = loss.gradient(x)
            (h,) = (g * g).sum().gradient(a)
            third = (h * g).sum().gradient(*both)
            results.append([t.numpy() for t in (*(g * g).sum().gradient(*both), *third)])
        else:
            grad = torch.autograd.grad
            (g,) = grad(loss, [x], create_graph=True)
            (h,) = grad((g * g).sum(), [a], create_graph=True)
            last = grad((h * g).sum(), both, retain_graph=True)
            results.append([t.numpy() for t in (*grad((g * g).sum(), both), *last)])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10)


def test_a_value_that_is_stored_with_opts_leads_to_the_value() -> None:
    x = Tensor(A)
    a, cut = (x * 2).contiguous(), (x * 2).detach().contiguous()
    b, none = a.contiguous(arg=()), cut.contiguous(arg=())
    targets = a, b, x
    gradients = (a * 3 + b * 5 + none * 7).sum().gradient(*targets)
    assert [g.numpy().max() for g in gradients] == [8.0, 5.0, 16.0]


def test_an_equal_value_is_not_below() -> None:
    y = Tensor(A)
    with pytest.raises(GradientError, match="target 0"):
        (y * 2).sum().gradient(y * 2)


# random programs


@dataclass
class Program:
    """A random program in one of the libraries: all tensors that it makes, of shape (2, 3), many of
    them equal, and losses of these."""

    seed: int
    is_ours: bool
    pool: list[Any]
    is_leaf: bool = False
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        some = [
            *self.rng.choice(list(UNARY), 3), *self.rng.choice(list(BINARY), 2)
        ]  # fmt: skip
        for _ in range(self.rng.integers(4, 12)):
            kind = self.rng.random()
            if kind < 0.72:  # few operations, so that equal expressions are likely
                self.apply(str(self.rng.choice(some)))
            elif kind < 0.9:
                self.apply(str(self.rng.choice([*UNARY, *BINARY])))
            else:
                self.special(int(self.rng.integers(5)))

    def drawn(self) -> Any:
        last = len(self.pool)
        return self.pool[self.rng.integers(min(last, 5) if self.rng.random() < 0.6 else last)]

    def apply(self, name: str) -> None:
        ours, theirs = UNARY.get(name) or BINARY[name]
        function: Any = ours if self.is_ours or theirs is None else theirs
        operands = [self.drawn() for _ in range(1 if name in UNARY else 2)]
        self.note(name, function(*operands))

    def special(self, kind: int) -> None:
        x, y = self.drawn(), self.drawn()
        if kind == 0 and self.is_ours:
            with Tensor.no_grad():
                self.note("without gradients", x * 2.0)
        elif kind == 0:
            self.note("without gradients", (x.detach() * 2.0).requires_grad_())
        elif kind == 1:
            for _ in range(2):
                self.note("one of two", x * 2.0)
        elif kind == 2:
            double = x * 2.0
            double += y
            self.note("added in place", double)
        elif kind == 3:
            double = x * 2.0
            double[0] = y[1]
            self.note("written in part", double)
        elif self.is_ours and self.is_leaf:
            x.realize()

    def note(self, name: str, result: Any) -> None:
        self.names.append(name)
        self.pool.append(result)

    def loss(self) -> Any:
        total = None
        for weight in self.rng.integers(1, 6, 4):
            x = self.pool[self.rng.integers(len(self.pool))]
            term = (x * x if self.rng.random() < 0.4 else x) * float(weight)
            total = term.sum() if total is None else total + term.sum()
        return total

    def gradients(self) -> Iterator[Any]:
        """Yield the gradients of a loss by all tensors, of a function of two of them by all, and of
        another loss."""
        first = self.of(self.loss(), self.pool)
        a, b = (first[i] for i in self.rng.integers(len(first), size=2))
        yield from first
        yield from self.of((a * b * a).sum() + (b * 3.0).sum(), self.pool)
        yield from self.of(self.loss(), self.pool)

    def of(self, loss: Any, targets: list[Any]) -> list[Any]:
        if self.is_ours:
            return list(loss.gradient(*targets, materialize_grads=True))
        none = [torch.zeros(2, 3, dtype=torch.float64) for _ in targets]
        if not loss.requires_grad:
            return none
        found = torch.autograd.grad(loss, targets, allow_unused=True, create_graph=True)
        # torch may return one object twice
        pairs = zip(found, none, strict=True)
        return [zero if g is None else g.view_as(g) for g, zero in pairs]


def ours(seed: int, data: list[Any], is_leaf: bool = False) -> list[Tensor]:
    return list(Program(seed, True, list(data), is_leaf).gradients())


def theirs(seed: int, data: list[Any]) -> list[Any]:
    leaves = [torch.tensor(array, requires_grad=True) for array in data]
    return [g.detach().numpy() for g in Program(seed, False, leaves).gradients()]


def drawn_data(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    first, other = rng.standard_normal((2, 2, 3))
    return [first, first.copy(), other]


def assert_equal(mine: list[Tensor], others: list[Any], seed: int) -> None:
    Tensor.realize(*mine)
    for number, (gradient, expected) in enumerate(zip(mine, others, strict=True)):
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        np.testing.assert_allclose(
            gradient.numpy(), expected, rtol=1e-7, atol=1e-7 * scale,
            err_msg=f"seed {seed}, gradient {number}",
        )  # fmt: skip


@pytest.mark.parametrize("part", range(4))
def test_all_tensors_of_random_programs_are_targets(part: int) -> None:
    for seed in range(part, count(400, 25), 4):
        data = drawn_data(seed)
        is_leaf = seed % 3 == 0
        tensors = [Tensor(a, requires_grad=is_leaf or None) for a in data]
        assert_equal(ours(seed, tensors, is_leaf), theirs(seed, data), seed)


def test_all_tensors_of_captured_programs_are_targets() -> None:
    for seed in range(10_000, 10_000 + count(60)):
        step = TinyJit(lambda x, y, z, seed=seed: ours(seed, [x, y, z]))
        for call in range(3):
            data = drawn_data(seed + call)
            assert_equal(step(*map(Tensor, data)), theirs(seed, data), seed)
