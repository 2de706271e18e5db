"""Languages by kernels: how many sources their real compilers take.

    python -m bench.languages.table [--only WORD]

A cell has the sources that compiled, of all: each kernel of an expression with default opts and
with opts by hand. What was refused is listed below. Rows whose compiler is not here say so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.languages.compilers import CHECKS, Check, text_of
from bench.languages.kernels import EXPRESSIONS, kernels_of
from bench.languages.wgsl import errors_of, is_chromium_here

_CELL = 14
_HEAD = 28


@dataclass
class CompilerRow:
    """A language with its compiler: the sources that compiled and all, by expression."""

    name: str
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    is_here: bool = True

    def __str__(self) -> str:
        if not self.is_here:
            return f"{self.name:{_HEAD}}(not here)"
        cells = (f"{good}/{total}" for good, total in self.counts.values())
        return f"{self.name:{_HEAD}}" + "".join(f"{cell:{_CELL}}" for cell in cells)

    def add(self, name: str, errors: Sequence[tuple[str, str]]) -> None:
        """Add an expression: an error, or "", for each opts of it."""
        good = sum(not error for _, error in errors)
        self.counts[name] = good, len(errors)
        self.refusals += [f"{name}, {opts}: {error}" for opts, error in errors if error]


def row_of(check: Check) -> CompilerRow:
    """Return the row of a compiler."""
    row = CompilerRow(f"{check.language} ({check.compiler})", is_here=check.is_here())
    if row.is_here:
        for name in EXPRESSIONS:
            kernels = kernels_of(name, check.device, check.machine)
            own = [(opts, kernel) for opts, kernel in kernels if check.takes(kernel)]
            row.add(name, [(opts, error_of(check, kernel)) for opts, kernel in own])
    return row


def error_of(check: Check, kernel: object) -> str:
    try:
        check.compile(check.name, kernel)  # type: ignore[arg-type]
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return ""


def wgsl_row() -> CompilerRow:
    """Return the row of Chromium, which compiles all texts in one page."""
    row = CompilerRow("WGSL (Chromium)", is_here=is_chromium_here())
    if not row.is_here:
        return row
    device = "WEBGPU:BROWSER"
    kernels = [
        (name, opts, text_of(device, kernel))
        for name in EXPRESSIONS
        for opts, kernel in kernels_of(name, "WEBGPU", "BROWSER")
    ]
    errors = errors_of([text for _, _, text in kernels])
    for name in EXPRESSIONS:
        pairs = zip(kernels, errors, strict=True)
        row.add(name, [(opts, error) for (of, opts, _), error in pairs if of == name])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name has this word")
    only = parser.parse_args().only
    print(" " * _HEAD + "".join(f"{name:{_CELL}}" for name in EXPRESSIONS))
    rows = []
    started_s = time.perf_counter()
    for check in CHECKS:
        if only in f"{check.language} ({check.compiler})":
            rows.append(row_of(check))
            print(rows[-1], flush=True)
    if only in "WGSL (Chromium)":
        rows.append(wgsl_row())
        print(rows[-1], flush=True)
    print(f"\n{time.perf_counter() - started_s:.0f} s")
    for row in rows:
        for refusal in row.refusals:
            print(f"{row.name}: {refusal}")


if __name__ == "__main__":
    main()
