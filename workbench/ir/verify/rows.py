"""Rules that hold at every IR level, read from the op table: level, sources, dtypes.

A rule is a row; its `check` returns "" where the rule holds, and otherwise why it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.base.errors import VerifyError
from workbench.base.tensor_cores import NO_AXIS, Fragment, TensorCore, misfit
from workbench.ir.node.ops import OPS, REDUCTIONS, AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import brief

Check = Callable[[UOp], str]


class Why(str):
    """Why a rule is broken, and the node that breaks it, inside of the node that was checked."""

    __slots__ = ("node",)

    def __new__(cls, words: str, node: UOp) -> Why:
        """Return the words, with their node."""
        why = super().__new__(cls, words)
        why.node = node
        return why

    node: UOp


class Spec(NamedTuple):
    """One rule of a level: `check` runs on nodes of `ops` (None: on all); `message` is the rule
    in words."""

    name: str
    ops: Iterable[Ops] | None
    check: Check
    message: str


Table = dict[Ops, tuple[Spec, ...]]


def by_op(rows: Iterable[Spec]) -> Table:
    """Return the rows that apply to each op."""
    rows = tuple(rows)
    return {op: tuple(r for r in rows if r.ops is None or op in r.ops) for op in Ops}


def require(node: UOp, table: Table) -> None:
    """Errors: VerifyError for the first rule that `node` itself breaks; sources are not checked."""
    for spec in table[node.op]:
        why = spec.check(node)
        if why:
            raise broken(spec.name, spec.message, node, why)


def broken(rule: str, message: str, node: UOp, why: str) -> VerifyError:
    """Return the error that says which rule was broken, where and why."""
    node = why.node if isinstance(why, Why) else node
    error = VerifyError(f"{rule}: {message}", why, where=brief(node))
    error.node = node
    return error


def common(level: str) -> tuple[Spec, ...]:
    """Return the rows of a level ("t", "k", "l" or "n") that the op table gives."""
    name = {"t": "tensor", "k": "kernel", "l": "lowered", "n": "linear"}[level]

    def of_level(node: UOp) -> str:
        return "" if level in OPS[node.op].levels else f"{node.op.name} is not of level {name}"

    rows = (
        Spec("op-of-level", None, of_level, "the op belongs to the IR level"),
        Spec("source-count", None, source_count, "an op has as many sources as its arity says"),
        Spec("dtype", None, dtype_rule, "the dtype follows from those of the sources"),
        Spec("sign-of-bool", (Ops.NEG,), no_bool, "a bool has no negative; NOT inverts it"),
        Spec("bits-of-float", (Ops.NOT,), no_float, "NOT is for bools and integers"),
        Spec("range", (Ops.RANGE,), range_shape, "a range has a size, a name and a kind"),
    )  # fmt: skip
    scalar = Spec("scalar", None, is_scalar, "lanes are ranges until the program is linear")
    return rows if level == "n" else (*rows, scalar)


def source_count(node: UOp) -> str:
    arity = OPS[node.op].arity
    if arity is None or len(node.src) == arity:
        return ""
    return f"it has {len(node.src)} sources; {node.op.name} takes {arity}"


def dtype_rule(node: UOp) -> str:
    return _DTYPES[OPS[node.op].dtype](node)


def is_scalar(node: UOp) -> str:
    return "" if node.dtype.count == 1 else f"{node.dtype} is a vector"


def no_bool(node: UOp) -> str:
    return "it is bool" if node.dtype.is_bool else ""


def no_float(node: UOp) -> str:
    return "it is float" if node.dtype.is_float else ""


def range_shape(node: UOp) -> str:
    match node.arg:
        case (str(), AxisType()):
            size = node.src[0]
        case _:
            return f"its arg is {node.arg!r}, not (name, kind)"
    if node.dtype is not dtypes.index or size.dtype is not dtypes.index:
        return "it counts in index"
    return (
        ""
        if size.op in (Ops.CONST, Ops.VAR) and size.vmin >= 1
        else "its size is not a constant of 1 or more"
    )


def reduces(node: UOp) -> str:
    """Check the op of a REDUCE, a REDUCE_AXIS, an ACCUMULATE or an HREDUCE."""
    op = node.arg[0] if isinstance(node.arg, tuple) and node.arg else node.arg
    if node.src[0].dtype.is_low_precision:
        return f"it accumulates in {node.src[0].dtype}: accumulate in float32, and cast"
    return "" if op in REDUCTIONS else f"{op!r} is not one of {_names(REDUCTIONS)}"


def shuffle(node: UOp) -> str:
    """Check the distance of a WARP_SHUFFLE: bits of a lane's number."""
    has_bits = type(node.arg) is int and node.arg > 0
    return "" if has_bits else f"its distance is {node.arg!r}, not a positive number"


def is_shape(value: object) -> bool:
    """Whether `value` is a tuple of sizes."""
    return isinstance(value, tuple) and all(type(n) is int and n >= 0 for n in value)


def are_opts(value: object) -> bool:
    """Whether `value` has opts as plain data: a kind, an axis and an argument each."""
    part = (str, int, type(None))
    return isinstance(value, tuple) and all(
        isinstance(opt, tuple)
        and len(opt) == 3
        and type(opt[0]) is str
        and type(opt[1]) in part
        and type(opt[2]) in part
        for opt in value
    )


