"""What THREAD and STAGE gain: the default list of each kernel, with them and without, in turn.

    python bench/gains.py [NAME ...]

A multiply-add loop runs on one thread and on all of the same pool in the same rounds: cores
that share their power, or have other work, let it gain less than their number. With THREAD a
product must gain 0.85 of what the loop gains, and no kernel may be more than 5 % slower; with
STAGE a product of 2,048 and a convolution with a stride must be 1.5 times as fast.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator

import numpy as np

from workbench import Kernel, OptKind, OptOps, Tensor, explore
from workbench.backends.native.thread_pool import cores
from workbench.base.dtypes import dtypes
from workbench.bench.suite import ENTRIES
from workbench.measure.peak import run_peak
from workbench.measure.timing import Run, in_turn, measure

BUDGET_S, SAMPLE_S = 2.0, 0.02
FURTHER: dict[str, Callable[[], Tensor]] = {
    "matmul 2048": lambda: random(2048, 2048) @ random(2048, 2048),
    "conv 3x3, stride 2": lambda: random(4, 64, 56, 56).conv2d(
        random(64, 64, 3, 3), stride=2, padding=1
    ),
}
"""Kernels beside the set, whose operands do not fit the caches or do not lie side by side."""
THREAD_GOAL, PRODUCT_GOAL, STAGE_GOAL = 0.95, 0.85, 1.5


def main() -> int:
    chosen = sys.argv[1:]
    missed = 0
    print(f"{cores()} threads; gain: times as fast as without")
    for name, plain in kernels(chosen):
        default = plain.optimized()
        ops = {opt.op for opt in default.applied_opts}
        for op in (OptOps.THREAD, OptOps.STAGE):
            if op in ops:
                gain, loop = gains(default, without(plain, default, op))
                text, bad = verdict(name, op, gain, loop)
                print(f"{name:44} {op.name:7} {gain:5.2f}  {text}")
                missed += bad
    return int(missed > 0)


def kernels(chosen: list[str]) -> Iterator[tuple[str, Kernel]]:
    """Yield the kernels of the benchmark set, without opts."""
    for entry in ENTRIES:
        if not chosen or any(part in entry.name for part in chosen):
            inputs = [Tensor(a).realize() for a in entry.arrays(smoke=False)]
            for kernel in explore(entry.tensor(*inputs)).kernels:
                yield f"{entry.name}: {kernel.name}", kernel
    for name, expression in FURTHER.items():
        if not chosen or any(part in name for part in chosen):
            for kernel in explore(expression()).kernels:
                yield f"{name}: {kernel.name}", kernel


def random(*shape: int) -> Tensor:
    """Return a tensor of normally distributed float32, computed."""
    rng = np.random.default_rng(0)
    return Tensor(rng.standard_normal(shape, dtype=np.float32)).realize()


def without(plain: Kernel, default: Kernel, op: OptKind) -> Kernel:
    """Return the kernel with the default list but for `op`, and for what acts on its axes."""
    kernel = plain
    for opt in default.applied_opts:
        if opt.op is not op and kernel.why_not(opt) is None:
            kernel = kernel.apply(opt)
    return kernel


def gains(default: Kernel, lesser: Kernel) -> tuple[float, float]:
    """Return how many times as fast a form is, and what the loop gains from all threads."""
    runs = {
        "with": default.launch(),
        "without": lesser.launch(),
        "one": run_peak(dtypes.float32).run,
        "all": run_peak(dtypes.float32, cores()).run,
    }
    samples = in_turn({name: sampler(run) for name, run in runs.items()}, BUDGET_S)
    ones, alls = samples["one"], samples["all"]
    gain = map(lambda less, more: less / more, samples["without"], samples["with"])
    loop = map(lambda one, both: cores() * one / both, ones, alls)
    return statistics.median(gain), statistics.median(loop)


def sampler(run: Run) -> Callable[[], float]:
    return lambda: measure(run, SAMPLE_S).min_s


def verdict(name: str, op: OptKind, gain: float, loop: float) -> tuple[str, bool]:
    """Return what to say of a gain, and whether it misses its goal."""
    if op is OptOps.STAGE:
        missed = name.startswith(tuple(FURTHER)) and gain < STAGE_GOAL
        return "MISSED" if missed else "", missed
    is_product = name.startswith(("matmul 512", "matmul 1024", "matmul 509"))
    missed = gain < THREAD_GOAL or (is_product and gain < PRODUCT_GOAL * loop)
    return f"{gain / loop:.2f} of the loop's {loop:.2f}" + " MISSED" * missed, missed


if __name__ == "__main__":
    sys.exit(main())
