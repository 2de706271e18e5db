"""What forty kernels wait for on this machine: the answer of `bound()` beside a sweep.

    python bench/causes.py [--rounds 8] [--only WORDS] [--table]

Each row of `tests/cost/causes.py` is timed in turns with a partner in which one thing is different
(more sums, packed, a size next to it, fewer bytes), and with a loop of multiply-adds alone: by the
time of its thread, the least of several rounds. Where the partner does the same work in clearly
less time, what it eases is the cause; where it does not, that is not. No part of the model takes
part. `--table` prints the answers on the four made machines of that file instead, each beside the
cause that arithmetic finds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cost.causes import (
    ADD,
    BUSY,
    FMA,
    L2,
    L3,
    LANES,
    LAUNCH,
    LOADS,
    MADE,
    MEMORY,
    REGISTERS,
    ROWS,
    Row,
    added,
    arithmetic,
    each,
    gathered,
    small,
    square,
    sums,
    turned,
)
from workbench import Kernel, Tensor, explore
from workbench.backends.device import Device
from workbench.cost.bottleneck import bottleneck
from workbench.cost.kernel_cost import Bottleneck, cost
from workbench.ir.opt.apply import apply_opt
from workbench.measure.peak import run_peak
from workbench.measure.speeds import measured, speeds
from workbench.pipeline import build


class Sweep(NamedTuple):
    """A partner, what it eases, and the causes where it is faster and where it is not."""

    partner: Row
    eases: str
    faster: tuple[str, ...]
    same: tuple[str, ...]


CACHES = (L2, L3, MEMORY)
UNITS = (BUSY, LOADS)
SWEEPS: dict[str, Sweep] = {
    "1 vector sum": Sweep(small(2, 1), "2 sums", (FMA,), UNITS),
    "2 vector sums": Sweep(small(4, 1), "4 sums", (FMA,), UNITS),
    "4 vector sums": Sweep(small(8, 1), "8 sums", (FMA,), UNITS),
    "8 vector sums": Sweep(small(12, 1), "12 sums", (FMA, LOADS), UNITS),
    "12 vector sums": Sweep(small(8, 2), "16 sums", (FMA, LOADS), UNITS),
    "4 x 2 vectors": Sweep(small(8, 2), "16 sums", (FMA, LOADS), UNITS),
    "8 x 2 vectors": Sweep(small(4, 2), "fewer registers", (REGISTERS,), UNITS),
    "16 x 2 vectors": Sweep(small(8, 2), "fewer registers", (REGISTERS,), UNITS),
    "1 vector sum, f64": Sweep(small(2, 1, 128, 8), "2 sums", (FMA,), UNITS),
    "2 vector sums, f64": Sweep(small(4, 2, 128, 8), "8 sums", (FMA,), UNITS),
    "4 x 2 vectors, f64": Sweep(small(8, 2, 128, 8), "16 sums", (FMA, LOADS), UNITS),
    "1 number, sums of 1024": Sweep(small(1, 0, 8), "short sums", (FMA,), (LANES,)),
    "1 number, sums of 256": Sweep(small(1, 0, 8), "short sums", (FMA,), (LANES,)),
    "1 number, sums of 8": Sweep(small(1, 1, 8), "lanes", (LANES,), (FMA,)),
    "512, plain": Sweep(square(496, 1, 0), "496, other sets", CACHES, (FMA, LANES)),
    "512, tile": Sweep(square(512, 4, 2, "packed"), "packed", CACHES, UNITS),
    "960, tile": Sweep(square(960, 4, 2, "packed"), "packed", CACHES, UNITS),
    "1024, tile": Sweep(square(1024, 4, 2, "packed"), "packed", CACHES, UNITS),
    "1056, tile": Sweep(square(1056, 4, 2, "packed"), "packed", CACHES, UNITS),
    "960, columns outside": Sweep(square(960, 4, 2, "packed"), "packed", CACHES, UNITS),
    "1024, columns outside": Sweep(square(1024, 4, 2, "packed"), "packed", CACHES, UNITS),
    "512, packed": Sweep(small(4, 2), "data in L1", CACHES, UNITS),
    "960, packed": Sweep(small(4, 2), "data in L1", CACHES, UNITS),
    "1024, packed": Sweep(small(4, 2), "data in L1", CACHES, UNITS),
    "960, 1 vector": Sweep(small(1, 1, 960), "a small B", CACHES, (FMA,)),
    "column sums, 128 x 48": Sweep(sums(8, 768), "short sums", (ADD,), (LANES,)),
    "column sums, 960": Sweep(sums(960, 16), "data in L1 and L2", CACHES, (ADD,)),
    "column sums, 1024": Sweep(sums(1008, 1008), "1008, other sets", CACHES, (ADD,)),
    "sum of 6144": Sweep(sums(8, 768), "short sums", (ADD,), (LANES,)),
    "transpose, 960": Sweep(turned(64), "data in L1", CACHES, (LANES,)),
    "transpose, 1024": Sweep(turned(1008), "1008, other sets", CACHES, (LANES,)),
    "add 8": Sweep(added(1024), "128 times the work", (LAUNCH,), (LANES,)),
    "add, 128 KiB": Sweep(added(1 << 11), "data in L1", CACHES, UNITS),
    "add, 4 MiB": Sweep(added(1 << 14), "data in L2", CACHES, UNITS),
    "add, 256 MiB": Sweep(added(1 << 19), "data in L3", (MEMORY,), (L2, L3)),
    "add, 1 number at a time": Sweep(added(1 << 14), "lanes", (LANES,), CACHES),
    "sine, 1 number": Sweep(
        each(1 << 12, Tensor.sin, arithmetic(1 << 12, 20, BUSY), 1), "lanes", (LANES,), CACHES),
    "sine": Sweep(
        each(1 << 11, Tensor.sin, arithmetic(1 << 11, 20, BUSY), 1), "data in L1", CACHES, UNITS),
    "exponential": Sweep(
        each(1 << 11, Tensor.exp, arithmetic(1 << 11, 15, BUSY), 1), "data in L1", CACHES, UNITS),
    "gather from 128 MiB": Sweep(gathered(1 << 20, 1 << 11), "a small table", CACHES, (LANES,)),
    "gather from 8 KiB": Sweep(gathered(1 << 13, 1 << 11), "data in L2", CACHES, (LANES,)),
}  # fmt: skip
FASTER = 1.2
"""How many times faster a partner must be to show the cause."""
PREDICTED = 1.7
"""A time is near its prediction within this factor."""
LEAST_S = 1e-3
"""Seconds of a sample at least: short runs are repeated."""


def thread_s(run: Callable[[], object], times: int) -> float:
    start = time.thread_time()
    for _ in range(times):
        run()
    return (time.thread_time() - start) / times


def kernel_of(row: Row, lanes: int) -> Kernel:
    return explore(row.make(lanes)).kernels[-1].apply(*row.opts(lanes))


def on_made_machine(row: Row, name: str) -> tuple[str, str]:
    """Return the cause that arithmetic finds, and the one that the model names."""
    machine = MADE[name]
    graph = plain = explore(row.make(machine.lanes)).kernels[-1].ast
    for opt in row.opts(machine.lanes):
        graph, _ = apply_opt(graph, opt, machine.target)
    priced = cost(graph, machine.target, machine.speeds, plain)
    parts = row.parts(machine)
    return max(parts, key=lambda cause: parts[cause]), bottleneck(priced, machine.target).what


def made_table(only: str) -> None:
    for name, row in ROWS.items():
        if only in name:
            pairs = [on_made_machine(row, machine) for machine in MADE]
            cells = [a if a == b else f"{b} (nearly {a})" for a, b in pairs]
            print(f"{name:24} " + " | ".join(cells), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        made_table(arguments.only)
        return 0
    measured()
    lanes = Device["LLVM"].target.vector_width(4)
    names = [name for name in ROWS if arguments.only in name]
    kernels = {name: kernel_of(ROWS[name], lanes) for name in names}
    kernels |= {f"{name}, eased": kernel_of(SWEEPS[name].partner, lanes) for name in names}
    runs = {
        n: build(k.ast, "LLVM").program.bind(k.data.buffers(k.original, "LLVM"))
        for n, k in kernels.items()
    }
    least = least_s({**runs, "": run_peak().run}, arguments.rounds)
    fastest = run_peak().flops / least[""]
    right = near = 0
    for name in names:
        sweep, kernel, partner = SWEEPS[name], kernels[name], kernels[f"{name}, eased"]
        launch_s = 0.0 if name == "add 8" else speeds().launch_s
        faster = per_work(least[name] - launch_s, kernel) / per_work(
            least[f"{name}, eased"] - launch_s, partner)  # fmt: skip
        causes = sweep.faster if faster >= FASTER else sweep.same
        answer, predicted_s = kernel.bound(), kernel.cost.predicted_s
        second = "" if answer.what in causes else second_of(answer, causes)
        agrees = answer.what in causes or bool(second)
        right, ratio = right + agrees, least[name] / predicted_s
        near += 1 / PREDICTED < ratio < PREDICTED
        share = kernel.estimates.flops / least[name] / fastest
        print(
            f"{name:24} {'2nd' if second else 'yes' if agrees else 'NO':3}"
            f" {answer.what:16} {sweep.eases}: x{faster:.2f} ->"
            f" {second or (answer.what if agrees else causes[0])};"
            f" {share:.1%} of the peak, x{ratio:.2f} of predicted",
            flush=True,
        )
    print(f"bound() names what the sweep shows, first or nearly, in {right} of {len(names)} rows;"
          f" {near} times are within {PREDICTED} of their prediction")  # fmt: skip
    return 0


def least_s(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least time of a run of each, round by round."""
    least = {name: thread_s(run, 1) for name, run in runs.items()}
    for _ in range(rounds):
        for name, run in runs.items():
            times = max(1, int(LEAST_S / max(1e-7, least[name])))
            least[name] = min(least[name], thread_s(run, times))
    return least


def second_of(answer: Bottleneck, causes: tuple[str, ...]) -> str:
    """Return the cause that an answer says takes nearly as long as the one it names, if it is one
    of `causes`."""
    nearly = answer.why.rpartition("; ")[2]
    if "as long" not in nearly:
        return ""
    if nearly.startswith("the core"):
        return next((cause for cause in causes if cause not in CACHES), "")
    return next((c for c in causes if f"from {c.partition(' ')[0]} take" in nearly), "")


def per_work(seconds: float, kernel: Kernel) -> float:
    """Return the seconds for an operation, or a byte where there is none."""
    return seconds / (kernel.estimates.flops or kernel.estimates.bytes)


if __name__ == "__main__":
    sys.exit(main())