def _names(ops: Iterable[Ops]) -> str:
    return ", ".join(sorted(op.name for op in ops))


# the dtype rules of the op table


def _leaf(node: UOp) -> str:
    return "it has no dtype" if node.dtype is dtypes.void else ""


def _first(node: UOp) -> str:
    if not node.src:
        return "it has no source"
    source = node.src[0].dtype
    if node.op is Ops.LOAD:
        source = source.vec(node.dtype.count)
    return (
        ""
        if node.dtype is source and source is not dtypes.void
        else f"the first source is {source}"
    )


def _same(node: UOp) -> str:
    other = next((s.dtype for s in node.src if s.dtype is not node.dtype), None)
    return "" if other is None else f"a source is {other}, the result {node.dtype}"


def _bool(node: UOp) -> str:
    left, right = node.src
    if left.dtype is not right.dtype:
        return f"it compares {left.dtype} with {right.dtype}"
    expected = dtypes.bool.vec(left.dtype.count)
    return "" if node.dtype is expected else f"the result is {node.dtype}, not {expected}"


def _float(node: UOp) -> str:
    return _same(node) if node.dtype.is_float else f"{node.dtype} is not a float"


def _int(node: UOp) -> str:
    return _same(node) if node.dtype.is_int else f"{node.dtype} is not an integer"


def _bits(node: UOp) -> str:
    exact = node.dtype.is_int or node.dtype.is_bool
    return _same(node) if exact else f"{node.dtype} is neither integer nor bool"


def _word(node: UOp) -> str:
    return _same(node) if node.dtype is dtypes.uint32 else f"{node.dtype} is not uint32"


def _where(node: UOp) -> str:
    condition, *choices = node.src
    if condition.dtype not in (dtypes.bool, dtypes.bool.vec(node.dtype.count)):
        return f"the condition is {condition.dtype}"
    other = next((s.dtype for s in choices if s.dtype is not node.dtype), None)
    return "" if other is None else f"a choice is {other}, the result {node.dtype}"


def _cast(node: UOp) -> str:
    source = node.src[0].dtype
    if dtypes.void in (node.dtype, source) or source.count != node.dtype.count:
        return f"{source} has no value as {node.dtype}"
    if node.op is Ops.BITCAST and (
        source.bits != node.dtype.bits or source.is_bool is not node.dtype.is_bool
    ):
        return f"{source} has {source.bits} bits, {node.dtype} has {node.dtype.bits}"
    return ""


def _void(node: UOp) -> str:
    return "" if node.dtype is dtypes.void else f"a statement has no value, this is {node.dtype}"


def _lanes(node: UOp) -> str:
    scalar, count = node.dtype.scalar, node.dtype.count
    if any(s.dtype.scalar is not scalar for s in node.src) or not node.src:
        return f"its lanes are not {scalar}"
    if node.op in (Ops.BROADCAST, Ops.STACK):
        if any(s.dtype.count > 1 for s in node.src) or count == 1:
            return "it makes a vector of scalars"
        return (
            ""
            if node.op is Ops.BROADCAST or len(node.src) == count
            else f"it has {len(node.src)} lanes"
        )
    vector = node.src[0].dtype.count
    if node.op is Ops.SHUFFLE:
        fits = isinstance(node.arg, tuple) and len(node.arg) == count == vector
        fits = fits and node.src[1].dtype.count == vector > 1
        is_valid = fits and all(type(i) is int and 0 <= i < 2 * vector for i in node.arg)
        return "" if is_valid else f"{node.arg} does not pick lanes of two such vectors"
    if count > 1 or vector == 1:
        return "it makes a scalar of a vector"
    if node.op is Ops.HREDUCE:
        return reduces(node)
    return "" if type(node.arg) is int and 0 <= node.arg < vector else f"no lane {node.arg}"


def _wmma(node: UOp) -> str:
    if not isinstance(node.arg, TensorCore) or len(node.src) < 3:
        return "it has no TensorCore, or too few sources"
    core = node.arg
    why = misfit(core)
    if why:
        return why
    if node.dtype.scalar is not core.accumulator:
        return f"the result is {node.dtype}, not {core.accumulator}"
    for source in node.src[:2]:
        scalar = source.dtype.scalar
        is_bits = scalar.kind == "uint" and scalar.bits == core.operand.bits
        if scalar is not core.operand and not is_bits:
            return f"an operand is {scalar}, not {core.operand} or its bits"
    return ""


def _exchange(node: UOp) -> str:
    match node.arg:
        case (Fragment() as before, Fragment() as after):
            pass
        case _:
            return "it does not have two layouts"
    if sorted(_bits_of(before)) != sorted(_bits_of(after)):
        return "its layouts are not of one tile"
    scalar = node.src[0].dtype.scalar if node.src else None
    return "" if node.dtype.scalar is scalar else f"it makes {node.dtype} of {scalar}"


def _bits_of(fragment: Fragment) -> list[str]:
    bits = (*fragment.lane.split(), *fragment.element.split())
    return [bit for bit in bits if bit != NO_AXIS]


_DTYPES: dict[str, Check] = {
    "leaf": _leaf, "first": _first, "same": _same, "bool": _bool, "float": _float, "int": _int,
    "bits": _bits, "where": _where, "cast": _cast, "void": _void, "lanes": _lanes, "wmma": _wmma,
    "exchange": _exchange, "word": _word,
}  # fmt: skip
