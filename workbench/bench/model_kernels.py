"""The kernels of the benchmark's models: of a step of training, scheduled but not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.backends.device import Device
from workbench.base.context import Context
from workbench.base.installation import version
from workbench.base.trace import observe
from workbench.bench.models import MODELS, RATE, WIDE_MODELS, BenchModel, TensorLibrary
from workbench.cost.default_opts import default_opts
from workbench.execution.realize import planned
from workbench.ir.schedule.plan import Schedule
from workbench.kernel_files.capture_kernels import fired_rules, kernel_row
from workbench.kernel_files.kernel_file import CapturedKernel, CapturedProgram, KernelFile
from workbench.nn.optim import Adam
from workbench.nn.state import get_parameters
from workbench.search.realization import ChosenOpts
from workbench.search.tuning_file import machine_of
from workbench.tensor.tensor import Tensor


def model_kernels(models: Iterable[BenchModel], device: str = "") -> KernelFile:
    """Return the kernels of a step of training of each model, forward, backward and Adam, with the
    default opts on a device ("": the default one): what `realize` runs without tuning files.
    Nothing runs. The row of a program has the rules and the decisions of its schedule.

    Errors: DeviceError for an unknown device.
    """
    name = Device.on_machine(device) if device else Device.DEFAULT
    return KernelFile.of(row for model in models for row in _rows(model, name))


ALL_MODELS = (*MODELS.values(), *WIDE_MODELS.values())
"""The models of `workbench bench --models`, with goals and wide."""


def _rows(model: BenchModel, device: str) -> Iterator[CapturedKernel | CapturedProgram]:
    with Context(DEV=device, TRAINING=1), observe() as watching:
        schedule = _schedule_of_step(model)
    decisions = Counter[str](decision.name for decision in schedule.decisions)
    yield CapturedProgram(
        program=model.name,
        device=device,
        machine=machine_of(device),
        version=version(),
        rules=fired_rules(watching.records),
        decisions=dict(decisions),
    )
    counts = Counter(item.kernel for item in schedule.items if item.kernel is not None)
    for kernel, launches in counts.items():
        default = default_opts(kernel, Device[device].target)
        chosen = ChosenOpts(default.kernel, default.opts, "default")
        yield kernel_row((kernel, default.kernel, device), chosen, model.name, launches)


def _schedule_of_step(model: BenchModel) -> Schedule:
    """Return the schedule of a step whose parameters and data have memory without contents."""
    forward, layers = model.make(TensorLibrary("workbench"))
    parameters = get_parameters(layers)
    for parameter in parameters:
        parameter.replace(Tensor.empty(*parameter.shape, dtype=parameter.dtype))
    optimizer = Adam(parameters, lr=RATE)
    inputs, classes = (Tensor.empty(*a.shape, dtype=str(a.dtype)) for a in model.data())
    loss: Any = forward(inputs)
    loss = loss.sparse_categorical_crossentropy(classes) if model.has_classes else loss.square()
    loss = loss if model.has_classes else loss.mean()
    loss.backward()
    outputs = [tensor.uop for tensor in (loss, *optimizer.schedule_step())]
    return planned(outputs)[0]
