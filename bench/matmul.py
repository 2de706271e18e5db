"""Matmul from no opts to the peak, by hand, by default and by search, beside numpy and torch.

    python bench/matmul.py [--search SECONDS]

Every variant of a size is timed in one run, in turn with a loop of nothing but multiply-adds on
all cores, so that a change of the machine's speed meets all. numpy and torch run in processes
of their own, because their threads go on spinning after their work. The last part prints the
inner loop of the hand-applied list as the processor runs it: its arithmetic should be vector
FMAs only.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import partial

from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.backends.native.thread_pool import cores
from workbench.base.dtypes import dtypes
from workbench.bench.full import peer_processes
from workbench.bench.peers import PEERS
from workbench.bench.suite import ENTRIES, Entry
from workbench.kernel.kernel import Compiled
from workbench.measure.peak import run_peak
from workbench.measure.timing import Run, in_turn, measure

SIZES = ("matmul 512", "matmul 1024", "matmul 509x383x701")
BUDGET_S = 6.0
SAMPLE_S = 0.03
DEFAULT_GOAL = 0.95  # of the speed of the best peer
TUNED_GOAL = 1.0

Speeds = dict[str, tuple[float, ...]]
"""GFLOP/s of each variant, round by round."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--search", type=float, default=0, metavar="SECONDS")
    options = parser.parse_args()
    reached = [table(entry, options.search) for entry in ENTRIES if entry.name in SIZES]
    return int(not all(reached))


def table(entry: Entry, search_s: float) -> bool:
    """Print the variants of one size; return whether all are right and the goals are reached."""
    kernel = explore(entry.tensor(*map(Tensor, entry.arrays(False)))).kernels[0]
    variants = {name: kernel.apply(*opts) for name, opts in steps(kernel).items()}
    by_hand = list(variants)[-1]
    variants["default"] = kernel.optimized()
    if search_s:
        start = variants[by_hand]
        variants["search"] = start.search(budget_s=search_s, cached=False, progress=False).kernel
    wrong = [name for name, variant in variants.items() if not variant.check().ok]
    speeds = speeds_in_turns(entry, {name: variant.launch() for name, variant in variants.items()})
    peers = [name for name in ("numpy", "torch") if name in speeds]
    best = max(peers, key=lambda name: statistics.median(speeds[name]))

    print(f"\n{entry.name}: share of the multiply-add loop, and speed over {best}'s")
    for name in [*variants, *peers]:
        print(row(name, speeds, best), "WRONG" if name in wrong else "")
    print("by hand: ", *map(str, variants[by_hand].applied_opts))
    lines = inner_loop(variants[one_thread(variants)].compile("LLVM"))
    print("\n".join(lines))
    print(verdict(lines))
    goals = {"default": DEFAULT_GOAL, by_hand: TUNED_GOAL}
    goals |= {"search": TUNED_GOAL} if search_s else {}
    missed = [name for name, goal in goals.items() if ratio(name, speeds, best) < goal]
    for name in missed:
        print(f"MISSED: {name}, {goals[name]:.2f} of {best}'s speed")
    return not wrong and not missed and only_vector_fmas(lines)


def steps(kernel: Kernel) -> Mapping[str, tuple[Opt, ...]]:
    """Return what a person applies, one thought after the other."""
    rows, columns = (axis.size for axis in kernel.axes[:2])
    width = kernel.target.vector_width(4)
    tile = 8 if kernel.target.vector_registers >= 32 else 6
    pads: tuple[Opt, ...]
    pads = (Opt(OptOps.PADTO, "g1", 4 * width),) if columns % (4 * width) else ()
    pads += (Opt(OptOps.PADTO, "g0", tile),) if rows % tile else ()
    vectors = (*pads, Opt(OptOps.UPCAST, "g1", 2 * width))
    sums = (*vectors, Opt(OptOps.UPCAST, "g0", tile))
    outside = (*sums, Opt(OptOps.ORDER, "g1", "g0"))
    packed = (*outside, Opt(OptOps.STAGE, "g1", 2))
    return {
        "no opts": (),
        "two vectors": vectors,
        f"{tile} rows of them": sums,
        "columns outside": outside,
        "operand B packed": packed,
        f"{cores()} threads": (*packed, Opt(OptOps.THREAD, "g1", cores())),
    }


def one_thread(variants: Mapping[str, Kernel]) -> str:
    return next(name for name in variants if name.startswith("operand B"))


def speeds_in_turns(entry: Entry, runs: Mapping[str, Run]) -> Speeds:
    """Return the speeds of all runs, of the peers that are installed, and of the peak."""
    flops = entry.operations() or 0
    peak = run_peak(dtypes.float32, cores())
    samplers = {name: sampler(run) for name, run in runs.items()}
    samplers["peak"] = sampler(peak.run)
    with peer_processes(cores()) as workers:
        for name in ("numpy", "torch"):
            if PEERS[name].is_installed:
                workers[PEERS[name]].prepare(entry.name, False)
                samplers[name] = partial(workers[PEERS[name]].sample, SAMPLE_S)
        times = in_turn(samplers, BUDGET_S)
    return {
        name: tuple((peak.flops if name == "peak" else flops) / s / 1e9 for s in samples)
        for name, samples in times.items()
    }


def sampler(run: Run) -> Callable[[], float]:
    """Return what takes one sample: the least of a few runs, as the peers' are."""
    return lambda: measure(run, SAMPLE_S).min_s


def ratio(name: str, speeds: Speeds, other: str) -> float:
    """Return a variant's speed over another's: the median over the rounds."""
    pairs = zip(speeds[name], speeds[other], strict=True)
    return statistics.median(a / b for a, b in pairs)


def row(name: str, speeds: Speeds, best: str) -> str:
    speed = statistics.median(speeds[name])
    shares = f"{ratio(name, speeds, 'peak'):5.0%} {ratio(name, speeds, best):6.2f}"
    return f"  {name:18} {speed:7.1f} GFLOP/s {shares}"


def inner_loop(compiled: Compiled) -> list[str]:
    """Return the loop with the most arithmetic per line among those without a loop inside."""
    lines = compiled.assembly.splitlines()
    labels = {line[:-1]: i for i, line in enumerate(lines) if re.match(r"\.L\w+:$", line)}
    loops = []
    for i, line in enumerate(lines):
        jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
        if jump and labels.get(jump[1], i) < i:
            loops.append(lines[labels[jump[1]] : i + 1])
    innermost = [a for a in loops if not any(len(b) < len(a) and b[0] in a for b in loops)]
    return max(innermost, key=lambda loop: len(arithmetic(loop)))


def arithmetic(lines: list[str]) -> list[str]:
    """Return the instructions of a loop that compute with floats."""
    pattern = re.compile(r"\s+(v(?:f?n?m(?:add|sub)|add|sub|mul|div|max|min)\w*[ps][sd])\b")
    return [m[0].strip() for line in lines if (m := pattern.match(line))]


def only_vector_fmas(lines: list[str]) -> bool:
    vectors = [line for line in lines if re.match(r"\s+vfmadd\d+ps\b.*%[yz]mm", line)]
    return bool(vectors) and len(vectors) == len(arithmetic(lines))


def verdict(lines: list[str]) -> str:
    instructions = arithmetic(lines)
    only = (
        "all of them vector FMAs"
        if only_vector_fmas(lines)
        else f"NOT only vector FMAs: {instructions}"
    )
    return f"{len(instructions)} arithmetic instructions on floats, {only}"


if __name__ == "__main__":
    sys.exit(main())
