"""`explore(y, device=, target=)`: kernels for a machine that is not here, of data that are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.viz.support import array
from workbench import Opt, OptOps
from workbench.backends.device import Device
from workbench.base.errors import DeviceError
from workbench.viz import explore
from workbench.viz.record.record import build

MACHINE = "CUDA:H100"
DEVICE, NAME = MACHINE.split(":")


def test_the_names_of_a_machine() -> None:
    y = array(8) + 1
    for words in (
        {"device": DEVICE, "target": NAME},
        {"device": MACHINE},
        {"target": NAME.lower()},
        {"target": MACHINE},
    ):
        ex = explore(y, **words)  # type: ignore[arg-type]
        assert ex.device == MACHINE and ex.kernels[0].device == MACHINE
        assert "not run here" in str(ex)
    assert explore(y).elsewhere == ""


def test_copies_go_to_the_machine() -> None:
    ex = explore(array(8) + 1, device=MACHINE)
    words = f"copy to {MACHINE} 8"
    assert words in str(ex.decisions) and words in str(ex.plan) and words in str(ex)
    record = build(ex, "first")
    assert [d.value for d in record.plan.decisions if d.is_copy] == [words]
    labels = {record.nodes.label[n.n] for n in record.plan.nodes}
    copies = {n for n in record.nodes.label if n.startswith("copy to ")}
    assert copies == {f"copy to {MACHINE}"} and not labels & {"copy to LLVM"}
    assert "copy to LLVM 8" in str(explore(array(8) + 1).decisions)


def test_a_device_for_a_machine_is_that_device() -> None:
    missing = next(d.name for d in Device if d.machines and not d.is_available)
    for name in (DEVICE, missing, Device.processor.name, MACHINE):
        ex = explore(array(8) + 1, target=name)
        assert ex.device == Device.on_machine(name)
        assert Device.on_machine(machine=Device[ex.device].target) == ex.device


@pytest.mark.parametrize("name", ["RTX 4090", "rtx-4090", "Rtx_4090", "RTX4090"])
def test_a_machine_alone_is_a_device(name: str) -> None:
    y = array(8) + 1
    assert explore(y, device=name).device == "CUDA:RTX 4090"
    assert explore(y).kernels[0].on(name).kernel.device == "CUDA:RTX 4090"
    assert "threadIdx" in explore(array(64) + 1, device=name).kernels[0].apply(
        Opt(OptOps.LOCAL, "g0", 8)
    ).code_for(name)


def test_a_predicted_time_says_of_which_machine() -> None:
    for name in ("Banana Pi F3", "H100"):
        kernel = explore(array(64) + 1, device=name).kernels[0]
        assert f"{kernel.device}, not measured" in str(kernel.cost)
    assert "not measured" not in str(explore(array(64) + 1).kernels[0].cost)


def test_a_machine_without_figures_promises_no_times() -> None:
    ex = explore(array(8) + 1, device="WEBGPU:BROWSER")
    assert "no time is predicted" in ex.elsewhere and "browser that shows it" in ex.elsewhere


def test_a_device_that_is_missing_has_its_first_machine() -> None:
    device = next(d for d in Device if d.machines and not d.is_available)
    ex = explore(array(8) + 1, device=device.name)
    assert ex.device == f"{device.name}:{next(iter(device.machines))}"
    others = [*device.machines][1:]
    assert all(name in ex.elsewhere for name in others)


@pytest.mark.parametrize(
    ("device", "target", "says"),
    [
        (DEVICE, "Cray", f"there is no machine 'Cray' of {DEVICE}.*{NAME}"),
        ("", "Cray", f"there is no machine 'Cray'.*{MACHINE}"),
        ("FOO", "", "there is no device 'FOO'"),
        (f"{DEVICE}:", "", f"there is no machine '' of {DEVICE}"),
        ("PYTHON", "Cray", "it has none"),
        ("PYTHON", NAME, f"it is one of {DEVICE}.*{MACHINE}"),
    ],
)
def test_what_there_is_not(device: str, target: str, says: str) -> None:
    with pytest.raises(DeviceError, match=f"(?s){says}"):
        explore(array(8) + 1, device=device, target=target)


def test_tensors_stay_and_producers_run_here() -> None:
    x = array(16, 16)
    e = x.exp().contiguous()
    y = e / e.sum(axis=1, keepdim=True)
    kernel = explore(y, device=MACHINE).kernels[1]
    assert x.device != MACHINE and kernel.device == MACHINE
    (actual,) = kernel.run()
    np.testing.assert_allclose(actual, y.numpy(), rtol=1e-6)
    assert kernel.optimized().check().ok


def test_what_is_too_large_is_not_emulated() -> None:
    kernel = explore(array(512, 512) @ array(512, 512), device=MACHINE).kernels[0]
    with pytest.raises(DeviceError, match="too large to be emulated"):
        kernel.run()
    for measure in (kernel.time, lambda: kernel.compare_times({})):
        with pytest.raises(DeviceError, match="predicted, not run here"):
            measure()
