"""How long a person waits: measured against the budgets of the project.

    python bench/latency.py                    the table
    python bench/latency.py --profile          where a first result and an opt spend their time

What must be fresh is measured in a fresh process with an empty cache folder. Times are
medians, with the least in brackets; peers are measured in turn, and compared as ratios.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from workbench import Context, Device, Kernel, Opt, OptOps, Tensor
from workbench.backends.runtime.timing import interleave
from workbench.ir.lower.lower import lower
from workbench.ir.opt.apply import apply_opt
from workbench.ir.text import to_text
from workbench.pipeline import plan
from workbench.trace import observe

ROOT = Path(__file__).resolve().parent.parent
BYTECODE = tempfile.TemporaryDirectory(prefix="workbench-bytecode-")
Rows = list[tuple[str, str, str]]
CHILD = """
import json, sys, time
start = time.perf_counter()
{imports}
imported = time.perf_counter() - start
{setup}
start = time.perf_counter()
{work}
print(json.dumps([imported, time.perf_counter() - start]))
"""
OPEN = 'Device["LLVM"].target'
DATA = """
import numpy as np
generator = np.random.default_rng(0)
a, b = (generator.standard_normal((512, 512), dtype=np.float32) for _ in range(2))
"""
FIRST_RESULTS = {
    "elementwise": ("(Tensor(a) * 2 + Tensor(b)).relu().numpy()", 110, 60),
    "matmul 512": ("(Tensor(a) @ Tensor(b)).numpy()", 160, 100),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what a person waits for.")
    parser.add_argument("--repeats", type=int, default=7, help="fresh processes each")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--profile-here", choices=FIRST_RESULTS, help=argparse.SUPPRESS)
    options = parser.parse_args()

    if options.profile_here:
        profile_first_result(options.profile_here)
        return 0
    child("from workbench import Tensor, Device", DATA, OPEN)  # writes the bytecode
    rows: Rows = []
    rows += first_results(options.repeats)
    rows += opt_to_source()
    rows += recording()
    rows += imports(options.repeats)
    rows += large_graphs()
    print_table(rows)
    if options.profile:
        profile_in_a_fresh_process()
        profile_opt_to_source()
    return 0


def first_results(repeats: int) -> Rows:
    """Time from the expression to its numbers, straight after import and with LLVM open."""
    rows: Rows = []
    imports = "from workbench import Tensor, Device"
    for name, (work, cold_ms, open_ms) in FIRST_RESULTS.items():
        cold, opened, warm = [], [], []
        for _ in range(repeats):
            cold.append(child(imports, DATA, work)[1])
            opened.append(child(imports, DATA + OPEN, work)[1])
            again = f"{work}\nstart = time.perf_counter()\n{work}"
            warm.append(child(imports, DATA + OPEN, again)[1])
        rows.append((f"{name}: first result", ms(cold), f"<= {cold_ms} ms"))
        rows.append((f"{name}: device open", ms(opened), f"<= {open_ms} ms"))
        rows.append((f"{name}: same again", ms(warm), ""))
    return rows


def opt_to_source(repeats: int = 25) -> Rows:
    """Time from an opt to the source of the new kernel, as the workbench shows it."""
    kernel = matmul_kernel()
    opt = Opt(OptOps.UPCAST, "g1", 16)
    times, second = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        once = kernel.apply(opt)
        assert once.compile("LLVM").source
        middle = time.perf_counter()
        assert once.apply(Opt(OptOps.UPCAST, "g0", 4)).compile("LLVM").source
        second.append(time.perf_counter() - middle)
        times.append(middle - start)
    return [
        ("apply UPCAST to new source", ms(times), "<= 30 ms"),
        ("apply a second UPCAST on top", ms(second), "<= 30 ms"),
    ]


def recording(pairs: int = 41) -> Rows:
    """Time of a build that is recorded against one that is not, in turn."""

    def watched() -> None:
        with observe():
            build_all()

    build_all()
    found = interleave(
        {"bare": build_all, "watched": watched}, budget_s=60, samples=pairs
    )
    both = zip(found["watched"].samples_s, found["bare"].samples_s, strict=True)
    ratio = statistics.median(w / b for w, b in both)
    bare = ms(found["bare"].samples_s)
    return [("recording every pass", f"{ratio:.3f} x of {bare}", "<= 1.15 x")]


def imports(repeats: int) -> Rows:
    """Time of imports in fresh processes, as ratios of numpy's."""
    statements = ("import numpy", "import workbench", "from workbench import Tensor")
    times: dict[str, list[float]] = {s: [] for s in statements}
    for _ in range(2 * repeats + 1):
        for statement in statements:
            times[statement].append(child(statement, "", "")[0])
    peer = statistics.median(times["import numpy"])
    return [
        (s, f"{ms(t)} = {statistics.median(t) / peer:.2f} x numpy", limit)
        for (s, t), limit in zip(times.items(), ("", "<= 1.7 x", ""), strict=True)
    ]


