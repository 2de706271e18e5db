"""The base class of dialects, languages like C: data, and methods that return small texts for
`render.py`.

The defaults are what most of the languages share; a dialect overrides what it writes otherwise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.backends.program.launch import LaunchShape
from workbench.backends.program.text import (
    ATOM,
    CHOICE,
    EITHER,
    EQUAL,
    MUL,
    UNARY,
    Expression,
    Language,
    call,
    paren,
    signed,
)
from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import LanguageError
from workbench.base.tensor_cores import TensorCore
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import LoopRole

COMPONENTS = "xyzw"
C_WORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if int"
    " inline long register return short signed sizeof static struct switch typedef union unsigned"
    " void volatile while main".split()
)
"""Reserved words of all these languages but WGSL: no axis, value or kernel has such a name."""
_SHORT_DIGITS = 9
"""Most characters of a decimal float; a longer one is written as a hexadecimal float."""


class Parameter(NamedTuple):
    """An argument of a kernel: its slot, its name, the type of its elements in memory, and whether
    the kernel writes it."""

    slot: int
    name: str
    dtype: DType
    is_written: bool


class ArrayPart(NamedTuple):
    """An array in memory that a launch passes: the type and the number of its elements, its name,
    and its offset in bytes."""

    kind: str
    name: str
    size: int
    offset: int


class FragmentText(NamedTuple):
    """A lane's fragment of a tile, as expressions: the whole vector, or each element.
    `is_packed`: the vector has registers of 32 bits, which an exchange of rows has filled."""

    dtype: DType
    whole: Callable[[], str]
    lanes: Callable[[], list[str]]
    is_packed: bool = False


class CopyText(NamedTuple):
    """A copy of `nbytes` from an argument to an array of the group: both places as expressions, and
    a condition ("": always true). Where the condition is false, the copy writes zeros."""

    to: str
    source: str
    nbytes: int
    condition: str


class Dialect(ABC):
    """A language. `types` has its names of scalar dtypes; a dtype without a name is refused."""

    language: Language
    reserved: frozenset[str]
    types: Mapping[str, str]
    barrier = ""
    """The statement at which a work-group waits."""
    parts: ClassVar[tuple[type[Any], ...]] = ()
    """Subclasses of Helpers, Values and WorkItemMemory for this language; (): the three bases."""
    functions: ClassVar[Mapping[Ops, str]] = {
        Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", Ops.EXP2: "exp2", Ops.LOG2: "log2",
        Ops.SIN: "sin", Ops.COS: "cos", Ops.FMOD: "fmod",
    }  # fmt: skip
    """Functions of floats by their ops."""
    needs_only_text = False
    """Whether the text is all that its runtime needs, without the tree and the linear program."""
    alignment_bytes = 1
    """The alignment of arrays."""
    unit_groups = 0
    """Work-groups that a compute unit has room for, a hint for the compiler; 0: no hint."""
    truths = ("false", "true")
    """The constants of bools."""
    has_extremes = True
    """Whether the language has `max` and `min` of 32-bit integers."""
    wraps = False
    """Whether sums and products of signed integers wrap; in C and C++ these are undefined."""
    wide = False
    """Whether indexes of this kernel need 64 bits."""
    warp_lanes = 1
    """How many work-items execute this kernel in lock step."""
    serial_items = False
    """Whether the work-items of a group run one after another."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        """Declarations before the kernel, by name; each comes after those that it uses."""

    # types

    def scalar(self, dtype: DType) -> str:
        """Return the type of one value. Errors: LanguageError for a dtype not in `types`."""
        if dtype.scalar is dtypes.index:
            return self.index_type
        name = self.types.get(dtype.scalar.name)
        if name is None:
            raise LanguageError(self.language.name, dtype.scalar.name)
        return name

    spaces: ClassVar[Mapping[str, str]] = {"global": "", "shared": "", "private": ""}
    """The words before the type of a pointer, by memory space."""
    aligns_vectors = True
    """Whether the address of a vector must be a multiple of the vector's size."""
    not_finite: ClassVar[Mapping[int, tuple[str, str]]] = {}
    """NaN and infinity, by the bits of a float."""
    rounds_stores = False
    """Whether registers hold a float16 as a float32, which a store rounds."""

    def part_of_name(self, dtype: DType) -> str:
        """Return the name of a type as part of the names of functions: `float32`."""
        return dtype.name

    def in_memory(self, dtype: DType) -> str:
        """Return the type of one element in memory, where a bool is a byte."""
        return self.scalar(dtypes.uint8 if dtype.is_bool else dtype)

    def vector(self, dtype: DType) -> str:
        """Return the type of a vector: `float4`."""
        return f"{self.scalar(dtype)}{dtype.count}"

    @property
    def index_type(self) -> str:
        """The type of an index."""
        return self.types["int64" if self.wide else "int32"]

    # constants

    def constant(self, value: Const, dtype: DType) -> Expression:
        """Return a constant whose value, and bits, are exactly those of `value`."""
        value = dtype.scalar.const(value)
        if dtype.is_bool:
            return self.truths[bool(value)], ATOM
        if dtype.is_low_precision:
            wide = self.constant(value, dtypes.float32)
            return self.cast(wide, dtypes.float32, dtype.scalar)
        if dtype.is_float:
            return signed(self.float_text(float(value), dtype))
        return signed(self.integer_text(int(value), dtype))

    def integer_text(self, value: int, dtype: DType) -> str:
        """Return an integer as a literal of its type."""
        if dtype.bits < 32 or dtype.kind == "index" and abs(value) < 1 << 31:
            return str(value)
        suffix = "u" if dtype.kind == "uint" else ""
        suffix += self.long_suffix if dtype.bits == 64 else ""
        if value == dtype.min and value:  # -128 is minus a literal, and 128 would be too large
            return f"({value + 1}{suffix} - 1)"
        return f"{value}{suffix}"

    long_suffix = "l"

    def float_text(self, value: float, dtype: DType) -> str:
        """Return a float as a literal of its type."""
        if not math.isfinite(value):
            return self.special_float(value, dtype)
        single = dtype.bits <= 32
        text = str(np.float32(value)) if single else repr(value)
        if len(text) > _SHORT_DIGITS:
            mantissa, exponent = value.hex().split("p")
            text = mantissa.rstrip("0").rstrip(".") + "p" + exponent
        return text + ("f" if single else "")

    def special_float(self, value: float, dtype: DType) -> str:
        """Return an infinity or NaN. Errors: LanguageError for a type that the language lacks."""
        words = self.not_finite.get(max(dtype.bits, 32))
        if words is None:
            raise LanguageError(self.language.name, dtype.scalar.name)
        nan, infinity = words
        if math.isnan(value):
            return nan
        return f"-{infinity}" if value < 0 else infinity

    # expressions

    def operation(self, node: UOp, arguments: Sequence[Expression]) -> Expression | None:
        """Return one lane of an elementwise node on a dtype without operators in the language; None
        where the dtype has operators."""
        return None

    def has_operators(self, dtype: DType) -> bool:
        """Whether the language has operators for values of a dtype, `+=` and `*=` among them."""
        return True

    def cast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        """Return a number as another type, as C does it."""
        return f"({self.scalar(dtype)}){paren(value, UNARY)}", UNARY

    def convert(self, value: Expression, source: DType, dtype: DType) -> Expression | None:
        """Return a vector of floats as floats of another type, None where each lane is converted
        by itself."""
        return None

    @abstractmethod
    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        """Return the same bits as another scalar type of that width, one of them a float."""

    def choose(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        """Return `yes` where the condition holds, else `no`."""
        test, a, b = (paren(e, EITHER) for e in (condition, yes, no))
        return f"{test} ? {a} : {b}", CHOICE

    @property
    def masked(self) -> Callable[[Expression, str, DType], str] | None:
        """A function of a condition, a load and its dtype: the loaded value where the condition is
        true, else 0. The load is done in any case, of element 0 where the condition is false. None:
        a conditional load may be a branch."""
        return None

    def apply(self, op: Ops, dtype: DType, arguments: Sequence[Expression]) -> Expression:
        """Return a call of a function of floats."""
        return call(self.functions[op], *[words for words, _ in arguments])

    def multiply_add(
        self, dtype: DType, operands: Sequence[Expression], splats: Sequence[bool]
    ) -> Expression:
        """Return a * b + c of floats, rounded once. It must be explicit: compilers fuse nothing by
        themselves. `splats` says which operands of a vector are scalars for all lanes."""
        parts = [
            self.splat(dtype, operand) if is_splat else operand
            for operand, is_splat in zip(operands, splats, strict=True)
        ]
        return call("fma", *[words for words, _ in parts])

    def rest(self, a: Expression, b: Expression, dtype: DType) -> Expression:
        """Return the remainder of a truncated division of integers."""
        return f"{paren(a, MUL)} % {paren(b, UNARY)}", MUL

    def negative(self, value: Expression, dtype: DType) -> Expression:
        """Return minus a value."""
        return f"-{paren(value, ATOM)}", UNARY

    def differ(self, a: Expression, b: Expression) -> Expression:
        """Return whether two floats differ; NaN differs from every value, also from itself."""
        return f"{paren(a, EQUAL + 1)} != {paren(b, EQUAL + 1)}", EQUAL

    def shift(self, amount: Expression, tight: int) -> str:
        """Return the right operand of a shift."""
        return paren(amount, tight)

    def build(self, dtype: DType, lanes: Sequence[Expression]) -> Expression:
        """Return a vector of these lanes."""
        return call(f"({self.vector(dtype)})", *[words for words, _ in lanes])

    def splat(self, dtype: DType, value: Expression) -> Expression:
        """Return a vector with one value in all lanes."""
        return self.build(dtype, [value])

    def has_vector(self, dtype: DType) -> bool:
        """Whether the language has a type for a vector; without one, each lane is a scalar."""
        return dtype.count <= len(COMPONENTS)

    def component(self, value: str, i: int, count: int) -> str:
        """Return lane `i` of a vector of `count` lanes."""
        return f"{value}.{COMPONENTS[i]}"

    def extreme_function(self, name: str, op: Ops, dtype: DType) -> str:
        """Return a function of the greater or lesser of two values, NaN if either is, that uses an
        instruction; "" where a comparison computes it."""
        return ""

    def shuffle(self, value: Expression, dtype: DType, distance: int) -> Expression:
        """Return the value of another lane of the warp, whose number is this lane's xor `distance`.

        Errors: LanguageError for a language that has no such function.
        """
        hint = "the list of opts without GROUP"
        raise LanguageError(self.language.name, "warp shuffle", hint)

    def tile_function(self, name: str, core: TensorCore, bits: DType) -> str:
        """Return the function, written before the kernel, that multiplies tiles on a tensor core.
        Its parameters are the `tile_arguments` of both operands, and the accumulator; an element of
        an operand is held as `bits`.

        Errors: LanguageError for a language that has no such instruction.
        """
        what, hint = f"instruction for {core}", "the list of opts without TC"
        raise LanguageError(self.language.name, what, hint)

    def tile_arguments(self, value: FragmentText) -> list[str]:
        """Return a fragment as arguments of a tile function; most languages have one vector."""
        return [value.whole()]

    def exchange_function(self, name: str, matrices: int, transposed: bool) -> str:
        """Return the function, written before the kernel, that reads matrices in a shared array:
        each lane names one row, and gets its packed fragments. Errors: as `tile_function`."""
        raise LanguageError(self.language.name, "instruction that exchanges rows")

    def operator(  # noqa: B027  most languages have operators
        self, sign: str, dtype: DType, left: bool, right: bool
    ) -> None:
        """Note the use of an operator on vectors. `left` and `right` say whether that operand is a
        vector; if not, it is a scalar. The minus sign of a negation has no left operand."""

    def function(
        self,
        kind: str,
        name: str,
        parameters: Sequence[tuple[str, str]],
        value: str,
        about: str = "",
    ) -> str:
        """Return the definition of a function whose result is one expression; `about` is a comment,
        which some languages leave out."""
        listed = ", ".join(f"{k} {n}" for k, n in parameters)
        return f"{self.inline}{kind} {name}({listed}) {{ return {value}; }}"

    inline = "static inline "

    # memory

    def element(self, name: str, index: str) -> str:
        """Return the expression of one element in memory."""
        return f"{name}[{index}]"

    def load_element(self, name: str, index: str, dtype: DType) -> Expression:
        """Return the expression that loads one element."""
        place = self.element(name, index)
        if not dtype.is_bool:
            return place, ATOM
        return f"{place} != {self.constant(0, dtypes.uint8)[0]}", EQUAL

    def store_element(self, name: str, index: str, dtype: DType, value: Expression) -> str:
        """Return the statement that stores one element."""
        if dtype.is_bool:
            value = self.cast(value, dtypes.bool, dtypes.uint8)
        return f"{self.element(name, index)} = {value[0]};"

    def vector_place(
        self, name: str, index: str, dtype: DType, space: str, constant: bool = False
    ) -> str:
        """Return the expression of a vector in memory: `*(float4 *)&p1[g0*4]`."""
        kind = f"{self.spaces[space]}{'const ' if constant else ''}{self.vector(dtype)}"
        return f"*({kind} *)&{name}[{index}]"

    def load_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, constant: bool
    ) -> str | None:
        """Return the expression that loads a vector from an index on, None where each lane is
        loaded by itself. `space` is "global", "shared" or "private"; `aligned`: the address is a
        multiple of the vector's size."""
        if not aligned and self.aligns_vectors:
            return None
        return self.vector_place(name, index, dtype, space, constant)

    def store_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, value: str
    ) -> str | None:
        """Return the statement that stores a vector, None where each lane is stored by itself."""
        if not aligned and self.aligns_vectors:
            return None
        return f"{self.vector_place(name, index, dtype, space)} = {value};"

    def copy(self, copy: CopyText) -> str | None:
        """Return the statement that copies between addresses that are multiples of the size; None
        where a load and a store do it."""
        return None

    def copy_function(self, name: str, nbytes: int) -> str:
        """Return the function, written before the kernel, that begins an asynchronous copy to an
        array of the group; "" where there is none. Its arguments are the two places, and the number
        of bytes to copy: the rest is filled with zeros."""
        return ""

    def barrier_but(self, batches: int) -> str:
        """Return a barrier that also waits for asynchronous copies, but not for the last `batches`
        batches; a batch is the copies begun between two such barriers."""
        return self.barrier

    # statements

    def define(self, kind: str, name: str, value: str, constant: bool = True) -> str:
        """Return the definition of a value (`constant`) or of a register."""
        return f"{'const ' if constant else ''}{kind} {name} = {value};"

    def declare(self, kind: str, name: str) -> str:
        """Return the declaration of a register that is set later."""
        return f"{kind} {name};"

    @abstractmethod
    def array(self, dtype: DType, name: str, size: int, zeros: bool) -> str:
        """Return the declaration of an array of one work-item, with zeros or not initialised."""

    def shared_array(self, dtype: DType, name: str, size: int) -> str:
        """Return the declaration of an array that a work-group shares."""
        raise LanguageError(self.language.name, "work-groups")

    most_array_bytes = 0
    """Most bytes of all shared arrays of a group that are declared with their sizes; if they need
    more, they are memory of the launch. 0: no limit."""

    def launch_arrays(self, arrays: Sequence[ArrayPart], slot: int) -> list[str]:
        """Return the declarations of arrays in memory that the launch allocates; `slot` is the
        argument after those of the kernel."""
        what, hint = "memory of a launch", "smaller tiles"
        raise LanguageError(self.language.name, what, hint)

    shares_outside = False
    """Whether shared arrays are declared before the kernel."""

    def bounds(self, role: LoopRole | None, extent: int) -> tuple[str, str]:
        """Return the first step of a loop, and the one after its last."""
        return "0", str(extent)

    def loop(self, kind: str, name: str, first: str, last: str) -> str:
        """Return the head of a loop."""
        return f"for ({kind} {name} = {first}; {name} < {last}; {name}++) {{"

    def number(self, role: LoopRole, dimension: int) -> str:
        """Return the number of this work-group or work-item along a dimension."""
        raise LanguageError(self.language.name, "work-groups")

    def pointer(self, parameter: Parameter) -> str:
        """Return the declaration of an argument: `const float *p1`."""
        constant = "" if parameter.is_written else "const "
        return (
            f"{self.spaces['global']}{constant}{self.in_memory(parameter.dtype)} *{parameter.name}"
        )

    def arguments(self, parameters: Sequence[Parameter]) -> list[str]:
        """Return the lines that give the arguments their names, where `head` does not."""
        return []

    @abstractmethod
    def head(self, name: str, parameters: Sequence[Parameter], launch: LaunchShape) -> list[str]:
        """Return the lines that begin a kernel; the last one ends with its brace."""

    def preamble(self, uses: frozenset[str]) -> list[str]:
        """Return the lines before the declarations; `uses` has the scalar types in the text."""
        return []
