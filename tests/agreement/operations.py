"""The operations of random programs: the text of each, its meaning, and its arguments.

A row is all there is to an operation: a new one is found in programs at once. What is drawn
for its other arguments is what a stranger may type, and what lies at the edge.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.agreement import meanings as m
from tests.agreement import reduced_meanings as r
from tests.agreement.intervals import (
    BITS,
    DTYPES,
    FLOATS,
    INTEGERS,
    TINY,
    Known,
    bits,
    elements,
    known,
    limits,
    stored,
)

Dice = random.Random
Params = dict[str, Any]


def kind(dtype: str) -> str:
    return "bool" if dtype == "bool" else "float" if dtype in BITS else "int"


LARGE = {
    "fp8e4m3": 448.0,
    "fp8e5m2": 57344.0,
    "float16": 6e4,
    "bfloat16": 3e38,
    "float32": 3e38,
    "float64": 1.5e308,
}


def edges(dtype: str) -> list[Any]:
    """Return values of a dtype at which arithmetic is likely to be wrong."""
    if dtype == "bool":
        return [False, True]
    if dtype in INTEGERS:
        least, greatest = limits(dtype)
        near = [least, least + 1, greatest, greatest - 1, greatest // 2, 0, 1, 2, 3, 7, bits(dtype)]
        near += [-1, -2, -3, -8, 100, 127, 255, 2**31, 2**53 + 1, bits(dtype) - 1]
        return [n for n in near if least <= n <= greatest]
    large = LARGE[dtype]
    tiny = TINY.get(dtype, 5e-324)
    ordinary = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 0.1, 1e-3, -7.0, 100.0, 1e4]
    return [*ordinary, large, -large, tiny, -tiny, 1e30, 1e-30, np.inf, -np.inf, np.nan]


def literal(dice: Dice, dtype: str) -> bool | int | float:
    """Return a Python number that the dtype holds."""
    if dtype == "bool":
        return dice.random() < 0.5
    if dtype in BITS:
        return dice.choice((0.0, 1.0, 2.0, -1.0, 0.5, -1.5, 0.3, 2.5, 3.0, 1 / 3, 7.0, 100.0,
                            *(edges(dtype) if dice.random() < 0.3 else ())))  # fmt: skip
    least, greatest = limits(dtype)
    ordinary = (0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 10, -1, -1, -2, -3, -4, -7)
    n = int(dice.choice(ordinary if dice.random() < 0.8 else edges(dtype)))
    return n if least <= n <= greatest else abs(n)


@dataclass(frozen=True)
class Row:
    """An operation: its text, what it takes (a kind for each tensor), its meaning, and how
    its other arguments are drawn."""

    name: str
    text: str
    takes: tuple[str, ...]
    meaning: Callable[..., Known]
    draw: Callable[[Dice, list[Known]], Params | None] = lambda dice, args: {}
    scalars: bool = False
    weight: int = 1


KIND = {"any": ("bool", "int", "float"), "number": ("int", "float"), "whole": ("bool", "int"),
        "int": ("int",), "float": ("float",), "bool": ("bool",)}  # fmt: skip


def axis_of(dice: Dice, args: list[Known]) -> Params | None:
    return {"axis": dice.randrange(len(args[0].shape))} if args[0].shape else None


def axes_of(dice: Dice, args: list[Known]) -> Params:
    ndim = len(args[0].shape)
    some = tuple(sorted(dice.sample(range(ndim), dice.randint(1, ndim)))) if ndim else None
    return {"axis": dice.choice((None, *range(ndim), some)), "keepdim": dice.random() < 0.3}


def full_axes_of(dice: Dice, args: list[Known]) -> Params | None:
    """Axes to take the greatest over, which must not be empty."""
    return axes_of(dice, args) if args[0].low.size else None


def one_full_axis_of(dice: Dice, args: list[Known]) -> Params | None:
    return axis_of(dice, args) if args[0].low.size else None


def bounds_of(dice: Dice, args: list[Known]) -> Params:
    """Two bounds, either of which may be missing; often on one side of zero."""
    dtype = args[0].dtype
    low, high = sorted(literal(dice, dtype) for _ in range(2))
    if low != low or high != high:
        low, high = 0, 3
    if dice.random() < 0.5 and dtype in INTEGERS:
        least, greatest = limits(dtype)
        low, high = dice.choice(((least, -1), (0, greatest), (1, greatest), (least, -3)))
        low, high = max(low, least), max(high, least)
    way = dice.random()
    return {"low": None if way < 0.1 else low, "high": None if 0.1 <= way < 0.2 else high}


def shift_of(dice: Dice, args: list[Known]) -> Params:
    width = bits(args[0].dtype) if args[0].dtype != "bool" else 32
    return {"n": dice.choice((0, 1, 2, 3, 5, 7, width - 1, width, width + 1, 2 * width))}


def exponent_of(dice: Dice, args: list[Known]) -> Params:
    return {"n": dice.choice((0, 1, 2, 3, 4, 5, 7, 16, 17, 31))}


def dtype_of(dice: Dice, args: list[Known]) -> Params:
    return {"dtype": dice.choice(DTYPES)}


def same_width(dice: Dice, args: list[Known]) -> Params | None:
    width = stored(args[0].dtype).itemsize
    fits = [d for d in (*INTEGERS, *FLOATS) if stored(d).itemsize == width]
    return {"dtype": dice.choice(fits)} if args[0].dtype != "bool" and args[0].shape else None


def split_shape(dice: Dice, args: list[Known]) -> Params:
    parts: list[int] = []
    for n in args[0].shape:
        divisors = [d for d in range(2, n) if n % d == 0]
        d = dice.choice(divisors) if divisors and dice.random() < 0.6 else n
        parts += [d, n // d] if d != n else [n]
    if len(parts) > 1 and dice.random() < 0.4:
        i = dice.randrange(len(parts) - 1)
        parts[i : i + 2] = [parts[i] * parts[i + 1]]
    if dice.random() < 0.2:
        parts = [int(np.prod(parts, dtype=int))]
    return {"shape": tuple(parts)}


def order_of(dice: Dice, args: list[Known]) -> Params | None:
    ndim = len(args[0].shape)
    return {"order": tuple(dice.sample(range(ndim), ndim))} if ndim > 1 else None


def padding_of(dice: Dice, args: list[Known]) -> Params | None:
    if not args[0].shape:
        return None
    sides = tuple((dice.randint(0, 3), dice.randint(0, 3)) for _ in args[0].shape)
    value = literal(dice, args[0].dtype) if dice.random() < 0.4 else 0
    return {"padding": sides, "value": value}


def cut_of(dice: Dice, args: list[Known]) -> Params | None:
    if not args[0].shape:
        return None
    cuts = (":", "1:", ":-1", "::2", "::-1", "2:", ":3", "-3:", "::-3", "0", "-1", ":0", "None")
    weights = (6, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0.05, 0.5)
    chosen = [dice.choices(cuts, weights)[0] for _ in args[0].shape]
    needed = [n for n, c in zip(args[0].shape, chosen, strict=True) if c in ("0", "-1")]
    return None if 0 in needed else {"cut": ", ".join(chosen)}


def expand_of(dice: Dice, args: list[Known]) -> Params:
    shape = tuple(dice.choice((1, 3, 8, 16)) if n == 1 else n for n in args[0].shape)
    return {"shape": (dice.choice((2, 3, 8)), *shape) if dice.random() < 0.6 else shape}


def repeats_of(dice: Dice, args: list[Known]) -> Params | None:
    return (
        {"repeats": tuple(dice.choice((1, 2, 3)) for _ in args[0].shape)} if args[0].shape else None
    )


def each_of(dice: Dice, args: list[Known]) -> Params | None:
    params = axis_of(dice, args)
    return None if params is None else params | {"count": dice.choice((2, 3, 4))}


def dim_of(dice: Dice, args: list[Known]) -> Params | None:
    if args[0].shape != args[1].shape or not args[0].shape:
        return None
    return {"dim": dice.randrange(len(args[0].shape))}


def places_of(dice: Dice, args: list[Known]) -> Params | None:
    params = one_full_axis_of(dice, args)
    if params is None:
        return None
    size = args[0].shape[params["axis"]]
    places = [dice.randrange(-size, size) for _ in range(dice.choice((1, 2, 5, 8, 16)))]
    return params | {"places": places, "before": ":, " * params["axis"]}


def classes_of(dice: Dice, args: list[Known]) -> Params | None:
    return {"count": dice.choice((3, 8, 16))} if args[0].low.size <= 256 else None


def branches_of(dice: Dice, args: list[Known]) -> Params:
    """Two plain numbers of one kind."""
    dtype = dice.choice(("int32", "int32", "float32", "float32", "bool"))
    return {"yes": literal(dice, dtype), "no": literal(dice, dtype)}


SIGNS: dict[str, m.Meaning] = {
    "<": m.compared(np.less),
    "<=": m.compared(np.less_equal),
    ">": m.compared(np.greater),
    ">=": m.compared(np.greater_equal),
    "==": m.equal,
    "!=": m.different,
}


def sign_of(dice: Dice, args: list[Known]) -> Params | None:
    """Positions along the last axis, against what stands there."""
    shape = args[0].shape
    return {"size": shape[-1], "sign": dice.choice(list(SIGNS))} if shape else None


def square_of(dice: Dice, args: list[Known]) -> Params | None:
    a, b = (x.shape for x in args)
    return {} if len(a) == 2 == len(b) and a[1] == b[0] else None


def _plain_branches(c: Known, yes: Any, no: Any) -> Known:
    dtypes = {bool: "bool", int: "int32", float: "float32"}
    a, b = (known(np.asarray(v, dtypes[type(v)])) for v in (yes, no))
    return m.chosen(c, a, b)


def _positions_against(a: Known, size: int, sign: str) -> Known:
    return SIGNS[sign](known(np.arange(size, dtype=np.int32)), a)


def _positions(a: Known, places: list[int], axis: int, before: str) -> Known:
    return m.taken(a, known(np.array(places)), axis)


COPIED = "lambda x: (lambda i: x.__setitem__(i, x[i]))(tuple(map(x.axis, range(x.ndim))))"
"""A kernel written by hand that copies a tensor of any shape."""
ONE, TWO = ("number",), ("any", "any")
ELEMENTS = (
    Row("add", "{0} + {1}", TWO, m.add, scalars=True, weight=3),
    Row("sub", "{0} - {1}", ("number", "any"), m.subtract, scalars=True, weight=2),
    Row("mul", "{0} * {1}", TWO, m.multiply, scalars=True, weight=3),
    Row("div", "{0} / {1}", TWO, m.divide, scalars=True, weight=2),
    Row("floordiv", "{0} // {1}", TWO, m.floor_divide, scalars=True, weight=4),
    Row("mod", "{0} % {1}", TWO, m.remainder, scalars=True, weight=5),
    Row("pow", "{0} ** {1}", ("float", "float"), m.power, scalars=True, weight=8),
    Row("whole pow", "{0} ** {n}", ("whole",), m.whole_power, exponent_of),
    Row("less", "{0} < {1}", TWO, SIGNS["<"], scalars=True, weight=3),
    Row("less or equal", "{0} <= {1}", TWO, SIGNS["<="], scalars=True, weight=3),
    Row("greater", "{0} > {1}", TWO, SIGNS[">"], scalars=True, weight=3),
    Row("greater or equal", "{0} >= {1}", TWO, SIGNS[">="],
        scalars=True, weight=3),
    Row("equal", "{0} == {1}", TWO, SIGNS["=="], scalars=True, weight=3),
    Row("different", "{0} != {1}", TWO, SIGNS["!="], scalars=True, weight=3),
    Row("positions", "Tensor.arange({size}) {sign} {0}", ("any",), _positions_against,
        sign_of, weight=6),
    Row("maximum", "{0}.maximum({1})", TWO, m.maximum, scalars=True),
    Row("minimum", "{0}.minimum({1})", TWO, m.minimum, scalars=True),
    Row("and", "{0} & {1}", ("whole", "whole"), m.bitwise(np.bitwise_and), scalars=True),
    Row("or", "{0} | {1}", ("whole", "whole"), m.bitwise(np.bitwise_or), scalars=True),
    Row("xor", "{0} ^ {1}", ("whole", "whole"), m.bitwise(np.bitwise_xor), scalars=True),
    Row("shl", "{0} << {1}", ("int", "int"), m.shifted(np.left_shift)),
    Row("shr", "{0} >> {1}", ("int", "int"), m.shifted(np.right_shift)),
    Row("shl by", "{0} << {n}", ("whole",), m.shifted_by(np.left_shift), shift_of, weight=4),
    Row("shr by", "{0} >> {n}", ("whole",), m.shifted_by(np.right_shift), shift_of, weight=8),
    Row("clip", "{0}.clip({low}, {high})", ONE, m.clipped, bounds_of, weight=10),
    Row("where", "{0}.where({1}, {2})", ("bool", "any", "any"), m.chosen, weight=3),
    Row("where plain", "{0}.where({yes}, {no})", ("bool",), _plain_branches, branches_of,
        weight=15),
    Row("not", "~{0}", ("whole",), lambda a: known(np.invert(a.low)), weight=2),
    Row("neg", "-{0}", ONE, m.negative, weight=2),
    Row("abs", "{0}.abs()", ONE, m.absolute),
    Row("relu", "{0}.relu()", ONE, lambda a: m.clipped(a, 0, None)),
    Row("sign", "{0}.sign()", ONE, lambda a: elements(a, np.sign, signed=False)),
    Row("square", "{0}.square()", ONE, m.squared),
    Row("trunc", "{0}.trunc()", ONE, m.whole(np.trunc)),
    Row("floor", "{0}.floor()", ONE, m.whole(np.floor)),
    Row("ceil", "{0}.ceil()", ONE, m.whole(np.ceil)),
    Row("round", "{0}.round()", ONE, m.whole(np.round)),
    Row("isnan", "{0}.isnan()", ONE, lambda a: known(np.isnan(a.low))),
    Row("sqrt", "{0}.sqrt()", ("any",), m.sqrt),
    Row("rsqrt", "{0}.rsqrt()", ("any",), m.root_inverted),
    Row("reciprocal", "{0}.reciprocal()", ("any",), m.inverted),
    Row("exp", "{0}.exp()", ("any",), m.exp),
    Row("exp2", "{0}.exp2()", ("any",), m.function(np.exp2, 4.0)),
    Row("log", "{0}.log()", ("any",), m.log),
    Row("log2", "{0}.log2()", ("any",), m.function(np.log2, 4.0, 2.0**-22)),
    Row("sin", "{0}.sin()", ("any",), m.wave(np.sin, 4.0)),
    Row("cos", "{0}.cos()", ("any",), m.wave(np.cos, 4.0)),
    Row("tanh", "{0}.tanh()", ("any",), m.function(np.tanh, 8.0)),
    Row("erf", "{0}.erf()", ("any",), m.function(np.vectorize(math.erf, otypes=[float]), 8.0)),
    Row("sigmoid", "{0}.sigmoid()", ("any",),
        m.function(lambda v: 1 / (1 + np.exp(-v)), 8.0, 2.0**-126)),
    Row("cast", "{0}.cast(dtypes.{dtype})", ("any",), m.cast, dtype_of, weight=6),
    Row("bitcast", "{0}.bitcast(dtypes.{dtype})", ONE, m.bits_as, same_width),
)  # fmt: skip
SUMS = (
    Row("sum", "{0}.sum(axis={axis}, keepdim={keepdim})", ("any",), r.total, axes_of, weight=8),
    Row("prod", "{0}.prod(axis={axis}, keepdim={keepdim})", ("any",), r.product, axes_of),
    Row("mean", "{0}.mean(axis={axis}, keepdim={keepdim})", ("any",), r.average, full_axes_of),
    Row("max", "{0}.max(axis={axis}, keepdim={keepdim})", ("any",),
        r.reduced(np.max), full_axes_of, weight=2),
    Row("min", "{0}.min(axis={axis}, keepdim={keepdim})", ("any",),
        r.reduced(np.min), full_axes_of),
    Row("argmax", "{0}.argmax({axis})", ONE, r.position(np.argmax), one_full_axis_of),
    Row("argmin", "{0}.argmin({axis})", ONE, r.position(np.argmin), one_full_axis_of),
    Row("any", "{0}.any({axis})", ("any",), r.truth(np.any), axis_of),
    Row("all", "{0}.all({axis})", ("any",), r.truth(np.all), axis_of),
    Row("cumsum", "{0}.cumsum({axis})", ("any",), r.running_total, axis_of, weight=12),
    Row("cumprod", "{0}.cumprod({axis})", ("any",), r.running_product, axis_of),
    Row("cummax", "{0}.cummax({axis})[0]", ("any",), r.running_greatest, one_full_axis_of),
    Row("softmax", "{0}.softmax({axis})", ("any",), r.softmax, one_full_axis_of),
    Row("matmul", "{0} @ {1}", ("number", "number"), r.matrix_product, square_of, weight=4),
)  # fmt: skip
MOVES = (
    Row("reshape", "{0}.reshape({shape})", ("any",),
        m.moved(lambda v, shape: v.reshape(shape)), split_shape, weight=3),
    Row("permute", "{0}.permute({order})", ("any",),
        m.moved(lambda v, order: v.transpose(order)), order_of, weight=3),
    Row("flip", "{0}.flip({axis})", ("any",), m.moved(lambda v, axis: np.flip(v, axis)), axis_of),
    Row("pad", "{0}.pad({padding}, value={value})", ("any",), m.padded, padding_of, weight=2),
    Row("cut", "{0}[{cut}]", ("any",),
        m.moved(lambda v, cut: eval(f"v[{cut}]", {"v": v})), cut_of, weight=3),
    Row("expand", "{0}.expand({shape})", ("any",),
        m.moved(lambda v, shape: np.broadcast_to(v, shape)), expand_of),
    Row("repeat", "{0}.repeat({repeats})", ("any",),
        m.moved(lambda v, repeats: np.tile(v, repeats)), repeats_of),
    Row("repeat each", "{0}.repeat_interleave({count}, {axis})", ("any",),
        m.moved(lambda v, count, axis: np.repeat(v, count, axis)), each_of),
    Row("cat", "{0}.cat({1}, dim={dim})", TWO, m.joined(np.concatenate), dim_of),
    Row("stack", "Tensor.stack({0}, {1}, dim={dim})", TWO, m.joined(np.stack), dim_of),
    Row("take", "{0}[{before}Tensor({places})]", ("any",), _positions, places_of),
    Row("one_hot", "{0}.one_hot({count})", ("int",), m.one_hot, classes_of),
    Row("contiguous", "{0}.contiguous()", ("any",), lambda a: a),
    Row("by hand", f"{{0}}.custom_kernel(fxn={COPIED})[0]", ("any",), lambda a: a),
)  # fmt: skip
ROWS = (*ELEMENTS, *SUMS, *MOVES)
TABLES = [(table, [row.weight for row in table]) for table in (ELEMENTS, SUMS, MOVES)]

COMPARED = ("less", "less or equal", "greater", "greater or equal", "equal", "different")
BOUNDED = ("clip", "clip", "clip", "mod", "and", "abs", "cast")
COUNTED = ("cumsum", "cumsum", "sum", "argmax")
IDIOMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "counting mask": ((*BOUNDED, "greater", "less"), ("positions",), COUNTED),
    "chosen mask": ((*BOUNDED, "greater", "less"), ("positions",), ("where plain",), COUNTED),
    "shift of a known range": (BOUNDED, ("shr by", "shr by", "shl by"), ("add", "sub", *COMPARED)),
    "known range": (BOUNDED, ("floordiv", "mod", "div", *COMPARED), ("add", "mul", "sum", "where")),
}
"""What strangers type, as steps of which each takes the last tensor, and plain numbers: a row of
each step is drawn. Bounds of a value (of positions, of a clip) decide a part of what follows."""
NAMED = {row.name: row for row in ROWS}
