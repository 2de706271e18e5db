"""Gradients of the rows of the tables at edges: of zeros, ties, infinities, no elements, ...

An edge class says what stands in the place of the float operands of a row. The gradients are
compared with torch's in float64, and must be NaN or infinite where torch's are; `DIFFERENT` says
where they are not, and why. An edge that torch refuses is not compared.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.peers import torch
from tests.tensor.agree import Array
from tests.tensor.cases.case import Case
from tests.tensor.cases.gradients import (
    differentiated,
    our_gradients,
    torchs_gradients,
    total,
)
from tests.tensor.cases.table import cases
from workbench.base.context import Context
from workbench.base.errors import WorkbenchError
from workbench.tensor import Tensor

Edge = Callable[[np.random.Generator, Array], Array]


def some(*numbers: float) -> Edge:
    """Return an edge class: random ones of some numbers."""
    return lambda rng, array: rng.choice(numbers, array.shape)


def among(*numbers: float) -> Edge:
    """Return an edge class: normal numbers, with some others among them."""

    def draw(rng: np.random.Generator, array: Array) -> Array:
        values, others = rng.standard_normal(array.shape), some(*numbers)(rng, array)
        return np.where(rng.random(array.shape) < 0.3, others, values)

    return draw


EDGES: dict[str, Edge] = {
    "zeros": some(0.0),
    "zeros of both signs": some(0.0, -0.0),
    "ones": some(1.0),
    "equal values": some(-1.5),
    "ties": some(-1.0, 0.0, 1.0),
    "positive ties": some(1.0, 2.0, 3.0),
    "half-integers": some(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5),
    "some zeros": among(0.0),
    "infinities": among(np.inf, -np.inf),
    "NaN": among(np.nan),
}
SHAPES: dict[str, Edge] = {
    "no elements": lambda rng, array: array[:0],
    "size 1": lambda rng, array: array[:1],
    "no axes": lambda rng, array: array.reshape(-1)[:1].reshape(()),
}
"""What stands in the place of all operands: of these the shape is an edge."""

_NOT_FINITE = "infinities", "NaN"
_BOX = "a refusal: a box that is not inside, where a slice in torch is cut off"
_WINDOW = "shared by equal values of a window, where torch's first has it"
_HIDDEN = "0 of keys that a mask hides, where torch multiplies 0 by NaN"
_LIMIT = "the limit, where torch multiplies 0 by infinity"
_AT_NAN = "NaN, where torch compares it with a number and takes one of the branches"
_OTHERS = "that of the other factors, where torch divides by the element"
_RANK = "matrices without full rank have no gradient; torch's is NaN or infinite"
_ONE_SIDED = "the derivative from inside, where torch limits a divisor that is 0"

DIFFERENT: dict[tuple[str, str], str] = {
    **{(m, "NaN"): _AT_NAN for m in ("elu", "celu", "selu", "hardswish")},
    **{(m, "NaN"): "shared by the NaNs, where torch's are all NaN" for m in ("max", "min")},
    **{
        (m, "infinities"): _LIMIT
        for m in ("softsign", "silu", "swish", "mish", "gelu", "quick_gelu", "normalize")
    },
    **{("copysign", e): "1 or -1, where torch divides by the operand" for e in _NOT_FINITE},
    ("mod", "infinities"): "the value is NaN: the gradient is that of the quotient",
    ("lerp", "infinities"): "infinity minus infinity",
    ("logcumsumexp", "infinities"): "infinity minus infinity, between blocks of a long axis",
    **{(m, e): _OTHERS for m in ("prod", "cumprod") for e in _NOT_FINITE},
    ("relu6", "NaN"): "that of relu, 1, where torch's relu has 1 and its relu6 has 0",
    ("linear", "no axes"): "a refusal: a scalar is no matrix",
    **{("scaled_dot_product_attention", e): _HIDDEN for e in _NOT_FINITE},
    ("scaled_dot_product_attention", "no elements"): "a refusal: the mask has another shape",
    ("mT", "no axes"): "a refusal, as of a row: there is no second axis",
    **{(m, e): _BOX for m in ("shrink", "shrink_to") for e in ("no elements", "size 1")},
    **{(m, e): _WINDOW for m in ("max_pool2d", "max_unpool2d") for e in EDGES},
    **{("qr", e): _RANK for e in EDGES},
    **{
        ("binary_crossentropy", e): _ONE_SIDED
        for e in ("zeros", "zeros of both signs", "ones")
    },
}  # fmt: skip
"""By method and edge class, what our gradient is where it is not torch's."""


