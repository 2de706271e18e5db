"""LLVM types, constants and elementwise instructions: the text of one value.

Every function returns text. An op that needs several instructions gets `emit`, which writes
the earlier ones and returns their names; the last one is returned, for the caller to name.

Sections: LLVM types, constants and elementwise instructions; LLVM instructions that move values
between the lanes of a vector; Values as LLVM operands.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from contextvars import ContextVar

from workbench.backends.llvm_ir.ssa import LLVMWriter, SSAPlan
from workbench.backends.program.analysis import is_number, may_overflow
from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.ops import COMPARE, Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# LLVM types, constants and elementwise instructions.

Emit = Callable[[str], str]
"""Writes an instruction and returns the name of its result."""
INDEX_BITS: ContextVar[int] = ContextVar("INDEX_BITS", default=64)
"""Bits of the indexes in the program that is being written."""


def bits_of(dtype: DType) -> int:
    """Return the number of bits of a value of `dtype`."""
    return INDEX_BITS.get() if dtype.kind == "index" else dtype.bits


def type_of(dtype: DType) -> str:
    """Return the LLVM type of a value of `dtype`; a bool is one bit."""
    name = _SCALAR_TYPE.get(dtype.scalar.name) or f"i{bits_of(dtype)}"
    return _lanes(name, dtype.count)


def memory_type(dtype: DType) -> str:
    """Return the LLVM type of `dtype` in memory, where a bool is one byte."""
    return _lanes("i8", dtype.count) if dtype.is_bool else type_of(dtype)


def suffix(dtype: DType) -> str:
    """Return the part of an intrinsic's name that names a type: f32, v8f32, i64."""
    kind = "f" if dtype.is_float else "i"
    if dtype.scalar is dtypes.bfloat16:
        kind = "bf"
    scalar = f"{kind}{bits_of(dtype)}"
    return scalar if dtype.count == 1 else f"v{dtype.count}{scalar}"


def constant(value: Const, dtype: DType) -> str:
    """Return `value` as an operand of type `dtype`: the same value in every lane."""
    if dtype.count == 1:
        return _scalar(value, dtype)
    if _scalar(value, dtype) in ("0", "0.0", "false"):
        return "zeroinitializer"
    return f"splat ({type_of(dtype.scalar)} {_scalar(value, dtype)})"


def lanes(values: Sequence[Const], dtype: DType) -> str:
    """Return a constant with one value per lane."""
    if all(_scalar(v, dtype) == _scalar(values[0], dtype) for v in values):
        return constant(values[0], dtype)
    kind = type_of(dtype.scalar)
    return "<" + ", ".join(f"{kind} {_scalar(v, dtype)}" for v in values) + ">"


def elementwise(node: UOp, args: Sequence[str], emit: Emit) -> str:
    """Return the instruction that computes an elementwise `node` from operands `args`."""
    op, dtype = node.op, max((s.dtype for s in node.src), key=lambda d: d.count)
    if op in (Ops.MAX, Ops.MIN):
        return extreme(op, dtype, args, emit, [is_number(s) for s in node.src])
    if op in (Ops.CDIV, Ops.CMOD) and may_overflow(node):
        return _safe_division(node, args, emit)
    if op in _BINARY:
        return combine(op, dtype, args, emit)
    if op is Ops.CAST:
        return _cast(node, args[0], emit)
    return _OTHER[op](node, args, emit)


def combine(op: Ops, dtype: DType, args: Sequence[str], emit: Emit) -> str:
    """Return the instruction for a binary `op` on two values of `dtype`."""
    if op in (Ops.MAX, Ops.MIN):
        return extreme(op, dtype, args, emit)
    return f"{_BINARY[op][_COLUMN[dtype.kind]]} {type_of(dtype)} {args[0]}, {args[1]}"


