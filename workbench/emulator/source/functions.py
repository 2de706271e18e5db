"""Built-in functions of the languages: of numbers, bits and vectors. Those of memory and warps
stand in `calls.py`, barriers in `translation.py`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.syntax import Call
from workbench.emulator.source.tokens import SourceError
from workbench.emulator.source.values import SourceValues, Value, promoted
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Handler = Callable[[SourceValues, Call, Sequence[Value]], Value]

_OF_FLOATS = {
    "sqrt": Ops.SQRT, "exp2": Ops.EXP2, "log2": Ops.LOG2, "sin": Ops.SIN, "cos": Ops.COS,
    "trunc": Ops.TRUNC, "exp": Ops.EXP, "log": Ops.LOG, "tanh": Ops.TANH, "erf": Ops.ERF,
    "tan": Ops.TAN, "asin": Ops.ASIN, "acos": Ops.ACOS, "atan": Ops.ATAN, "sinh": Ops.SINH,
    "cosh": Ops.COSH, "asinh": Ops.ASINH, "acosh": Ops.ACOSH, "atanh": Ops.ATANH,
    "fabs": Ops.ABS,
}  # fmt: skip
_OF_TWO_FLOATS = {"fmod": Ops.FMOD, "pow": Ops.POW, "copysign": Ops.COPYSIGN}
_FAST = re.compile(
    r"__(sinf|cosf|expf|logf|log2f|exp2f|tanf|powf)\Z|(?:native|half|fast|precise)_(\w+)\Z"
)
_BIT_CASTS = {
    "float": dtypes.float32, "int": dtypes.int32, "uint": dtypes.uint32, "double": dtypes.float64,
    "longlong": dtypes.int64, "short": dtypes.int16, "ushort": dtypes.uint16,
    "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
}  # fmt: skip
_HALVES = {"half": dtypes.float16, "bfloat16": dtypes.bfloat16}
_AS = re.compile(r"__(\w+?)_as_(\w+)\Z")
_HALF_FROM = re.compile(r"__float2(half|bfloat16)(?:_rn)?\Z")
_CONVERT = re.compile(r"convert_([a-z]+\d*)(\w*)\Z")
_HALF_TO = re.compile(r"__(half|bfloat16)2float\Z")


def builtin(name: str, vectors: Mapping[str, DType], types: Mapping[str, DType]) -> Handler | None:
    """Return what computes a function of the languages; None for an unknown name. `vectors` and
    `types` are the types of the language, by name."""
    fast = _FAST.match(name)
    if fast is not None:
        name = fast[1] or fast[2]
    if name in _SPECIAL:
        return _SPECIAL[name]
    plain = name[:-1] if _is_single(name) else name
    if plain in _OF_FLOATS:
        return _of_floats(_OF_FLOATS[plain], 1)
    if plain in _OF_TWO_FLOATS:
        return _of_floats(_OF_TWO_FLOATS[plain], 2)
    if plain in _SPECIAL:
        return _SPECIAL[plain]
    if name.startswith("make_") and name[5:] in vectors:
        return _made(vectors[name[5:]])
    match = _AS.match(name)
    if match and match[1] in _BIT_CASTS and match[2] in _BIT_CASTS:
        return _as_bits(_BIT_CASTS[match[1]], _BIT_CASTS[match[2]])
    match = _HALF_FROM.match(name)
    if match:
        return _cast_to(_HALVES[match[1]])
    match = _HALF_TO.match(name)
    if match:
        return _cast_to(dtypes.float32)
    known = {**types, **vectors}
    if name.startswith("as_") and name[3:] in known:
        return _as_bits(None, known[name[3:]])
    match = _CONVERT.match(name)
    if match is None or match[1] not in known:
        return None
    # other roundings, and _sat, are not supported
    is_plain = match[2] in ("", "_rte" if known[match[1]].is_float else "_rtz")
    return _cast_to(known[match[1]]) if is_plain else None


def _require(call: Call, values: Sequence[Value], count: int) -> None:
    if len(values) != count:
        because = f"{call.name} has {count} arguments, and gets {len(values)}"
        raise SourceError(call.at, because)


def _float(values: SourceValues, value: Value, call: Call) -> UOp:
    node = values.concrete(value, dtypes.float32)
    if node.dtype.is_float:
        return node
    if not values.language.converts:
        raise SourceError(call.at, f"{call.name} gets {node.dtype}, and takes floats", "f32(x)")
    is_single = _is_single(call.name) or not values.language.has_doubles
    return values.cast(node, dtypes.float32 if is_single else dtypes.float64)


def _is_single(name: str) -> bool:
    """Whether a function is that of single precision: `sqrtf`, and not `erf`."""
    return name.endswith("f") and name[:-1] in _FLOAT_NAMES


def _of_floats(op: Ops, count: int) -> Handler:
    def compute(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
        _require(call, arguments, count)
        operands = [_float(values, a, call) for a in arguments]
        if _is_single(call.name):
            operands = [values.cast(a, dtypes.float32.vec(a.dtype.count)) for a in operands]
        if count == 2:
            operands = [*values.common(operands[0], operands[1], call.at)]
        return values.node(op, operands[0].dtype, operands)

    return compute


def _multiply_add(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 3)
    operands = [_float(values, a, call) for a in arguments]
    dtype = operands[0].dtype
    for other in operands[1:]:
        dtype = values.common(values.zero(dtype), other, call.at)[0].dtype
    if call.name in ("fmaf", "__fmaf_rn"):
        dtype = dtypes.float32
    return values.node(Ops.FMA, dtype, [values.cast(each, dtype) for each in operands])


def _extreme(op: Ops, is_of_floats: bool) -> Handler:
    """The greater or lesser; of floats the number, if the other one is NaN."""

    def compute(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
        _require(call, arguments, 2)
        a, b = values.common(arguments[0], arguments[1], call.at)
        if is_of_floats:
            a, b = _float(values, a, call), _float(values, b, call)
        both = values.node(op, a.dtype, [a, b])
        if not a.dtype.is_float:
            return both
        bools = dtypes.bool.vec(a.dtype.count)
        a_is_nan, b_is_nan = (values.node(Ops.CMPNE, bools, [x, x]) for x in (a, b))
        either = values.node(Ops.WHERE, a.dtype, [b_is_nan, a, both])
        return values.node(Ops.WHERE, a.dtype, [a_is_nan, b, either])

    return compute


def _clamp(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 3)
    value, low, high = arguments
    least = _extreme(Ops.MAX, False)(values, call, [value, low])
    return _extreme(Ops.MIN, False)(values, call, [least, high])


def _absolute(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 1)
    node = values.concrete(arguments[0])
    if values.language.converts and node.dtype.count == 1:
        node = values.cast(node, promoted(node.dtype))
    if node.dtype.is_float:
        return values.node(Ops.ABS, node.dtype, [node])
    if node.dtype.kind == "uint":
        return node
    minus = values.node(Ops.NEG, node.dtype, [node])
    return values.node(Ops.MAX, node.dtype, [node, minus])


def _reciprocal_root(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 1)
    value = _float(values, arguments[0], call)
    root = values.node(Ops.SQRT, value.dtype, [value])
    return values.node(Ops.RECIP, value.dtype, [root])


def _floor(direction: int) -> Handler:
    """The integer below, or above (`direction` 1)."""

    def compute(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
        _require(call, arguments, 1)
        value = _float(values, arguments[0], call)
        whole = values.node(Ops.TRUNC, value.dtype, [value])
        sides = [value, whole] if direction < 0 else [whole, value]
        test = values.node(Ops.CMPLT, dtypes.bool.vec(value.dtype.count), sides)
        one = values.spread(UOp.const(value.dtype.scalar, direction), value.dtype)
        moved = values.node(Ops.ADD, value.dtype, [whole, one])
        return values.node(Ops.WHERE, value.dtype, [test, moved, whole])

    return compute


def _round(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    """The nearest integer; of two the even one, as WGSL's round and C's rint have it."""
    _require(call, arguments, 1)
    value = _float(values, arguments[0], call)
    dtype = value.dtype
    magic = values.spread(UOp.const(dtype.scalar, 2.0**dtype.scalar.fraction_bits), dtype)
    size = values.node(Ops.ABS, dtype, [value])
    up = values.node(Ops.ADD, dtype, [size, magic])
    down = values.node(Ops.ADD, dtype, [up, values.node(Ops.NEG, dtype, [magic])])
    is_small = values.node(Ops.CMPLT, dtypes.bool.vec(dtype.count), [size, magic])
    near = values.node(Ops.WHERE, dtype, [is_small, down, size])
    return values.node(Ops.COPYSIGN, dtype, [near, value])


def _round_half_away(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    """The nearest integer; of two the one farther from 0, as C's round has it (not WGSL's)."""
    if values.language.is_wgsl:
        return _round(values, call, arguments)
    _require(call, arguments, 1)
    value = _float(values, arguments[0], call)
    dtype = value.dtype
    size = values.node(Ops.ABS, dtype, [value])
    whole = values.node(Ops.TRUNC, dtype, [size])
    rest = values.node(Ops.ADD, dtype, [size, values.node(Ops.NEG, dtype, [whole])])
    half, one = (values.spread(UOp.const(dtype.scalar, x), dtype) for x in (0.5, 1.0))
    is_up = values.node(Ops.CMPLE, dtypes.bool.vec(dtype.count), [half, rest])
    above = values.node(Ops.ADD, dtype, [whole, one])
    near = values.node(Ops.WHERE, dtype, [is_up, above, whole])
    return values.node(Ops.COPYSIGN, dtype, [near, value])


def _not_a_number(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 1)
    is_wide = values.concrete(arguments[0]).dtype.scalar.bits == 64
    return UOp.const(dtypes.float64 if is_wide else dtypes.float32, math.nan)


def _select(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 3)
    no, yes, condition = arguments
    node = values.concrete(condition)
    if node.dtype.count == 1:
        return values.choose(values.truth(node, call.at), yes, no, call.at)
    bools = dtypes.bool.vec(node.dtype.count)
    if not node.dtype.is_bool:  # OpenCL: the highest bit of each lane
        node = values.node(Ops.CMPLT, bools, [node, values.zero(node.dtype)])
    return values.choose(node, yes, no, call.at)


def _any_or_all(op: Ops) -> Handler:
    def compute(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
        _require(call, arguments, 1)
        node = values.concrete(arguments[0])
        if not node.dtype.is_bool:  # OpenCL: the highest bit of each lane
            bools = dtypes.bool.vec(node.dtype.count)
            node = values.node(Ops.CMPLT, bools, [node, values.zero(node.dtype)])
        total = values.lane(node, 0)
        for i in range(1, node.dtype.count):
            total = values.node(op, dtypes.bool, [total, values.lane(node, i)])
        return total

    return compute


def _dot(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 2)
    product = values.binary("*", arguments[0], arguments[1], call.at)
    total: UOp = values.lane(product, 0)
    for i in range(1, product.dtype.count):
        total = values.binary("+", total, values.lane(product, i), call.at)
    return total


def _leading_zeros(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 1)
    node = values.concrete(arguments[0])
    dtype, bits = node.dtype, node.dtype.scalar.bits
    word = dtypes.named(f"uint{bits}").vec(dtype.count)
    value = values.bits(node, word)
    count = values.zero(word)
    for step in [s for s in (32, 16, 8, 4, 2, 1) if s < bits]:
        amount = values.spread(UOp.const(word.scalar, bits - step), word)
        high = values.node(Ops.SHR, word, [value, amount])
        is_zero = values.node(Ops.CMPEQ, dtypes.bool.vec(dtype.count), [high, values.zero(word)])
        shift = values.spread(UOp.const(word.scalar, step), word)
        moved = values.node(Ops.SHL, word, [value, shift])
        value = values.node(Ops.WHERE, word, [is_zero, moved, value])
        more = values.node(Ops.ADD, word, [count, shift])
        count = values.node(Ops.WHERE, word, [is_zero, more, count])
    is_none = values.node(Ops.CMPEQ, dtypes.bool.vec(dtype.count), [value, values.zero(word)])
    whole = values.spread(UOp.const(word.scalar, bits), word)
    return values.bits(values.node(Ops.WHERE, word, [is_none, whole, count]), dtype)


def _extract_bits(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
    _require(call, arguments, 3)
    node = values.concrete(arguments[0])
    offset, count = (values.concrete(a, dtypes.uint32) for a in arguments[1:])
    if count.op is not Ops.CONST or not 0 < count.arg <= 32 or node.dtype.scalar.bits != 32:
        raise SourceError(call.at, "extractBits of other than a fixed number of bits", "8u")
    if offset.op is Ops.CONST and offset.arg + count.arg > 32:
        because = f"extractBits ends at bit {offset.arg + count.arg}, and there are 32"
        raise SourceError(call.at, because, f"{max(0, 32 - offset.arg)}u")
    dtype = node.dtype
    word = dtypes.uint32.vec(dtype.count)
    value = values.bits(node, word)
    low = values.node(Ops.SHR, word, [value, values.cast(offset, word)])
    above = values.spread(UOp.const(dtypes.uint32, 32 - int(count.arg)), word)
    high = values.bits(values.node(Ops.SHL, word, [low, above]), dtype)
    amount = values.spread(UOp.const(dtype.scalar, 32 - int(count.arg)), dtype)
    return values.node(Ops.SHR, dtype, [high, amount])


def _made(dtype: DType) -> Handler:
    def compute(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
        _require(call, arguments, dtype.count)
        return constructed(values, dtype, call, arguments)

    return compute


def constructed(values: SourceValues, dtype: DType, call: Call, parts: Sequence[Value]) -> UOp:
    """Return a vector of parts, which may be vectors; one scalar fills all lanes. Errors:
    SourceError for another number of lanes."""
    lanes: list[UOp] = []
    for part in parts:
        node = values.concrete(part, dtype.scalar)
        whole = values.cast(node, dtype.scalar.vec(node.dtype.count))
        lanes += [values.lane(whole, i) for i in range(node.dtype.count)]
    if len(lanes) == 1:
        return values.spread(lanes[0], dtype)
    if len(lanes) != dtype.count:
        because = f"{dtype} has {dtype.count} lanes, and gets {len(lanes)}"
        raise SourceError(call.at, because)
    return values.vector(lanes)


def _as_bits(source: DType | None, dtype: DType) -> Handler:
    def compute(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
        _require(call, arguments, 1)
        node = values.concrete(arguments[0], source)
        if source is not None and node.dtype is not source:
            node = values.cast(node, source)
        return as_bits(values, node, dtype, call)

    return compute


def as_bits(values: SourceValues, node: UOp, dtype: DType, call: Call) -> UOp:
    """Return the bits of a value as another type. Errors: SourceError for another width."""
    if node.dtype.itemsize != dtype.itemsize:
        because = f"{node.dtype} has {node.dtype.itemsize} bytes, and {dtype} {dtype.itemsize}"
        raise SourceError(call.at, because)
    return values.bits(node, dtype)


def _cast_to(dtype: DType) -> Handler:
    def compute(values: SourceValues, call: Call, arguments: Sequence[Value]) -> Value:
        _require(call, arguments, 1)
        node = values.concrete(arguments[0], dtype)
        return values.cast(node, dtype.scalar.vec(max(dtype.count, node.dtype.count)))

    return compute


_SPECIAL: dict[str, Handler] = {
    "fma": _multiply_add, "fmaf": _multiply_add, "__fmaf_rn": _multiply_add,
    "mad": _multiply_add, "max": _extreme(Ops.MAX, False), "min": _extreme(Ops.MIN, False),
    "fmax": _extreme(Ops.MAX, True), "fmin": _extreme(Ops.MIN, True), "clamp": _clamp,
    "abs": _absolute, "rsqrt": _reciprocal_root, "inverseSqrt": _reciprocal_root,
    "floor": _floor(-1), "ceil": _floor(1), "rint": _round, "round": _round_half_away,
    "select": _select, "nan": _not_a_number, "any": _any_or_all(Ops.OR),
    "all": _any_or_all(Ops.AND), "dot": _dot, "countLeadingZeros": _leading_zeros,
    "clz": _leading_zeros, "__clz": _leading_zeros, "extractBits": _extract_bits,
}  # fmt: skip
_FLOAT_NAMES = frozenset({*_OF_FLOATS, *_OF_TWO_FLOATS}) | frozenset(
    "fma fmax fmin rsqrt floor ceil rint round".split()
)
