"""The op table: a row for each op, with its sources, dtype rule, meaning, notation and cost.

The interpreters, the verifier, the scheduler, the cost model, text, titles and pictures all read
this table, and none repeats a column of it. Integer semantics are defined here once, for all levels
and devices: IDIV and MOD floor, division and modulo by zero give 0, INT_MIN // -1 wraps, shifts by
the width or more (or by a negative amount) give 0, float -> int truncates and saturates.

Sections: The op table; Kinds of axis.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from workbench.ir.meaning.threefry import threefry_word
from workbench.ir.meaning.values import (
    Array,
    erf,
    floor_div,
    floor_mod,
    shift_left,
    shift_right,
    sigmoid,
    softplus,
    trunc_div,
    wrap,
)
from workbench.pickles import pickled

# --------------------------------------------------------------------------------------------------
# The op table.


@pickled
class Ops(Enum):
    """The ops of all levels. `OPS[op]` is its row in the table."""

    # leaves
    CONST = "CONST"
    VAR = "VAR"
    BUFFER = "BUFFER"
    IOTA = "IOTA"
    PARAM = "PARAM"
    RANGE = "RANGE"
    INVALID = "INVALID"
    DEFINE = "DEFINE"
    REG = "REG"
    LANES = "LANES"
    # movement and tensor-level
    RESHAPE = "RESHAPE"
    PERMUTE = "PERMUTE"
    EXPAND = "EXPAND"
    SHRINK = "SHRINK"
    PAD = "PAD"
    FLIP = "FLIP"
    REDUCE_AXIS = "REDUCE_AXIS"
    CONTIGUOUS = "CONTIGUOUS"
    COPY = "COPY"
    CUSTOM = "CUSTOM"
    DETACH = "DETACH"
    GRADIENT = "GRADIENT"
    # elementwise
    NEG = "NEG"
    NOT = "NOT"
    EXP2 = "EXP2"
    LOG2 = "LOG2"
    SIN = "SIN"
    COS = "COS"
    SQRT = "SQRT"
    RECIP = "RECIP"
    TRUNC = "TRUNC"
    ADD = "ADD"
    MUL = "MUL"
    FDIV = "FDIV"
    FMOD = "FMOD"
    IDIV = "IDIV"
    MOD = "MOD"
    CDIV = "CDIV"
    CMOD = "CMOD"
    MAX = "MAX"
    MIN = "MIN"
    CMPLT = "CMPLT"
    CMPLE = "CMPLE"
    CMPEQ = "CMPEQ"
    CMPNE = "CMPNE"
    AND = "AND"
    OR = "OR"
    XOR = "XOR"
    SHL = "SHL"
    SHR = "SHR"
    WHERE = "WHERE"
    FMA = "FMA"
    CAST = "CAST"
    BITCAST = "BITCAST"
    # functions: elementwise, of the tensor level alone
    EXP = "EXP"
    LOG = "LOG"
    SIGMOID = "SIGMOID"
    SOFTPLUS = "SOFTPLUS"
    TANH = "TANH"
    ERF = "ERF"
    TAN = "TAN"
    ASIN = "ASIN"
    ACOS = "ACOS"
    ATAN = "ATAN"
    SINH = "SINH"
    COSH = "COSH"
    ASINH = "ASINH"
    ACOSH = "ACOSH"
    ATANH = "ATANH"
    POW = "POW"
    ABS = "ABS"
    COPYSIGN = "COPYSIGN"
    THREEFRY = "THREEFRY"
    # kernel
    INDEX = "INDEX"
    LOAD = "LOAD"
    STORE = "STORE"
    REDUCE = "REDUCE"
    STAGE = "STAGE"
    EXTERN = "EXTERN"
    END = "END"
    AFTER = "AFTER"
    SINK = "SINK"
    # lowered and linear
    BLOCK = "BLOCK"
    LOOP = "LOOP"
    ENDLOOP = "ENDLOOP"
    SPECIAL = "SPECIAL"
    IF = "IF"
    ENDIF = "ENDIF"
    BARRIER = "BARRIER"
    ACCUMULATE = "ACCUMULATE"
    SET = "SET"
    BROADCAST = "BROADCAST"
    STACK = "STACK"
    EXTRACT = "EXTRACT"
    SHUFFLE = "SHUFFLE"
    HREDUCE = "HREDUCE"
    WMMA = "WMMA"
    EXCHANGE = "EXCHANGE"
    WARP_SHUFFLE = "WARP_SHUFFLE"

    __hash__ = object.__hash__  # members are unique; Enum would hash the name each time

    def __repr__(self) -> str:
        return f"Ops.{self.name}"


class Reduction(NamedTuple):
    """How an op combines many elements: `ufunc` does it on numpy arrays; `update` is the operator
    of a statement that combines one more ("+="), `word` the name of the result ("sum"); `identity`
    gives the start value of an accumulator by dtype."""

    ufunc: np.ufunc
    update: str
    word: str
    identity: Callable[[Any], Any]


class OpInfo(NamedTuple):
    """One row: all facts of an op.

    `arity` counts sources (None: any number); `levels` is a subset of "tkln" (tensor, kernel,
    lowered, linear; "": it stands only in steps of the gradient pass); `dtype` names the rule for
    the result's type (ir/verify/rows.py); `python` is the meaning on numpy arrays of the source
    dtype, where the op is elementwise.

    `symbol` stands between two sources in text, and binds as its `precedence` says; an op without
    a symbol is a call. `label` stands in a picture ("": the op's name). `word` is for titles
    and comments; titles name reductions, and ops that are `is_function`. `cost` is the scheduler's
    estimate for one element, in additions; `slots` is the number of arithmetic instructions of a
    core that it counts as. `latency` is the time after which its result can be used, in
    multiply-adds (0: only its slots count). The rules of gradients stand in ir/gradient, since they
    are written in nodes.
    """

    arity: int | None
    levels: str
    dtype: str
    python: Callable[..., Array] | None
    doc: str
    symbol: str = ""
    precedence: int = 0
    label: str = ""
    word: str = ""
    is_function: bool = False
    is_commutative: bool = False
    cost: float = 1.0
    slots: int = 1
    latency: int = 0
    reduction: Reduction | None = None


_LEAF = "leaf"
_ALL = "tkln"
Op = OpInfo
# arity, levels, dtype rule, meaning, doc
# fmt: off
OPS: dict[Ops, OpInfo] = {
    Ops.CONST: Op(0, _ALL, _LEAF, None, "a constant; arg is its value; shape ()"),
    Ops.VAR: Op(0, _ALL, _LEAF, None, "a bounded integer variable; arg is (name, lo, hi)"),
    Ops.BUFFER: Op(0, "t", _LEAF, None, "memory that holds a tensor; arg is (uid, device, shape)"),
    Ops.IOTA: Op(0, "t", _LEAF, None, "0, 1, .. n-1; arg is n"),
    Ops.PARAM: Op(0, "kln", _LEAF, None, "the kernel's argument; arg is (slot, size in elements)"),
    Ops.RANGE: Op(1, "kln", _LEAF, None, "an axis, from 0 up to its source; arg is (name, kind)"),
    Ops.INVALID: Op(0, "kl", _LEAF, None, "the index of an element that is not there"),
    Ops.DEFINE: Op(0, "ln", _LEAF, None, "storage inside the kernel; arg is a Storage"),
    Ops.REG: Op(0, "n", _LEAF, None, "a register that SET changes; arg is (name, first lane)"),
    Ops.LANES: Op(0, "n", _LEAF, None, "a constant per lane; arg is the values"),
    Ops.RESHAPE: Op(1, "t", "first", None, "the same elements, row-major, in the shape arg"),
    Ops.PERMUTE: Op(1, "t", "first", None, "axes reordered; arg is the order"),
    Ops.EXPAND: Op(1, "t", "first", None, "size-1 and new leading axes repeated; arg is the shape"),
    Ops.SHRINK: Op(1, "t", "first", None, "a box cut out; arg is (lo, hi) per axis"),
    Ops.PAD: Op(1, "t", "first", None, "zeros added around; arg is (before, after) per axis"),
    Ops.FLIP: Op(1, "t", "first", None, "axes reversed; arg is the axes"),
    Ops.REDUCE_AXIS: Op(1, "t", "first", None, "axes combined to size 1; arg is (op, axes)"),
    Ops.CONTIGUOUS: Op(1, "t", "first", None, "asks that the value be stored"),
    Ops.COPY: Op(1, "t", "first", None, "the value on another device; arg is the device"),
    Ops.CUSTOM: Op(None, "t", _LEAF, None, "written by hand; arg: name, output, shapes, IR text"),
    Ops.DETACH: Op(None, "t", "first", None, "the first source, without its gradient; arg: leaf"),
    Ops.GRADIENT: Op(3, "", "first", None, "the gradient of a, source arg of b, whose own is c"),
    Ops.NEG: Op(1, _ALL, "first", wrap(lambda a: -a), "minus a",
        label="negate", word="neg"),
    Ops.NOT: Op(1, _ALL, "first", np.invert, "not a; bitwise on integers", label="not", word="not"),
    Ops.EXP2: Op(1, _ALL, "float", wrap(np.exp2), "2 to the power a",
        word="exp2", is_function=True, cost=20.0),
    Ops.LOG2: Op(1, _ALL, "float", wrap(np.log2), "logarithm of a to base 2",
        word="log2", is_function=True, cost=20.0),
    Ops.SIN: Op(1, _ALL, "float", wrap(np.sin), "sine of a in radians",
        word="sin", is_function=True, cost=100.0),
    Ops.COS: Op(1, _ALL, "float", wrap(np.cos), "cosine of a in radians",
        word="cos", is_function=True, cost=100.0),
    Ops.SQRT: Op(1, _ALL, "float", wrap(np.sqrt), "square root",
        word="sqrt", is_function=True, cost=5.0, slots=12),
    Ops.RECIP: Op(1, _ALL, "float", wrap(lambda a: np.ones_like(a) / a), "1 / a",
        label="1 \u00f7", word="reciprocal", is_function=True, cost=5.0, slots=10),
    Ops.TRUNC: Op(1, _ALL, "float", np.trunc, "a rounded towards zero",
        word="trunc", is_function=True),
    Ops.ADD: Op(2, _ALL, "same", wrap(np.add), "a + b; or on bool",
        symbol="+", precedence=6, label="+", word="add", is_commutative=True, latency=1,
        reduction=Reduction(np.add, "+=", "sum", lambda dtype: 0)),
    Ops.MUL: Op(2, _ALL, "same", wrap(np.multiply), "a * b; and on bool",
        symbol="*", precedence=7, label="\u00d7", word="mul", is_commutative=True, latency=1,
        reduction=Reduction(np.multiply, "*=", "prod", lambda dtype: 1)),
    Ops.FDIV: Op(2, _ALL, "float", wrap(np.divide), "a / b of floats",
        symbol="/", precedence=7, label="\u00f7", word="div", is_function=True, cost=5.0,
        slots=10),
    Ops.FMOD: Op(2, _ALL, "float", wrap(np.fmod), "a rest of a / b truncated, exact; sign of a",
        word="mod", is_function=True, cost=10.0, slots=20),
    Ops.IDIV: Op(2, _ALL, "int", wrap(floor_div), "a // b, floored; by zero: 0",
        symbol="//", precedence=7, label="//", word="div", cost=10.0),
    Ops.MOD: Op(2, _ALL, "int", wrap(floor_mod), "a % b, sign of b; by zero: 0",
        symbol="%", precedence=7, label="mod", word="mod", cost=10.0),
    Ops.CDIV: Op(2, "ln", "int", wrap(trunc_div), "a // b truncated, b not 0: as machines do",
        word="div", slots=12),
    Ops.CMOD: Op(2, "ln", "int", wrap(np.fmod), "a rest of CDIV, sign of a, b not 0",
        word="mod", slots=14),
    Ops.MAX: Op(2, _ALL, "same", wrap(np.maximum), "the greater; NaN if either is",
        word="max", is_commutative=True, slots=2, latency=1,
        reduction=Reduction(np.maximum, "max=", "max", lambda dtype: dtype.min)),
    Ops.MIN: Op(2, _ALL, "same", wrap(np.minimum), "the lesser; NaN if either is",
        word="min", is_commutative=True, slots=2, latency=1,
        reduction=Reduction(np.minimum, "min=", "min", lambda dtype: dtype.max)),
    Ops.CMPLT: Op(2, _ALL, "bool", wrap(np.less), "a < b",
        symbol="<", precedence=1, label="<", word="compare"),
    Ops.CMPLE: Op(2, _ALL, "bool", wrap(np.less_equal), "a <= b",
        symbol="<=", precedence=1, label="\u2264", word="compare"),
    Ops.CMPEQ: Op(2, _ALL, "bool", np.equal, "a == b",
        symbol="==", precedence=1, label="=", word="compare", is_commutative=True),
    Ops.CMPNE: Op(2, _ALL, "bool", np.not_equal, "a != b",
        symbol="!=", precedence=1, label="\u2260", word="compare", is_commutative=True),
    Ops.AND: Op(2, _ALL, "bits", np.bitwise_and, "a & b",
        symbol="&", precedence=4, label="and", word="and", is_commutative=True),
    Ops.OR: Op(2, _ALL, "bits", np.bitwise_or, "a | b",
        symbol="|", precedence=2, label="or", word="or", is_commutative=True),
    Ops.XOR: Op(2, _ALL, "bits", np.bitwise_xor, "a ^ b",
        symbol="^", precedence=3, label="xor", word="xor", is_commutative=True),
    Ops.SHL: Op(2, _ALL, "int", shift_left, "a << b; 0 where b is not below the width",
        symbol="<<", precedence=5, label="<<", word="shift"),
    Ops.SHR: Op(2, _ALL, "int", shift_right, "a >> b; 0 where b is not below the width",
        symbol=">>", precedence=5, label=">>", word="shift"),
    Ops.WHERE: Op(3, _ALL, "where", np.where, "b where a, else c",
        word="where"),
    Ops.FMA: Op(3, "kln", "float", wrap(lambda a, b, c: a * b + c),
        "a * b + c, rounded once if the device can", word="fma", cost=2.0, latency=1),
    Ops.CAST: Op(1, _ALL, "cast", None, "the value as another dtype; float to int saturates",
        word="cast", cost=0.0),
    Ops.BITCAST: Op(1, _ALL, "cast", None, "the same bits as another dtype of that width",
        word="bitcast", cost=0.0, slots=0),
    Ops.EXP: Op(1, "t", "float", wrap(np.exp), "e to the power a",
        word="exp", is_function=True, cost=37.0),
    Ops.LOG: Op(1, "t", "float", wrap(np.log), "natural logarithm of a",
        word="log", is_function=True, cost=21.0),
    Ops.SIGMOID: Op(1, "t", "float", wrap(sigmoid), "1 / (1 + e ** -a)",
        word="sigmoid", is_function=True, cost=44.0),
    Ops.SOFTPLUS: Op(1, "t", "float", wrap(softplus), "log(1 + e ** a)",
        word="softplus", is_function=True, cost=73.0),
    Ops.TANH: Op(1, "t", "float", wrap(np.tanh), "hyperbolic tangent",
        word="tanh", is_function=True, cost=69.0),
    Ops.ERF: Op(1, "t", "float", erf, "error function: 2 / sqrt(pi) of e ** -t**2, 0 to a",
        word="erf", is_function=True, cost=56.0),
    Ops.TAN: Op(1, "t", "float", wrap(np.tan), "tangent of a in radians",
        word="tan", is_function=True, cost=205.0),
    Ops.ASIN: Op(1, "t", "float", wrap(np.arcsin), "the angle whose sine is a, up to pi/2",
        word="asin", is_function=True, cost=35.0),
    Ops.ACOS: Op(1, "t", "float", wrap(np.arccos), "the angle whose cosine is a, 0 to pi",
        word="acos", is_function=True, cost=44.0),
    Ops.ATAN: Op(1, "t", "float", wrap(np.arctan), "the angle whose tangent is a, up to pi/2",
        word="atan", is_function=True, cost=35.0),
    Ops.SINH: Op(1, "t", "float", wrap(np.sinh), "hyperbolic sine",
        word="sinh", is_function=True, cost=65.0),
    Ops.COSH: Op(1, "t", "float", wrap(np.cosh), "hyperbolic cosine",
        word="cosh", is_function=True, cost=48.0),
    Ops.ASINH: Op(1, "t", "float", wrap(np.arcsinh), "the inverse of SINH",
        word="asinh", is_function=True, cost=75.0),
    Ops.ACOSH: Op(1, "t", "float", wrap(np.arccosh), "the inverse of COSH, not negative",
        word="acosh", is_function=True, cost=68.0),
    Ops.ATANH: Op(1, "t", "float", wrap(np.arctanh), "the inverse of TANH",
        word="atanh", is_function=True, cost=47.0),
    Ops.POW: Op(2, "t", "float", wrap(np.power), "a to the power b of floats",
        word="pow", is_function=True, cost=61.0),
    Ops.ABS: Op(1, "t", "float", np.abs, "a without its sign", word="abs"),
    Ops.COPYSIGN: Op(2, "t", "float", np.copysign, "a with b's sign", word="copysign", cost=3.0),
    Ops.THREEFRY: Op(5, "t", "word", wrap(threefry_word),
        "random word of counter (a, b) and key (c, d): the second where e", word="threefry",
        is_function=True, cost=121.0),
    Ops.INDEX: Op(None, "kln", "first", None, "an element of a buffer, by one index per dimension"),
    Ops.LOAD: Op(None, "kln", "first", None, "the element there; 0 where its gate is shut"),
    Ops.STORE: Op(None, "kln", "void", None, "writes a value to an INDEX, where its gate is open"),
    Ops.REDUCE: Op(None, "kl", "first", None, "value combined over its ranges; arg is the op"),
    Ops.STAGE: Op(None, "k", "first", None, "value kept in scratch; arg: name, shape, buffers"),
    Ops.EXTERN: Op(None, "kln", _LEAF, None, "what source text writes; arg: language, text, .."),
    Ops.END: Op(None, "k", "void", None, "a STORE and the ranges it closes"),
    Ops.AFTER: Op(None, "kln", "first", None, "the first source, ordered after the others"),
    Ops.SINK: Op(None, "tk", "void", None, "the outputs; a kernel's arg is KernelInfo"),
    Ops.BLOCK: Op(None, "ln", "void", None, "statements in order; arg is KernelInfo"),
    Ops.LOOP: Op(None, "ln", "void", None, "a RANGE and the statements in it, in order"),
    Ops.ENDLOOP: Op(1, "n", "void", None, "the end of the loop over a RANGE"),
    Ops.SPECIAL: Op(1, "ln", "void", None, "a RANGE of which this work-item is one step"),
    Ops.IF: Op(None, "ln", "void", None, "a condition, and the statements where it holds"),
    Ops.ENDIF: Op(1, "n", "void", None, "the end of the IF of a condition"),
    Ops.BARRIER: Op(0, "ln", "void", None, "work-items of a group wait until all are here"),
    Ops.ACCUMULATE: Op(2, "l", "void", None, "combines a value into an INDEX; arg is the op"),
    Ops.SET: Op(2, "n", "void", None, "changes a REG"),
    Ops.BROADCAST: Op(1, "n", "lanes", None, "one value in every lane"),
    Ops.STACK: Op(None, "n", "lanes", None, "one value per lane", slots=2),
    Ops.EXTRACT: Op(1, "n", "lanes", None, "one lane of a vector; arg is its number"),
    Ops.SHUFFLE: Op(2, "n", "lanes", None, "lanes of two vectors in a row; arg has their numbers",
        slots=2),
    Ops.WMMA: Op(None, "ln", "wmma", None, "a @ b of a warp's tiles; linear: + c; arg: TensorCore",
        label="\u00d7\u00d7", word="wmma", cost=0.0, latency=8),
    Ops.EXCHANGE: Op(None, "ln", "exchange", None, "a warp's tile in another layout; arg has both",
        label="\u21c4", word="exchange", cost=0.0, latency=8),
    Ops.WARP_SHUFFLE: Op(1, "ln", "first", None,
        "the value that the lane has whose number in the warp is this one's xor arg",
        label="shuffle", word="shuffle", latency=6),
    Ops.HREDUCE: Op(1, "n", "lanes", None, "the lanes of a vector combined; arg is the op"),
}
# fmt: on

MOVEMENT = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.SHRINK, Ops.PAD, Ops.FLIP})
COMPARE = frozenset(op for op, row in OPS.items() if row.dtype == "bool")
CASTS = frozenset({Ops.CAST, Ops.BITCAST})
ELEMENTWISE = frozenset({op for op, row in OPS.items() if row.python is not None}) | CASTS
REDUCTIONS: dict[Ops, Reduction] = {
    op: row.reduction for op, row in OPS.items() if row.reduction is not None
}


# --------------------------------------------------------------------------------------------------
# Kinds of axis: the purpose of a kernel's loop, and the first letter of its name.


@pickled
class AxisType(Enum):
    """The kind of an axis, in the order in which kernels list their axes. A row has all facts of a
    kind; text, pictures and the page read them here.

    Names of such axes begin with `letter`; pictures show the `badge` on `colour` and `pattern`
    (see `workbench/viz/model/graph.py`), never colour alone. `is_lane`: such axes are computed
    together, without a loop, and have no place in the loop order. `is_independent`: no step
    needs another one's result. `is_work_item`: each step is a work-item of a work-group.
    """

    # fmt: off
    #              letter badge colour  pattern    traits                   caption
    GLOBAL       = "g", "G",  "#0072B2", "plain",   "independent",           "outputs, in any order"
    LOOP         = "i", "O",  "#999999", "rails",   "independent",           "outputs, one by one"
    LOCAL        = "l", "L",  "#56B4E9", "dotted",  "independent work-item", "outputs of a group"
    THREAD       = "t", "T",  "#009E73", "dashed",  "independent",           "outputs per thread"
    GROUP_REDUCE = "x", "GR", "#D55E00", "hatched", "work-item",             "a sum shared out"
    REDUCE       = "r", "R",  "#D55E00", "ruled",   "",                      "steps of a reduction"
    UPCAST       = "u", "U",  "#E69F00", "half",    "lane",                  "outputs at once"
    UNROLL       = "n", "N",  "#CC79A7", "morse",   "lane",                  "steps at once"
    WARP         = "w", "W",  "#F0E442", "slanted", "lane",                  "steps in lock step"
    FILL         = "f", "F",  "#F0E442", "fine",    "independent",           "elements of a copy"
    # fmt: on

    def __new__(cls, letter: str, *row: str) -> AxisType:
        """The letter names the kind: `AxisType("g")` is GLOBAL."""
        kind = object.__new__(cls)
        kind._value_ = letter
        return kind

    def __init__(
        self, letter: str, badge: str, colour: str, pattern: str, traits: str, caption: str
    ):
        self.letter, self.badge, self.caption = letter, badge, caption
        self.colour, self.pattern = colour, pattern
        self.is_lane = traits == "lane"
        self.is_independent = "independent" in traits
        self.is_work_item = "work-item" in traits

    @property
    def words(self) -> str:
        """The name of the kind in text and pictures."""
        return self.name.lower().replace("_", " ")

    def __repr__(self) -> str:
        return f"AxisType.{self.name}"


AXIS_ORDER = {kind: rank for rank, kind in enumerate(AxisType)}
