"""Predicted against measured times: how well the cost model orders what one might do next.

    python bench/predict.py [--seconds 0.15] [--alone] [--verbose]

For each kernel it takes the plain form, legal opts of it, the default opts and prefixes of them,
and single opts on top; it times all of them in turns and prints Spearman's rank correlation
between predicted and measured time, and how far off the predictions are.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from workbench import Tensor
from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.cost.kernel_cost import cost
from workbench.ir.opt.opt import OptOps
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import measured, speeds
from workbench.measure.timing import interleave
from workbench.pipeline import build
from workbench.viz import explore

MOST_VARIANTS = 13
"""Forms of each kernel that are compared."""
SLOWEST_S = 0.3
"""Forms predicted to take longer are left out, so that the script ends soon."""


def floats(*shape: int) -> Tensor:
    numbers = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    return Tensor(numbers, device="LLVM").realize()


KERNELS: dict[str, Callable[[], Tensor]] = {
    "matmul 256": lambda: floats(256, 256) @ floats(256, 256),
    "matmul 512": lambda: floats(512, 512) @ floats(512, 512),
    "matmul A @ B.T": lambda: floats(256, 512) @ floats(256, 512).transpose(0, 1),
    "sum axis 0": lambda: floats(2048, 1024).sum(axis=0),
    "sum axis 1": lambda: floats(1024, 2048).sum(axis=1),
    "gelu": lambda: floats(1 << 20).gelu(),
    "add": lambda: floats(1 << 22) + floats(1 << 22),
    "transpose": lambda: floats(1024, 1024).transpose(0, 1).contiguous(),
    "softmax": lambda: floats(512, 1024).softmax(),
    "conv 3x3": lambda: floats(1, 32, 34, 34).conv2d(floats(32, 32, 3, 3)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.15, help="a form at least")
    parser.add_argument("--verbose", action="store_true", help="every form")
    parser.add_argument(
        "--alone", action="store_true", help="no threads: for a machine that others use"
    )
    parser.add_argument("--only", default="", help="kernels whose name has this")
    options = parser.parse_args()
    measured()
    scores = []
    for name, make in KERNELS.items():
        if options.only in name:
            scores.append(
                report(name, variants_of(make(), options.alone), options.seconds, options.verbose)
            )
    print(f"{'median':18} rank {statistics.median(scores):5.2f}")


def variants_of(value: Tensor, alone: bool) -> list[Kernel]:
    """Return variants of the largest kernel: plain, the default and prefixes of it, and others;
    `alone`: those that one thread runs."""
    kernels = explore(value).kernels
    plain = max(kernels, key=lambda k: k.estimates.flops + k.estimates.bytes)
    best = plain.optimized().applied_opts
    best = tuple(o for o in best if not (alone and o.op is OptOps.THREAD))
    candidates = [plain.apply(*best[:n]) for n in range(len(best) + 1)]
    bases = [k for k in candidates if is_quick(k)] or candidates[-1:]
    for turn in range(MOST_VARIANTS):
        for base in (bases[0], bases[-1], bases[len(bases) // 2]):
            listed = base.legal_opts()
            legal = [o for o in listed if not (alone and o.op is OptOps.THREAD)]
            candidates.append(base.apply(legal[(7 * turn + 3) % len(legal)]))
    by_ast = {k.ast: k for k in candidates if is_quick(k)}
    return list(by_ast.values())[:MOST_VARIANTS]


def is_quick(kernel: Kernel) -> bool:
    """Whether a form can be lowered, and is predicted to be quick enough to measure."""
    try:
        return cost(kernel.ast, Device["LLVM"].target, speeds()).predicted_s < SLOWEST_S
    except WorkbenchError:
        return False


def report(name: str, variants: Sequence[Kernel], seconds: float, verbose: bool) -> float:
    target = Device["LLVM"].target
    runs = {}
    for place, kernel in enumerate(variants):
        try:
            program = build(kernel.ast, "LLVM").program
        except WorkbenchError:
            continue
        runs[str(place)] = program.bind(kernel.data.buffers(kernel.original, "LLVM"))
    timings = interleave(runs, budget_s=seconds * len(runs), samples=15)
    rows = [
        (
            cost(variants[int(n)].ast, target, speeds(), variants[int(n)].original),
            s.min_s,
            variants[int(n)],
        )
        for n, s in timings.items()
    ]
    guessed, real = [c.predicted_s for c, _, _ in rows], [s for _, s, _ in rows]
    rank = spearman(guessed, real)
    off = [math.log(g / r) for g, r in zip(guessed, real, strict=True)]
    middle, spread = statistics.median(off), statistics.pstdev(off)
    print(
        f"{name:18} rank {rank:5.2f}   {len(rows)} variants from {min(real) * 1e3:.3g} to"
        f" {max(real) * 1e3:.3g} ms   predicted x{math.exp(middle):.2f},"
        f" give or take x{math.exp(spread):.2f}",
        flush=True,
    )
    if verbose:
        for c, s, kernel in sorted(rows, key=lambda row: row[1]):
            parts = " ".join(f"{k}={v * 1e3:.3g}" for k, v in c.seconds.items())
            hot = c.work.hottest()[0]
            opts = " ".join(f"{o.op.name}({o.axis},{o.arg})" for o in kernel.applied_opts)
            print(
                f"    {s * 1e3:8.3g} ms  predicted {c.predicted_s * 1e3:8.3g}"
                f"  {parts} {hot.limit} live={hot.live}  {opts}"
            )
    return rank


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's rank correlation: 1 where both are in the same order. Times that differ
    by less than a twentieth share a rank: nobody could measure which is shorter."""
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def ranks(values: Sequence[float]) -> list[float]:
    steps = [round(math.log(value) / math.log(1.05)) for value in values]
    below = [sum(other < step for other in steps) for step in steps]
    return [n + (steps.count(step) - 1) / 2 for n, step in zip(below, steps, strict=True)]


if __name__ == "__main__":
    main()
