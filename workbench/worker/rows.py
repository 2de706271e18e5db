"""Kernels, sources and errors as plain data for another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from workbench.backends.native.source_cache import KeptSource, source_of_row, source_row
from workbench.backends.program.text import Source
from workbench.base.errors import ParseError, WorkbenchError
from workbench.base.trace import unobserved
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import added_rules, without
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text

Row = dict[str, Any]


def kernel_row(
    ast: UOp, device: str, rules_off: Sequence[str], source: Callable[[], Source]
) -> Row:
    """Return a kernel as plain data. Another process lacks the rules that were registered in this
    one: if there are any, the row has the kernel's `source`, too, or the error of rendering it."""
    row: Row = {
        "ast": to_text(ast), "device": device, "source": None, "rules_off": list(rules_off),
    }  # fmt: skip
    if added_rules():
        try:
            with unobserved(), without(rules_off):
                row["program"] = _program_row(source())
        except WorkbenchError as error:
            row["program"] = {"error": error_row(error)}
    return row


def _program_row(source: Source) -> Row:
    """Return a source as plain data."""
    block = None if source.block is None else to_text(source.block)
    return {**source_row(source), "block": block}


def source_of(row: Row) -> Source:
    """Return the source of a row of `_program_row`. Errors: WorkbenchError if the row has an
    error."""
    if "error" in row:
        raise error_of(row["error"])
    block = None if row["block"] is None else parsed(row["block"])
    return source_of_row(cast(KeptSource, row), block)


def parsed(text: str) -> UOp:
    """Return the kernel of an IR text. Errors: ParseError."""
    kernel = parse(text)
    if not isinstance(kernel, UOp):
        raise ParseError("the text is not a kernel", "it is a linear program")
    return kernel


def error_row(error: Exception) -> Row:
    """Return an error as plain data: what, because, try, and the line and the column of the text,
    if the error names them."""
    if isinstance(error, WorkbenchError):
        row = {"what": error.what, "because": error.because, "try": error.hint}
        places = {"line": error.line, "column": error.column}
        return row | {name: place for name, place in places.items() if place is not None}
    return {"what": type(error).__name__, "because": str(error), "try": ""}


def error_of(row: Row) -> WorkbenchError:
    """Return the error of a row of `error_row`."""
    error = WorkbenchError(row["what"], row["because"], row["try"])
    error.line, error.column = row.get("line"), row.get("column")
    return error
