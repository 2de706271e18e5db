"""Chapters 4 to 6: checks of opts that a reader chose. By counts and answers, never by seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.ask import Verdict, number, right, tuned, wrong
from course.look import FEW_SPILLS, spills
from workbench import Device, Kernel, KernelOptError, Opt, OptOps

READ_BACK = {
    OptOps.ORDER: "the sums go through memory at every step",
    OptOps.GROUP: "each group's sums are read back from scratch",
    OptOps.GROUPTOP: "each group's sums are read back from scratch",
    OptOps.STAGE: "a copy of the input is read back from scratch",
}
"""What an opt makes column sums load beside the input."""


def lanes() -> int:
    """Return how many float32 one vector register of this machine holds."""
    return Device["LLVM"].target.vector_width(4)


def registers() -> int:
    """Return how many vector registers this machine has."""
    return Device["LLVM"].target.vector_registers


def check_columns(kernel: Kernel, opts: Opt | Sequence[Opt]) -> Verdict:
    """Column sums: every element loaded once, whole vectors at a time, and nothing in scratch."""
    candidate = _applied(kernel, opts)
    if isinstance(candidate, Verdict):
        return candidate
    elements = kernel.estimates.flops
    counts = candidate.counts
    if counts.bytes_loaded > 4 * elements:
        used = {opt.op for opt in candidate.applied_opts}
        why = [words for op, words in READ_BACK.items() if op in used]
        return wrong(
            f"it loads {counts.bytes_loaded:,} bytes, and the input has {4 * elements:,}: "
            + (" and ".join(why) or "the rest is read back from scratch")
        )
    if counts.loads * lanes() > elements:
        return wrong(
            f"it takes {counts.loads:,} loads; whole vectors would take {elements // lanes():,}"
        )
    return _answer(candidate, f"{counts.loads:,} loads, each a whole vector")


def check_tile(kernel: Kernel, opts: Opt | Sequence[Opt], most: float = 0.75) -> Verdict:
    """A product: at most `most` loads for each multiply-add, all of them on whole vectors, and
    no sum that has to leave its register."""
    candidate = _applied(kernel, opts)
    if isinstance(candidate, Verdict):
        return candidate
    counts = candidate.counts
    products = kernel.estimates.flops // 2
    if counts.fmas * lanes() > products * 1.1:
        return wrong(
            f"it takes {counts.fmas:,} multiply-adds; on whole vectors {products // lanes():,} "
            "would do"
        )
    ratio = counts.loads / counts.fmas
    if ratio > most * 1.01:
        return wrong(
            f"{ratio:.2f} loads for each multiply-add: use what was loaded more often. The target "
            f"is {most}"
        )
    return _in_registers(candidate) or _answer(
        candidate, f"{ratio:.2f} loads for each multiply-add"
    )


def check_conv(kernel: Kernel, opts: Opt | Sequence[Opt]) -> Verdict:
    """A convolution: vectors of 4, at most 0.75 loads for each multiply-add, and no sum that has to
    leave its register."""
    candidate = _applied(kernel, opts)
    if isinstance(candidate, Verdict):
        return candidate
    counts = candidate.counts
    vectors = kernel.estimates.flops // 8
    if counts.fmas > vectors * 1.1:
        return wrong(
            f"it takes {counts.fmas:,} multiply-adds; in vectors of 4, {vectors:,.0f} would do"
        )
    ratio = counts.loads / counts.fmas
    if ratio > 0.75 * 1.01:
        return wrong(f"{ratio:.2f} loads for each multiply-add: use what was loaded more often")
    return _in_registers(candidate) or _answer(
        candidate, f"{ratio:.2f} loads for each multiply-add"
    )


def check_best_tile(rows: Any, vectors: Any) -> Verdict:
    """The tile with most multiply-adds per load among those that fit the registers."""
    rows, vectors = number(rows), number(vectors)
    if not isinstance(rows, int) or not isinstance(vectors, int):
        return wrong("it should be two whole numbers, of rows and of vectors")
    if rows < 1 or vectors < 1:
        return wrong(f"a tile of {rows} x {vectors} computes nothing")
    most = registers()
    needed = tile_registers(rows, vectors)
    if needed > most:
        return wrong(f"it needs {needed} registers, and there are {most}")
    best = max(
        tile_reuse(r, v)
        for r in range(1, most)
        for v in range(1, most)
        if tile_registers(r, v) <= most
    )
    reuse = tile_reuse(rows, vectors)
    if reuse < best:
        return wrong(
            f"it fits, with {reuse:.2f} multiply-adds for each load; another one that fits has "
            f"{best:.2f}"
        )
    return right(f"{needed} of {most} registers, {reuse:.2f} multiply-adds for each load")


def tile_registers(rows: int, vectors: int) -> int:
    """Return the registers of a tile: its sums, the vectors of a row, and one element repeated."""
    return rows * vectors + vectors + 1


def tile_reuse(rows: int, vectors: int) -> float:
    """Return its multiply-adds per load."""
    return rows * vectors / (rows + vectors)


def _applied(kernel: Kernel, opts: Opt | Sequence[Opt]) -> Kernel | Verdict:
    try:
        return tuned(kernel, opts)
    except KernelOptError as error:
        return wrong(" / ".join(line.strip() for line in str(error).splitlines()[:3]))


def _in_registers(kernel: Kernel) -> Verdict | None:
    """Return what is wrong where the inner loop keeps sums on the stack."""
    spilled = spills(kernel)
    if spilled <= FEW_SPILLS:
        return None
    return wrong(
        f"{spilled} instructions of the inner loop go to the stack: more sums than registers"
    )


def _answer(kernel: Kernel, praise: str) -> Verdict:
    checked = kernel.check()
    if not checked.ok:
        return wrong(f"the answer is not right: {checked}")
    return right(f"{praise}, and the answer is right")
