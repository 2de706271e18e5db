"""A 512 x 512 matmul with opts applied by hand, against what one core can do at its best.

    python bench/matmul.py

Every list of opts is timed in turn with a loop that does nothing but multiply-adds, in one
run, so that a change of the machine's speed meets both. The last part prints the inner loop
of the best list as the processor runs it: its arithmetic should be vector FMAs only.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Callable

import numpy as np

from workbench import Kernel, Opt, OptOps, Tensor
from workbench.backends.runtime.peak import run_peak
from workbench.backends.runtime.timing import Samples, interleave
from workbench.dtypes import dtypes
from workbench.ir.text import to_text
from workbench.kernel.kernel import Compiled
from workbench.pipeline import build

N = 512
FLOPS = 2 * N**3
GOAL = 0.45  # of the peak of one thread

COLUMNS = Opt(OptOps.UPCAST, "g1", 16)  # 16 neighbours of a row: two vectors
ROWS = Opt(OptOps.UPCAST, "g0", 4)  # of 4 rows: 8 sums under way
LISTS = {
    "no opts": (),
    "one vector": (Opt(OptOps.UPCAST, "g1", 8),),
    "two vectors": (COLUMNS,),
    "8 sums": (COLUMNS, ROWS),
    "8 sums, columns outside": (COLUMNS, ROWS, Opt(OptOps.ORDER, "g1", "g0")),
    "8 sums, tiles of r0 outside": (
        COLUMNS, ROWS, Opt(OptOps.SPLIT, "r0", 128), Opt(OptOps.ORDER, "r0", "g0"),
    ),
    "8 sums, a group of 32 rows": (COLUMNS, ROWS, Opt(OptOps.LOCAL, "g0", 32)),
    "8 sums, operand B packed": (
        COLUMNS, ROWS, Opt(OptOps.ORDER, "g1", "g0"), Opt(OptOps.STAGE, "g1", 2),
    ),
}  # fmt: skip


def main() -> int:
    kernel = matmul()
    forms = {name: kernel.apply(*opts) for name, opts in LISTS.items()}
    wrong = [name for name, form in forms.items() if not right(form)]
    for name in wrong:
        print(f"WRONG: {name}: {forms[name].check('LLVM')}")

    peak = run_peak(dtypes.float32)
    runs = {name: launch(form) for name, form in forms.items()}
    times = interleave(runs | {"peak": peak.run}, budget_s=30, samples=25)
    peak_s = times["peak"].samples_s
    speed = peak.gflops(times["peak"].median_s)
    print(f"one thread's multiply-add loop, in the same run: {speed:.1f} GFLOP/s")
    shares = {}
    for name in forms:
        # Each run is held against the peak loop of its own round.
        rounds = zip(times[name].samples_s, peak_s, strict=True)
        shares[name] = statistics.median(
            FLOPS / s / peak.gflops(p) / 1e9 for s, p in rounds
        )
        print(f"{row(times[name])}  {shares[name]:4.0%} of peak   {name}")

    best = max(shares, key=lambda name: shares[name])
    print(f"\nbest: {best}: {', '.join(map(str, forms[best].applied_opts))}")
    lines = inner_loop(forms[best].compile("LLVM"))
    print("\n".join(lines))
    print(verdict(lines))
    return int(bool(wrong) or shares[best] < GOAL or not only_vector_fmas(lines))


def row(samples: Samples) -> str:
    spread = samples.spread_s / samples.median_s
    gflops = FLOPS / samples.median_s / 1e9
    return f"{1e3 * samples.median_s:8.2f} ms +- {spread:5.1%}  {gflops:6.1f} GFLOP/s"


def matmul() -> Kernel:
    """Return the un-optimised kernel of a @ b."""
    a, b = (Tensor(np.ones((N, N), np.float32)) for _ in range(2))
    items = (a @ b).schedule()
    kernel = next(i.kernel for i in items if i.kernel is not None)
    return Kernel.from_text(to_text(kernel))


def right(kernel: Kernel) -> bool:
    """Whether the kernel's answer is numpy's."""
    buffers = kernel.data.buffers(kernel.original, "LLVM")
    build(kernel.ast, "LLVM").program(buffers)
    c, a, b = (buffer.array.reshape(N, N) for buffer in buffers)
    return bool(np.allclose(c, a @ b, rtol=1e-4, atol=1e-3))


def launch(kernel: Kernel) -> Callable[[], None]:
    """Return a function that runs the kernel on its own data."""
    program = build(kernel.ast, "LLVM").program
    run: Callable[[], None] = program.bind(kernel.data.buffers(kernel.original, "LLVM"))
    return run


def inner_loop(compiled: Compiled) -> list[str]:
    """Return the loop with the most arithmetic per line among those without a loop inside."""
    lines = compiled.assembly.splitlines()
    labels = {
        line[:-1]: i for i, line in enumerate(lines) if re.match(r"\.L\w+:$", line)
    }
    loops = []
    for i, line in enumerate(lines):
        jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
        if jump and labels.get(jump[1], i) < i:
            loops.append(lines[labels[jump[1]] : i + 1])
    innermost = [
        a for a in loops if not any(len(b) < len(a) and b[0] in a for b in loops)
    ]
    return max(innermost, key=lambda loop: len(arithmetic(loop)))


def arithmetic(lines: list[str]) -> list[str]:
    """Return the instructions of a loop that compute with floats."""
    pattern = re.compile(
        r"\s+(v(?:f?n?m(?:add|sub)|add|sub|mul|div|max|min)\w*[ps][sd])\b"
    )
    return [m[0].strip() for line in lines if (m := pattern.match(line))]


def only_vector_fmas(lines: list[str]) -> bool:
    vectors = [line for line in lines if re.match(r"\s+vfmadd\d+ps\b.*%[yz]mm", line)]
    return bool(vectors) and len(vectors) == len(arithmetic(lines))


def verdict(lines: list[str]) -> str:
    found = arithmetic(lines)
    only = (
        "all of them vector FMAs"
        if only_vector_fmas(lines)
        else f"NOT only vector FMAs: {found}"
    )
    return f"{len(found)} arithmetic instructions on floats, {only}"


if __name__ == "__main__":
    sys.exit(main())
