"""Where a first result and an opt spend their time: what `workbench bench --quick` measures.

python bench/latency.py
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from workbench import Opt, OptOps, Tensor
from workbench.bench.graphs import matmul_kernel
from workbench.bench.quick import DATA, FIRST_RESULTS

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description="Profile what a person waits for.")
    parser.add_argument("--here", choices=FIRST_RESULTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        profile_first_result(options.here)
        return 0
    profile_in_a_fresh_process()
    profile_opt_to_source()
    return 0


def profile_in_a_fresh_process() -> None:
    for name in FIRST_RESULTS:
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, "--here", name]
            fresh = dict(os.environ) | {"XDG_CACHE_HOME": cache, "DEV": ""}
            subprocess.run(command, env=fresh, check=True)


def profile_first_result(name: str) -> None:
    names: dict[str, object] = {"Tensor": Tensor, "np": np}
    exec(DATA, names)
    report(f"first result, {name}", lambda: exec(FIRST_RESULTS[name][0], names))


def profile_opt_to_source() -> None:
    kernel = matmul_kernel(512)

    def work() -> None:
        for amount in (2, 4, 8, 16):
            kernel.apply(Opt(OptOps.UPCAST, "g1", amount)).compile("LLVM")

    report("four opts to source", work)


def report(title: str, work: Callable[[], object]) -> None:
    """Run `work` under cProfile; print the time by module and the dearest functions."""
    profile = cProfile.Profile()
    profile.runcall(work)
    rows = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    own: Counter[str] = Counter()
    for (file, _, _), (_, _, seconds, _, _) in rows:
        own[place(file)] += seconds
    print(f"\n{title}: {1e3 * sum(own.values()):.0f} ms under the profiler")
    for module, seconds in own.most_common(12):
        print(f"  {1e3 * seconds:7.1f} ms  own   {module}")
    dearest = sorted(rows, key=lambda row: -row[1][3])
    entries = [row for row in dearest if "workbench" in row[0][0]][:24]
    for (file, line, function), (_, calls, _, cumulative, _) in entries:
        where = f"{place(file)}:{line} {function}"
        print(f"  {1e3 * cumulative:7.1f} ms  total {where}, {calls} calls")


def place(file: str) -> str:
    """Return a file's name as people know it."""
    path = Path(file)
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    parts = path.parts
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1]
    return "built in" if file == "~" else f"Python's {path.name}"


if __name__ == "__main__":
    sys.exit(main())