def call(name: str, dtype: DType, args: Sequence[str]) -> str:
    """Return the call of an intrinsic from values of `dtype` to one of `dtype`."""
    terms = ", ".join(f"{type_of(dtype)} {arg}" for arg in args)
    return f"call {type_of(dtype)} @llvm.{name}.{suffix(dtype)}({terms})"


def extreme(
    op: Ops,
    dtype: DType,
    args: Sequence[str],
    emit: Emit,
    is_number: Sequence[bool] = (False, False),
) -> str:
    """Return the greater or lesser of two values; NaN if either is NaN, as in numpy.

    `a > b ? a : b` is one instruction on most machines, and gives b if one of them is NaN. So a
    constant other than NaN comes first, and without one a NaN in `a` is selected explicitly.
    """
    a, b = args
    if dtype.is_bool:
        return f"{'or' if op is Ops.MAX else 'and'} {type_of(dtype)} {a}, {b}"
    if not dtype.is_float:
        name = ("s" if dtype.kind != "uint" else "u") + op.name.lower()
        return call(name, dtype, (a, b))
    if is_number[1] and not is_number[0]:
        a, b = b, a
    kind, bit = type_of(dtype), type_of(dtypes.bool.vec(dtype.count))
    first = emit(f"fcmp {'ogt' if op is Ops.MAX else 'olt'} {kind} {a}, {b}")
    picked = f"select {bit} {first}, {kind} {a}, {kind} {b}"
    if any(is_number):
        return picked
    name = emit(picked)
    nan = emit(f"fcmp uno {kind} {a}, {a}")
    return f"select {bit} {nan}, {kind} {a}, {kind} {name}"


# The columns are float, signed integer, unsigned integer, bool. Only FMA is a fused operation;
# "nsz" ignores the sign of a zero; NaN and infinity are kept.
# fmt: off
_COLUMN = {"float": 0, "int": 1, "index": 1, "uint": 2, "bool": 3}
_BINARY = {
    Ops.ADD:   ("fadd nsz", "add",      "add",      "or"),
    Ops.MUL:   ("fmul nsz", "mul",      "mul",      "and"),
    Ops.FDIV:  ("fdiv nsz", "",         "",         ""),
    Ops.CDIV:  ("",                  "sdiv",     "udiv",     ""),
    Ops.CMOD:  ("",                  "srem",     "urem",     ""),
    Ops.AND:   ("",                  "and",      "and",      "and"),
    Ops.OR:    ("",                  "or",       "or",       "or"),
    Ops.XOR:   ("",                  "xor",      "xor",      "xor"),
    Ops.SHL:   ("",                  "shl",      "shl",      ""),
    Ops.SHR:   ("",                  "ashr",     "lshr",     ""),
    Ops.CMPLT: ("fcmp olt",          "icmp slt", "icmp ult", "icmp ult"),
    Ops.CMPLE: ("fcmp ole",          "icmp sle", "icmp ule", "icmp ule"),
    Ops.CMPEQ: ("fcmp oeq",          "icmp eq",  "icmp eq",  "icmp eq"),
    Ops.CMPNE: ("fcmp une",          "icmp ne",  "icmp ne",  "icmp ne"),
}
_SCALAR_TYPE = {
    "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double", "bool": "i1",
}
# fmt: on


def _lanes(scalar: str, count: int) -> str:
    return scalar if count == 1 else f"<{count} x {scalar}>"


def _scalar(value: Const, dtype: DType) -> str:
    value = dtype.const(value)
    if dtype.is_bool:
        return "true" if value else "false"
    return _float(float(value)) if dtype.is_float else str(value)


