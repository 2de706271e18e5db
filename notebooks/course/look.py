"""A kernel as text: its loop nest, what it does, and the instructions of its innermost loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from workbench import Device, Kernel
from workbench.backends.native.program import code_loops
from workbench.viz.model.loops import kernel_nest
from workbench.viz.text import nest_text

MULTIPLY_ADD = re.compile(r"\b(v?fn?madd|fmla|fmadd)")
STACK = re.compile(r"\(%rsp|\(%rbp|\[sp\b")
MOST_LINES = 40
FEW_SPILLS = 4
"""So many addresses may go to the stack, where all sums are in registers."""


class Text(str):
    """Text that a cell shows as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def nest(kernel: Kernel) -> Text:
    """Return the loops of a kernel. Per buffer: elements moved by one step of the loop, and
    bytes touched by one whole run of it."""
    return Text(nest_text(kernel_nest(kernel)))


def table(kernels: Mapping[str, Kernel]) -> Text:
    """Return what kernels do in one run, counted: operations on a number or a vector,
    and bytes that they move. LLVM may still fold a load into the FMA that uses it, and values that
    find no register are stored and loaded once more: a line below says of which kernels."""
    heads = ("loads", "stores", "FMAs", "other", "bytes loaded", "bytes stored")
    rows: list[tuple[str, ...]] = [("", *heads)]
    for name, kernel in kernels.items():
        c = kernel.counts
        figures = (
            c.loads, c.stores, c.fmas, c.other, c.bytes_loaded, c.bytes_stored,
        )  # fmt: skip
        rows.append((name, *(f"{figure:,}" for figure in figures)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [f"{row[0]:{widths[0]}}"]
        cells += [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells))
    for name, kernel in kernels.items():
        spilled = spills(kernel) if kernel.counts.fmas else 0
        if spilled > FEW_SPILLS:
            lines.append(f"not counted: spills, {spilled} instructions in the inner loop of {name}")
    return Text("\n".join(lines))


def inner_loop(kernel: Kernel) -> Text:
    """Return the machine code of the innermost loop with most multiply-adds."""
    lines = _inner(kernel)
    more = len(lines) - MOST_LINES
    code_lines = lines[:MOST_LINES] + ([f"... and {more} more"] if more > 0 else [])
    return Text("\n".join(code_lines))


def spills(kernel: Kernel) -> int:
    """Return how many instructions of that loop go to the stack: values that found no register."""
    return sum(bool(STACK.search(line)) for line in _inner(kernel))


def cache_sets(addresses: Iterable[int], line: int = 64, sets: int = 0) -> int:
    """Return how many sets of a cache some byte addresses fall into: of `sets`, by default as many
    as this machine's L2 cache has."""
    sets = sets or Device["LLVM"].target.cache_sets("L2")
    return len({address // line % sets for address in addresses})


def _inner(kernel: Kernel) -> list[str]:
    """Return the instructions of the innermost loop that does most of the multiply-adds."""
    lines = kernel.compile().assembly_lines
    loops = code_loops(lines)
    inner = [a for a in loops if not any(b != a and b[0] in a for b in loops)]
    texts = [[lines[i].text.expandtabs() for i in loop] for loop in inner]
    busiest = max(texts, key=lambda t: sum(bool(MULTIPLY_ADD.search(x)) for x in t), default=[])
    return [x.strip() for x in busiest if not x.endswith(":")]
