"""Each gradient rule against finite differences, by the reference interpreter in float64.

The root is one op over BUFFERs, and random expressions of several; its gradient with random weights
is compared with how the weighted sum changes along each element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count as numbers_from

import numpy as np
import pytest

from tests.support import by_rows, count
from tests.tensor.agree import Array
from workbench.base.dtypes import dtypes
from workbench.ir.gradient.backward import NoGradient, backward, leading_to
from workbench.ir.gradient.occurrences import MergedGraph, with_gradient
from workbench.ir.gradient.rules import GRADIENTS
from workbench.ir.meaning.interpret import interpret_tensor, interpret_tensors
from workbench.ir.node import construct
from workbench.ir.node.construct import full
from workbench.ir.node.ops import COMPARE, OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.verify.verify import verify

F64, Shape = dtypes.float64, tuple[int, ...]
_uids = numbers_from()


def buffer(*shape: int) -> UOp:
    return construct.buffer(F64, f"test{next(_uids)}", "PYTHON", shape)


def buffers_of(root: UOp) -> list[UOp]:
    return [n for n in root.toposort() if n.op is Ops.BUFFER]


def drawn(root: UOp, rng: np.random.Generator, low: float, high: float) -> dict[UOp, Array]:
    return {b: rng.uniform(low, high, b.shape) for b in buffers_of(root)}


def gradients(root: UOp, weights: Array, values: Mapping[UOp, Array]) -> list[Array]:
    """Return the gradients of a weighted sum of `root` to all its buffers: 0 where none flows."""
    seed, targets = buffer(*root.shape), buffers_of(root)
    result = backward(root, targets, seed)
    zeros = {b: full(b.shape, b.like(0)) for b in targets}
    nodes = [{**zeros, **result.gradients}[b] for b in targets]
    for node, target in zip(nodes, targets, strict=True):
        assert node.shape == target.shape and node.dtype is target.dtype
    verify(UOp.sink(*nodes), "tensor")
    return interpret_tensors(nodes, {**values, seed: weights})


def differences(root: UOp, weights: Array, values: Mapping[UOp, Array]) -> list[Array]:
    """Return the same by central differences."""
    step, slopes = 1e-5, []
    for target in buffers_of(root):
        slope = np.zeros(target.shape)
        for place in np.ndindex(*target.shape):
            ends = []
            for side in (step, -step):
                moved = values[target].copy()
                moved[place] += side
                value = interpret_tensor(root, {**values, target: moved})
                ends.append((value * weights).sum())
            slope[place] = (ends[0] - ends[1]) / (2 * step)
        slopes.append(slope)
    return slopes


def check(root: UOp, seed: int, low: float = 0.2, high: float = 0.9) -> None:
    rng = np.random.default_rng(seed)
    values, weights = drawn(root, rng, low, high), rng.uniform(0.5, 1.5, root.shape)
    actual = gradients(root, weights, values)
    expected = differences(root, weights, values)
    for have, want in zip(actual, expected, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)


RANGES = {Ops.ACOSH: (1.2, 2.0), Ops.FMOD: (0.3, 0.9)}
BY_ELEMENTS = sorted((o for o in GRADIENTS if OPS[o].python is not None), key=str)


@by_rows("op", BY_ELEMENTS, ids=str)
@by_rows("shape", [(2, 3), ()], ids=str)
def test_by_elements(op: Ops, shape: Shape) -> None:
    sources = [buffer(*shape) for _ in range(OPS[op].arity or 0)]
    if op is Ops.WHERE:
        sources[0] = sources[0] < 0.5
    check(UOp(op, F64, tuple(sources)), 1, *RANGES.get(op, (0.2, 0.9)))
    if op not in RANGES and op not in (Ops.LOG, Ops.LOG2, Ops.SQRT, Ops.POW):
        check(UOp(op, F64, tuple(sources)), 2, -0.9, -0.2)


@pytest.mark.parametrize("op", [Ops.POW, Ops.FDIV, Ops.MUL, Ops.FMOD], ids=str)
def test_beside_a_constant(op: Ops) -> None:
    x = buffer(2, 3)
    check(x.alu(op, x.like(0.7)), 3)
    check(x.like(0.7).alu(op, x), 4)


X = buffer(2, 3, 4)
MOVED: dict[str, UOp] = {
    "RESHAPE": UOp(Ops.RESHAPE, F64, (X,), (6, 4)),
    "PERMUTE": UOp(Ops.PERMUTE, F64, (X,), (2, 0, 1)),
    "EXPAND": UOp(Ops.EXPAND, F64, (buffer(2, 1, 4),), (3, 2, 3, 4)),
    "EXPAND of nothing": UOp(Ops.EXPAND, F64, (buffer(1, 1),), (0, 2)),
    "SHRINK": UOp(Ops.SHRINK, F64, (X,), ((0, 1), (1, 3), (2, 4))),
    "PAD": UOp(Ops.PAD, F64, (X,), ((0, 1), (2, 0), (1, 1))),
    "FLIP": UOp(Ops.FLIP, F64, (X,), (0, 2)),
    "CONTIGUOUS": UOp(Ops.CONTIGUOUS, F64, (X,)),
    "COPY": UOp(Ops.COPY, F64, (X,), "LLVM"),
    "CAST": X.cast(dtypes.float32).cast(F64),
}


@pytest.mark.parametrize("name", MOVED)
def test_movement(name: str) -> None:
    rng = np.random.default_rng(0)
    root = MOVED[name]
    values, weights = drawn(root, rng, -1, 1), rng.uniform(0.5, 1.5, root.shape)
    (actual,) = gradients(root, weights, values)
    (source,) = buffers_of(root)
    # movement is linear: the gradient is its adjoint, <move(v), w> = <v, gradient(w)>
    other = rng.uniform(-1, 1, source.shape)
    moved = interpret_tensor(root, {source: other})
    assert (moved * weights).sum() == pytest.approx((other * actual).sum(), rel=1e-6)


REDUCED = [(2, 3, 4), (1, 5), (40,), (3, 0, 2), (2, 17)]


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN], ids=str)
@pytest.mark.parametrize("shape", REDUCED, ids=str)
def test_reductions(op: Ops, shape: Shape) -> None:
    for axes in {(len(shape) - 1,), (0,), tuple(range(len(shape)))}:
        check(construct.reduce_axis(buffer(*shape), axes, op), 5)


def test_a_given_gradient() -> None:
    """It gets the gradient of the value, and its results are those of the sources."""
    x, y = buffer(2, 3), buffer(2, 3)
    sine, cosine = y.alu(Ops.SIN), y.alu(Ops.COS)
    own = with_gradient(x * sine, (x, y), "own", lambda g: (g * sine, g * x * cosine))
    check(own * x, 6)


def test_every_rule_is_compared() -> None:
    """A rule is in a test above: by its op, or in a table of roots."""
    roots = {root.op for root in MOVED.values()}
    assert GRADIENTS.keys() == {*BY_ELEMENTS, *roots, Ops.REDUCE_AXIS, Ops.DETACH}


def test_a_product_with_zeros() -> None:
    x, rng = buffer(3, 20), np.random.default_rng(0)
    values = rng.uniform(0.5, 1.5, x.shape)
    values[1, 4] = values[2, 3] = values[2, 18] = 0.0
    root = construct.reduce_axis(x, (1,), Ops.MUL)
    (actual,) = gradients(root, np.ones((3, 1)), {x: values})
    expected = [[np.prod(np.delete(row, i)) for i in range(20)] for row in values]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("op", [Ops.MAX, Ops.MIN], ids=str)
def test_ties_are_split(op: Ops) -> None:
    x, y = buffer(3), buffer(3)
    ones, values = np.ones(3), np.array([1.0, 2.0, 3.0])
    for share in gradients(x.alu(op, y), ones, {x: values, y: values}):
        assert share.tolist() == [0.5] * 3
    same = np.array([2.0, 2.0, 2.0])
    (share,) = gradients(construct.reduce_axis(x, (0,), op), np.ones(1), {x: same})
    np.testing.assert_allclose(share, 1 / 3)
    # beside a constant the right one has all
    assert gradients(x.alu(op, x.like(2.0)), ones, {x: same})[0].tolist() == [0.0] * 3
    assert gradients(x.like(2.0).alu(op, x), ones, {x: same})[0].tolist() == [1.0] * 3


def test_every_float_op_has_a_rule_or_stops() -> None:
    """Ops of the tensor level without a rule: leaves, those without floats, and the ones that have
    no gradient."""
    tensor_level = {op for op, row in OPS.items() if "t" in row.levels}
    leaves = {op for op in tensor_level if OPS[op].arity == 0}
    whole = {op for op in tensor_level if OPS[op].dtype in ("int", "bits", "word")} | {Ops.NOT}
    rest = tensor_level - GRADIENTS.keys() - leaves - whole - COMPARE
    assert rest == {Ops.BITCAST, Ops.CUSTOM, Ops.SINK}


def test_a_bit_cast_has_none() -> None:
    x = buffer(3)
    bits = x.bitcast(dtypes.int64)
    with pytest.raises(NoGradient) as refusal:
        backward((bits & 7).bitcast(F64), [x], buffer(3))
    assert refusal.value.node.op is Ops.BITCAST
    assert backward((bits & 7).cast(F64), [x], buffer(3)).gradients == {}


def test_only_what_leads_to_a_target_is_visited() -> None:
    x, y = buffer(3), buffer(3)
    odd = (y.bitcast(dtypes.int64) & 7).bitcast(F64)
    (x_share,) = backward(x * odd, [x], buffer(3)).gradients.values()
    assert y in x_share.toposort()
    assert odd not in leading_to(MergedGraph(x * odd, frozenset()), frozenset({x}))


# random expressions

UNARY = (Ops.NEG, Ops.EXP, Ops.SIN, Ops.COS, Ops.TANH, Ops.SIGMOID, Ops.ATAN, Ops.ERF)
BINARY = (Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN, Ops.ADD, Ops.MUL)
Step = Callable[[UOp, UOp, np.random.Generator], UOp]


def flipped(x: UOp, y: UOp, rng: np.random.Generator) -> UOp:
    return UOp(Ops.FLIP, F64, (x,), (int(rng.integers(2)),))


def padded(x: UOp, y: UOp, rng: np.random.Generator) -> UOp:
    wide = UOp(Ops.PAD, F64, (x,), ((1, 2), (0, 1)))
    return UOp(Ops.SHRINK, F64, (wide * wide + 0.1,), ((0, 3), (1, 4)))


def reduced(x: UOp, y: UOp, rng: np.random.Generator) -> UOp:
    op = (Ops.ADD, Ops.MAX, Ops.MUL)[rng.integers(3)]
    row = construct.reduce_axis(x, (int(rng.integers(2)),), op)
    return UOp(Ops.EXPAND, F64, (row,), (3, 3)) * y


def turned(x: UOp, y: UOp, rng: np.random.Generator) -> UOp:
    return UOp(Ops.PERMUTE, F64, (x,), (1, 0)) + y


def product(x: UOp, y: UOp, rng: np.random.Generator) -> UOp:
    left = UOp(Ops.EXPAND, F64, (UOp(Ops.RESHAPE, F64, (x,), (3, 3, 1)),), (3, 3, 3))
    right = UOp(Ops.EXPAND, F64, (UOp(Ops.RESHAPE, F64, (y,), (1, 3, 3)),), (3, 3, 3))
    total = construct.reduce_axis(left * right, (1,), Ops.ADD)
    return UOp(Ops.RESHAPE, F64, (total,), (3, 3))


def chosen(x: UOp, y: UOp, rng: np.random.Generator) -> UOp:
    return (x < y).where(x * 0.5, y)


MOVES: Sequence[Step] = (flipped, padded, reduced, turned, product, chosen)


@by_rows("seed", range(count(300)))
def test_random_expressions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [buffer(3, 3), buffer(3, 3)]
    for _ in range(rng.integers(2, 7)):
        x, y = (values[i] for i in rng.integers(0, len(values), 2))
        kind = rng.integers(3)
        if kind == 0:
            values.append(x.alu(UNARY[rng.integers(len(UNARY))]))
        elif kind == 1:
            values.append(x.alu(BINARY[rng.integers(len(BINARY))], y))
        else:
            values.append(MOVES[rng.integers(len(MOVES))](x, y, rng))
    check(values[-1] if buffers_of(values[-1]) else values[0], seed, -0.9, 0.9)