class EdgeComparison(NamedTuple):
    """A row at an edge."""

    key: str
    case: Case
    edge: str

    @property
    def name(self) -> str:
        return f"{self.key} at {self.edge}"


def edge_comparisons(is_long: bool) -> Iterator[EdgeComparison]:
    """Yield the comparisons of a run: each row at each edge; a tenth of the first rows of methods,
    where it is short."""
    methods: set[str] = set()
    number = 0
    for key, row in cases():
        if not row.has_gradient or {"float32", "float64"}.isdisjoint(row.dtypes):
            continue
        if row.name in methods and not is_long:
            continue
        methods.add(row.name)
        for edge in (*EDGES, *SHAPES):
            number += 1
            if is_long or number % 10 == 0:
                yield EdgeComparison(key, row, edge)


def compare_at_edge(comparison: EdgeComparison) -> str:
    """Compare gradients, and return "", or why they differ or were not compared."""
    key, row, edge = comparison
    arrays = operands(comparison)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            places, expected = _torchs(key, row, arrays)
        except (RuntimeError, LookupError, ValueError, AssertionError):
            return "torch refuses such operands"
    if not expected:
        return "torch has no such gradient"
    reason = DIFFERENT.get((row.name, edge), "")
    try:
        with Context(DEV="LLVM"):
            gradients = _ours(key, row, arrays, places)
        for mine, other in zip(gradients, expected, strict=True):
            _assert_equal(mine, other)
    except (AssertionError, WorkbenchError):
        if not reason:
            raise
        return f"{row.name} at {edge}: ours is {reason}"
    return ""


def operands(comparison: EdgeComparison) -> list[Array]:
    """Return the operands of a row at an edge."""
    _, row, edge = comparison
    rng = np.random.default_rng(zlib.crc32(comparison.name.encode()))
    arrays = row.inputs("float64")
    if edge in SHAPES:
        return [SHAPES[edge](rng, a) if a.ndim and a.size else a for a in arrays]
    return [
        EDGES[edge](rng, a).astype("float64") if a.dtype == np.float64 else a
        for a in arrays
    ]


def _torchs(
    key: str, row: Case, arrays: Sequence[Array]
) -> tuple[list[int], list[Any]]:
    """Return which operands have a gradient, and torch's gradients."""
    floats = [i for i, a in enumerate(arrays) if a.dtype == np.float64]
    places = differentiated(row, row.torch_tensors(list(arrays)), floats)
    tensors = row.torch_tensors(list(arrays))
    targets = [tensors[i].requires_grad_() for i in places]
    loss = total(key, row.theirs(tensors), torch.tensor, "float64")
    gradients = torchs_gradients(loss, targets)
    return places, [
        np.zeros(t.shape) if g is None else g.numpy(force=True)
        for t, g in zip(targets, gradients, strict=bool(gradients))
    ]


def _ours(
    key: str, row: Case, arrays: list[Array], places: Sequence[int]
) -> list[Array]:
    tensors = row.our_tensors(arrays)
    targets = [tensors[i].requires_grad_() for i in places]
    loss = total(key, row.ours(tensors), Tensor, "float64")
    gradients = our_gradients(loss, targets)
    Tensor.realize(*gradients)
    return [g.numpy() for g in gradients]


def _assert_equal(have: Array, want: Array) -> None:
    assert have.shape == want.shape
    scale = float(np.max(np.abs(want[np.isfinite(want)]), initial=1e-3))
    np.testing.assert_allclose(have, want, rtol=1e-7, atol=1e-7 * scale)
