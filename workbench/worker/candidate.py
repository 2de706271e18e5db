"""A form of a kernel as data: what the worker process and executors compile and run.

    {"ast": IR text, "device": name, "source": edited text or None, "rules_off": [name, ...]}

The last may be left out. Where the source was edited it takes the place of what would be
rendered; everything else that a launch needs is that of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.program.source import Source
from workbench.base.errors import ParseError, WorkbenchError
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.ir.text.parser import parse
from workbench.pipeline import build, stages

Row = dict[str, Any]
Run = Callable[[], object]


def compiled(form: Row) -> tuple[Source, Any]:
    """Return a form's source and program.

    Errors: CompileError; DeviceError where the device is missing.
    """
    ast = parsed(form["ast"])
    with without(form.get("rules_off", ())):
        if form["source"] is None:
            built = build(ast, form["device"])
            return built.source, built.program
        rendered = stages(ast, form["device"], upto="source")
        source = replace(rendered.source, text=form["source"], lines=())
        program = stages(replace(rendered, source=source), form["device"]).program
    return source, program


def bound(form: Row, buffers: Sequence[Buffer]) -> tuple[Source, Run]:
    """Return a form's source and a function that runs it over `buffers`.

    Errors: as `compiled`, and DeviceError where the buffers do not fit.
    """
    source, program = compiled(form)
    return source, program.bind(buffers)


def parsed(text: str) -> UOp:
    """Return the kernel that IR text says. Errors: ParseError."""
    found = parse(text)
    if not isinstance(found, UOp):
        raise ParseError("the text is no kernel", "it is a linear program")
    return found


def told(error: Exception) -> dict[str, str]:
    """Return an error as what, because, try."""
    if isinstance(error, WorkbenchError):
        return {"what": error.what, "because": error.because, "try": error.hint}
    return {"what": type(error).__name__, "because": str(error), "try": ""}
