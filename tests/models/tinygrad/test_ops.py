"""The table of tinygrad's ops: complete for the installed version, and its rows compute what
tinygrad's methods compute on its device PYTHON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.peers import tinygrad
from tests.support import LONG, by_rows
from workbench import load_model
from workbench.models.check import ModelValue, compared
from workbench.models.tinygrad.table import OF_THE_GRAPH, REFUSED, ROWS, load_rows

T = tinygrad.Tensor
dtypes = tinygrad.dtypes


def test_every_op_has_a_row_or_a_reason() -> None:
    load_rows()
    entered = [*ROWS, *OF_THE_GRAPH, *REFUSED]
    assert len(entered) == len(set(entered))
    assert set(entered) == {op.name for op in tinygrad.uop.Ops}
    assert all(REFUSED.values())


def uniform(*shape: int, lo: float = -2.0, hi: float = 2.0, seed: int = 0) -> Any:
    values = np.random.default_rng((seed, *shape)).uniform(lo, hi, shape)
    return T(values.astype(np.float32)).realize()


def integers(*shape: int, lo: int = -5, hi: int = 6, dtype: Any = np.int32) -> Any:
    values = np.random.default_rng(len(shape)).integers(lo, hi, shape)
    return T(values.astype(dtype)).realize()


x, y, v, m = uniform(3, 4), uniform(3, 4, seed=1), uniform(4), uniform(4, 5)
p, unit = uniform(3, 4, lo=0.1, hi=3), uniform(3, 4, lo=-0.9, hi=0.9)
image, weight = uniform(2, 3, 6, 6), uniform(4, 3, 3, 3)
i, j = integers(3, 4), integers(3, 4, lo=1)
u, b = integers(3, 4, lo=0, hi=200, dtype=np.uint8), integers(3, 4, lo=0, hi=2, dtype=np.bool_)
at = T(np.array([[0, 1, 2, 1], [2, 2, 0, 1]], np.int32)).realize()
labels = T(np.array([1, 0, 3], np.int32)).realize()

UNARY = {
    x: """abs atan ceil cos cosh erf exp exp2 floor neg reciprocal relu round sigmoid sign sin sinh
        square tan tanh trunc silu gelu quick_gelu elu celu selu softplus softsign hardswish mish
        hardsigmoid hardtanh relu6 leaky_relu logsigmoid isnan isinf isfinite sum mean max min prod
        var std softmax log_softmax logsumexp argmax argmin cumsum logcumsumexp contiguous detach
        flatten any all bool int half bfloat16 double short long argsort tril triu clone
        layernorm contiguous_backward asinh""".split(),
    p: "log log10 log2 rsqrt sqrt".split(),
    unit: "acos asin atanh".split(),
    i: "abs sign bitwise_not sum mean min prod float bool argmin".split(),
    b: "logical_not sum max min int float".split(),
}

METHODS: dict[str, Callable[[], Any]] = {
    "acosh": lambda: (p + 1).acosh(),
    "add": lambda: x + y,
    "subtract a row": lambda: x - v,
    "times a number": lambda: x * 2.5,
    "divide": lambda: x / p,
    "a number by": lambda: 1 / p,
    "power": lambda: p**y,
    "power of numbers": lambda: x**3 + p**1.5 + 2**x,
    "integer power": lambda: i**3,
    "floor division": lambda: i // j,
    "remainder": lambda: i % j,
    "floats divided": lambda: x // p + x % p,
    "division to zero": lambda: i.div(j, rounding_mode="trunc"),
    "remainder to zero": lambda: i - i.div(j, rounding_mode="trunc") * j,
    "maximum": lambda: x.maximum(y) + x.minimum(0.5),
    "maximum of integers": lambda: i.maximum(j),
    "comparisons": lambda: (x < y) & (x >= v) | (i == j) ^ (i != 2),
    "bits": lambda: (i & j) | 3 ^ ~i,
    "shifts": lambda: (j << 2) + (i >> 1),
    "shifts of bytes": lambda: (u << 1) + (u >> 2),
    "bytes wrap": lambda: u + 100 - (-u),
    "bools": lambda: b + (x > 0) * b,
    "where": lambda: b.where(x, y),
    "where of numbers": lambda: (x > 0).where(1.0, 0.0),
    "clip": lambda: x.clip(-1, 1).lerp(y, 0.3).copysign(y).logaddexp(v),
    "matmul": lambda: x @ m,
    "products": lambda: (x @ v).dot(T([1.0, 2.0, 3.0])) + v.dot(v),
    "batched": lambda: image @ image.transpose(2, 3),
    "einsum": lambda: T.einsum("ij,jk->ki", x, m),
    "integer matmul": lambda: i @ j.T,
    "half": lambda: (x.half() * 2 + y.half()).sum().float(),
    "bfloat16": lambda: (x.bfloat16() * 2).float(),
    "8 bits": lambda: x.cast("fp8e4m3").float() + x.cast("fp8e5m2").float(),
    "conv": lambda: image.conv2d(weight, T([1.0, 2.0, 3.0, 4.0]), padding=1, stride=2),
    "dilated conv": lambda: image.conv2d(weight, dilation=2),
    "grouped conv": lambda: image.conv2d(uniform(3, 1, 2, 2), groups=3),
    "transposed conv": lambda: image.conv_transpose2d(uniform(3, 2, 3, 3), stride=2, padding=1),
    "max pool": lambda: image.max_pool2d(3, stride=2, padding=1),
    "avg pool": lambda: image.avg_pool2d(3, padding=1, count_include_pad=False),
    "interpolate": lambda: image.interpolate((9, 4), mode="linear"),
    "nearest": lambda: image.interpolate((9, 4), mode="nearest"),
    "batchnorm": lambda: image.batchnorm(v[:3], v[1:], v[:3], p[0, :3]),
    "attention": lambda: image.scaled_dot_product_attention(image, image, is_causal=True),
    "long cumsum": lambda: integers(600).cumsum(),
    "cummax": lambda: x.cummax(1)[0],
    "cumprod": lambda: x.cumprod(0),
    "gather": lambda: x.gather(0, at),
    "index": lambda: x[labels.minimum(2)] + x[[0, 2, 1]],
    "two indices": lambda: x[at, [0, 1, 2, 3]],
    "slices": lambda: x[-1, ::-1] + x[1:, ::2][0, 1] + image[0, ..., 1][1, :4],
    "cat": lambda: x.cat(y, x, dim=1).roll(1, 0),
    "stack": lambda: T.stack(x, y, dim=1),
    "split": lambda: x.split([1, 2, 1], 1)[1] * x.chunk(2, 1)[1],
    "repeat": lambda: x.repeat(2, 3).repeat_interleave(2, 1),
    "movement": lambda: image.permute(3, 0, 2, 1).flip(0, 2).unflatten(0, (2, 3)),
    "expand": lambda: v.expand(2, 3, 4),
    "pad": lambda: x.pad((1, 2, 0, 1)) + x.pad((1, 2, 0, 1), value=3.0),
    "pad of modes": lambda: image.pad((2, 1, 1, 2), mode="reflect").pad((1, 1), mode="replicate"),
    "shrink": lambda: x.shrink(((1, 3), (0, 2))).unfold(1, 2, 1),
    "diagonal": lambda: v.diag() @ x[:, :3].diagonal().pad((0, 1)),
    "one hot": lambda: labels.one_hot(5),
    "ranges": lambda: T.arange(2, 14, 3) + v + T.linspace(0, 1, 4) + T.eye(4),
    "constants": lambda: T.full((3, 4), 7) + x.ones_like() + T.zeros(4) + T(2.5) * 2,
    "scatter": lambda: x.scatter(0, at, y) + x.scatter_reduce(0, at, y, "sum"),
    "masked fill": lambda: x.masked_fill(b, 0.0),
    "topk": lambda: x.topk(2)[1],
    "sort": lambda: i.sort(0, descending=True)[0],
    "cross entropy": lambda: x.cross_entropy(labels) + x.log_softmax().nll_loss(labels),
    "binary entropy": lambda: x.binary_crossentropy_logits(b.float()),
    "random": lambda: T.rand(3, 5) + T.rand(5, dtype="half"),
    "random doubles": lambda: T.rand(3, dtype="double"),
    "random integers": lambda: T.randint(3, 3, low=-5, high=9),
    "normal": lambda: T.randn(7) + T.uniform(7, low=2, high=3),
    "permutation": lambda: T.randperm(6),
    "casts": lambda: (x.abs() * 50).cast("uint8").cast("int64") * 2**33 + i.cast("int16") * 9000,
    "large numbers": lambda: j.cast("uint64") | 2**64 - 2**40,
    "bitcast": lambda: x.bitcast("int32") + u.bitcast("int32"),
    "bytes": lambda: x.bitcast("uint8"),
    "no elements": lambda: uniform(0, 3).sum(0) + v[:3],
    "several dtypes": lambda: u + i + b + x.double(),
}
METHODS |= {
    f"{name} of {of.dtype.name}": lambda of=of, name=name: getattr(of, name)()  # type: ignore[misc]
    for of, names in UNARY.items()
    for name in names
}

GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda q: (q @ m).relu().softmax().log().sum(),
    "reductions": lambda q: (q * x).sin().max(1).sum() + q.layernorm().square().mean(),
    "cross entropy": lambda q: q.cross_entropy(labels),
    "index": lambda q: q[labels.minimum(2)].square().sum() + q.cat(q, dim=1)[1:, 2:5].prod(0).sum(),
    "cumsum": lambda q: q.cumsum(1).gelu().sum() + q.clip(-1, 1).abs().sqrt().sum(),
    "pool": lambda q: q.reshape(1, 1, 3, 4).conv2d(weight[:1, :1, :2]).max_pool2d(2).mean(),
}


def agrees(tensor: Any) -> None:
    """Compare a tensor with tinygrad's own values, which it computes first."""
    model = load_model(tensor)
    theirs = tensor.numpy()
    ours = model()
    assert ours.numpy().dtype == theirs.dtype
    check = compared(ModelValue("", "", ours, theirs))
    assert check.ok, f"{check}\n{ours.numpy()}\n{theirs}"


@by_rows("name", list(METHODS)[:: 1 if LONG else 8])
def test_a_method_has_the_values_that_tinygrad_computes(name: str) -> None:
    T.manual_seed(len(name))
    agrees(METHODS[name]())


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_have_the_values_that_tinygrad_computes(name: str) -> None:
    q = uniform(3, 4, seed=7)
    GRADIENTS[name](q).backward()
    agrees(q.grad)
