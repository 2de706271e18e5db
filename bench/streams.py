"""What stores past the caches gain: kernels with them and without, in turn.

    python bench/streams.py [NAME ...]

Each kernel is a whole tensor of SIDES squared elements. It is timed alone, over and over, and
with a kernel behind it that adds up what it wrote: that is where a store past the caches loses,
if the caches could have held it. A kernel that chooses such stores must not be slower in either,
and one that does not shows "left": what there is in the caches is worth keeping.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from workbench import Kernel, Tensor, explore
from workbench.backends.buffer import Buffer
from workbench.backends.llvm.render import render
from workbench.backends.llvm.runtime import load
from workbench.measure.timing import Run, in_turn

SIDES = (1024, 2048, 4096)
BUDGET_S, MOST, SLOWER = 4.0, 200, 1.1
KERNELS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a + b": lambda a, b: a + b,
    "relu(a * b + a) * 0.5": lambda a, b: (a * b + a).relu() * 0.5,
    "a * 2": lambda a, b: a * 2,
    "exp(a)": lambda a, b: a.exp(),
    "transposed": lambda a, b: a.T.contiguous(),
    "softmax": lambda a, b: a.softmax(),
    "layernorm": lambda a, b: a.layernorm(),
    "a column, spread": lambda a, b: a[:, :1].contiguous().expand(a.shape).contiguous(),
}


def main() -> int:
    missed = 0
    print("time with stores past the caches over that without; in brackets: the least")
    print(f"{'':36}{'touches':>9}{'alone':>16}{'with a reader':>18}")
    for name, formula in KERNELS.items():
        for side in SIDES if not sys.argv[1:] or name in sys.argv[1:] else ():
            operands = [random(side), random(side)]
            for kernel in explore(formula(*operands)).kernels:
                missed += report(f"{name}, {side}: {kernel.name}", kernel.optimized())
    return int(missed > 0)


def random(side: int) -> Tensor:
    """Return normally distributed float32 of shape (side, side), computed."""
    rng = np.random.default_rng(0)
    return Tensor(rng.standard_normal((side, side), dtype=np.float32)).realize()


def report(name: str, kernel: Kernel) -> bool:
    """Print what the stores of one kernel gain; return whether they lose."""
    touched = f"{name:36.36}{kernel.estimates.bytes / 2**20:6.0f} MB"
    runs = forms(kernel)
    if runs is None:
        print(f"{touched}{'left':>16}")
        return False
    alone, least_alone = gain({key: run for key, (run, _) in runs.items()})
    after, least_after = gain({key: followed(*both) for key, both in runs.items()})
    bad = max(alone, after) > SLOWER
    print(
        f"{touched}{alone:8.2f} ({least_alone:4.2f})  {after:8.2f} ({least_after:4.2f})"
        + " MISSED" * bad,
        flush=True,
    )
    return bad


def forms(kernel: Kernel) -> dict[str, tuple[Run, Run]] | None:
    """Return a kernel with stores past the caches and without, each with a reader of what it
    writes; None where it has no such stores."""
    linear = kernel.built("LLVM").linear
    sources = {
        "without": render(linear, replace(kernel.target, non_temporal_bytes=0)),
        "with": render(linear, kernel.target),
    }
    if not sources["with"].aligned:
        return None
    buffers = [Buffer("LLVM", dtype, size) for dtype, size in sources["with"].params]
    for buffer in buffers:
        buffer.array[:] = 1
    size = buffers[0].size
    reader = explore(Tensor(np.ones((size // 1024, 1024), np.float32)).sum(1)).kernels
    reads = reader[0].optimized().built("LLVM").program
    sums = Buffer("LLVM", *reads.source.params[0])
    read = reads.bind([sums, buffers[0]])
    return {key: (load(s).bind(buffers), read) for key, s in sources.items()}


def followed(run: Run, reader: Run) -> Run:
    def both() -> None:
        run()
        reader()

    return both


def gain(runs: dict[str, Run]) -> tuple[float, float]:
    """Return the median of the ratios of neighbours in time, and the ratio of the least."""
    samplers = {key: sampler(run) for key, run in runs.items()}
    samples = in_turn(samplers, BUDGET_S, most=MOST)
    pairs = zip(samples["with"], samples["without"], strict=True)
    median = statistics.median(new / old for new, old in pairs)
    return median, min(samples["with"]) / min(samples["without"])


def sampler(run: Run) -> Callable[[], float]:
    """Return what times one run behind another, which leaves the caches as it does."""

    def sample() -> float:
        run()
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return sample


if __name__ == "__main__":
    sys.exit(main())
