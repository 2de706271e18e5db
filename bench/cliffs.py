"""Where the default opts fall behind: several hundred everyday expressions beside torch eager.

    python bench/cliffs.py [WORD ...] [--threads N] [--seconds S] [--json FILE] [--random N]
        [--kernels K]

Each row is one whole call on inputs that are in memory: of a TinyJit here, of plain torch
there, in turn in one process, the answers compared first. The table is sorted by the median
of the ratios of neighbours in time, the worst row first. WORD chooses rows by name; with
`--threads 1` both use one thread, for a busy machine. `--random N` adds N expressions of the test
generator, with large inputs, beside numpy, which has but one thread. `--kernels K` prints the K
slowest of our kernels of each row, each timed alone. Whole models are rows, too: resnet18 and
transformer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from everyday import Case, cases

from workbench.bench.suite import fault
from workbench.measure.timing import in_turn, measure, seconds_of

SAMPLE_S = 0.004
SETTLE_S = 0.003
LONG_S = 50e-6
"""Where torch needs less than this, what a call costs is all that shows."""
CLIFF = 2.0


@dataclass(frozen=True)
class Row:
    """What was measured: the median of the ratios of neighbours, the ratio of the least times,
    which others disturb less, and the medians of the seconds of a call, ours and torch's."""

    name: str
    ratio: float
    least_ratio: float
    ours_s: float
    theirs_s: float
    kernels: int = 0
    compile_s: float = 0.0
    error: str = ""


