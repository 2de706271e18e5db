"""Random programs against numpy, as many as one likes: what `tests.agreement.programs` makes, run.

    python -m tests.agreement.hunt --device LLVM --seeds 0:100000 --opts mixed

runs each seed's program on a device in this process, and ends with counts: how many were wrong,
and how many were refused, by reason. What is wrong is printed with its seed and a script to
paste. `--opts default` runs what `realize` runs, `random` up to four legal opts drawn for each
kernel, and `mixed` the one or the other. On C a batch is compiled in one call. The exit status
is 1 where something was wrong.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tests.agreement.programs import Program, program
from workbench import Context, Tensor
from workbench.backends.c.c_device import compile_many
from workbench.backends.device import Device
from workbench.base.errors import CompileError, LanguageError, VerifyError, WorkbenchError
from workbench.execution.buffers import memory_of
from workbench.execution.realize import planned, run_item
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import actions, apply_opt, why_not
from workbench.ir.opt.opt import Opt
from workbench.ir.schedule.plan import ScheduleItem
from workbench.pipeline import build
from workbench.search.realization import tuned

MOST_OPTS = 4
BATCH = {"C": 200}
"""Programs that are compiled together; 1 where nothing is said."""


@dataclass
class Attempt:
    """A program on its way: planned, each kernel with its opts, run."""

    program: Program
    device: str
    opts: list[tuple[Opt, ...]] = field(default_factory=list)
    claim: str = ""
    verdict: str = ""
    refusal: str = ""
    items: tuple[ScheduleItem, ...] = ()
    kernels: list[UOp | None] = field(default_factory=list)
    tensor: Tensor | None = None
    result: Any = None

    def plan(self, opts: str) -> None:
        dice = random.Random(self.program.seed)
        is_drawn = opts == "random" or opts == "mixed" and dice.random() < 0.5
        self.tensor = self.program.tensor(self.device)
        with Context(DEV=self.device):  # that of values without data
            schedule, (simple,) = planned([self.tensor.uop])
        self.items, self.result = schedule.items, simple.substitute(schedule.stored)
        for item in self.items:
            kernel = item.kernel
            if kernel is not None:
                kernel = self._drawn(kernel, dice) if is_drawn else tuned(kernel, self.device)
            self.kernels.append(kernel)

    def _drawn(self, kernel: UOp, dice: random.Random) -> UOp:
        """Return a kernel with a few legal opts, and note which."""
        target = Device[self.device].target
        chosen: list[Opt] = []
        for _ in range(dice.randint(1, MOST_OPTS)):
            possible = list(actions(kernel, target))
            for opt in dice.sample(possible, min(6, len(possible))):
                if why_not(kernel, opt, target) is None:
                    kernel, named = apply_opt(kernel, opt, target)
                    chosen.append(named)
                    break
        self.opts.append(tuple(chosen))
        return kernel

    def run(self) -> None:
        _run_items(self.items, self.kernels, self.device)
        assert self.tensor is not None
        actual = replace_result(self.tensor, self.result).numpy()
        self.verdict = self.program.wrong(actual)
        if self.verdict:
            self.claim = self.program.claim(actual)

    def guarded(self, work: Any) -> None:
        """Do a step; note an error as a refusal, or as wrong where it is the compiler's own."""
        if self.verdict or self.refusal:
            return
        try:
            work()
        except LanguageError as error:
            self.refusal = error.because
        except (CompileError, VerifyError) as error:
            self.verdict = f"{type(error).__name__}: {error}"
        except WorkbenchError as error:
            self.refusal = f"{type(error).__name__}: {error.what}, {error.because}"
        except Exception:
            self.verdict = traceback.format_exc(limit=-6)


def computed(tensor: Tensor, device: str, opts: list[tuple[Opt, ...]]) -> Tensor:
    """Return the tensor computed with given opts for each kernel, as a failure prints them."""
    schedule, (simple,) = planned([tensor.uop])
    kernels: list[UOp | None] = []
    left = iter(opts)
    for item in schedule.items:
        kernel = item.kernel
        if kernel is not None:
            for opt in next(left):
                kernel, _ = apply_opt(kernel, opt, Device[device].target)
        kernels.append(kernel)
    _run_items(schedule.items, kernels, device)
    return replace_result(tensor, simple.substitute(schedule.stored))


