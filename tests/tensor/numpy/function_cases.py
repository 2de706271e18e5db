"""Random arguments of each of numpy's functions that has a row, as numpy takes them.

Each entry makes the positional and the named arguments of a call from a source of random numbers.
Arrays in them become Tensors, one or more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
Case = Callable[[Rng], tuple[tuple[Any, ...], dict[str, Any]]]
DTYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float32", "float64", "float64"),
)
FLOATS = ("float16", "float32", "float64")


def array(rng: Rng, shape: tuple[int, ...], dtypes: tuple[str, ...] = DTYPES) -> Any:
    """Return an array of small numbers; of floats, sometimes with NaN, infinity and -0."""
    dtype = np.dtype(str(rng.choice(dtypes)))
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else -5
        return np.asarray(rng.integers(low, 6, shape)).astype(dtype)
    values = np.asarray(np.round(rng.normal(0, 2, shape), 2))
    if rng.random() < 0.25:
        special = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], np.shape(values))
        values = np.where(rng.random(np.shape(values)) < 0.3, special, values)
    return np.asarray(values).astype(dtype)


def shape_of(rng: Rng, least: int = 0, most: int = 3, smallest: int = 1) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(smallest, 5, rng.integers(least, most + 1)))


def some(rng: Rng, least: int = 0, most: int = 3, **options: Any) -> Any:
    return array(rng, shape_of(rng, least, most), **options)


def axis(rng: Rng, a: Any) -> int:
    return int(rng.integers(-a.ndim, a.ndim))


def maybe_axis(rng: Rng, a: Any) -> Any:
    if a.ndim == 0 or rng.random() < 0.3:
        return None
    if a.ndim > 1 and rng.random() < 0.3:
        return tuple(int(i) for i in rng.permutation(a.ndim)[:2])
    return axis(rng, a)


def flag(rng: Rng) -> bool:
    return bool(rng.random() < 0.5)


def unary(least: int = 0, most: int = 3, **options: Any) -> Case:
    return lambda rng: ((some(rng, least, most, **options),), {})


def reduction(smallest: int = 1, dtyped: bool = False, masked: bool = True, **options: Any) -> Case:
    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        a = array(rng, shape_of(rng, 0, 3, smallest), **options)
        named: dict[str, Any] = {"axis": maybe_axis(rng, a), "keepdims": flag(rng)}
        if dtyped and rng.random() < 0.3:
            named["dtype"] = str(rng.choice(["int64", "float32", "float64"]))
        elif masked and rng.random() < 0.3:
            # a list: numpy asks a Tensor in `where` of some of these functions alone
            named["where"] = (rng.random(a.shape[int(rng.integers(2)) :]) < 0.7).tolist()
        return (a,), named

    return case


def extreme(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, named = reduction()(rng)
    return args, {**named, "initial": 0} if "where" in named else named


def one_axis(least: int = 1, name: str = "axis", none: bool = True, **options: Any) -> Case:
    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        a = some(rng, least, **options)
        if not a.ndim or (none and flag(rng)):
            return (a,), {name: None}
        return (a,), {name: axis(rng, a)}

    return case


def pair(least: int = 0, **options: Any) -> Case:
    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        shape = shape_of(rng, least)
        other = tuple(1 if rng.random() < 0.3 else n for n in shape)
        return (array(rng, shape, **options), array(rng, other, **options)), {}

    return case


def same_shapes(count: int = 3, least: int = 1, wrap: Any = list, **named: Any) -> Case:
    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        shape = shape_of(rng, least)
        return (wrap([array(rng, shape) for _ in range(rng.integers(1, count + 1))]),), dict(named)

    return case


def of(make: Callable[[Rng], tuple[Any, ...]], **named: Any) -> Case:
    return lambda rng: (make(rng), dict(named))


def vector(rng: Rng, least: int = 1, dtypes: tuple[str, ...] = DTYPES) -> Any:
    return array(rng, (int(rng.integers(least, 7)),), dtypes)


def square(rng: Rng, stacked: bool = True) -> Any:
    n = int(rng.integers(1, 4))
    return array(rng, (2, n, n) if stacked and flag(rng) else (n, n), FLOATS)


def matrices(rng: Rng) -> tuple[Any, Any]:
    m, k, n = (int(i) for i in rng.integers(1, 5, 3))
    a, b = array(rng, (m, k)), array(rng, (k, n))
    if not (a.all() and b.all()):  # 0 times infinity is NaN, and 0 in some products of BLAS
        a, b = (np.where(np.isfinite(each), each, 1).astype(each.dtype) for each in (a, b))
    return a, b


def finite(rng: Rng, shape: tuple[int, ...], dtype: str = "float64") -> Any:
    return np.round(rng.normal(0, 2, shape), 2).astype(dtype)


def integer(rng: Rng, low: int, high: int) -> int:
    return int(rng.integers(low, high))


def _rolled(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = some(rng, 1)
    return (a, integer(rng, -5, 6)), {"axis": None if flag(rng) else axis(rng, a)}


def _padded(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = array(rng, shape_of(rng, 1, 2, 2))
    widths = [(integer(rng, 0, 4), integer(rng, 0, 4)) for _ in a.shape]
    mode = str(rng.choice(["constant", "edge", "reflect", "symmetric", "wrap"]))
    named = {"constant_values": 1} if mode == "constant" and flag(rng) else {}
    return (a, widths), {"mode": mode, **named}


def _moved(rng: Rng) -> tuple[Any, ...]:
    a = some(rng, 2)
    return a, axis(rng, a), axis(rng, a)


def _with_indices(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = some(rng, 1)
    place = axis(rng, a)
    mode = str(rng.choice(["raise", "wrap", "clip"]))
    low, high = (0, a.shape[place]) if mode == "raise" else (-9, 9)
    index = rng.integers(low, high, shape_of(rng, 0, 2))
    return (a, np.asarray(index)), {"axis": place, "mode": mode}


def _along(rng: Rng) -> tuple[Any, ...]:
    a = some(rng, 1)
    place = axis(rng, a)
    shape = tuple(3 if i == place % a.ndim else n for i, n in enumerate(a.shape))
    return a, rng.integers(-a.shape[place], a.shape[place], shape), place


def _weighted(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = some(rng, 1, dtypes=("int32", "float32", "float64"))
    if flag(rng):
        return (a,), {"axis": maybe_axis(rng, a)}
    place = axis(rng, a)
    weights = rng.integers(1, 4, a.shape if flag(rng) else a.shape[place]).astype("float64")
    return (a,), {"axis": place, "weights": weights, "keepdims": flag(rng)}


def _tensordot(rng: Rng) -> tuple[Any, ...]:
    a, b = matrices(rng)
    return [(a, b, 1), (a, b.T, ([1], [1])), (a, array(rng, a.shape), 2), (a, b, 0)][
        integer(rng, 0, 4)
    ]


def _einsum(rng: Rng) -> tuple[Any, ...]:
    a, b = matrices(rng)
    return [("ij,jk->ik", a, b), ("ij->ji", a), ("ij,jk", a, b), ("ij->", a), ("ij->j", a)][
        integer(rng, 0, 5)
    ]


def _norm(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = some(rng, 1, dtypes=("int32", *FLOATS))
    if a.ndim > 1 and flag(rng):
        order = [None, "fro", 1, -1, np.inf, -np.inf][integer(rng, 0, 6)]
        return (a,), {"ord": order, "axis": (0, 1), "keepdims": flag(rng)}
    order = [None, 0, 1, 2, 3, np.inf, -np.inf][integer(rng, 0, 7)]
    return (a,), {"ord": order, "axis": axis(rng, a), "keepdims": flag(rng)}


def _quantile(scale: float) -> Case:
    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        a = some(rng, 0, dtypes=("int32", "float32", "float64"))
        q: Any = [0.5 * scale, 0.25 * scale, [0.1 * scale, 1.0 * scale]][integer(rng, 0, 3)]
        return (a, q), {"axis": maybe_axis(rng, a), "keepdims": flag(rng)}

    return case


def _split(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = some(rng, 1)
    where: Any = integer(rng, 1, 4) if flag(rng) else [1, 3]
    return (a, where), {"axis": axis(rng, a)}


def _diff(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = some(rng, 1)
    more = {"prepend": 1, "append": 0} if rng.random() < 0.3 and a.dtype.kind != "b" else {}
    return (a,), {"n": integer(rng, 0, 3), "axis": axis(rng, a), **more}


def _clip(rng: Rng) -> tuple[Any, ...]:
    a = some(rng)
    bounds: Any = [(None, 2), (-1, None), (0, 3), (array(rng, a.shape), array(rng, a.shape))]
    return (a, *bounds[integer(rng, 0, 4)])


def _interp(rng: Rng) -> tuple[Any, ...]:
    return finite(rng, shape_of(rng, 0, 2)), np.array([-2.0, 0.5, 1.0, 3.0]), finite(rng, (4,))


CASES: dict[str, Case] = {
    **{name: reduction(dtyped=True, smallest=0) for name in ("sum", "prod")},
    **dict.fromkeys(("max", "min", "amax", "amin"), extreme),
    **{name: reduction() for name in ("any", "all")},
    "ptp": reduction(masked=False),
    **{name: reduction(dtyped=name == "mean") for name in ("mean", "var", "std")},
    "count_nonzero": reduction(masked=False),
    **{name: one_axis(0) for name in ("argmax", "argmin", "cumsum", "cumprod")},
    **{name: one_axis(0) for name in ("nancumsum", "nancumprod")},
    **{name: one_axis(1, none=False) for name in ("cumulative_sum", "cumulative_prod")},
    **{name: reduction() for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd")},
    **{name: reduction(masked=False) for name in ("nanmax", "nanmin")},
    "median": reduction(masked=False, dtypes=("int32", "float32", "float64")),
    "quantile": _quantile(1),
    "percentile": _quantile(100),
    "average": _weighted,
    "cov": of(lambda rng: (finite(rng, (3, 5)),)),
    "corrcoef": of(lambda rng: (finite(rng, (3, 5)),)),
    "diff": _diff,
    "gradient": of(lambda rng: (finite(rng, shape_of(rng, 1, 2, 2)), 0.5)[: 1 + flag(rng)]),
    "ediff1d": of(lambda rng: (some(rng, 1, 2, dtypes=("int32", "float64")),)),
    "trapezoid": of(lambda rng: (finite(rng, (3, 4)), np.arange(4.0))),
    "vander": of(lambda rng: (vector(rng, dtypes=("int32", "float64")), integer(rng, 0, 4))),
    **{name: of(lambda rng: (vector(rng), vector(rng), str(rng.choice(["full", "same", "valid"]))))
       for name in ("convolve", "correlate")},
    # movement
    "reshape": of(lambda rng: (array(rng, (4, 3)),
                               [(-1,), (3, 4), (2, -1, 3), 12][integer(rng, 0, 4)])),
    **{name: unary() for name in ("ravel", "transpose", "squeeze", "flip", "copy", "diagflat")},
    **{name: unary(2) for name in ("matrix_transpose", "linalg.matrix_transpose", "fliplr")},
    **{name: unary(2) for name in ("diagonal", "linalg.diagonal")},
    **{name: unary(1) for name in ("flipud", "tril", "triu")},
    **{name: of(_moved) for name in ("swapaxes", "moveaxis", "rollaxis")},
    "expand_dims": of(lambda rng: (some(rng), [0, -1, (0, 1)][integer(rng, 0, 3)])),
    "rot90": of(lambda rng: (some(rng, 2), integer(rng, -4, 5))),
    "roll": _rolled,
    "broadcast_to": of(lambda rng: (array(rng, (1, 3)), (2, 4, 3))),
    "broadcast_arrays": of(lambda rng: (array(rng, (1, 3)), array(rng, (4, 1)))),
    **{name: of(lambda rng: (some(rng), some(rng)))
       for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
    "repeat": of(lambda rng: (array(rng, (2, 3)), [0, 2, [1, 0, 2]][integer(rng, 0, 3)], 1)),
    "tile": of(lambda rng: (some(rng), [2, (2, 1), (1, 2, 3), 0][integer(rng, 0, 4)])),
    "resize": of(lambda rng: (some(rng, 1), [(2, 5), 3, (2, 2, 2)][integer(rng, 0, 3)])),
    "pad": _padded,
    "diag": of(lambda rng: (some(rng, 1, 2), integer(rng, -2, 3))),
    "delete": of(lambda rng: (vector(rng, 3), [0, -1, [0, 2], slice(1, 3)][integer(rng, 0, 4)])),
    "lib.stride_tricks.sliding_window_view": of(lambda rng: (array(rng, (4, 5)), (2, 3))),
    "ix_": of(lambda rng: (np.array([0, 2]), np.array([1, 3, 4]))),
    # joining
    **{name: same_shapes(least=1) for name in ("concatenate", "column_stack", "dstack")},
    **{name: same_shapes(least=0) for name in ("stack", "hstack", "vstack")},
    "append": pair(1, dtypes=("int32", "float32")),
    "block": of(lambda rng: ([[array(rng, (2, 2)), array(rng, (2, 3))],
                              [array(rng, (1, 2)), array(rng, (1, 3))]],)),
    "split": _split,
    "array_split": _split,
    **{name: of(lambda rng: (array(rng, (2, 4, 2)), 2)) for name in ("hsplit", "vsplit", "dsplit")},
    "unstack": unary(1),
    "meshgrid": lambda rng: ((vector(rng), vector(rng)), {
        "indexing": str(rng.choice(["xy", "ij"])), "sparse": flag(rng)}),
    # creation
    **{name: unary() for name in ("zeros_like", "ones_like", "real", "imag", "real_if_close")},
    **{name: unary() for name in ("iscomplex", "isreal", "iscomplexobj", "isrealobj")},
    **{name: unary() for name in ("shape", "ndim", "size")},
    "full_like": of(lambda rng: (some(rng), 3)),
    "astype": of(lambda rng: (finite(rng, (3,)), str(rng.choice(["float32", "int32"])))),
    "linspace": of(lambda rng: (finite(rng, (2,)), finite(rng, (2,)), integer(rng, 1, 6))),
    "result_type": pair(),
    "can_cast": of(lambda rng: (np.dtype("int8"), array(rng, (2,), ("int32",)).dtype)),
    "min_scalar_type": unary(1),
    "common_type": pair(dtypes=("int32", *FLOATS)),
    # elementwise
    "where": of(lambda rng: (array(rng, (2, 3)), array(rng, (1, 3)),
                             [array(rng, (2, 1)), 0.1, 3][integer(rng, 0, 3)])),
    "clip": of(_clip),
    "select": of(lambda rng: ([array(rng, (4,), ("bool",)), array(rng, (4,), ("bool",))],
                              [array(rng, (4,)), array(rng, (4,))])),
    **{name: of(lambda rng: (some(rng, dtypes=("bool", "int32", *FLOATS)), integer(rng, 0, 3)))
       for name in ("round", "around")},
    **{name: unary() for name in ("fix", "nan_to_num", "sinc", "angle")},
    **{name: unary(dtypes=("int32", *FLOATS)) for name in ("isposinf", "isneginf")},
    "isclose": pair(dtypes=("int32", *FLOATS)),
    "polyval": of(lambda rng: (vector(rng), some(rng))),
    "take": _with_indices,
    "take_along_axis": of(_along),
    **{name: one_axis(1) for name in ("sort",)},
    "argsort": of(lambda rng: (rng.permutation(12).reshape(3, 4).astype("float32"),
                               [0, 1, None][integer(rng, 0, 3)])),
    "searchsorted": of(lambda rng: (np.sort(vector(rng)), some(rng),
                                    str(rng.choice(["left", "right"])))),
    "digitize": of(lambda rng: (some(rng, dtypes=("int32", "float64")), np.array([-1.5, 0, 2]),
                                flag(rng))),
    "isin": of(lambda rng: (some(rng), vector(rng))),
    "interp": of(_interp),
    # products
    "dot": of(matrices),
    "linalg.matmul": of(matrices),
    "vdot": of(lambda rng: (array(rng, (2, 3)), array(rng, (2, 3)))),
    "inner": of(lambda rng: (array(rng, (2, 3)), array(rng, (4, 3)))),
    "outer": of(lambda rng: (some(rng), some(rng))),
    "linalg.outer": of(lambda rng: (vector(rng), vector(rng))),
    "linalg.vecdot": of(lambda rng: (array(rng, (2, 3)), array(rng, (1, 3)))),
    "tensordot": of(_tensordot),
    "linalg.tensordot": of(lambda rng: (*matrices(rng),), axes=1),
    "einsum": of(_einsum),
    "kron": of(lambda rng: (some(rng, 0, 2), some(rng, 0, 2))),
    "cross": of(lambda rng: (array(rng, (2, 3)), array(rng, (2, 3)))),
    "linalg.cross": of(lambda rng: (array(rng, (2, 3)), array(rng, (2, 3)))),
    "trace": unary(2),
    "linalg.trace": unary(2),
    "linalg.multi_dot": of(lambda rng: ([finite(rng, (2, 3)), finite(rng, (3, 4)),
                                         finite(rng, (4, 1))],)),
    "linalg.matrix_power": of(lambda rng: (square(rng), integer(rng, 0, 5))),
    "linalg.norm": _norm,
    "linalg.vector_norm": reduction(masked=False, dtypes=("int32", *FLOATS)),
    "linalg.matrix_norm": unary(2, dtypes=("int32", *FLOATS)),
}  # fmt: skip

LIKE: dict[str, Case] = {
    **{name: of(lambda rng: ((2, 3),)) for name in ("zeros", "ones")},
    "full": of(lambda rng: ((2, 3), [2, 2.5, True][integer(rng, 0, 3)])),
    "arange": of(lambda rng: (1, 9, 2)),
    "eye": of(lambda rng: (3, 4, 1)),
    "identity": of(lambda rng: (3,)),
    "tri": of(lambda rng: (3, 4, 1)),
    **{name: of(lambda rng: ([[1, 2], [3, 4]],))
       for name in ("array", "asarray", "asanyarray", "ascontiguousarray", "require",
                    "asfortranarray")},
}  # fmt: skip
"""Functions that make arrays: `like=` is a Tensor."""
WITHOUT_VALUES = ("empty", "empty_like")
"""Rows whose values are whatever lies in memory."""