def _float(value: float) -> str:
    """Return a float exactly: short ones in decimal, others as the bits of a double."""
    text = repr(value)
    if math.isfinite(value) and len(text) <= 8:
        mantissa, e, exponent = text.partition("e")
        return (mantissa if "." in mantissa else mantissa + ".0") + e + exponent
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _safe_division(node: UOp, args: Sequence[str], emit: Emit) -> str:
    """Divide by 1 where the divisor is -1, and negate: INT_MIN // -1 wraps."""
    (a, b), dtype = args, node.dtype
    kind, bit = type_of(dtype), type_of(dtypes.bool.vec(dtype.count))
    minus_one, one = constant(-1, dtype), constant(1, dtype)
    minus = emit(f"icmp eq {kind} {b}, {minus_one}")
    safe = emit(f"select {bit} {minus}, {kind} {one}, {kind} {b}")
    if node.op is Ops.CMOD:
        return f"srem {kind} {a}, {safe}"
    quotient = emit(f"sdiv {kind} {a}, {safe}")
    negated = emit(f"sub {kind} {constant(0, dtype)}, {a}")
    return f"select {bit} {minus}, {kind} {negated}, {kind} {quotient}"


def _neg(node: UOp, args: Sequence[str], emit: Emit) -> str:
    kind = type_of(node.dtype)
    if node.dtype.is_float:
        return f"fneg {kind} {args[0]}"
    return f"sub {kind} {constant(0, node.dtype)}, {args[0]}"


def _not(node: UOp, args: Sequence[str], emit: Emit) -> str:
    ones = constant(True if node.dtype.is_bool else -1, node.dtype)
    return f"xor {type_of(node.dtype)} {args[0]}, {ones}"


def _recip(node: UOp, args: Sequence[str], emit: Emit) -> str:
    return f"fdiv {type_of(node.dtype)} {constant(1.0, node.dtype)}, {args[0]}"


def _intrinsic(name: str) -> Callable[[UOp, Sequence[str], Emit], str]:
    def render(node: UOp, args: Sequence[str], emit: Emit) -> str:
        return call(name, node.dtype, args)

    return render


def _fma(node: UOp, args: Sequence[str], emit: Emit) -> str:
    """fmuladd is a fused multiply-add wherever the machine has one, and never a call."""
    return call("fmuladd", node.dtype, args)


def _where(node: UOp, args: Sequence[str], emit: Emit) -> str:
    kind = type_of(node.dtype)
    bit = type_of(node.src[0].dtype)
    return f"select {bit} {args[0]}, {kind} {args[1]}, {kind} {args[2]}"


def _bitcast(node: UOp, args: Sequence[str], emit: Emit) -> str:
    source = node.src[0].dtype
    if source.is_bool != node.dtype.is_bool:  # a bool is a byte in memory and a bit here
        return _convert(source, node.dtype, args[0])
    return f"bitcast {type_of(source)} {args[0]} to {type_of(node.dtype)}"


_OTHER: dict[Ops, Callable[[UOp, Sequence[str], Emit], str]] = {
    Ops.NEG: _neg,
    Ops.NOT: _not,
    Ops.RECIP: _recip,
    Ops.SQRT: _intrinsic("sqrt"),
    Ops.TRUNC: _intrinsic("trunc"),
    Ops.FMA: _fma,
    Ops.WHERE: _where,
    Ops.BITCAST: _bitcast,
}

SUPPORTED = frozenset({*_BINARY, *_OTHER, *COMPARE, Ops.MAX, Ops.MIN, Ops.CAST, Ops.FMOD})
"""The elementwise ops that reach LLVM; lowering decomposes the others. FMOD, which branches, is
written by `render.py`."""


def _cast(node: UOp, arg: str, emit: Emit) -> str:
    source, dtype = node.src[0].dtype, node.dtype
    if source.is_float and not (dtype.is_float or dtype.is_bool):
        if dtype.count > 1 and source.bits >= 32:
            return _saturated(source, dtype, arg, emit)
        name = f"fpto{'u' if dtype.kind == 'uint' else 's'}i.sat"
        over = f"{suffix(dtype)}.{suffix(source)}"
        return f"call {type_of(dtype)} @llvm.{name}.{over}({type_of(source)} {arg})"
    return _convert(source, dtype, arg)


