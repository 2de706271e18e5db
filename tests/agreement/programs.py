"""Random programs of tensors, as a stranger may type them, and what numpy says they give.

A program is a list of lines, each a tensor `t3`; `meanings.py` has what each line means.
All dtypes meet, at sizes that fill whole vectors and at odd ones; data is ordinary, or what
is at the edge: extreme integers, infinities, NaN, -0.0, denormals, huge numbers. What is
expected is an interval for each element, one number for most (see `intervals.py`), so
a comparison is as strict as it can be. Most steps are drawn one by one, some as the idioms of
`operations.py`. `program(seed).script()` is what to paste.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tests.agreement.intervals import (
    BITS,
    DTYPES,
    FP8,
    INTEGERS,
    LACKED,
    Ambiguous,
    Array,
    Known,
    beside,
    known,
    limits,
    stored,
    to_dtype,
)
from tests.agreement.operations import IDIOMS, KIND, NAMED, TABLES, Dice, Row, edges, kind, literal

SIZES = (1, 2, 3, 4, 5, 7, 8, 8, 13, 16, 16, 17, 32, 33, 64, 64, 100, 128)
"""What fills vectors of every width, and what does not."""
NAMES = {"inf": np.inf, "nan": np.nan, "bfloat16": ml_dtypes.bfloat16, **FP8}
"""What the data of a program names."""
MOST = 4096
"""Elements of a tensor."""


@dataclass
class Program:
    """A random program. `seed` makes it again."""

    seed: int
    lines: list[str] = field(default_factory=list)
    values: list[Known] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)

    @property
    def want(self) -> Known:
        return self.values[-1]

    def tensor(self, device: str) -> Any:
        """Return the last tensor, not computed."""
        return self.tensors(device)[-1]

    def tensors(self, device: str) -> list[Any]:
        """Return the tensor of each line, not computed."""
        from workbench import Context, Tensor, dtypes

        env: dict[str, Any] = {"np": np, "Tensor": Tensor, "dtypes": dtypes}
        env |= NAMES
        env["rng"] = np.random.default_rng(self.seed)
        with Context(DEV=device), np.errstate(all="ignore"):
            exec("\n".join(self.lines), env)
        return [env[f"t{number}"] for number in range(len(self.lines))]

    def run(self, device: str) -> tuple[Any, Array]:
        """Return (the last tensor, not computed; numpy's value, or the least that it may be)."""
        return self.tensor(device), self.want.low

    def tolerance(self) -> float:
        """Return what an element of a program without floats may be off."""
        return 0.0

    def wrong(self, actual: Array) -> str:
        """Return what is wrong with an answer, in words; "" if it is right."""
        want = self.want
        dtype = "float32" if want.dtype in LACKED else want.dtype  # as numpy reads it
        if actual.dtype.name != dtype or actual.shape != want.shape:
            return f"{actual.dtype}{actual.shape}, not {dtype}{want.shape}"
        wrong = np.argwhere(~right(actual, want))
        if not len(wrong):
            return ""
        at = tuple(int(i) for i in wrong[0])
        low, high = want.low[at].item(), want.high[at].item()
        due = repr(low) if repr(low) == repr(high) else f"{low!r} to {high!r}"
        return f"{len(wrong)} of {actual.size} wrong: element {at} is {actual[at]!r}, not {due}"

    def claim(self, actual: Array | None) -> str:
        """Return an assertion as code, of numpy's values, that a wrong answer `actual` fails."""
        want = self.want
        dtype = "float32" if want.dtype in LACKED else want.dtype
        if actual is None or actual.dtype.name != dtype or actual.shape != want.shape:
            return f"assert (actual.dtype.name, actual.shape) == ({dtype!r}, {want.shape})"
        at = tuple(int(i) for i in np.argwhere(~right(actual, want))[0])
        low, high = want.low[at].item(), want.high[at].item()
        value = f"actual[{at}].item()"
        if low != low:
            return f"assert np.isnan({value}), {value}"
        if repr(low) != repr(high):
            return f"assert {low!r} <= {value} <= {high!r}, {value}"
        if low == 0 and actual[at] == 0:
            return f"assert repr({value}) == {repr(low)!r}, {value}"
        return f"assert {value} == {low!r}, {value}"

    def script(self, device: str = "LLVM", claim: str = "", opts: str = "") -> str:
        """Return the program as text to paste, which ends with the `claim`. `opts` is code for
        those of each kernel where they are not the default ones."""
        last = len(self.lines) - 1
        computed = f"computed(t{last}, {device!r}, {opts})" if opts else f"t{last}"
        body = "\n".join(f"    {line}" for line in self.lines)
        return (
            "import numpy as np\nfrom numpy import inf, nan\nfrom ml_dtypes import bfloat16\n"
            "from ml_dtypes import float8_e4m3fn as fp8e4m3, float8_e5m2 as fp8e5m2\n"
            "from workbench import Context, Tensor, dtypes\n"
            + ("from workbench import Opt, OptOps\n" if opts else "")
            + ("from tests.agreement.hunt import computed\n" if opts else "")
            + f"rng = np.random.default_rng({self.seed})\n"
            f'with Context(DEV="{device}"):\n{body}\n'
            f"    actual = {computed}.numpy()\n{claim}"
        )


def right(actual: Array, want: Known) -> Array:
    """Return where an answer is right."""
    if want.dtype not in BITS:
        return np.asarray(actual == want.low)
    values = actual.astype(np.float64)
    with np.errstate(all="ignore"):
        inside = (want.low <= values) & (values <= want.high)
    if want.signed:
        zeros = (want.low == 0) & (want.high == 0)
        inside &= ~zeros | (np.signbit(values) == np.signbit(want.low))
    return np.asarray(np.where(np.isnan(want.low), np.isnan(values), inside))


def program(seed: int, steps: int = 0) -> Program:
    """Return the random program of `seed`."""
    dice = Dice(seed)
    sample = Program(seed)
    rng = np.random.default_rng(seed)
    shape = _shape(dice)
    for _ in range(dice.choice((1, 1, 2, 2, 3))):
        _leaf(sample, dice, rng, shape)
    length = len(sample.lines) + (steps or dice.choice((1, 2, 2, 3, 3, 4, 5, 7)))
    for _ in range(40):
        if len(sample.lines) >= length:
            break
        if dice.random() < 0.15:
            _idiom(sample, dice)
        else:
            _step(sample, dice)
    return sample


def whole_program(seed: int) -> Program:
    """Return a random program without floats, whose steps are exact on all data."""
    seeds = (seed + (n << 32) for n in itertools.count())
    samples = map(program, seeds)
    return next(p for p in samples if not any(v.dtype in BITS for v in p.values))


# data


def _shape(dice: Dice) -> tuple[int, ...]:
    if dice.random() < 0.02:
        return dice.choice(((0,), (3, 0), (0, 4), ()))
    while True:
        shape = tuple(dice.choice(SIZES) for _ in range(dice.choice((1, 1, 1, 2, 2, 3))))
        if np.prod(shape) <= MOST // 4:
            return shape


def _part(dice: Dice, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape that broadcasts to `shape`, mostly itself."""
    if dice.random() < 0.7:
        return shape
    tail = shape[dice.randint(0, len(shape)) :]
    return tuple(n if dice.random() < 0.6 else 1 for n in tail)


DATA = {
    "few": "rng.integers({few}, {shape}).astype({dtype})",
    "edges": "rng.choice(np.array({edges}, {dtype}), {shape})",
    "spread": "(rng.standard_normal({shape}) * {scale}).astype({dtype})",
    "whole": "rng.integers(-20, 21, {shape}).astype({dtype})",
    "bits": "rng.integers({limits}, {shape}, {dtype}, endpoint=True)",
}
"""How data of a dtype and a shape is made."""
KINDS = {"bool": ("few",), "int": ("few", "few", "few", "edges", "bits"),
         "float": ("few", "whole", "spread", "spread", "edges", "edges")}  # fmt: skip
LEAVES = ("bool", "bool", "int32", "int32", "int32", "float32", "float32", "float32", "float32",
          *DTYPES)  # fmt: skip


def _leaf(sample: Program, dice: Dice, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    shape = _part(dice, shape)
    way = dice.random()
    if way < 0.25 and shape:
        _counting(sample, dice, shape)
    elif way < 0.32:
        dtype = dice.choice(DTYPES)
        value = literal(dice, dtype)
        text = f"Tensor.full({shape}, {value!r}, dtype=dtypes.{dtype})"
        array = np.full(shape, _rounded(value, dtype))
        _add(sample, "full", text, known(array))
    else:
        data = _data(dice, dice.choice(LEAVES), shape)
        env = {"np": np, "rng": rng, **NAMES}
        with np.errstate(all="ignore"):
            _add(sample, "data", f"Tensor({data})", known(np.asarray(eval(data, env))))


def _data(dice: Dice, dtype: str, shape: tuple[int, ...]) -> str:
    few = "0, 2" if dtype == "bool" else "0, 8" if dtype[0] == "u" else "-4, 8"
    some = edges(dtype)
    return DATA[dice.choice(KINDS[kind(dtype)])].format(
        few=few,
        edges=dice.sample(some, min(len(some), 6)),
        scale=dice.choice((1, 4, 1000)),
        limits="" if dtype in BITS else "{}, {}".format(*limits(dtype)),
        shape=shape,
        dtype=dtype if dtype in (*LACKED, "bool") else f"np.{dtype}",
    )


def _counting(sample: Program, dice: Dice, shape: tuple[int, ...]) -> None:
    """Add positions along an axis, forwards or backwards, from somewhere, in some steps."""
    axis = dice.randrange(len(shape))
    size, step = shape[axis], dice.choice((1, 1, 1, 1, 2, -1, -3))
    start = dice.choice((0, 0, 0, 1, -5, 10))
    stop = start + step * size
    span = f"{size}" if (start, step) == (0, 1) else f"{start}, {stop}, {step}"
    along = tuple(n if i == axis else 1 for i, n in enumerate(shape))
    if dice.random() < 0.5:
        along = along[axis:]
    reshaped = "" if len(along) == 1 else f".reshape({along})"
    dtype = dice.choice(("int32", "int32", "int32", "float32", "int64", "int16"))
    typed = "" if dtype == "int32" else f", dtype=dtypes.{dtype}"
    array = np.arange(start, stop, step).astype(dtype).reshape(along)
    _add(sample, "arange", f"Tensor.arange({span}{typed}){reshaped}", known(array))


def _add(sample: Program, row: str, text: str, value: Known) -> None:
    sample.lines.append(f"t{len(sample.lines)} = {text}")
    sample.values.append(value)
    sample.rows.append(row)


def _step(sample: Program, dice: Dice) -> bool:
    """Add one operation on what there is; False if the dice made one that does not apply."""
    is_mask = sample.values[-1].dtype == "bool"  # masks are made to be counted and to choose
    row = dice.choices(*dice.choices(TABLES, (4, 5, 2) if is_mask else (6, 3, 2))[0])[0]
    return _append(sample, dice, row, _operands(sample, dice, row))


def _idiom(sample: Program, dice: Dice) -> None:
    """Add the steps of an idiom, up to one for which no row applies."""
    for names in IDIOMS[dice.choice(list(IDIOMS))]:
        for name in dice.sample(names, len(names)):
            row = NAMED[name]
            if _append(sample, dice, row, _operands(sample, dice, row, in_idiom=True)):
                break
        else:
            return


def _append(
    sample: Program, dice: Dice, row: Row, operands: list[tuple[str, Known]] | None
) -> bool:
    """Add a row to the program; False if it does not apply to these operands."""
    if operands is None:
        return False
    words, args = zip(*operands, strict=True)
    params = row.draw(dice, list(args))
    if params is None:
        return False
    try:
        with np.errstate(all="ignore"):
            value = row.meaning(*args, **params)
    except Ambiguous:
        return False
    if value.low.size > MOST:
        return False
    _add(sample, row.name, row.text.format(*words, **params), value)
    return True


def _operands(
    sample: Program, dice: Dice, row: Row, in_idiom: bool = False
) -> list[tuple[str, Known]] | None:
    """Return the words and values of a row's tensors, of which one may be a plain number; the
    first is mostly a late one, and all broadcast. In an idiom the first is the last tensor."""
    last = len(sample.values) - 1
    first = last if in_idiom or dice.random() < 0.8 else dice.randint(0, last)
    if kind(sample.values[first].dtype) not in KIND[row.takes[0]]:
        return None
    pairs = [(f"t{first}", sample.values[first])]
    for takes in row.takes[1:]:
        shapes = [v.shape for _, v in pairs]
        fits = [
            (f"t{i}", v)
            for i, v in enumerate(sample.values)
            if kind(v.dtype) in KIND[takes] and _broadcast(v.shape, *shapes)
        ]
        number = _number(dice, pairs[0][1], takes) if row.scalars else None
        if number is not None and (not fits or dice.random() < (0.9 if in_idiom else 0.5)):
            pairs.append(number)
            first_too = row.text.startswith("{0} ") and kind(number[1].dtype) in KIND[row.takes[0]]
            if first_too and dice.random() < 0.2:
                pairs.reverse()
        elif fits:
            pairs.append(dice.choice(fits))
        else:
            return None
    return pairs


def _number(dice: Dice, tensor: Known, takes: str) -> tuple[str, Known] | None:
    """Return a plain number to meet a tensor, mostly one of its kind."""
    dtype = tensor.dtype
    if dice.random() < 0.25:
        dtype = dice.choice(("bool", "int32", "float32"))
    number = literal(dice, dtype)
    meets = beside(number, tensor.dtype)
    if meets in INTEGERS and not limits(meets)[0] <= number <= limits(meets)[1]:
        return None
    if meets == "fp8e4m3" and abs(number) > 448:  # compared as it is, and computed with as 448
        return None
    value = known(_rounded(number, meets))
    word = f"({number!r})" if repr(number).startswith("-") else repr(number)
    return (word, value) if kind(meets) in KIND[takes] else None


def _rounded(number: bool | int | float, dtype: str) -> Array:
    """Return a plain number as `dtype`."""
    if dtype in FP8:
        number = float(to_dtype(np.float64(number), dtype))
    with np.errstate(over="ignore"):
        return np.asarray(number, stored(dtype))


def _broadcast(*shapes: tuple[int, ...]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(*shapes))) <= MOST
    except ValueError:
        return False
