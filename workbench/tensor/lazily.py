"""Blocks of code in which no tensor is computed: what needs values is refused, with the line."""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar

from workbench.base.interrupts import scope
from workbench.tensor.operands.arguments import dtype_error

_function: ContextVar[str] = ContextVar("computing nothing", default="")
_skips_realize: ContextVar[bool] = ContextVar("skips realize", default=False)


@scope
def computing_nothing(function: str, skips_realize: bool = False) -> Generator[None, None, None]:
    """Refuse, in the block, what would compute a tensor; `function` names what runs in it. With
    `skips_realize` tensors whose .realize() is called stay expressions: what TinyJit wraps has to
    realize its results."""
    tokens = _function.set(function), _skips_realize.set(skips_realize)
    try:
        yield
    finally:
        _function.reset(tokens[0])
        _skips_realize.reset(tokens[1])


def skips_realize() -> bool:
    """Whether .realize() leaves tensors as they are."""
    return _skips_realize.get()


HINT = "an expression in place of .realize(), .numpy() or .item(): np.where for a choice by value"


def refuse_to_compute(what: str, because: str = "", hint: str = HINT) -> None:
    """Raise DTypeError inside of a `computing_nothing` block."""
    function = _function.get()
    if not function:
        return
    reason = f"{because}; " if because else ""
    raise dtype_error(
        f"{what} in {function}",
        f"{reason}explore runs {function} over expressions, and computes nothing",
        hint,
    )