def large_graphs() -> Rows:
    """Time to schedule chains of 5,000, 10,000 and 20,000 UOps."""
    rows: Rows = []
    for count, budget in ((5_000, ""), (10_000, "<= 2 s"), (20_000, "")):
        tensor = chain(count)
        nodes = len(tensor.uop.toposort())
        start = time.perf_counter()
        items = tensor.schedule()
        seconds = time.perf_counter() - start
        label = f"schedule {nodes:,} UOps into {len(items)} items"
        rows.append(
            (label, f"{1e6 * seconds / nodes:.0f} us/UOp = {seconds:.2f} s", budget)
        )
    return rows


def chain(count: int) -> Tensor:
    """Return an expression of about `count` UOps: maths, movement and a sum now and then."""
    x = Tensor(np.ones((16, 16), np.float32))
    y = x
    while len(y.uop.toposort()) < count:
        for step in range(100):
            y = (y * 0.5 + x).relu()
            if step % 20 == 0:
                y = y.permute(1, 0) + y.sum(axis=0)
    return y


def matmul_kernel(n: int = 512) -> Kernel:
    """Return the kernel of an n x n matmul+bias+relu."""
    items = matmul(n).schedule()
    kernel = next(i.kernel for i in reversed(items) if i.kernel is not None)
    return Kernel.from_text(to_text(kernel))


def matmul(n: int) -> Tensor:
    a, b, c = (Tensor(np.ones(s, np.float32)) for s in ((n, n), (n, n), (n,)))
    return (a @ b + c).relu()


def build_all() -> None:
    """Schedule an expression, apply opts, lower and render: all of Python's part."""
    device = Device["LLVM"]
    with Context(DEV="LLVM"):
        made, _ = plan([matmul(64).uop], "LLVM")
    kernel = next(i.kernel for i in made.items if i.kernel is not None)
    for opt in (Opt(OptOps.UPCAST, "g1", 16), Opt(OptOps.UPCAST, "g0", 4)):
        kernel, _ = apply_opt(kernel, opt, device.target)
    lowered, linear = lower(kernel, device.target)
    device.render(lowered, linear)


# profiles


def profile_in_a_fresh_process() -> None:
    for name in FIRST_RESULTS:
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, "--profile-here", name]
            subprocess.run(command, env=environment(cache), check=True)


def profile_first_result(name: str) -> None:
    names: dict[str, object] = {"Tensor": Tensor, "np": np}
    exec(DATA, names)
    report(f"first result, {name}", lambda: exec(FIRST_RESULTS[name][0], names))


def profile_opt_to_source() -> None:
    kernel = matmul_kernel()

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
    shown = [row for row in dearest if "workbench" in row[0][0]][:24]
    for (file, line, function), (_, calls, _, cumulative, _) in shown:
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


# helpers


def child(imports: str, setup: str, work: str) -> tuple[float, float]:
    """Run a program in a fresh process with an empty cache; return its two times."""
    text = CHILD.format(imports=imports, setup=setup, work=work)
    with tempfile.TemporaryDirectory() as cache:
        run = subprocess.run(
            [sys.executable, "-c", text],
            env=environment(cache), check=True, capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
    imported, worked = json.loads(run.stdout)
    return imported, worked


def environment(cache: str) -> dict[str, str]:
    """Return the environment of a fresh process: as after an install, bytecode is kept."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {
        "XDG_CACHE_HOME": cache,
        "PYTHONPYCACHEPREFIX": BYTECODE.name,
        "DEV": "",
    }


def ms(times_s: list[float] | tuple[float, ...]) -> str:
    return f"{1e3 * statistics.median(times_s):.1f} ms ({1e3 * min(times_s):.1f})"


def print_table(rows: Rows) -> None:
    width, middle = (max(len(row[i]) for row in rows) for i in (0, 1))
    for what, measured, budget in rows:
        print(f"{what:{width}}  {measured:>{middle}}  {budget}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
