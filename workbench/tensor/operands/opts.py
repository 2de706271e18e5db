"""Opts in tensor code."""

from __future__ import annotations

from typing import Any

from workbench.ir.opt.opt import Opt, OptKind
from workbench.tensor.operands.arguments import short
from workbench.tensor.operands.refuse import dtype_error


def asked_opts(value: Any, name: str) -> tuple[Opt, ...]:
    """Return a list of opts. Errors: DTypeError for anything else."""
    opts = value if isinstance(value, list | tuple) else (None,)
    for opt in opts:
        if not isinstance(opt, Opt) or not isinstance(opt.op, OptKind):
            break
        if not all(type(part) in (str, int, type(None)) for part in (opt.axis, opt.arg)):
            break
    else:
        return tuple(opts)
    raise dtype_error(
        f"{name}: {short(value)} does not fit",
        "it must be a list of opts, whose axes are names or places",
        '[Opt(OptOps.UPCAST, "g0", 4)]',
    )
