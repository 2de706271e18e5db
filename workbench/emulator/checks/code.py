"""Programs that somebody edited: the text of a linear program, or its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.backends.program.analysis import analyse
from workbench.backends.program.source import signature
from workbench.base.dtypes import DType
from workbench.base.errors import ParseError, VerifyError
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.parser import parse
from workbench.ir.verify.linear import verify_linear

Params = tuple[tuple[DType, int], ...]
NAMED_BY_RUNS = frozenset({"divergence", "set-first", "partners"})
"""Rules whose breaches a run shows, with the work-items."""


def program_of(code: str | Sequence[UOp]) -> tuple[UOp, ...]:
    """Return the steps of a linear program. What a run shows is not refused: a barrier that not all
    work-items come to, a register that nobody sets.

    Errors: ParseError for a text that is not one; VerifyError for steps that no program has.
    """
    steps = parse(code) if isinstance(code, str) else _steps(code)
    if isinstance(steps, UOp):
        because = "it has no line LINEAR at its beginning"
        hint = "the text of emulate(kernel).code, edited"
        raise ParseError("this is not the text of a linear program", because, hint)
    verify_linear(steps, without=NAMED_BY_RUNS)
    _require_numbers(steps)
    return steps


def _steps(code: Any) -> tuple[UOp, ...]:
    if isinstance(code, (list, tuple)) and all(isinstance(s, UOp) for s in code):
        return tuple(code)
    what = f"{code!r:.60} is not a linear program"
    hint = "the text of emulate(kernel).code, edited"
    raise ParseError(what, "it is neither text nor a list of steps", hint)


def _require_numbers(steps: Sequence[UOp]) -> None:
    """Errors: VerifyError for SPECIALs that do not number all dimensions once."""
    for role in ("grid", "item"):
        numbers = [n.dimension for n in steps if n.op is Ops.SPECIAL and n.role == role]
        if sorted(numbers) != list(range(len(numbers))):
            listed = ", ".join(map(str, numbers))
            because = f"SPECIALs number the dimensions {listed} of the {role}"
            hint = f"each of 0 to {len(numbers) - 1} once"
            raise VerifyError("special: each dimension has one number", because, hint)


def params_of(steps: Sequence[UOp], target: Target) -> Params:
    """Return the dtype and the length of each argument of a program, by slot."""
    return signature(analyse(tuple(steps), target).params)


def require_params(steps: Sequence[UOp], params: Params, target: Target) -> None:
    """Errors: VerifyError for a program with other arguments than the kernel's."""
    for slot, (dtype, length) in enumerate(params_of(steps, target)):
        own = params[slot] if slot < len(params) else None
        if dtype.bits and own != (dtype, length):
            has = "no such argument" if own is None else f"{own[0]}[{own[1]}]"
            because = f"it has p{slot} as {dtype}[{length}], and the kernel has {has}"
            what = "the program has other arguments than the kernel"
            raise VerifyError(what, because, "the kernel's own PARAMs")
