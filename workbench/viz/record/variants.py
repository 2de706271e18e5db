"""A kernel with opts as a variant of a record: axes, loop nest, code, counts, what to try next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from workbench.backends.device import Device
from workbench.errors import WorkbenchError
from workbench.ir.lower.lower import lower
from workbench.kernel.kernel import Compiled, Kernel
from workbench.trace import unobserved
from workbench.viz.model.loops import Row, Use, loop_nest
from workbench.viz.model.rewrites import text
from workbench.viz.record.machine import Caches, level_of
from workbench.viz.record.nodes import Nodes, bounded

MOST_LINES = 3000
"""Lines of code kept of one program; a longer one is cut and says so."""
Variant = dict[str, Any]


def variant_row(number: int, kernel: Kernel, name: str, parent: int | None) -> Variant:
    """Return a variant of kernel `number` with everything that costs nothing to know."""
    return {
        "kernel": number,
        "parent": parent,
        "name": name,
        "opts": [str(opt) for opt in kernel.applied_opts],
        "axes": [
            {"name": a.name, "kind": kind_name(a.kind), "size": a.size}
            for a in kernel.axes
        ],
        "python": "",
        "loops": None,
        "code": [],
        "counts": None,
        "passes": [],
        "offers": [],
        "refused": [],
        "check": None,
        "timing": None,
        "bound": None,
        "error": None,
        "note": "",
        "edited": False,
        "rules_off": [],
    }


def kind_name(kind: Any) -> str:
    """Return what the page calls a kind of axis."""
    return "GROUP" if kind.name == "GROUP_REDUCE" else str(kind.name)


def error_row(error: Exception) -> dict[str, str]:
    """Return an error as what, because, try."""
    if isinstance(error, WorkbenchError):
        what, because, hint = error.what, error.because, error.hint
    else:
        what, because, hint = type(error).__name__, str(error), ""
    return {"what": bounded(what), "because": bounded(because), "try": bounded(hint)}


# loops


def nest_row(kernel: Kernel, nodes: Nodes, caches: Caches) -> dict[str, Any]:
    """Return the loop nest of a kernel; every use says which cache holds its bytes.

    Errors: CompileError where the kernel needs more scratch than the target gives.
    """
    nest = loop_nest(kernel.ast, Device[kernel.device].target)
    return {
        "buffers": [b._asdict() for b in nest.buffers],
        "rows": [_row(row, nodes, caches) for row in nest.rows],
    }


def _row(row: Row, nodes: Nodes, caches: Caches) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "depth": row.depth,
        "around": [kind_name(kind) for kind in row.around],
        "axis": row.axis,
        "axis_kind": "" if row.axis_kind is None else kind_name(row.axis_kind),
        "size": row.size,
        "vector": row.is_vector,
        "text": row.text,
        "uses": {name: _use(use, caches) for name, use in row.uses.items()},
        "nodes": [] if row.node is None else [nodes.add(row.node)],
        "lines": [],
    }


def _use(use: Use, caches: Caches) -> dict[str, Any]:
    return {
        "stride": use.stride_text,
        "bytes": use.bytes_text,
        "n": use.size_bytes,
        "level": level_of(use.size_bytes, caches),
    }


# code


def c_code(kernel: Kernel) -> dict[str, Any]:
    """Return the C of a kernel: it can be read whether or not there is a compiler."""
    device = Device["C"]
    with unobserved():
        block, linear = lower(kernel.ast, device.target)
        source = device.render(block, linear)
    return code_row("C", "C", source.text)


def compiled_code(compiled: Compiled) -> list[dict[str, Any]]:
    """Return what a device made of a kernel: its source, machine code, and the statement tree."""
    rows = []
    if compiled.device == "LLVM":
        rows.append(code_row("LLVM", "LLVM", compiled.source))
    assembly = getattr(compiled.built.program, "assembly", None)
    if assembly is not None:
        rows.append(code_row("asm", compiled.device, str(assembly)))
    tree = text(compiled["lowered"])
    return [*rows, code_row("IR", compiled.device, tree)]


def code_row(language: str, device: str, words: str) -> dict[str, Any]:
    """Return a program as lines."""
    lines = words.rstrip("\n").expandtabs(8).split("\n")
    if len(lines) > MOST_LINES:
        more = f"... and {len(lines) - MOST_LINES:,} more lines"
        lines = [*lines[:MOST_LINES], more]
    return {
        "language": language,
        "device": device,
        "lines": lines,
        "links": [None] * len(lines),
    }


def counts_row(compiled: Compiled) -> Mapping[str, int]:
    """Return what one run of the program does."""
    return asdict(compiled.counts)
