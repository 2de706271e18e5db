"""Edited programs: the text of a linear program, or its steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench.backends.program.analysis import analyse
from workbench.backends.program.source import signature
from workbench.base.dtypes import DType
from workbench.base.errors import ParseError, VerifyError
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import brief
from workbench.ir.verify.linear import verify_linear

Params = tuple[tuple[DType, int], ...]
NAMED_BY_RUNS = frozenset({"divergence", "set-first", "partners"})
"""Rules whose breaches a run shows, with the work-items."""


def program_of(code: str | Sequence[UOp]) -> tuple[UOp, ...]:
    """Return the steps of a linear program. What a run shows is not refused: a barrier that not all
    work-items come to, a register that is never set.

    Errors: ParseError for a text that is not one; VerifyError for steps that no program has.
    """
    steps = parse(code) if isinstance(code, str) else _steps(code)
    if isinstance(steps, UOp):
        because = "it has no line LINEAR at its beginning"
        hint = "the text of emulate(kernel).code, edited"
        raise ParseError("this is not the text of a linear program", because, hint)
    verify_linear(steps, without=NAMED_BY_RUNS)
    _require_numbers(steps)
    _require_one_type(steps)
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


def _require_one_type(steps: Sequence[UOp]) -> None:
    """Errors: VerifyError for an argument of two lengths or dtypes."""
    types: dict[int, str] = {}
    for param in (n.param for n in steps if n.op is Ops.INDEX):
        if param.op is Ops.PARAM:
            own = _type_of(param)
            first = types.setdefault(param.slot, own)
            if first != own:
                because = f"p{param.slot} is {first}, and {own}"
                what = "param: an argument has one dtype and one length"
                raise VerifyError(what, because, where=brief(param))


def params_of(steps: Sequence[UOp], target: Target) -> Params:
    """Return the dtype and the length of each argument of a program, by slot."""
    return signature(_params(steps, target))


def require_params(
    steps: Sequence[UOp], own: Sequence[UOp], outputs: Iterable[int], target: Target
) -> None:
    """Errors: VerifyError for a program with other arguments than the kernel's `own`, or without
    one of its outputs, by slot."""
    what = "the program has other arguments than the kernel"
    own_params = {param.slot: param for param in _params(own, target)}
    params = _params(steps, target)
    for param in params:
        before = own_params.get(param.slot)
        if before is None or _type_of(before) != _type_of(param):
            has = "no such argument" if before is None else _type_of(before)
            because = f"it has p{param.slot} as {_type_of(param)}, and the kernel has {has}"
            raise VerifyError(what, because, _own_texts(own_params.values()))
    for slot in sorted({*outputs} & own_params.keys() - {p.slot for p in params}):
        because = f"it has no p{slot}, which the kernel writes its result to"
        raise VerifyError(what, because, _own_texts(own_params.values()))


def _params(steps: Sequence[UOp], target: Target) -> tuple[UOp, ...]:
    return analyse(tuple(steps), target).params


def _own_texts(params: Iterable[UOp]) -> str:
    texts = [f"PARAM.{p.dtype} {{{p.slot}, {p.length}}}" for p in params]
    return f"the kernel's own: {', '.join(texts)}"


def _type_of(param: UOp) -> str:
    return f"{param.dtype.scalar}[{param.length}]"
