"""The syntax tree of a kernel's text: types, expressions, statements, functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.tokens import Token

Space = Literal["", "global", "shared", "private"]


@dataclass(frozen=True)
class Type:
    """A type: a scalar or a vector, or a pointer to such elements in a `space` ("": that of the
    address). `sizes` are the lengths of an array, outermost first; None: as long as its memory.
    `is_atomic`: an element that atomic operations change. `struct`: the parts of a struct, whose
    `dtype` is void."""

    dtype: DType
    is_pointer: bool = False
    space: Space = ""
    sizes: tuple[Expr | None, ...] = ()
    is_atomic: bool = False
    struct: SourceStruct | None = None

    def __str__(self) -> str:
        return f"pointer to {self.named}" if self.is_pointer else self.named

    @property
    def named(self) -> str:
        """The elements in words, without the pointer."""
        if self.struct is not None:
            return f"the struct {self.struct.name}"
        return "nothing" if self.dtype is dtypes.void else str(self.dtype)


@dataclass(frozen=True)
class SourceStruct:
    """A struct: its name, and its parts in their order. `roles` are those of parts that the launch
    passes, as of a parameter."""

    name: str
    parts: tuple[tuple[str, Type], ...]
    roles: tuple[str, ...] = ()


# expressions


@dataclass(frozen=True)
class Expr:
    """An expression, at its first token."""

    at: Token


@dataclass(frozen=True)
class Number(Expr):
    """A literal. A dtype of None: a literal without a type of its own (WGSL)."""

    value: int | float | bool
    dtype: DType | None


@dataclass(frozen=True)
class Name(Expr):
    name: str


@dataclass(frozen=True)
class Unary(Expr):
    """`sign` is one of - + ! ~ * &."""

    sign: str
    value: Expr


@dataclass(frozen=True)
class Binary(Expr):
    sign: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Choice(Expr):
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class Call(Expr):
    """A call; `types` are the types in its brackets: `bitcast<f32>(x)`."""

    name: str
    arguments: tuple[Expr, ...]
    types: tuple[Type, ...] = ()


@dataclass(frozen=True)
class Construct(Expr):
    """A value of a type from parts: `(float4)(a, b, c, d)`, `vec4<f32>(..)`, `f32(x)`."""

    type: Type
    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Cast(Expr):
    type: Type
    value: Expr


@dataclass(frozen=True)
class Braces(Expr):
    """Values in braces, which fill an array or a vector."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Subscript(Expr):
    value: Expr
    index: Expr


@dataclass(frozen=True)
class MemberOf(Expr):
    value: Expr
    name: str


@dataclass(frozen=True)
class StepOf(Expr):
    """`++x` or `x--`: a variable steps by one; its value is the one after, or the one before."""

    target: Expr
    sign: str
    is_before: bool


@dataclass(frozen=True)
class AssignmentOf(Expr):
    """An assignment as a value, as in `a = b = 0`; `sign` as in a statement."""

    target: Expr
    sign: str
    value: Expr


@dataclass(frozen=True)
class SizeOf(Expr):
    """The bytes of a type, or of what a name stands for."""

    type: Type | None
    value: Expr | None


# statements


@dataclass(frozen=True)
class SourceStatement:
    """A statement: its first token, and the offset in the text at which its own words end."""

    at: Token
    end: int


@dataclass(frozen=True)
class DeclarationStatement(SourceStatement):
    """A variable or an array. A type of None: that of its value (WGSL, auto)."""

    name: str
    type: Type | None
    value: Expr | None
    is_constant: bool = False


@dataclass(frozen=True)
class AssignmentStatement(SourceStatement):
    """`sign` is "" for `=`, or the operator before it."""

    target: Expr
    sign: str
    value: Expr


@dataclass(frozen=True)
class EvaluationStatement(SourceStatement):
    value: Expr


@dataclass(frozen=True)
class AsmStatement(SourceStatement):
    """An instruction of inline assembly, with its operands: constraint and expression."""

    template: str
    outputs: tuple[tuple[str, Expr], ...]
    inputs: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class BlockStatement(SourceStatement):
    body: tuple[SourceStatement, ...]


@dataclass(frozen=True)
class IfStatement(SourceStatement):
    condition: Expr
    yes: SourceStatement
    no: SourceStatement | None


@dataclass(frozen=True)
class SwitchCase:
    """The statements from some labels to the next ones; `is_default`: one of them is `default`."""

    labels: tuple[Expr, ...]
    is_default: bool
    body: tuple[SourceStatement, ...]


@dataclass(frozen=True)
class SwitchStatement(SourceStatement):
    """A choice of cases. `falls_through`: a case without a break goes on with the next one."""

    value: Expr
    cases: tuple[SwitchCase, ...]
    falls_through: bool


@dataclass(frozen=True)
class LoopStatement(SourceStatement):
    """A loop: `first` before it, `condition` before each round (None: always true), `step` after
    it. `is_checked_after`: the condition is checked after each round."""

    first: tuple[SourceStatement, ...]
    condition: Expr | None
    step: tuple[SourceStatement, ...]
    body: SourceStatement
    is_checked_after: bool = False


@dataclass(frozen=True)
class JumpStatement(SourceStatement):
    """A break, a continue, or a return, perhaps of a value."""

    kind: Literal["break", "continue", "return"]
    value: Expr | None = None


# functions


@dataclass(frozen=True)
class SourceParameter:
    """A parameter. `role` says which numbers the launch passes ("": none, it is memory or a value):
    "group", "item", those of "all" work-items along a dimension, the only "number" of an item in
    its group, the sizes "items" and "groups". `number` orders memory, where the text has it:
    `@group(0) @binding(1)`, `[[buffer(1)]]`. `is_constant`: the kernel must not write to it."""

    at: Token
    name: str
    type: Type
    is_reference: bool = False
    role: str = ""
    number: tuple[int, ...] = ()
    is_constant: bool = False


@dataclass(frozen=True)
class SourceFunction:
    at: Token
    name: str
    result: Type
    parameters: tuple[SourceParameter, ...]
    body: BlockStatement
    is_kernel: bool = False
    group: tuple[int, ...] | None = None
    """The size of a group along x, y and z, where the text has it."""
    most_items: int | None = None
    """The most work-items of a group, where the text has it."""


@dataclass
class SourceModule:
    """A text: its functions by name, with those of other parameters; memory and constants that
    stand outside of functions."""

    functions: dict[str, list[SourceFunction]] = field(default_factory=dict)
    globals: list[DeclarationStatement] = field(default_factory=list)
    bindings: list[SourceParameter] = field(default_factory=list)
