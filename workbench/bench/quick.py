"""Latencies of the workbench, compared with the budgets of the project.

First results, imports and schedules are measured in fresh processes, in turn with tinygrad's if it
is installed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.trace import observe
from workbench.bench.graphs import matmul, matmul_kernel
from workbench.bench.peers import OURS, PEERS, FreshProcess, Peer, Processes, captured
from workbench.bench.suite import ENTRIES
from workbench.execution.realize import planned
from workbench.ir.opt.opt import Opt, OptOps
from workbench.measure.timing import Samples, in_turn, interleave
from workbench.pipeline import stages

PEER = PEERS["tinygrad"]
IMPORTS = {
    OURS.name: "from workbench import Tensor, Device",
    PEER.name: "from tinygrad import Tensor, Device",
}
OPEN = {OURS.name: "Device[Device.DEFAULT].target\n", PEER.name: "Device[Device.DEFAULT]\n"}
DATA = """
import numpy as np
generator = np.random.default_rng(0)
a, b = (generator.standard_normal((512, 512), dtype=np.float32) for _ in range(2))
"""
FIRST_RESULTS = {
    # expression; budgets in seconds: after import, with the device open
    "elementwise": ("(Tensor(a) * 2 + Tensor(b)).relu().numpy()", 0.110, 0.060),
    "matmul 512": ("(Tensor(a) @ Tensor(b)).numpy()", 0.160, 0.100),
}
FIRST_ENTRY = (FIRST_RESULTS["elementwise"][0],)
SCHEDULE = {OURS.name: "schedule()", PEER.name: "schedule_linear()"}
GRAPHS = (5_000, 10_000, 20_000)
OPT_BUDGET_S = 0.03
"""Seconds that an opt may take."""
RECORDING_BUDGET = 1.15
"""Greatest time of a recorded build, as a multiple of one that is not recorded."""
IMPORT_BUDGET = 1.7
"""Greatest time of importing this package, as a multiple of importing numpy."""
SCHEDULE_BUDGET_S = 2.0
"""Seconds that scheduling a large graph may take."""
# Twice the nodes should take twice the time; a tenth more is noise, or a cache that is full.
GROWTH_BUDGET = 2.2
REPLAY_BUDGET_S = 10e-6


Times = dict[str, tuple[list[float], ...]]
"""By name, the seconds of each process: of its imports, then of each work."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One latency: ours, tinygrad's, and the budget.

    Units: `figure`, `budget` and `peer_figure` are in `unit`, seconds or "x" for a ratio;
    `spread` is half the distance between the quartiles, as a share of the figure.
    """

    what: str
    figure: float
    spread: float
    unit: str = "s"
    budget: float | None = None
    peer_figure: float | None = None


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """The settings of a run: its processes, whether tinygrad is measured, repeats, sizes of graphs
    in UOps."""

    processes: Processes
    with_peer: bool
    repeats: int
    graphs: Sequence[int] = GRAPHS

    @property
    def libraries(self) -> tuple[str, ...]:
        return (OURS.name, PEER.name) if self.with_peer else (OURS.name,)

    def run(self, program: Callable[[str], FreshProcess], repeats: int = 0) -> Times:
        """Run the program of each library, in turn; return their times by library."""
        programs = {library: program(library) for library in self.libraries}
        return self.alternate(programs, repeats or self.repeats)

    def alternate(self, programs: dict[str, FreshProcess], repeats: int) -> Times:
        """Run programs in turn; return the times of each one's processes."""
        runs = {name: partial(self.processes.run, each) for name, each in programs.items()}
        return in_turn(runs, budget_s=0.0, least=repeats, most=repeats)


