"""The verdict on an exploration: on each kernel as it runs, and on the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workbench.backends.device import Device
from workbench.base.display import Printed
from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.check.answer import CheckResult
from workbench.kernel.kernel import Kernel
from workbench.kernel.run import IN_MEMORY, Run
from workbench.viz.model.words import error_text


@dataclass(frozen=True, slots=True, repr=False)
class Checks(Printed):
    """The verdicts on the kernels of an exploration, with the opts that they run with, and on its
    `results`: a CheckResult each, or the error of what cannot be compiled or run. Printed, a line
    each, and then what they were compared with. `in_memory` says that there are results that
    nothing computes, and nothing to compare them with."""

    titles: tuple[str, ...]
    kernels: tuple[CheckResult | WorkbenchError, ...]
    results: tuple[CheckResult | WorkbenchError, ...]
    in_memory: bool = False

    @property
    def ok(self) -> bool:
        """Whether all are right."""
        return all(isinstance(c, CheckResult) and c.ok for c in self._all)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def _all(self) -> tuple[CheckResult | WorkbenchError, ...]:
        return *self.kernels, *self.results

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        names = [f"kernel {n}: {title}" for n, title in enumerate(self.titles, 1)]
        names += ["all results"] * len(self.results)
        width = max(map(len, names), default=0)
        for name, verdict in zip(names, self._all, strict=True):
            if isinstance(verdict, CheckResult):
                text = verdict.summary
            else:
                text = "ERROR: " + error_text(verdict).splitlines()[0]
            yield f"{name:{width}}  {text}"
        if self.in_memory:
            yield f"{'results' if self._all else 'all results'}  {IN_MEMORY}"
        verdicts = [v for v in self._all if isinstance(v, CheckResult)]
        for against in dict.fromkeys([verdict.against for verdict in verdicts]):
            yield f"compared with {against}"


def checks_of(kernels: Sequence[Kernel], runs: Sequence[Run], on: str) -> Checks:
    """Return the verdicts on kernels with the opts that they run with, and on what the `runs` of
    their schedules compute, on the device `on` ("": on that of each)."""
    return Checks(
        tuple(kernel.title or kernel.name for kernel in kernels),
        tuple([_of_kernel(kernel) for kernel in kernels]),
        tuple([_of_results(run, on) for run in runs if not run.is_in_memory]),
        any(run.is_in_memory for run in runs),
    )


def _of_kernel(kernel: Kernel) -> CheckResult | WorkbenchError:
    try:
        is_plain = Device[kernel.device].runs_plain or kernel.original.code is not None
        return (kernel if is_plain else kernel.optimized()).check()
    except WorkbenchError as error:
        return error


def _of_results(run: Run, on: str) -> CheckResult | WorkbenchError:
    try:
        with unobserved():
            return run.check(on or run.device)
    except WorkbenchError as error:
        return error
