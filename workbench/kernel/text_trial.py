"""IR text that a user edited, tried on a kernel: lowered on, run in a process apart, and checked.

text = kernel.compile().text("linear")
print(kernel.try_text(text.replace("MAX", "MIN")))
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.backends.device import Device
from workbench.base.errors import DeviceError, WorkbenchError, plural
from workbench.base.terminal import Printed
from workbench.base.trace import unobserved
from workbench.check.answer import CheckResult
from workbench.edited import EditedIR, IRLevel
from workbench.emulator.emulate import emulate_for_steps, read_ir
from workbench.emulator.steps import Trace
from workbench.kernel.rule_trial import MOST_DIFFERENT, differing_lines
from workbench.kernel.runnable import RunnableKernel
from workbench.pipeline import build
from workbench.worker.rows import kernel_row
from workbench.worker.sandbox import SandboxedProgram


@dataclass(frozen=True, slots=True, repr=False)
class TextTrial(Printed):
    """The trial of the edited text of a `level` of a kernel's IR. `source` is the code that it
    became on the `device`, `difference` the lines in which that differs from the kernel's own.
    `check` compares the answer (None: it was not computed to its end); `trace` is a run on the
    emulator, of a GPU that is not here, and of a wrong answer; `error` is that of the run
    ("": there is none)."""

    level: IRLevel
    device: str
    source: str
    difference: tuple[str, ...] = ()
    check: CheckResult | None = None
    trace: Trace | None = None
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the answer is right, and the run was whole and had no defect."""
        is_right = self.check is None or bool(self.check.ok)
        has_run = self.check is not None or (self.trace is not None and self.trace.is_whole)
        return has_run and is_right and not self.error and not self.defects

    @property
    def defects(self) -> tuple[str, ...]:
        """The defects that the emulator found, with their lines."""
        trace = self.trace
        return () if trace is None else tuple(map(trace.with_lines, trace.findings))

    def __str__(self) -> str:
        count = plural(len(self.difference), "line") if self.difference else "no line"
        lines = [f"the {self.level} on {self.device}: {count} of its code differ"]
        lines += [f"  {line}" for line in self.difference[:MOST_DIFFERENT]]
        if len(self.difference) > MOST_DIFFERENT:
            lines.append(f"  and {len(self.difference) - MOST_DIFFERENT} more lines")
        if self.error:
            lines.append(self.error)
        if self.check is not None:
            lines.append(f"the answer: {self.check}")
        if self.trace is not None:
            verdict, sample = "the emulator finds no defect", self.trace.sample
            if sample is not None:
                verdict = f"partly checked: {sample.words(self.trace.launch)}"
            lines += [*self.defects] or [verdict]
        return "\n".join(lines)


def tried_text(kernel: RunnableKernel, text: str, device: str) -> TextTrial:
    """Return the trial of an edited text on a device. Errors: as `read_ir`."""
    kernel.require_data("cannot try a text on this kernel")
    info = Device[device]
    edited = read_ir(kernel, device, text)
    source = edited.stages.source.text
    difference = differing_lines(kernel.built(device).source.text, source)
    trial = TextTrial(edited.level, device, source, difference)
    if info.is_elsewhere and info.has_groups:
        return replace(trial, trace=emulate_for_steps(kernel, info.target, edited=edited))
    try:
        check, error = _checked(kernel, edited, device), ""
    except WorkbenchError as failure:
        check, error = None, f"{failure.what}: {failure.because}"
    trial = replace(trial, check=check, error=error)
    if trial.ok:
        return trial
    try:
        return replace(trial, trace=emulate_for_steps(kernel, info.target, edited=edited))
    except DeviceError:  # too large
        return trial


def _checked(kernel: RunnableKernel, edited: EditedIR, device: str) -> CheckResult:
    """Return the check of edited IR, which runs in a worker process. Errors: those of its run."""
    row = kernel_row(kernel.ast, device, kernel.rules_off, lambda: build(kernel.ast, device).source)
    with unobserved():
        check = kernel.data.check_run(kernel.original, device)
        slots = kernel.original.outputs
        names = [f"p{slot}" for slot in range(len(check.buffers))]
        program = SandboxedProgram(
            kernel.ast, Device[device], edited.stages.source, row | {"ir": edited.text}, names
        )
        program(check.buffers)
        return check.verdict([check.buffers[slot].to_numpy() for slot in slots])
