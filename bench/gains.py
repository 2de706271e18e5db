"""What THREAD, STAGE and non-temporal stores gain: kernels with them and without, in turn.

    python bench/gains.py [NAME ...]

A multiply-add loop runs on one thread and on all of the same pool in the same rounds: cores
that share their power, or have other work, let it gain less than their number. With THREAD a
product must gain 0.85 of what the loop gains, and no kernel may be more than 5 % slower; with
STAGE a product of 2,048 and a convolution with a stride must be 1.5 times as fast. Non-temporal
stores are also timed before a kernel that adds up what they wrote: there they lose, if the caches
could have held it. No kernel that chooses them may be more than 10 % slower in either.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from workbench import Kernel, OptKind, OptOps, Tensor, explore
from workbench.backends.llvm.llvm_device import load
from workbench.backends.llvm_ir.render import render
from workbench.backends.memory import Buffer
from workbench.backends.native.thread_pool import cores
from workbench.base.dtypes import dtypes
from workbench.bench.suite import ENTRIES
from workbench.measure.peak import run_peak
from workbench.measure.timing import Run, in_turn, measure

BUDGET_S = 2.0
SAMPLE_S = 0.02
SET: dict[str, Callable[[], Tensor]] = {
    e.name: lambda e=e: e.tensor(*map(realized, e.arrays(smoke=False))) for e in ENTRIES
}
STAGED: dict[str, Callable[[], Tensor]] = {
    "matmul 2048": lambda: random(2048, 2048) @ random(2048, 2048),
    "conv 3x3, stride 2": lambda: random(4, 64, 56, 56).conv2d(
        random(64, 64, 3, 3), stride=2, padding=1
    ),
}
"""Kernels beside the set, whose operands do not fit the caches or do not lie side by side."""
PRODUCTS = ("matmul 512", "matmul 1024", "matmul 509")
SIDES = (1024, 2048, 4096)
STORED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a + b": lambda a, b: a + b,
    "relu(a * b + a) * 0.5": lambda a, b: (a * b + a).relu() * 0.5,
    "a * 2": lambda a, b: a * 2,
    "exp(a)": lambda a, b: a.exp(),
    "transposed": lambda a, b: a.T.contiguous(),
    "softmax": lambda a, b: a.softmax(),
    "layernorm": lambda a, b: a.layernorm(),
    "a column, spread": lambda a, b: a[:, :1].contiguous().expand(a.shape).contiguous(),
}
"""Whole tensors of SIDES squared elements."""


@dataclass(frozen=True)
class Gain:
    """A kernel with something and without; it must be `goal` times as fast with it, and gain
    `share_of_loop` of what the loop gains."""

    name: str
    what: str
    runs: dict[str, Run]
    goal: float = 0.0
    share_of_loop: float = 0.0


def main() -> int:
    missed = 0
    print(f"{cores()} threads; gain: times as fast as without")
    names = sys.argv[1:]
    for each in chain(of_opts(names), of_stores(names)):
        gain, loop = gains(each.runs)
        is_missed = gain < max(each.goal, each.share_of_loop * loop)
        text = f"{gain / loop:.2f} of the loop's {loop:.2f}" + " MISSED" * is_missed
        print(f"{each.name:44} {each.what:18} {gain:5.2f}  {text}", flush=True)
        missed += is_missed
    return int(missed > 0)


def of_opts(names: list[str]) -> Iterator[Gain]:
    """Yield default lists of opts with and without THREAD and STAGE."""
    for name, expression in (SET | STAGED).items():
        if names and not any(part in name for part in names):
            continue
        for plain in explore(expression()).kernels:
            default = plain.optimized()
            for op in (OptOps.THREAD, OptOps.STAGE):
                if op in {opt.op for opt in default.applied_opts}:
                    lesser = without(plain, default, op)
                    runs = {"with": default.launch(), "without": lesser.launch()}
                    goals = (0.95, 0.85 * name.startswith(PRODUCTS))
                    if op is OptOps.STAGE:
                        goals = (1.5 * (name in STAGED), 0.0)
                    yield Gain(f"{name}: {plain.name}", op.name, runs, *goals)


def of_stores(names: list[str]) -> Iterator[Gain]:
    """Yield kernels with non-temporal stores and without, alone and before a reader."""
    for name, formula in STORED.items():
        if names and not any(part in name for part in names):
            continue
        for side in SIDES:
            for kernel in explore(formula(random(side, side), random(side, side))).kernels:
                title = f"{name}, {side}: {kernel.name}"
                runs = stores(kernel.optimized())
                if runs is None:
                    print(f"{title:44} non-temporal stores are not chosen")
                    continue
                alone = {key: store for key, (store, _) in runs.items()}
                read = {key: followed(*both) for key, both in runs.items()}
                yield Gain(title, "stores", alone, 1 / 1.1)
                yield Gain(title, "stores, then read", read, 1 / 1.1)


def stores(kernel: Kernel) -> dict[str, tuple[Run, Run]] | None:
    """Return a kernel with non-temporal stores and without, each with a reader of what it
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


def without(plain: Kernel, default: Kernel, op: OptKind) -> Kernel:
    """Return the kernel with the default list but for `op`, and for what acts on its axes."""
    kernel = plain
    for opt in default.applied_opts:
        if opt.op is not op and kernel.why_not(opt) is None:
            kernel = kernel.apply(opt)
    return kernel


def gains(runs: dict[str, Run]) -> tuple[float, float]:
    """Return how many times as fast a kernel is, and what the loop gains from all threads."""
    loops = {"one": run_peak(dtypes.float32).run, "all": run_peak(dtypes.float32, cores()).run}
    samples = in_turn({n: sampler(run) for n, run in (runs | loops).items()}, BUDGET_S)
    ones, alls = samples["one"], samples["all"]
    gain = map(lambda less, more: less / more, samples["without"], samples["with"])
    loop = map(lambda one, both: cores() * one / both, ones, alls)
    return statistics.median(gain), statistics.median(loop)


def sampler(run: Run) -> Callable[[], float]:
    return lambda: measure(run, SAMPLE_S).min_s


def random(*shape: int) -> Tensor:
    """Return a tensor of normally distributed float32, computed."""
    return realized(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))


def realized(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
    return Tensor(array).realize()


if __name__ == "__main__":
    sys.exit(main())