def _run_items(items: tuple[ScheduleItem, ...], kernels: list[UOp | None], device: str) -> None:
    for item, kernel in zip(items, kernels, strict=True):
        if kernel is None:
            run_item(item, tuned)
        else:
            build(kernel, device).program([memory_of(b) for b in item.buffers])


def replace_result(tensor: Tensor, node: UOp) -> Tensor:
    """Return the tensor with its computed value."""
    return tensor._with(node)


def attempts(seeds: Iterable[int], device: str, opts: str) -> Iterator[Attempt]:
    """Yield the programs of `seeds`, run."""
    left = iter(seeds)
    while batch := list(islice(left, BATCH.get(device, 1))):
        batch_attempts = [Attempt(program(seed), device) for seed in batch]
        for each in batch_attempts:
            each.guarded(lambda each=each: each.plan(opts))
        programs = compiled_together(batch_attempts) if device == "C" else []
        for each in batch_attempts:
            each.guarded(each.run)
            yield each
        del programs


def compiled_together(batch: list[Attempt]) -> list[Any]:
    """Compile the kernels of many programs in one call; what is refused meets it again, alone."""
    sources = []
    for each in batch:
        for kernel in each.kernels:
            if kernel is not None:
                each.guarded(lambda kernel=kernel: sources.append(build(kernel, "C").source))
    try:
        return list(compile_many(sources))
    except CompileError:
        return []


@dataclass
class Tally:
    """What became of the programs so far."""

    device: str
    count: int = 0
    wrong: list[Attempt] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    started_s: float = field(default_factory=time.perf_counter)

    def add(self, attempt: Attempt) -> None:
        self.count += 1
        if attempt.refusal:
            self.refused[attempt.refusal] += 1
        if attempt.verdict:
            self.wrong.append(attempt)

    def __str__(self) -> str:
        seconds = time.perf_counter() - self.started_s
        refused = sum(self.refused.values())
        reasons = "".join(f"\n  {n:6} {why}" for why, n in self.refused.most_common())
        seeds = ", ".join(str(a.program.seed) for a in self.wrong)
        return (
            f"{self.count:,} expressions on {self.device}: {len(self.wrong)} wrong, "
            f"{refused} refused ({self.count / seconds:.0f} a second)"
            + (f"\nwrong seeds: {seeds}" if seeds else "")
            + (f"\nrefused:{reasons}" if reasons else "")
        )


def report(attempt: Attempt) -> str:
    """Return a failure as text: its seed, what is wrong, a script that fails."""
    opts = "".join(f" [{', '.join(map(str, chosen))}]" for chosen in attempt.opts)
    code = repr(attempt.opts) if attempt.opts else ""
    claim = attempt.claim or attempt.program.claim(None)
    return (
        f"seed {attempt.program.seed} on {attempt.device}{opts and ' with' + opts}: "
        f"{attempt.verdict or attempt.refusal}\n\n"
        f"{attempt.program.script(attempt.device, claim, code)}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="LLVM")
    parser.add_argument("--seeds", default="0:1000", help="FIRST:END, or one seed")
    parser.add_argument("--opts", default="mixed", choices=("default", "random", "mixed"))
    parser.add_argument("--stop", type=int, default=0, help="end after so many wrong ones")
    options = parser.parse_args()
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    tally = Tally(options.device)
    warnings.simplefilter("ignore")
    gc.freeze()
    with tempfile.TemporaryDirectory(prefix="workbench-hunt-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for attempt in attempts(seeds, options.device, options.opts):
            tally.add(attempt)
            if attempt.verdict:
                print(report(attempt), flush=True)
            if tally.count % 5000 == 0:
                print(tally, file=sys.stderr, flush=True)
            if options.stop and len(tally.wrong) >= options.stop:
                break
    print(tally)
    return bool(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())
