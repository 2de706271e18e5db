"""Gradients of the rows of the tables at edges: of zeros, ties, infinities, no elements, ...

An edge class says what stands in the place of the float operands of a row. The gradients are
compared with torch's in float64, and must be NaN or infinite where torch's are; `DIFFERENT` says
where they are not, and why, and `different_gradients.txt` what ours are there
(different_gradients.py). An edge that torch refuses is not compared.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tests.peers import torch
from tests.tensor.agree import Array
from tests.tensor.cases.case import Case
from tests.tensor.cases.different_gradients import assert_as_recorded, recorded
from tests.tensor.cases.gradients import differentiated, our_gradients, torchs_gradients, total
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
_AXES = "a refusal: operands without axes, or with others"
_BOX = "a refusal: a box that is not inside, where a slice in torch is cut off"
_FIRST = "that of the first ones of equal values, where torch takes any"
_HALF = "shared by the tensor and the greatest source, where torch has equal shares of all"
_HIDDEN = "0 of keys that a mask hides, where torch multiplies 0 by NaN"
_LIMIT = "the limit, where torch multiplies 0 by infinity, or subtracts infinity from itself"
_NAN = "NaN, where torch compares it with a number and takes one of the branches"
_NAN_PASSES = "that inside of the limits, where torch has 0"
_OTHERS = "that of the other factors, where torch divides by the element"
_RANK = "of a matrix without full rank, which has none: torch's is NaN or infinite"
_ONE_SIDED = "the derivative from inside, where torch limits a divisor that is 0"
_STEPS = "that of the limit of the steps, whose gradient is 0"
_WINDOW = "shared by equal values of a window, where torch's first has it"


def _at(edges: Iterable[str], reason: str, *methods: str) -> dict[tuple[str, str], str]:
    return {(method, edge): reason for method in methods for edge in edges}


DIFFERENT: dict[tuple[str, str], str] = {
    **_at(["NaN"], _NAN, "elu", "celu", "selu", "hardswish"),
    **_at(["NaN"], _NAN_PASSES, "relu6", "hardtanh", "hardsigmoid"),
    **_at(["NaN"], "shared by the NaNs, where torch's are all NaN", "max", "min"),
    **_at(["NaN"], "1 of NaN, where torch's is NaN", "logaddexp"),
    **_at(["infinities"], _LIMIT, "softsign", "silu", "swish", "mish", "gelu", "quick_gelu"),
    **_at(["infinities"], _LIMIT, "normalize", "logaddexp"),
    **_at(["infinities"], "NaN: infinity minus infinity in a formula", "lerp", "logcumsumexp"),
    **_at(["infinities"], "that of the quotient; the value is NaN", "mod"),
    **_at(_NOT_FINITE, "1 or -1, where torch divides by the operand", "copysign"),
    **_at(_NOT_FINITE, _OTHERS, "prod", "cumprod"),
    **_at(_NOT_FINITE, _HIDDEN, "scaled_dot_product_attention"),
    **_at(["no elements"], "a refusal: the mask has another shape", "scaled_dot_product_attention"),
    **_at(["no axes"], _AXES, "linear", "mT", "gather", "scatter", "newton_schulz"),
    **_at(["no elements", "size 1"], _BOX, "shrink", "shrink_to"),
    **_at(EDGES, _WINDOW, "max_pool2d", "max_unpool2d"),
    **_at(EDGES, _FIRST, "topk"),
    **_at(EDGES, _HALF, "scatter_reduce"),
    **_at(EDGES, _RANK, "qr"),
    **_at([*EDGES, "size 1"], _STEPS, "newton_schulz"),
    **_at(["zeros", "zeros of both signs", "ones"], _ONE_SIDED, "binary_crossentropy"),
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
    torchs = _torchs_or_reason(comparison, arrays)
    if isinstance(torchs, str):
        return torchs
    places, expected = torchs
    gradients = _ours_or_refusal(key, row, arrays, places)
    try:
        _assert_agrees(gradients, expected)
    except (AssertionError, WorkbenchError):
        reason = DIFFERENT.get((row.name, edge), "")
        if not reason:
            raise
        assert_as_recorded(comparison.name, gradients)
        return f"{row.name} at {edge}: ours is {reason}"
    assert comparison.name not in recorded(), "it is torch's now: it needs no line"
    return ""


def different_gradients(comparison: EdgeComparison) -> list[Array] | WorkbenchError | None:
    """Return our gradients, or why there are none; None where they are torch's, or torch has
    none."""
    key, row, _ = comparison
    arrays = operands(comparison)
    torchs = _torchs_or_reason(comparison, arrays)
    if isinstance(torchs, str):
        return None
    gradients = _ours_or_refusal(key, row, arrays, torchs[0])
    with suppress(AssertionError, WorkbenchError):
        _assert_agrees(gradients, torchs[1])
        return None
    return gradients


def _assert_agrees(gradients: list[Array] | WorkbenchError, expected: Sequence[Array]) -> None:
    if isinstance(gradients, WorkbenchError):
        raise gradients
    for mine, other in zip(gradients, expected, strict=True):
        _assert_equal(mine, other)


def _torchs_or_reason(
    comparison: EdgeComparison, arrays: Sequence[Array]
) -> tuple[list[int], list[Any]] | str:
    key, row, _ = comparison
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            places, expected = _torchs(key, row, arrays)
        except (RuntimeError, LookupError, ValueError, AssertionError):
            return "torch refuses such operands"
    return (places, expected) if expected else "torch has no such gradient"


def _ours_or_refusal(
    key: str, row: Case, arrays: list[Array], places: Sequence[int]
) -> list[Array] | WorkbenchError:
    try:
        with Context(DEV="LLVM"):
            return _ours(key, row, arrays, places)
    except WorkbenchError as error:
        return error


def operands(comparison: EdgeComparison) -> list[Array]:
    """Return the operands of a row at an edge."""
    _, row, edge = comparison
    rng = np.random.default_rng(zlib.crc32(comparison.name.encode()))
    arrays = row.inputs("float64")
    if edge in SHAPES:
        return [SHAPES[edge](rng, a) if a.ndim and a.size else a for a in arrays]
    return [EDGES[edge](rng, a).astype("float64") if a.dtype == np.float64 else a for a in arrays]


def _torchs(key: str, row: Case, arrays: Sequence[Array]) -> tuple[list[int], list[Any]]:
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


def _ours(key: str, row: Case, arrays: list[Array], places: Sequence[int]) -> list[Array]:
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
