"""Searches of a syntax tree: jumps, names and calls in statements and expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.emulator.source.syntax import (
    AssignmentOf,
    AssignmentStatement,
    Binary,
    BlockStatement,
    Braces,
    Call,
    Cast,
    Choice,
    Construct,
    DeclarationStatement,
    EvaluationStatement,
    Expr,
    IfStatement,
    JumpStatement,
    LoopStatement,
    MemberOf,
    Name,
    Number,
    SourceStatement,
    StepOf,
    Subscript,
    SwitchStatement,
    Unary,
)

BARRIERS = frozenset(
    "__syncthreads barrier work_group_barrier workgroupBarrier threadgroup_barrier".split()
)
SHUFFLES = {"__shfl_xor_sync": 1, "__shfl_xor": 0, "simd_shuffle_xor": 0,
            "sub_group_shuffle_xor": 0, "intel_sub_group_shuffle_xor": 0}  # fmt: skip
"""Functions that exchange values in a warp, with the place of the value among the arguments."""


def _children(statement: SourceStatement) -> tuple[SourceStatement, ...]:
    match statement:
        case BlockStatement():
            return statement.body
        case IfStatement():
            return (statement.yes,) if statement.no is None else (statement.yes, statement.no)
        case LoopStatement():
            return (*statement.first, *statement.step, statement.body)
        case SwitchStatement():
            return tuple(each for case in statement.cases for each in case.body)
    return ()


def jumps(statement: SourceStatement) -> set[str]:
    """Return the kinds of jumps out of a statement; those of a loop inside end there, and a break
    of a switch."""
    if isinstance(statement, JumpStatement):
        return {statement.kind}
    kinds = {kind for child in _children(statement) for kind in jumps(child)}
    if isinstance(statement, SwitchStatement):
        return kinds - {"break"}
    return kinds & {"return"} if isinstance(statement, LoopStatement) else kinds


def returns_early(body: Sequence[SourceStatement]) -> bool:
    """Whether the body of a function may return elsewhere than in its last statement."""
    own = body[:-1] if body and isinstance(body[-1], JumpStatement) else body
    return any("return" in jumps(each) for each in own)


def assigns(statement: SourceStatement, name: str) -> bool:
    """Whether a statement changes a variable."""
    if any(_steps(value, name) for value in _own_expressions(statement)):
        return True
    if isinstance(statement, AssignmentStatement):
        target = statement.target
        while isinstance(target, (MemberOf, Subscript)):
            target = target.value
        return isinstance(target, Name) and target.name == name
    if isinstance(statement, DeclarationStatement) and statement.name == name:
        return True  # another variable of that name: the loop is followed round by round
    return any(assigns(child, name) for child in _children(statement))


def _steps(value: Expr, name: str) -> bool:
    """Whether an expression changes a variable."""
    is_change = isinstance(value, (StepOf, AssignmentOf)) and any(
        each.name == name for each in names_in(value.target)
    )
    return is_change or any(_steps(part, name) for part in _parts(value))


def _parts(value: Expr) -> tuple[Expr, ...]:
    match value:
        case Unary() | Cast():
            return (value.value,)
        case Binary():
            return value.left, value.right
        case Choice():
            return value.condition, value.yes, value.no
        case Call():
            return value.arguments
        case Construct() | Braces():
            return value.parts
        case Subscript():
            return value.value, value.index
        case MemberOf():
            return (value.value,)
        case StepOf():
            return (value.target,)
        case AssignmentOf():
            return value.target, value.value
    return ()


def names_in(value: Expr) -> Iterator[Name]:
    """Yield the names in an expression, one as often as it stands there."""
    if isinstance(value, Name):
        yield value
    for part in _parts(value):
        yield from names_in(part)


def addressed_in(value: Expr) -> Iterator[Name]:
    """Yield the names whose address is in an expression."""
    if isinstance(value, Unary) and value.sign == "&" and isinstance(value.value, Name):
        yield value.value
    for part in _parts(value):
        yield from addressed_in(part)


def is_plain(value: Expr) -> bool:
    """Whether an expression is arithmetic of names and numbers."""
    if isinstance(value, Unary) and value.sign in "*&":
        return False
    if not isinstance(value, (Name, Number, Unary, Binary, Cast, Construct)):
        return False
    return all(is_plain(part) for part in _parts(value))


def expressions_in(statement: SourceStatement) -> Iterator[Expr]:
    """Yield the expressions of a statement and of those inside of it."""
    yield from _own_expressions(statement)
    for child in _children(statement):
        yield from expressions_in(child)


def _own_expressions(statement: SourceStatement) -> Iterator[Expr]:
    match statement:
        case DeclarationStatement() | JumpStatement():
            if statement.value is not None:
                yield statement.value
        case AssignmentStatement():
            yield statement.target
            yield statement.value
        case EvaluationStatement():
            yield statement.value
        case IfStatement():
            yield statement.condition
        case LoopStatement():
            if statement.condition is not None:
                yield statement.condition
        case SwitchStatement():
            yield statement.value


def _calls(value: Expr) -> Iterator[Call]:
    if isinstance(value, Call):
        yield value
    for part in _parts(value):
        yield from _calls(part)


def unrolls(loop: LoopStatement, name: str) -> bool:
    """Whether the distance of a shuffle depends on a loop's variable."""
    for value in expressions_in(loop.body):
        for call in _calls(value):
            if call.name in SHUFFLES and len(call.arguments) > SHUFFLES[call.name] + 1:
                distance = call.arguments[SHUFFLES[call.name] + 1]
                if any(each.name == name for each in names_in(distance)):
                    return True
    return False