def main() -> int:
    options = _options()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    from workbench import Tensor

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    if options.threads == 1:  # a device asks once how many cores there are
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        (Tensor([1.0]) + 1).numpy()
        os.sched_setaffinity(0, allowed)
    rows: list[Row] = []
    for case in cases():
        if options.words and not any(word in case.name for word in options.words):
            continue
        if options.kernels:
            print("\n".join(slowest(case, options.kernels)))
        rows.append(measured(case, options.seconds))
        print(line(rows[-1]), file=sys.stderr, flush=True)
    for seed in range(options.random):
        row = beside_numpy(seed, options.seconds)
        if row is not None:
            rows.append(row)
            print(line(row), file=sys.stderr, flush=True)
    rows.sort(key=lambda row: (not row.error, -row.ratio))
    print("\n".join(line(row) for row in rows))
    long_rows = [row for row in rows if row.theirs_s >= LONG_S and not row.error]
    over = [row for row in long_rows if row.ratio > CLIFF]
    mean = statistics.geometric_mean([row.ratio for row in long_rows]) if long_rows else 1.0
    print(
        f"{len(long_rows)} rows of {1e6 * LONG_S:.0f} µs or more: geometric mean {mean:.2f},"
        f" {len(over)} above {CLIFF:g}, {sum(bool(r.error) for r in rows)} wrong"
    )
    if options.json:
        text = json.dumps([asdict(row) for row in rows], indent=1)
        options.json.write_text(text, encoding="utf-8")
    return int(any(row.error for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3, help="sampling of a row")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--kernels", type=int, default=0, metavar="K")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    return parser.parse_args()


def line(row: Row) -> str:
    if row.error:
        return f"  ERROR  {row.name}: {row.error}"
    times = f"{1e6 * row.ours_s:10.1f} {1e6 * row.theirs_s:10.1f} µs"
    small = " " if row.theirs_s >= LONG_S else "-"
    ratios = f"{row.ratio:7.2f}{small} {row.least_ratio:7.2f}"
    return f"{ratios} {times}  {row.kernels:2} k {row.compile_s:5.2f} s  {row.name}"


# --- measuring ---


def measured(case: Case, budget_s: float) -> Row:
    """Return the Row of a case, in turn with torch."""
    import torch

    from workbench import Tensor, TinyJit

    arrays = _arrays(case)
    theirs = [torch.from_numpy(a) for a in arrays]
    try:
        ours = [Tensor(a).realize() for a in arrays]
        call = TinyJit(case.ours)
        start = time.perf_counter()
        call(*ours)
        compile_s = time.perf_counter() - start
        answer = call(*ours).numpy()
        error = fault(answer, case.theirs(*theirs).numpy(), case.steps) or ""
    except Exception as failure:  # a row that fails must not end the table
        return Row(case.name, 0.0, 0.0, 0.0, 0.0, error=f"{type(failure).__name__}: {failure}")
    if error:
        return Row(case.name, 0.0, 0.0, 0.0, 0.0, error=error)
    one, other = lambda: call(*ours), lambda: case.theirs(*theirs)
    return Row(case.name, *beside(one, other, budget_s), call.count, compile_s)


def beside(
    one: Callable[[], object], other: Callable[[], object], budget_s: float
) -> tuple[float, float, float, float]:
    """Return the median ratio of neighbouring samples, that of the least ones, and the medians
    of both."""
    samplers = {"ours": partial(_sample, one), "theirs": partial(_sample, other)}
    _sample(one), _sample(other)
    samples = in_turn(samplers, budget_s, least=5, most=41, settle_s=SETTLE_S)
    ours, theirs = samples["ours"], samples["theirs"]
    return (
        statistics.median(a / b for a, b in zip(ours, theirs, strict=True)),
        min(ours) / min(theirs),
        statistics.median(ours),
        statistics.median(theirs),
    )


def _sample(run: Callable[[], object]) -> float:
    """Return the least seconds of a run within a few milliseconds: both sides' caches are warm."""
    least, stop = seconds_of(run), time.perf_counter() + SAMPLE_S
    least = min(least, seconds_of(run))
    while time.perf_counter() < stop:
        least = min(least, seconds_of(run))
    return least


def beside_numpy(seed: int, budget_s: float) -> Row | None:
    """Return the Row of a random expression of the tests whose sizes are made real ones; None
    where it makes nothing of the kind."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.agreement import expressions
    from workbench import Tensor, TinyJit, dtypes

    sizes = expressions.SIZES
    expressions.SIZES = (1, 64, 96, 127, 128)
    try:
        case = expressions.case(seed)
    finally:
        expressions.SIZES = sizes
    largest = max(a.size for a in case.arrays.values())
    if largest < 1 << 14 or largest > 1 << 24:
        return None
    last = len(case.arrays) - 1
    leaves = [i for i, one in enumerate(case.lines) if f"= Tensor(n{i})" in one]
    rest = [one for i, one in enumerate(case.lines) if i not in leaves]
    name = f"random {seed}: " + "; ".join(one.split("; ")[-1] for one in rest)
    base = {
        "np": np,
        "Tensor": Tensor,
        "dtypes": dtypes,
        "bfloat16": expressions.ml_dtypes.bfloat16,
    }
    inputs = [case.arrays[f"t{i}"] for i in leaves]

    def ours(*values: Any) -> Any:
        env = base | {"rng": np.random.default_rng(seed)}
        env |= {f"n{i}": a for i, a in zip(leaves, inputs, strict=True)}
        env |= {f"t{i}": t for i, t in zip(leaves, values, strict=True)}
        for one in rest:
            exec(one.split("; ", 1)[1], env)
        return env[f"t{last}"]

    def theirs() -> Any:
        env = base | {"rng": np.random.default_rng(seed)}
        env |= {f"n{i}": a for i, a in zip(leaves, inputs, strict=True)}
        for one in rest:
            exec(one.split("; ", 1)[0], env)
        return env[f"n{last}"]

    try:
        with np.errstate(all="ignore"):
            values = [Tensor(a).realize() for a in inputs]
            call = TinyJit(ours)
            start = time.perf_counter()
            call(*values)
            compile_s = time.perf_counter() - start
            call(*values)
            times = beside(lambda: call(*values), theirs, budget_s)
    except Exception as error:
        return Row(name, 0.0, 0.0, 0.0, 0.0, error=f"{type(error).__name__}: {error}")
    return Row(name, *times, call.count, compile_s)


def _arrays(case: Case) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    arrays = []
    for each in case.inputs:
        kind: Any = "float32"
        if each and not isinstance(each[-1], int):
            *shape, kind = each
        elif each and each[-1] < 0:  # whole numbers below it
            *shape, bound = each
            arrays.append(rng.integers(0, -bound, shape).astype(np.int64))
            continue
        else:
            shape = list(each)
        if kind == "bool":
            arrays.append(rng.integers(0, 2, shape).astype(bool))
        elif kind.startswith(("int", "uint")):
            arrays.append(rng.integers(0, 100, shape).astype(kind))
        else:
            arrays.append(rng.standard_normal(shape).astype(kind))
    return arrays


def slowest(case: Case, count: int) -> Iterator[str]:
    """Yield a line for each of the slowest kernels, and one for all of them."""
    from workbench import Tensor, explore
    from workbench.backends.native.thread_pool import cores
    from workbench.measure.peak import run_peak

    result = case.ours(*(Tensor(a).realize() for a in _arrays(case)))
    peak = run_peak(threads=cores())
    best = peak.gflops(measure(peak.run).min_s)
    rows = []
    for number, kernel in enumerate(explore(result).kernels, 1):
        formed = kernel.optimized()
        seconds = measure(formed.launch(), 0.1).min_s
        speed = kernel.estimates.flops / seconds / 1e9
        applied = " ".join(map(str, formed.applied_opts))
        rows.append((seconds, number, kernel.ast.arg.name, speed, applied))
    total = sum(row[0] for row in rows)
    yield f"{len(rows)} kernels, {total * 1e3:.2f} ms; the multiply-add peak is {best:.0f} GFLOP/s"
    for seconds, number, title, speed, applied in sorted(rows, reverse=True)[:count]:
        share = seconds / total
        yield (
            f"{seconds * 1e3:8.3f} ms {share:4.0%} {speed:6.1f} GFLOP/s"
            f"  kernel {number} {title}: {applied}"
        )


if __name__ == "__main__":
    sys.exit(main())
