"""Random arguments of each function of the array API standard, valid by the standard.

Arrays stand as numpy's, dtypes as `Kind`: a test makes those of a namespace of both. Sizes of 0, no
axes, negative axes and special values are among them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.tensor.numpy.function_cases import Case, Rng, flag

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIGNED, UNSIGNED, FLOATS = INTS[:4], INTS[4:], ("float32", "float64")
REAL, WHOLE = (*INTS, *FLOATS), ("bool", *INTS)
ALL = ("bool", *REAL)
Kinds = tuple[str, ...]


class Kind(str):
    """The name of a dtype, which stands for the dtype of a namespace."""

    __slots__ = ()


def kind(rng: Rng, kinds: Kinds = ALL) -> str:
    return str(rng.choice(kinds))


def shape(rng: Rng, least: int = 0, most: int = 3, smallest: int = 0) -> tuple[int, ...]:
    sizes = rng.integers(max(smallest, 1), 5, rng.integers(least, most + 1))
    if not smallest and rng.random() < 0.15:
        sizes *= rng.random(len(sizes)) < 0.5
    return tuple(int(n) for n in sizes)


def array(rng: Rng, sizes: tuple[int, ...], kinds: Kinds = ALL, special: bool = True) -> Any:
    """Return an array of small numbers; of floats, sometimes with NaN, infinities and -0."""
    dtype = np.dtype(kind(rng, kinds))
    if dtype.kind == "b":
        return np.asarray(rng.random(sizes) < 0.5)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0 if dtype.kind == "u" else -5, 6, sizes)).astype(dtype)
    values = np.asarray(np.round(rng.normal(0, 2, sizes), 2))
    if special and rng.random() < 0.25:
        odd = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], sizes)
        values = np.where(rng.random(sizes) < 0.3, odd, values)
    return np.asarray(values).astype(dtype)


def some(rng: Rng, kinds: Kinds = ALL, least: int = 0, smallest: int = 0, **options: Any) -> Any:
    return array(rng, shape(rng, least, smallest=smallest), kinds, **options)


def axis(rng: Rng, x: Any) -> int:
    return int(rng.integers(-x.ndim, x.ndim))


def axes(rng: Rng, x: Any) -> Any:
    """Return an axis, several, or None."""
    if not x.ndim or rng.random() < 0.3:
        return None
    if rng.random() < 0.3:
        count = int(rng.integers(1, x.ndim + 1))
        return tuple(int(i) - x.ndim * flag(rng) for i in rng.permutation(x.ndim)[:count])
    return axis(rng, x)


def common(rng: Rng, kinds: Kinds) -> Kinds:
    """Return two dtypes of one kind, whose common dtype the standard states."""
    groups = [[k for k in kinds if k in group] for group in (("bool",), INTS, FLOATS)]
    groups = [group for group in groups if group]
    both = list(rng.choice(groups[int(rng.integers(len(groups)))], 2))
    if "uint64" in both and any(each in SIGNED for each in both):
        both[1] = both[0]
    return str(both[0]), str(both[1])


def operands(rng: Rng, kinds: Kinds, smallest: int = 0) -> tuple[Any, Any]:
    """Return two arrays that broadcast, of dtypes of one kind."""
    sizes = shape(rng, smallest=smallest)
    pair = []
    for each in common(rng, kinds):
        own = tuple(1 if rng.random() < 0.2 else n for n in sizes)
        pair.append(array(rng, own[int(rng.integers(len(own) + 1)) if flag(rng) else 0 :], (each,)))
    return pair[0], pair[1]


def no_zeros(x: Any) -> Any:
    """Return integers without 0, by which the standard does not say what a division is."""
    return np.where(x == 0, x.dtype.type(1), x) if x.dtype.kind in "iu" else x


def unary(kinds: Kinds = ALL) -> Case:
    return lambda rng: ((some(rng, kinds),), {})


def binary(kinds: Kinds = ALL, change: Callable[[Any], Any] = lambda y: y) -> Case:
    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x, y = operands(rng, kinds)
        y = change(y)
        if rng.random() < 0.2 and y.ndim == 0:
            return (x, y.item()), {}
        return (x, y), {}

    return case


def calls(make: Callable[[Rng], tuple[Any, ...]], **named: Callable[[Rng], Any]) -> Case:
    """Return a case of positional arguments, and of named ones that are often left out."""

    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return make(rng), {key: of(rng) for key, of in named.items() if rng.random() < 0.6}

    return case


def reduced(kinds: Kinds, smallest: int = 0, one: bool = False, **named: Any) -> Case:
    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x = some(rng, kinds, smallest=smallest)
        place = axes(rng, x)
        place = place[0] if one and isinstance(place, tuple) else place
        more = {key: of(rng) for key, of in named.items() if flag(rng)}
        return (x,), {"axis": place, "keepdims": flag(rng)} | more

    return case


def along(kinds: Kinds, smallest: int = 0, **named: Any) -> Case:
    """Return a case of an array and an axis of it, by name."""

    def case(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x = some(rng, kinds, least=1, smallest=smallest)
        more = {key: of(rng) for key, of in named.items() if flag(rng)}
        return (x,), ({"axis": axis(rng, x)} if flag(rng) else {}) | more

    return case


def scanned(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = some(rng, REAL, least=1)
    named: dict[str, Any] = {"axis": axis(rng, x)} if x.ndim > 1 or flag(rng) else {}
    named |= {"include_initial": True} if flag(rng) else {}
    return (x,), named | total_kind(rng, x)


def total_kind(rng: Rng, x: Any) -> dict[str, Any]:
    wide = FLOATS if x.dtype.kind == "f" else ("int64",) if x.dtype.kind == "i" else ("uint64",)
    return {"dtype": Kind(kind(rng, wide))} if rng.random() < 0.3 else {}


def totalled(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    (x,), named = reduced(REAL)(rng)
    return (x,), named | total_kind(rng, x)


def clipped(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = some(rng, REAL)
    low, high = np.sort(array(rng, (2,), (x.dtype.name,), special=False))
    ends = [None if rng.random() < 0.2 else np.asarray(e) if flag(rng) else e.item()
            for e in (low, high)]  # fmt: skip
    return (x, *ends), {}


def joined(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    first = some(rng, least=1)
    place, other = axis(rng, first), common(rng, (first.dtype.name,))[0]
    parts = [first]
    for _ in range(int(rng.integers(0, 3))):
        sizes = list(first.shape)
        sizes[place] = int(rng.integers(0, 4))
        parts.append(array(rng, tuple(sizes), (other,)))
    return (parts,), {"axis": None if rng.random() < 0.2 else place}


def stacked(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    first = some(rng)
    parts = [array(rng, first.shape, (first.dtype.name,)) for _ in range(int(rng.integers(0, 3)))]
    return ([first, *parts],), {"axis": int(rng.integers(-first.ndim - 1, first.ndim + 1))}


def reshaped(rng: Rng) -> tuple[Any, ...]:
    x = some(rng)
    sizes = list(x.shape)
    rng.shuffle(sizes)
    if x.size and flag(rng):
        sizes[: 2 if len(sizes) > 1 else 1] = [-1]
    return x, tuple(sizes)


def broadcast(rng: Rng) -> tuple[Any, ...]:
    sizes = shape(rng)
    own = tuple(1 if rng.random() < 0.4 else n for n in sizes)
    return array(rng, own[int(rng.integers(len(own) + 1)) :]), sizes


def expanded(rng: Rng) -> tuple[Any, ...]:
    x = some(rng)
    return x, int(rng.integers(-x.ndim - 1, x.ndim + 1))


def squeezed(rng: Rng) -> tuple[Any, ...]:
    x = np.expand_dims(some(rng), (0, -1))
    return x, [0, -1, (0, -1), (x.ndim - 1,)][int(rng.integers(4))]


def moved(rng: Rng) -> tuple[Any, ...]:
    x = some(rng, least=1)
    count = int(rng.integers(1, x.ndim + 1))
    both = [tuple(int(i) for i in rng.permutation(x.ndim)[:count]) for _ in range(2)]
    return (x, *both) if flag(rng) else (x, axis(rng, x), axis(rng, x))


def permuted(rng: Rng) -> tuple[Any, ...]:
    x = some(rng)
    return x, tuple(int(i) - x.ndim * flag(rng) for i in rng.permutation(x.ndim))


def repeated(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = some(rng, least=1)
    place = axis(rng, x)
    if rng.random() < 0.3:
        return (x, int(rng.integers(0, 3))), {}
    counts = rng.integers(0, 3, x.shape[place])
    return (x, counts if flag(rng) else int(rng.integers(0, 3))), {"axis": place}


def rolled(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x, by = some(rng), int(rng.integers(-6, 7))
    if not x.ndim or rng.random() < 0.3:
        return (x, by), {}
    if flag(rng):
        return (x, by), {"axis": axis(rng, x)}
    return (x, (by, 1)), {"axis": (axis(rng, x), axis(rng, x))}


def taken(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = some(rng, least=1, smallest=1)
    place = axis(rng, x)
    n = x.shape[place]
    index = rng.integers(-n, n, shape(rng, 1, 1)).astype(kind(rng, ("int32", "int64")))
    return (x, index), {"axis": place} if x.ndim > 1 or flag(rng) else {}


def taken_along(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = some(rng, least=1, smallest=1)
    place = axis(rng, x)
    sizes = list(x.shape)
    sizes[place] = int(rng.integers(0, 4))
    return (x, rng.integers(-x.shape[place], x.shape[place], sizes)), {"axis": place}


def chosen(rng: Rng) -> tuple[Any, ...]:
    x, y = operands(rng, ALL)
    sizes = np.broadcast_shapes(x.shape, y.shape)
    mask = rng.random(sizes if flag(rng) else sizes[1:]) < 0.5
    if rng.random() < 0.2 and x.ndim == 0:
        return np.asarray(mask), x.item(), y
    return np.asarray(mask), x, y


def searched(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    edges = array(rng, (int(rng.integers(1, 6)),), REAL, special=False)
    values = array(rng, shape(rng, 1, 2), (edges.dtype.name,), special=False)
    named: dict[str, Any] = {"side": "right"} if flag(rng) else {}
    if flag(rng):
        return (edges, values), named | {"sorter": np.argsort(edges)}
    return (np.sort(edges), values), named


def differences(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = some(rng, REAL, least=1, special=False)
    place = axis(rng, x)
    named: dict[str, Any] = {"axis": place} | ({"n": int(rng.integers(0, 4))} if flag(rng) else {})
    for key in ("prepend", "append"):
        if rng.random() < 0.3:
            sizes = [1 if i == place % x.ndim else n for i, n in enumerate(x.shape)]
            named[key] = array(rng, tuple(sizes), (x.dtype.name,), special=False)
    return (x,), named


def matrices(rng: Rng) -> tuple[Any, Any]:
    m, k, n = (int(i) for i in rng.integers(0 if rng.random() < 0.15 else 1, 4, 3))
    batch = shape(rng, 0, 1, smallest=1)
    one, other = common(rng, REAL)
    x = array(rng, (k,) if rng.random() < 0.2 else (*batch, m, k), (one,), special=False)
    return x, array(rng, (k,) if rng.random() < 0.2 else (k, n), (other,), special=False)


def vectors(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    one, other = common(rng, REAL)
    x = array(rng, shape(rng, 1, 3), (one,), special=False)
    y = array(rng, x.shape if flag(rng) else x.shape[-1:], (other,), special=False)
    return (x, y), {"axis": int(rng.integers(-y.ndim, 0))} if flag(rng) else {}


def contracted(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    one, other = common(rng, REAL)
    x = array(rng, shape(rng, 2, 3), (one,), special=False)
    if flag(rng):
        y = array(rng, (*x.shape[-2:], 2), (other,), special=False)
        return (x, y), {"axes": 2} if flag(rng) else {}
    y = array(rng, (x.shape[0], 3, x.shape[-1]), (other,), special=False)
    return (x, y), {"axes": ((0, -1), (-3, 2))}


def crossed(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    one, other = common(rng, REAL)
    sizes = list(shape(rng, 1, 3))
    place = int(rng.integers(-len(sizes), 0))
    sizes[place] = 3
    x, y = (array(rng, tuple(sizes), (each,), special=False) for each in (one, other))
    return (x, y), {"axis": place}


def matrix(rng: Rng, kinds: Kinds = REAL, smallest: int = 0, square: bool = False) -> Any:
    sizes = list(shape(rng, 2, 3, smallest))
    sizes[-1] = sizes[-2] if square else sizes[-1]
    return array(rng, tuple(sizes), kinds, special=False)


def regular(rng: Rng) -> Any:
    """Return symmetric matrices, whose eigenvalues lie from 1 up."""
    n = int(rng.integers(1, 4))
    x = rng.normal(0, 1, (*shape(rng, 0, 1, smallest=1), n, n))
    return (x @ np.swapaxes(x, -1, -2) + np.eye(n)).astype(kind(rng, FLOATS))


def solved(rng: Rng) -> tuple[Any, ...]:
    x = regular(rng)
    sizes = x.shape[:-1] if x.ndim == 2 and flag(rng) else (*x.shape[:-1], 2)
    return x, array(rng, sizes, (x.dtype.name,), special=False)


def vector_norms(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    (x,), named = reduced(FLOATS, smallest=1)(rng)
    orders = (0, 1, 2, 3, 0.5, -1, np.inf, -np.inf)
    return (x,), named | ({"ord": orders[int(rng.integers(8))]} if flag(rng) else {})


def ranges(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    start, stop = (int(i) for i in rng.integers(-9, 10, 2))
    step: Any = [1, 2, -1, -3, 0.5, 1.25][int(rng.integers(6))]
    args = ((abs(stop),), (start, stop), (start, stop, step))[int(rng.integers(3))]
    kinds = FLOATS if isinstance(step, float) else (*SIGNED, *FLOATS)
    return args, {"dtype": Kind(kind(rng, kinds))} if flag(rng) else {}


def lines(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    start, stop = (float(i) for i in np.round(rng.normal(0, 5, 2), 1))
    named: dict[str, Any] = {"endpoint": False} if flag(rng) else {}
    named["dtype"] = Kind(kind(rng, FLOATS))
    return (start, stop, int(rng.integers(0, 6))), named


def filled(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    value: Any = [True, 3, -2, 1.5, float("nan")][int(rng.integers(5))]
    kinds = {bool: ("bool",), int: (*SIGNED, *FLOATS), float: FLOATS}[type(value)]
    is_left_out = flag(rng) and type(value) is not float
    named = {} if is_left_out else {"dtype": Kind(kind(rng, kinds))}
    return (shape(rng) if flag(rng) else 3, value), named


def filled_like(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    (_, value), named = filled(rng)
    kinds = {bool: ("bool",), int: (*SIGNED, *FLOATS), float: FLOATS}[type(value)]
    return (some(rng, kinds), value), named


def converted(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = some(rng, special=False)
    kinds = UNSIGNED if x.dtype.kind == "u" else SIGNED
    return (np.abs(x) if x.dtype.kind == "f" else x, Kind(kind(rng, ("bool", *kinds, *FLOATS)))), {}


def as_arrays(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = some(rng, special=False)
    value = [x, x.tolist(), x.item() if x.ndim == 0 else x][int(rng.integers(3))]
    is_stated = x.dtype.kind == "f" or not x.size or flag(rng)
    return (value,), {"dtype": Kind(x.dtype.name)} if is_stated else {}


def dtypes_of(rng: Rng) -> tuple[Any, ...]:
    one, other = common(rng, ALL)
    first: Any = array(rng, (2,), (one,)) if flag(rng) else Kind(one)
    return first, Kind(other)


def questions(rng: Rng) -> tuple[Any, ...]:
    names = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric")
    options: list[Any] = [*names, names[:2], Kind(kind(rng)), (names[3], Kind(kind(rng)))]
    return Kind(kind(rng)), options[int(rng.integers(len(options)))]


def _shift(y: Any) -> Any:
    return np.asarray(np.abs(y) % 8)


def sized(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    sizes = shape(rng) if flag(rng) else int(rng.integers(0, 4))
    return (sizes,), {"dtype": Kind(kind(rng))}


def eyes(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    sizes = tuple(int(n) for n in rng.integers(0, 4, rng.integers(1, 3)))
    named = {"k": int(rng.integers(-4, 5))} if flag(rng) else {}
    return sizes, named | {"dtype": Kind(kind(rng))}


like = calls(lambda rng: (some(rng),), dtype=lambda rng: Kind(kind(rng)))
stably = calls(lambda rng: (some(rng, REAL, least=1, special=False),), descending=flag)
TO_FLOAT = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log"),
    *("log10", "log1p", "log2", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh", "signbit"),
)
"""Functions of one array of floats."""
FROM_FLOATS = ("atan2", "copysign", "divide", "hypot", "logaddexp", "nextafter")
"""Functions of two arrays of floats."""
STANDARD: dict[str, Case] = {
    **{name: unary(FLOATS) for name in TO_FLOAT},
    **{name: unary(REAL) for name in (
        *("abs", "ceil", "floor", "isfinite", "isinf", "isnan", "negative", "positive", "round"),
        *("sign", "square", "trunc", "conj"))},
    **{name: binary(FLOATS) for name in FROM_FLOATS},
    **{name: binary(REAL) for name in (
        *("add", "greater", "greater_equal", "less", "less_equal", "maximum", "minimum"),
        *("multiply", "subtract"))},
    **{name: binary(REAL, no_zeros) for name in ("floor_divide", "remainder")},
    **{name: binary(WHOLE) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{f"bitwise_{name}_shift": binary(INTS, _shift) for name in ("left", "right")},
    **{name: binary() for name in ("equal", "not_equal")},
    **{f"logical_{name}": binary(("bool",)) for name in ("and", "or", "xor")},
    "bitwise_invert": unary(WHOLE),
    "logical_not": unary(("bool",)),
    "pow": binary(REAL, lambda y: np.asarray(np.abs(y)) if y.dtype.kind in "iu" else y),
    "clip": clipped,
    # creation
    "arange": ranges,
    "asarray": as_arrays,
    "empty": sized,
    "empty_like": like,
    "eye": eyes,
    "from_dlpack": unary(),
    "full": filled,
    "full_like": filled_like,
    "linspace": lines,
    "meshgrid": calls(lambda rng: tuple(array(rng, shape(rng, 1, 1), ("int32",))
                                        for _ in range(int(rng.integers(0, 4)))),
                      indexing=lambda rng: str(rng.choice(["xy", "ij"]))),
    "ones": sized,
    "ones_like": like,
    "tril": calls(lambda rng: (some(rng, least=2),), k=lambda rng: int(rng.integers(-4, 5))),
    "triu": calls(lambda rng: (some(rng, least=2),), k=lambda rng: int(rng.integers(-4, 5))),
    "zeros": sized,
    "zeros_like": like,
    # dtypes
    "astype": converted,
    "can_cast": calls(dtypes_of),
    "finfo": calls(lambda rng: (Kind(kind(rng, FLOATS)),)),
    "iinfo": calls(lambda rng: (Kind(kind(rng, INTS)),)),
    "isdtype": calls(questions),
    "result_type": calls(dtypes_of),
    # shapes
    "broadcast_arrays": calls(lambda rng: operands(rng, ALL)),
    "broadcast_shapes": calls(lambda rng: tuple(x.shape for x in operands(rng, ALL))),
    "broadcast_to": calls(broadcast),
    "concat": joined,
    "expand_dims": calls(expanded),
    "flip": lambda rng: ((x := some(rng),), {"axis": axes(rng, x)}),
    "moveaxis": calls(moved),
    "permute_dims": calls(permuted),
    "repeat": repeated,
    "reshape": calls(reshaped),
    "roll": rolled,
    "squeeze": calls(squeezed),
    "stack": stacked,
    "tile": calls(lambda rng: (some(rng), shape(rng))),
    "unstack": along(ALL),
    "matrix_transpose": calls(lambda rng: (some(rng, least=2),)),
    # choices, order, sets
    "argmax": reduced(REAL, smallest=1, one=True),
    "argmin": reduced(REAL, smallest=1, one=True),
    "argsort": stably,
    "count_nonzero": reduced(ALL),
    "isin": calls(lambda rng: operands(rng, INTS, smallest=1)),
    "nonzero": calls(lambda rng: (some(rng, least=1),)),
    "searchsorted": searched,
    "sort": stably,
    "take": taken,
    "take_along_axis": taken_along,
    "where": calls(chosen),
    **{f"unique_{name}": unary() for name in ("all", "counts", "inverse", "values")},
    # statistics
    "all": reduced(ALL),
    "any": reduced(ALL),
    "cumulative_prod": scanned,
    "cumulative_sum": scanned,
    "diff": differences,
    "max": reduced(REAL, smallest=1),
    "mean": reduced(FLOATS),
    "min": reduced(REAL, smallest=1),
    "prod": totalled,
    "std": reduced(FLOATS, smallest=2, correction=lambda rng: float(rng.integers(0, 2))),
    "sum": totalled,
    "var": reduced(FLOATS, smallest=2, correction=lambda rng: float(rng.integers(0, 2))),
    # products
    "matmul": calls(matrices),
    "tensordot": contracted,
    "vecdot": vectors,
    "linalg.cholesky": calls(lambda rng: (regular(rng),), upper=flag),
    "linalg.cross": crossed,
    "linalg.det": calls(lambda rng: (matrix(rng, FLOATS, square=True),)),
    "linalg.diagonal": calls(lambda rng: (matrix(rng, ALL),),
                             offset=lambda rng: int(rng.integers(-4, 5))),
    "linalg.eigh": calls(lambda rng: (regular(rng),)),
    "linalg.eigvalsh": calls(lambda rng: (regular(rng),)),
    "linalg.inv": calls(lambda rng: (regular(rng),)),
    "linalg.matmul": calls(matrices),
    "linalg.matrix_norm": calls(lambda rng: (matrix(rng, FLOATS, 1),), keepdims=flag,
                                ord=lambda rng: ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)[
                                    int(rng.integers(8))]),
    "linalg.matrix_power": calls(lambda rng: (regular(rng), int(rng.integers(-2, 4)))),
    "linalg.matrix_rank": calls(lambda rng: (matrix(rng, FLOATS, 1),)),
    "linalg.matrix_transpose": calls(lambda rng: (matrix(rng, ALL),)),
    "linalg.outer": calls(lambda rng: tuple(array(rng, shape(rng, 1, 1), (each,), special=False)
                                            for each in common(rng, REAL))),
    "linalg.pinv": calls(lambda rng: (regular(rng),)),
    "linalg.qr": calls(lambda rng: (matrix(rng, FLOATS, 1),),
                       mode=lambda rng: str(rng.choice(["reduced", "complete"]))),
    "linalg.slogdet": calls(lambda rng: (matrix(rng, FLOATS, square=True),)),
    "linalg.solve": calls(solved),
    "linalg.svd": calls(lambda rng: (matrix(rng, FLOATS, 1),), full_matrices=flag),
    "linalg.svdvals": calls(lambda rng: (matrix(rng, FLOATS, 1),)),
    "linalg.tensordot": contracted,
    "linalg.trace": lambda rng: ((x := matrix(rng),), total_kind(rng, x)),
    "linalg.vecdot": vectors,
    "linalg.vector_norm": vector_norms,
}  # fmt: skip
"""A case of each function of the standard, by its name in the namespace."""

OPERATORS: dict[str, tuple[Callable[..., Any], Case]] = {
    **{name: (getattr(operator, name), binary(REAL)) for name in (
        "add", "sub", "mul", "lt", "le", "gt", "ge")},
    **{name: (getattr(operator, name), binary(REAL, no_zeros)) for name in ("floordiv", "mod")},
    **{name: (getattr(operator, name), binary()) for name in ("eq", "ne")},
    **{name: (getattr(operator, name), binary(WHOLE)) for name in ("and_", "or_", "xor")},
    **{name: (getattr(operator, name), binary(INTS, _shift)) for name in ("lshift", "rshift")},
    "truediv": (operator.truediv, binary(FLOATS)),
    "pow": (operator.pow, STANDARD["pow"]),
    "matmul": (operator.matmul, calls(matrices)),
    "neg": (operator.neg, unary(REAL)),
    "pos": (operator.pos, unary(REAL)),
    "abs": (operator.abs, unary(REAL)),
    "invert": (operator.invert, unary(WHOLE)),
}  # fmt: skip
"""A case of each operator of the standard's arrays."""


def index(rng: Rng, sizes: tuple[int, ...], kind: str) -> Any:
    """Return an index of an array: a "mask", or of "basic" entries, or of "integers" in arrays."""
    if kind == "mask":
        return np.asarray(rng.random(sizes[: int(rng.integers(0, len(sizes) + 1))]) < 0.5)
    entries: list[Any] = []
    several = shape(rng, 0, 2, smallest=1)
    for size in sizes[: int(rng.integers(0, len(sizes) + 1))]:
        choice = rng.random()
        if kind == "integers" and size and choice < 0.5:
            entries.append(np.asarray(rng.integers(-size, size, several if flag(rng) else ())))
        elif size and choice < 0.7:
            entries.append(int(rng.integers(-size, size)))
        elif kind == "basic" and choice < 0.8:
            entries.append(None)
        else:
            ends = [None if flag(rng) else int(rng.integers(-size, size + 1)) for _ in range(2)]
            entries.append(slice(*ends, [None, 1, 2, -1, -2][int(rng.integers(5))]))
    return (*entries, Ellipsis)
