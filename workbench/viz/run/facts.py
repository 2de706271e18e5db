"""The facts about a kernel of a run: its title, its work, its predicted time, and its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b

from workbench.backends.device import Device
from workbench.backends.native.stamps import can_stamp
from workbench.base.errors import WorkbenchError
from workbench.base.recording import LaunchedKernel
from workbench.base.source import line_at
from workbench.base.trace import unobserved
from workbench.cost.default_opts import default_opts
from workbench.cost.kernel_cost import RunCost
from workbench.cost.predicted_cost import bottleneck_of, predicted_cost
from workbench.ir.nest.estimates import estimate
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.kernel.kernel import Kernel
from workbench.kernel.performance import costs_target
from workbench.measure.speeds import Speeds, earlier_speeds, speeds
from workbench.viz.model.title import title_of
from workbench.viz.model.words import opts_words
from workbench.viz.schema.run import RunKernel

MOST_PREDICTED = 1000
"""Most kernels whose times are predicted: each takes some milliseconds."""


def facts_of(measures: bool = True) -> Callable[[LaunchedKernel], RunKernel]:
    """Return the function that describes launched kernels, which predicts the times of the first
    MOST_PREDICTED. `measures`: this machine is measured, if it never was, which takes a second."""
    predict = Predictor(measures)

    def facts(launch: LaunchedKernel) -> RunKernel:
        file, number = launch.line or ("", 0)
        row = _plain_facts(launch.plain, launch.tuned, launch.device)
        row.line = str(line_at(file, number)) if file else ""
        predict.add(row, launch.plain, launch.tuned, launch.device)
        return row

    return facts


def facts_of_kernels(kernels: dict[int, Kernel]) -> Callable[[LaunchedKernel], RunKernel]:
    """Return the function that describes launches of the kernels of an exploration, which are given
    by their places as they run."""
    predict = Predictor(True)

    def facts(launch: LaunchedKernel) -> RunKernel:
        kernel = kernels[launch.place]
        row = _plain_facts(launch.plain, launch.tuned, launch.device)
        row.title, row.place = kernel.title or row.title, launch.place
        row.opts = opts_words(kernel.applied_opts) or row.opts
        row.module = kernel.modules[0].path if kernel.modules else ""
        row.line = str(kernel.line) if kernel.line else ""
        row.phase = kernel.phases[-1] if kernel.phases else ""
        row.kind = _kind(row.title.rpartition(": ")[2])
        predict.add(row, launch.plain, launch.tuned, launch.device)
        return row

    return facts


def key_of(kernel: UOp) -> str:
    """Return a digest of a kernel's text, the same in every process."""
    return blake2b(to_text(kernel).encode(), digest_size=8).hexdigest()


class Predictor:
    """Adds predicted times and bottlenecks to rows, as long as there are not too many."""

    def __init__(self, measures: bool):
        self._measures, self._count = measures, 0
        self._speeds: Speeds | None = None

    def add(self, row: RunKernel, plain: UOp, tuned: UOp, device: str) -> None:
        """Set the predicted time of a kernel, and its bottleneck; leave them where unknown: of code
        that a user wrote, and on an emulator, whose times are not those of a kernel."""
        cost = self.cost(plain, tuned, device)
        if cost is None:
            return
        bottleneck = bottleneck_of(cost, costs_target(device))
        row.predicted_ns = self.seconds(cost, device) * 1e9
        row.bound, row.why = bottleneck.what, bottleneck.why

    def cost(self, plain: UOp, tuned: UOp, device: str) -> RunCost | None:
        """Return the predicted cost of a kernel; None where it is unknown."""
        self._count += 1
        info = Device[device]
        if self._count > MOST_PREDICTED or (info.is_emulator and not info.is_elsewhere):
            return None
        try:
            with unobserved():
                return predicted_cost(tuned, costs_target(device), self._own(device), plain)
        except WorkbenchError:
            return None

    def seconds(self, cost: RunCost, device: str) -> float:
        """Return the predicted seconds of a kernel as a run measures them."""
        own, launch_s = self._own(device), 0.0
        if own is not None and not Device[device].queues and can_stamp():
            launch_s = own.launch(1)  # a stamp is taken after the launch from Python
        return max(0.0, cost.predicted_s - launch_s)

    def _own(self, device: str) -> Speeds | None:
        """Return the speeds of this machine for a device without published figures."""
        return None if Device[device].source_device.has_hardware else self._own_speeds()

    def _own_speeds(self) -> Speeds | None:
        if self._speeds is None:
            self._speeds = speeds() if self._measures else earlier_speeds()
        return self._speeds


def _plain_facts(plain: UOp, tuned: UOp, device: str) -> RunKernel:
    estimates = estimate(plain)
    title = title_of(plain)
    default = default_opts(plain, Device[device].target)
    opts = default.opts if default.kernel is tuned else ()
    return RunKernel(
        key=key_of(plain), name=tuned.arg.name, title=title, kind=_kind(title), device=device,
        opts=opts_words(opts), module="", line="", phase="", place=None,
        flops=float(estimates.flops), bytes=float(estimates.bytes), predicted_ns=None,
        bound="", why="",
    )  # fmt: skip


def _kind(title: str) -> str:
    """Return the first word of a title: "matmul", "sum", "elementwise"."""
    return re.split("[+, ]", title, maxsplit=1)[0]
