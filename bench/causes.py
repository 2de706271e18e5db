"""What forty kernels wait for on this machine: the answer of `bound()` beside measurements.

    python bench/causes.py [--rounds 8] [--only WORDS] [--table]

Each row of `tests/cost/causes.py` is timed in turns with a loop of multiply-adds alone, by the
time of its thread, the least of several rounds. `bound()` is right where what it names is what the
measurement shows: the time is near the predicted one, and where the kernel has a row with the named
resource eased, that one is faster by as much. `--table` prints the answers on the four made
machines of that file instead, each beside the cause that arithmetic finds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cost.causes import MADE, ROWS, Row
from workbench import Kernel, explore
from workbench.backends.device import Device
from workbench.cost.bottleneck import bottleneck
from workbench.cost.kernel_cost import Cost, cost
from workbench.cost.run_cost import Bottleneck
from workbench.ir.opt.apply import apply_opt
from workbench.measure.peak import run_peak
from workbench.measure.speeds import measured
from workbench.pipeline import build

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
    return max(parts, key=lambda cause: parts[cause]), bottleneck(
        priced, machine.target
    ).what


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
    target = Device["LLVM"].target
    lanes = target.vector_width(4)
    kernels = {n: kernel_of(r, lanes) for n, r in ROWS.items() if arguments.only in n}
    runs = {
        n: build(k.ast, "LLVM").program.bind(k.data.buffers(k.original, "LLVM"))
        for n, k in kernels.items()
    }
    peak = run_peak()
    least: dict[str, float] = {}
    for _ in range(arguments.rounds):
        for name, run in {**runs, "": peak.run}.items():
            times = max(1, int(LEAST_S / max(1e-7, least.get(name, thread_s(run, 1)))))
            least[name] = min(least.get(name, 1.0), thread_s(run, times))
    fastest = peak.flops / least[""]
    off = 0
    for name, kernel in kernels.items():
        priced = kernel.cost
        assert isinstance(priced, Cost)
        answer: Bottleneck = kernel.bound()
        ratio = least[name] / priced.predicted_s
        share = priced.estimates.flops / least[name] / fastest
        off += not 0.6 < ratio < 1.7
        print(
            f"{name:24} {least[name] * 1e6:11,.1f} us  x{ratio:4.2f} of predicted"
            f"  {share:6.1%} of peak  [{ROWS[name].decided}]  {answer}",
            flush=True,
        )
    print(f"{len(kernels) - off} of {len(kernels)} within 1.7 of their prediction")
    return 0


if __name__ == "__main__":
    sys.exit(main())