def _saturated(source: DType, dtype: DType, arg: str, emit: Emit) -> str:
    """Clamp by comparisons of vectors, and convert only values that fit: the intrinsic would be
    split into single lanes. float16 cannot represent all limits of integers, and uses the
    intrinsic."""
    source_type, kind = type_of(source), type_of(dtype)
    bit = type_of(dtypes.bool.vec(dtype.count))
    low = constant(float(dtype.min), source)
    high = constant(float(int(dtype.max) + 1), source)
    below = emit(f"fcmp olt {source_type} {arg}, {low}")
    above = emit(f"fcmp oge {source_type} {arg}, {high}")
    reaches = emit(f"fcmp oge {source_type} {arg}, {low}")  # NaN does not fit
    fits = emit(f"fcmp olt {source_type} {arg}, {high}")
    inside = emit(f"and {bit} {reaches}, {fits}")
    zero = constant(0.0, source)
    safe = emit(f"select {bit} {inside}, {source_type} {arg}, {source_type} {zero}")
    word = "fptoui" if dtype.kind == "uint" else "fptosi"
    whole = emit(f"{word} {source_type} {safe} to {kind}")
    least, most = constant(dtype.min, dtype), constant(dtype.max, dtype)
    raised = emit(f"select {bit} {below}, {kind} {least}, {kind} {whole}")
    return f"select {bit} {above}, {kind} {most}, {kind} {raised}"


def _convert(source: DType, dtype: DType, arg: str) -> str:
    """Return a conversion that is one instruction; `_cast` writes float -> int."""
    kind, to = f"{type_of(source)} {arg}", type_of(dtype)
    if dtype.is_bool:
        test = "fcmp une" if source.is_float else "icmp ne"
        return f"{test} {kind}, {constant(0, source)}"
    bits, source_bits = bits_of(dtype), bits_of(source)
    if bits == source_bits and dtype.is_float == source.is_float:
        return f"bitcast {kind} to {to}"
    signed, wider = source.kind in ("int", "index"), bits > source_bits
    if source.is_float:
        word = "fpext" if wider else "fptrunc"
    elif dtype.is_float:
        word = "sitofp" if signed else "uitofp"
    else:
        word = ("sext" if signed else "zext") if wider else "trunc"
    return f"{word} {kind} to {to}"


# --------------------------------------------------------------------------------------------------
# LLVM instructions that move values between the lanes of a vector.
#
# As above, `emit` writes the first instructions, and the last one is returned.


def broadcast(scalar: str, dtype: DType, emit: Emit) -> str:
    """Return the instruction that puts one value into every lane."""
    kind = type_of(dtype)
    lane = f"{type_of(dtype.scalar)} {scalar}"
    first = emit(f"insertelement {kind} poison, {lane}, i64 0")
    zeros = f"<{dtype.count} x i32> zeroinitializer"
    return f"shufflevector {kind} {first}, {kind} poison, {zeros}"


def stack(scalars: Sequence[str], dtype: DType, emit: Emit) -> str:
    """Return the last instruction that builds a vector of one value per lane."""
    kind, vector, step = type_of(dtype), "poison", ""
    for lane, scalar in enumerate(scalars):
        if step:
            vector = emit(step)
        value = f"{type_of(dtype.scalar)} {scalar}"
        step = f"insertelement {kind} {vector}, {value}, i64 {lane}"
    return step


def extract(vector: str, dtype: DType, lane: int) -> str:
    """Return the instruction that takes one lane out."""
    return f"extractelement {type_of(dtype)} {vector}, i64 {lane}"


def shuffle(vectors: Sequence[str], dtype: DType, picks: Sequence[int]) -> str:
    """Return the instruction that picks lanes of two vectors."""
    kind = type_of(dtype)
    mask = ", ".join(f"i32 {lane}" for lane in picks)
    a, b = vectors
    return f"shufflevector {kind} {a}, {kind} {b}, <{dtype.count} x i32> <{mask}>"


