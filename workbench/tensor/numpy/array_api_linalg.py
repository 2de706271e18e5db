"""The extension `linalg` of the array API standard over Tensors.

Products, norms and traces are expressions. What LAPACK computes is computed, by numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.tensor.lazily import refuse_to_compute
from workbench.tensor.numpy.functions import movement, products
from workbench.tensor.numpy.functions.reasons import LAPACK, hint_of
from workbench.tensor.numpy.tensor_class import tensor_class
from workbench.tensor.numpy.ufuncs import call

T = Any  # a Tensor; this room is below the class


def cross(x1: T, x2: T, /, *, axis: int = -1) -> T:
    return products.cross(x1, x2, axis=axis, beside=x1)


def diagonal(x: T, /, *, offset: int = 0) -> T:
    return movement.matrix_diagonal(x, offset)


def matmul(x1: T, x2: T, /) -> T:
    return call("matmul", x1, x2)


def matrix_norm(x: T, /, *, keepdims: bool = False, ord: Any = "fro") -> T:
    return products.matrix_norm(x, ord, keepdims)


def matrix_power(x: T, n: int, /) -> T:
    return products.matrix_power(x, n)


def matrix_transpose(x: T, /) -> T:
    return movement.matrix_transpose(x)


def outer(x1: T, x2: T, /) -> T:
    return products.vector_outer(x1, x2, x1)


def tensordot(x1: T, x2: T, /, *, axes: Any = 2) -> T:
    return products.tensordot(x1, x2, axes, x1)


def trace(x: T, /, *, offset: int = 0, dtype: Any = None) -> T:
    return products.matrix_trace(x, offset, dtype)


def vecdot(x1: T, x2: T, /, *, axis: int = -1) -> T:
    return call("vecdot", x1, x2, axis=axis)


def vector_norm(x: T, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> T:
    return products.vector_norm(x, axis, ord, keepdims)


# by LAPACK


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: T
    eigenvectors: T


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: T
    R: T


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: T
    logabsdet: T


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: T
    S: T
    Vh: T


def _computed(function: Callable[..., Any], *tensors: T, **named: Any) -> Any:
    """Return what numpy computes of the values of Tensors: a Tensor, or a list of them."""
    name = f"linalg.{function.__name__}"
    refuse_to_compute(f"{name} needs the values of a Tensor", LAPACK, hint_of(name))
    found = function(*[each.numpy() for each in tensors], **named)
    parts = [tensor_class()(np.asarray(each), device=tensors[0].device)
             for each in (found if isinstance(found, tuple) else (found,))]  # fmt: skip
    return parts if isinstance(found, tuple) else parts[0]


def cholesky(x: T, /, *, upper: bool = False) -> T:
    return _computed(np.linalg.cholesky, x, upper=upper)


def det(x: T, /) -> T:
    return _computed(np.linalg.det, x)


def eigh(x: T, /) -> EighResult:
    return EighResult(*_computed(np.linalg.eigh, x))


def eigvalsh(x: T, /) -> T:
    return _computed(np.linalg.eigvalsh, x)


def inv(x: T, /) -> T:
    return _computed(np.linalg.inv, x)


def matrix_rank(x: T, /, *, rtol: Any = None) -> T:
    return _computed(np.linalg.matrix_rank, x, rtol=rtol)


def pinv(x: T, /, *, rtol: Any = None) -> T:
    return _computed(np.linalg.pinv, x, **({} if rtol is None else {"rtol": rtol}))


def qr(x: T, /, *, mode: Any = "reduced") -> QRResult:
    return QRResult(*_computed(np.linalg.qr, x, mode=mode))


def slogdet(x: T, /) -> SlogdetResult:
    return SlogdetResult(*_computed(np.linalg.slogdet, x))


def solve(x1: T, x2: T, /) -> T:
    return _computed(np.linalg.solve, x1, x2)


def svd(x: T, /, *, full_matrices: bool = True) -> SVDResult:
    return SVDResult(*_computed(np.linalg.svd, x, full_matrices=full_matrices))


def svdvals(x: T, /) -> T:
    return _computed(np.linalg.svdvals, x)
