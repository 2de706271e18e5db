"""A candidate kernel as data: what the worker process and executors compile and run.

    {"ast": IR text, "device": name, "source": edited text or None, "rules_off": [name, ...],
     "program": {..}}

The last two may be left out. An edited source replaces the rendered one; everything else that a
launch needs is the kernel's. Another process lacks the rules that were registered in this one: then
"program" has the program, compiled here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.device import Device
from workbench.backends.elsewhere import Elsewhere
from workbench.backends.program.launch import LaunchAxis, LaunchShape
from workbench.backends.program.source import Source
from workbench.base.dtypes import dtypes
from workbench.base.errors import ParseError, WorkbenchError
from workbench.base.trace import unobserved
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import added_rules, without
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.pipeline import Stages, build, stages

Row = dict[str, Any]
Run = Callable[[], object]


def row_of(ast: UOp, device: str, rules_off: Sequence[str]) -> Row:
    """Return a kernel as plain data for another process."""
    row: Row = {
        "ast": to_text(ast), "device": device, "source": None, "rules_off": list(rules_off),
    }  # fmt: skip
    if added_rules():
        try:
            with unobserved(), without(rules_off):
                row["program"] = _program_row(build(ast, device).source)
        except WorkbenchError as error:
            row["program"] = {"error": error_row(error)}
    return row


def compiled(candidate: Row) -> tuple[Source, Any]:
    """Return a candidate's source and program.

    Errors: CompileError; DeviceError where the device is missing.
    """
    kernel = parsed(candidate["ast"])
    with without(candidate.get("rules_off", ())):
        if candidate["source"] is None and "program" not in candidate:
            built = build(kernel, candidate["device"])
            return built.source, built.program
        if "program" in candidate:
            source = _source(candidate["program"])
            rendered = Stages(kernel, kernel, kernel, (), source)
        else:
            rendered = stages(kernel, candidate["device"], upto="source")
            source = rendered.source
        if candidate["source"] is not None:
            edited = replace(source, linear=rendered.linear).edited(candidate["source"])
            device = Device[candidate["device"]]
            if isinstance(device, Elsewhere):  # not emulated: that is for programs
                return source, device.load(edited)
            source = edited
        program = stages(replace(rendered, source=source), candidate["device"]).program
    return source, program


_PLAIN = ("name", "language", "text", "scratch_bytes", "shared_bytes")


def _program_row(source: Source) -> Row:
    """Return a source as plain data."""
    row: Row = {name: getattr(source, name) for name in _PLAIN}
    row["params"] = [[str(dtype), size] for dtype, size in source.params]
    row["launch"] = [list(axis) for axis in source.launch.axes]
    row["aligned"] = list(source.aligned)
    row["block"] = None if source.block is None else to_text(source.block)
    return row


def _source(row: Row) -> Source:
    """Return the source of a row of `_program_row`. Errors: WorkbenchError where it is not
    valid."""
    if "error" in row:
        error = row["error"]
        raise WorkbenchError(error["what"], error["because"], error["try"])
    return Source(
        **{name: row[name] for name in _PLAIN},
        params=tuple((dtypes.named(name), size) for name, size in row["params"]),
        launch=LaunchShape(tuple(LaunchAxis(*axis) for axis in row["launch"])),
        aligned=tuple(row["aligned"]),
        block=None if row["block"] is None else parsed(row["block"]),
    )


def bind(candidate: Row, buffers: Sequence[Buffer]) -> tuple[Source, Run]:
    """Return a candidate's source and a function that runs it over `buffers`.

    Errors: as `compiled`, and DeviceError where the buffers do not fit.
    """
    source, program = compiled(candidate)
    return source, program.bind(buffers)


def parsed(text: str) -> UOp:
    """Return the kernel of an IR text. Errors: ParseError."""
    kernel = parse(text)
    if not isinstance(kernel, UOp):
        raise ParseError("the text is not a kernel", "it is a linear program")
    return kernel


def error_row(error: Exception) -> Row:
    """Return an error as plain data: what, because, try, and the line of the text that it is
    about, if it names one."""
    if isinstance(error, WorkbenchError):
        row = {"what": error.what, "because": error.because, "try": error.hint}
        return row if error.line is None else {**row, "line": error.line}
    return {"what": type(error).__name__, "because": str(error), "try": ""}