def combine_lanes(op: Ops, vector: str, dtype: DType, emit: Emit) -> str:
    """Return the last instruction that combines all lanes of a vector.

    Halves are combined with each other until one lane is left; an odd lane is combined last.
    """
    odd: list[str] = []
    step = extract(vector, dtype, 0)
    while dtype.count > 1:
        half = dtype.vec(dtype.count // 2)
        if dtype.count % 2:
            odd.append(emit(extract(vector, dtype, dtype.count - 1)))
        parts = [_part(vector, dtype, half, number, emit) for number in (0, 1)]
        step, dtype = combine(op, half, parts, emit), half
        if dtype.count > 1:
            vector = emit(step)
    for lane in odd:
        step = combine(op, dtype, (emit(step), lane), emit)
    return step


def _part(vector: str, dtype: DType, half: DType, number: int, emit: Emit) -> str:
    first = number * half.count
    if half.count == 1:
        return emit(extract(vector, dtype, first))
    picks = ", ".join(f"i32 {first + lane}" for lane in range(half.count))
    kind = type_of(dtype)
    mask = f"<{half.count} x i32> <{picks}>"
    return emit(f"shufflevector {kind} {vector}, {kind} poison, {mask}")


# --------------------------------------------------------------------------------------------------
# Values as LLVM operands: the current name of each node, and names for new values.


class Operands:
    """The values of one kernel. `values` has the current name of each node's value: that of a
    register changes with every SET."""

    def __init__(self, ssa: SSAPlan, text: LLVMWriter):
        self.ssa, self.text = ssa, text
        self.values: dict[UOp, str] = {}

    def operand(self, node: UOp, like: DType | None = None) -> str:
        """Return a node's value as an operand; a constant gets as many lanes as `like`.

        Errors: CompileError if the node has no value yet.
        """
        dtype = node.dtype
        if like is not None and like.count > 1:
            dtype = dtype.vec(like.count)
        if node.op is Ops.CONST:
            return constant(node.arg, dtype)
        if node.op is Ops.LANES:
            return lanes(node.arg, dtype)
        if node.op is Ops.AFTER:
            return self.operand(node.src[0])
        if node not in self.values:
            raise CompileError("render", f"{node!r} is used before it has a value")
        return self.values[node]

    def before(self, register: UOp) -> str:
        """Return the value of a register before a branch or a loop. A register that only branches
        set may have none yet: it is "poison", and nothing reads it.

        Errors: CompileError for any other register without a value.
        """
        if register in self.ssa.conditional and register not in self.values:
            return "poison"
        return self.operand(register)

    def operands(self, node: UOp) -> list[str]:
        """Return the operands of an elementwise node, all of the same width except a condition."""
        wide = max((s.dtype for s in node.src), key=lambda dtype: dtype.count)
        if node.op is Ops.WHERE:
            condition, *values = node.src
            return [self.operand(condition), *(self.operand(v, wide) for v in values)]
        return [self.operand(s, wide) for s in node.src]

    def named(self, node: UOp, instruction: str) -> str:
        """Write an instruction under a name derived from `node`; return the name."""
        register = self.ssa.names.get(node)
        if register is not None:
            return self.text.emit(instruction, self.text.unique(register_name(register)))
        if node.op is Ops.LOAD:
            place = self.values[node.place.param].lstrip("%@")
            return self.text.emit(instruction, self.text.numbered(f"{place}_v"))
        if node.dtype is dtypes.index:
            return self.text.emit(instruction, self.text.numbered("idx"))
        return self.text.emit(instruction, self.text.numbered(node.op.name.lower()))


def register_name(register: UOp) -> str:
    """Return the name for values of a REG: its accumulator and its first lane."""
    return f"{register.name}_{register.first_lane}"