def run(
    repeats: int = 5, threads: int = 2, graphs: Sequence[int] = GRAPHS, with_peer: bool = True
) -> Iterator[Latency | str]:
    """Yield each Latency as soon as it is measured, and a sentence if tinygrad cannot be measured.

    `graphs` are the sizes of three graphs in UOps, each about twice the one before it.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-bytecode-") as bytecode:
        processes = Processes(threads, bytecode)
        # the first process of a library writes its bytecode
        processes.run(_program(FIRST_ENTRY, False, OURS.name))
        if with_peer:
            reason = _why_not_peer(processes)
            if reason is not None:
                yield reason
            with_peer = reason is None
        plan = LatencyPlan(processes, with_peer, repeats, graphs)
        yield from first_results(plan)
        yield from opt_to_source(3 * repeats)
        yield recording(8 * repeats + 1)
        yield replay(8 * repeats + 1)
        yield from imports(plan)
        yield from large_graphs(plan)


def first_results(plan: LatencyPlan) -> Iterator[Latency]:
    """Measure the time from an expression to its numbers, after import and with the device open."""
    for name, (work, import_s, open_s) in FIRST_RESULTS.items():
        cold = plan.run(partial(_program, (work,), False))
        opened = plan.run(partial(_program, (work, work), True))
        yield _line(f"first {name}, after import", cold, 1, import_s)
        yield _line(f"first {name}, device open", opened, 1, open_s)
        yield _line("  the same again", opened, 2)


def opt_to_source(repeats: int) -> Iterator[Latency]:
    """Measure the time from an opt to the source of the new kernel, as the workbench shows it.

    Each matmul has another size, so that nothing is memoised.
    """
    first: list[float] = []
    second: list[float] = []
    for number in range(repeats):
        kernel = matmul_kernel(512 + 16 * number)
        start = time.perf_counter()
        once = kernel.apply(Opt(OptOps.UPCAST, "g1", 16))
        assert once.compile(Device.processor.name).source
        middle = time.perf_counter()
        assert once.apply(Opt(OptOps.UPCAST, "g0", 4)).compile(Device.processor.name).source
        first.append(middle - start)
        second.append(time.perf_counter() - middle)
    for what, times in (("apply UPCAST to new source", first), ("  a second on top", second)):
        yield Latency(what, statistics.median(times), _spread(times), "s", OPT_BUDGET_S)


def recording(pairs: int) -> Latency:
    """Measure a recorded build, in turn with one that is not recorded."""

    def watched() -> None:
        with observe():
            build_all()

    build_all()
    measurements = interleave({"bare": build_all, "watched": watched}, 60.0, pairs)
    both = zip(measurements["watched"].samples_s, measurements["bare"].samples_s, strict=True)
    ratios = [w / b for w, b in both]
    return _ratio_line("recording every pass, over not", ratios, RECORDING_BUDGET)


def replay(pairs: int) -> Latency:
    """Measure a replayed call of a TinyJit on little data, without the time of its kernel."""
    entry = next(e for e in ENTRIES if e.name.startswith("add, "))
    call, inputs = captured(entry, entry.arrays(smoke=False))
    measurements = interleave({"call": lambda: call(*inputs), "kernel": call.launch}, 60.0, pairs)
    both = zip(measurements["call"].samples_s, measurements["kernel"].samples_s, strict=True)
    beyond = [c - k for c, k in both]
    return Latency(
        "a replayed call, but its kernels", statistics.median(beyond), _spread(beyond),
        "s", REPLAY_BUDGET_S,
    )  # fmt: skip


def build_all(n: int = 64) -> None:
    """Schedule an expression, apply opts, lower and render: the whole part of Python."""
    schedule, _ = planned([matmul(n).uop])
    kernel = next(i.kernel for i in schedule.items if i.kernel is not None)
    opts = (Opt(OptOps.UPCAST, "g1", 16), Opt(OptOps.UPCAST, "g0", 4))
    stages(kernel, Device.processor.name, upto="source", opts=opts)


def imports(plan: LatencyPlan) -> Iterator[Latency]:
    """Measure imports: of the package over numpy's, of Tensor and Device beside tinygrad's."""
    programs = {
        statement: FreshProcess(OURS, statement)
        for statement in ("import numpy", "import workbench")
    }
    measurements = plan.alternate(programs, 3 * plan.repeats)
    pairs = zip(measurements["import workbench"], measurements["import numpy"], strict=True)
    ratios = [ours[0] / numpy[0] for ours, numpy in pairs]
    yield _ratio_line("import workbench, over import numpy", ratios, IMPORT_BUDGET)
    tensors = plan.run(lambda library: FreshProcess(_peer(library), IMPORTS[library]))
    yield _line("import Tensor and Device", tensors, 0)


def large_graphs(plan: LatencyPlan) -> Iterator[Latency]:
    """Measure how long a chain takes to schedule, and how that grows with its size."""

    def program(library: str) -> FreshProcess:
        sizes = plan.graphs if library == OURS.name else plan.graphs[:-1]  # tinygrad is slow
        graphs = "".join(f"y{n} = chain(Tensor, {n})\n" for n in sizes)
        setup = f"from workbench.bench.graphs import chain\n{graphs}"
        works = tuple(f"y{n}.{SCHEDULE[library]}" for n in sizes)
        return FreshProcess(_peer(library), IMPORTS[library], setup, works)

    measurements = plan.run(program, max(1, plan.repeats // 2))
    for place, size in enumerate(plan.graphs, start=1):
        budget = SCHEDULE_BUDGET_S if size == 10_000 else None
        yield _line(f"schedule {size:,} UOps", measurements, place, budget)
    growth = {
        name: [times[-1] / times[-2] for times in each] for name, each in measurements.items()
    }
    yield _ratio_line(
        "  growth when the UOps double", growth[OURS.name], GROWTH_BUDGET,
        growth.get(PEER.name, ()),
    )  # fmt: skip


def _program(works: tuple[str, ...], is_open: bool, library: str) -> FreshProcess:
    setup = DATA + OPEN[library] if is_open else DATA
    return FreshProcess(_peer(library), IMPORTS[library], setup, works)


def _peer(library: str) -> Peer:
    return OURS if library == OURS.name else PEER


def _why_not_peer(processes: Processes) -> str | None:
    """Return why tinygrad cannot be measured here, None if it can; this writes its bytecode."""
    if not PEER.is_installed:
        return PEER.absence
    try:
        processes.run(_program(FIRST_ENTRY, False, PEER.name))
    except WorkbenchError as error:
        return f"{PEER.name} cannot run here: {error.because} ({PEER.how_to_get})"
    return None


def _line(what: str, measurements: Times, place: int, budget: float | None = None) -> Latency:
    """Return the Latency of the times at `place` of each process, ours beside the peer's."""
    ours = [times[place] for times in measurements[OURS.name]]
    theirs = [times[place] for times in measurements.get(PEER.name, ()) if place < len(times)]
    peer = statistics.median(theirs) if theirs else None
    return Latency(what, statistics.median(ours), _spread(ours), "s", budget, peer)


def _ratio_line(
    what: str, ratios: Sequence[float], budget: float, theirs: Sequence[float] = ()
) -> Latency:
    peer = statistics.median(theirs) if theirs else None
    return Latency(what, statistics.median(ratios), _spread(ratios), "x", budget, peer)


def _spread(values: Sequence[float]) -> float:
    """Return half the distance between the quartiles, as a share of the median."""
    return Samples(tuple(values)).spread_s / statistics.median(values)
