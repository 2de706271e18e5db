"""The registry of devices."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.backends.linear import at, param, program, store
from tests.support import ROOT
from workbench.backends.device import Device, Devices
from workbench.backends.llvm import llvm_device as llvm
from workbench.backends.memory import Buffer
from workbench.backends.native import machine
from workbench.backends.native.processor import processor_target
from workbench.backends.program.text import Source
from workbench.base.context import Context
from workbench.base.dtypes import dtypes
from workbench.base.errors import DeviceError
from workbench.base.installation import install_command
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Devices:
    """A registry whose default the test may change."""
    monkeypatch.delenv("DEV", raising=False)
    return Devices(Device)


def test_names_in_any_case_and_aliases() -> None:
    assert Device.names()[:3] == ("LLVM", "C", "PYTHON")
    assert Device["llvm"] is Device["LLVM"] is Device["CPU"]
    assert Device["C"] is Device["clang"] is Device["GCC"]
    assert Device["Python"].name == "PYTHON"


def test_an_unknown_device_is_told_with_those_that_are() -> None:
    with pytest.raises(DeviceError) as caught:
        Device["GPU7"]
    assert "no device 'GPU7'" in str(caught.value)
    assert "LLVM, C, PYTHON" in str(caught.value)
    with pytest.raises(DeviceError):
        Device.available("GPU7")


def test_available() -> None:
    assert Device.available("PYTHON") and Device.available("LLVM")


def test_a_missing_device_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "find_spec", lambda name: None)
    missing = llvm.LLVMDevice()
    with pytest.raises(DeviceError) as caught:
        missing.target  # noqa: B018
    assert "pip install 'llvmlite" in str(caught.value)
    only = Devices([missing, Device["PYTHON"]])
    assert not only.available("LLVM") and only.DEFAULT == "PYTHON"


def test_default(registry: Devices) -> None:
    assert registry.DEFAULT == "LLVM"
    registry.DEFAULT = "python"
    assert registry.DEFAULT == "PYTHON"
    with Context(DEV="cpu"):
        assert registry.DEFAULT == "LLVM"
    assert registry.DEFAULT == "PYTHON"
    with pytest.raises(DeviceError):
        registry.DEFAULT = "nothing"
    assert registry.DEFAULT == "PYTHON"
    with Context(DEV="nothing"), pytest.raises(DeviceError):
        registry.DEFAULT  # noqa: B018


def test_default_from_the_environment() -> None:
    script = (
        "from workbench.backends.device import Device\n"
        "assert Device.DEFAULT == 'PYTHON'\n"
        "Device.DEFAULT = 'LLVM'\n"
        "assert Device.DEFAULT == 'LLVM'"
    )
    env = {"DEV": "python", "PATH": ""}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, check=True)


def test_target_is_this_machine() -> None:
    target = Device["LLVM"].target
    assert target.device == "LLVM"
    assert target.vector_bytes in (16, 32, 64)
    assert target.vector_registers in (16, 32)
    assert Device["LLVM"].target is target
    assert Device["PYTHON"].target.device == "PYTHON"


@pytest.mark.parametrize(
    "listed, expected",
    [
        ((), (32 << 10, 512 << 10, 8 << 20)),
        ((("L1", 48 << 10), ("L2", 1 << 20)), (48 << 10, 1 << 20, 8 << 20)),
        ((("L1", 48 << 10), ("L2", 1 << 20), ("L3", 4 << 20)), (48 << 10, 1 << 20, 4 << 20)),
    ],
)  # fmt: skip
def test_a_cache_that_the_system_does_not_tell_of_is_a_common_one(
    listed: machine.Caches, expected: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last cache that is hidden, as some virtual machines do, must not count as none."""
    monkeypatch.setattr(machine, "caches", lambda: listed)
    target = processor_target("LLVM")
    sizes = target.l1_bytes, target.l2_bytes, target.last_cache_bytes
    assert sizes == expected


def test_only_what_renders_stores_past_the_caches_has_them() -> None:
    """The cost model reads it from the Target."""
    assert Device["LLVM"].target.non_temporal_bytes > 0
    assert Device["C"].target.non_temporal_bytes == 0
    assert Device["PYTHON"].target.non_temporal_bytes == 0


def test_buffers_begin_where_kernels_expect_it() -> None:
    for device in filter(lambda d: d.is_available, Device):
        assert device.memory.alignment_bytes % device.target.alignment_bytes == 0


def test_render_and_load() -> None:
    info = KernelInfo("three", ())
    statement = store(at(param(0, dtypes.int32, 1), 0), UOp.const(dtypes.int32, 3))
    block = UOp(Ops.BLOCK, dtypes.void, (statement,), info)
    for name in filter(Device.available, Device.names()):
        device = Device[name]
        source = device.render(block, program(statement, name="three"))
        assert source.name == "three"
        out = Buffer(name, dtypes.int32, 1)
        loaded = device.load(source)
        loaded([out])
        assert out.as_array().tolist() == [3]
        out.copy_in(np.zeros(1, np.int32))
        loaded.bind([out])()
        assert out.as_array().tolist() == [3]


def test_repr() -> None:
    assert "LLVM" in repr(Device) and "llvmlite" in repr(Device["LLVM"])


def test_a_machine_that_is_elsewhere_is_a_device_with_its_target() -> None:
    device = Device["cuda:h100"]
    assert device is Device["CUDA:H100"] and not device.is_available
    assert device.target.hardware is not None
    assert device.target.hardware.arch == "sm_90"
    with pytest.raises(DeviceError, match="H100 is not here"):
        device.load(Source("k", "CUDA", "", ()))([])
    with pytest.raises(DeviceError, match="no machine 'H1' of CUDA"):
        Device.canonical("CUDA:H1")
    with pytest.raises(DeviceError, match="it has none"):
        Device.canonical("PYTHON:H1")
    with pytest.raises(DeviceError, match="(?s)it is one of CUDA.*try +CUDA:H100"):
        Device.canonical("PYTHON:H100")
    assert Device["h100"] is device and Device["NULL:h100"] is Device["NULL:CUDA:H100"]


def test_what_is_missing_is_said_with_what_there_is_instead() -> None:
    missing = [d for d in Device if d.machines and not d.is_available]
    assert missing
    for device in missing:
        with pytest.raises(DeviceError) as error:
            device.target  # noqa: B018
        assert f"does not have it: {device.about}" in error.value.because
        machine = f'"{device.name}:{next(iter(device.machines))}", which is emulated'
        assert device.how_to_get in str(error.value) and machine in str(error.value)


WITHOUT_LIBRARIES = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
from workbench import Device, Tensor
for device in Device:
    try:
        (Tensor([1.0], device=device.name) + 1).realize()
    except Exception as error:
        print(device.name, type(error).__name__, *str(error).split())
"""
"""Prints the error of a sum on each device, in a process without the modules that it is given."""


def without(*modules: str) -> dict[str, str]:
    command = [sys.executable, "-c", WITHOUT_LIBRARIES, *modules]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(line.split(" ", 1) for line in output.splitlines())


def test_a_device_without_its_library_says_what_to_install() -> None:
    """It said what failed first: an allocation, or the search for a GPU."""
    listed = {
        "CUDA": ("cuda.core", "cuda"), "HIP": ("hip", "hip"), "METAL": ("Metal", "metal"),
        "OPENCL": ("pyopencl", "opencl"), "WEBGPU": ("wgpu", "webgpu"),
        "OCLGRIND": ("pyopencl", "oclgrind"), "WASM": ("wasmtime", "wasm"),
    }  # fmt: skip
    errors = without(*(module.partition(".")[0] for module, _ in listed.values()))
    assert errors.keys() >= listed.keys() and "LLVM" not in errors
    for name, (module, extra) in listed.items():
        assert errors[name].startswith(f"DeviceError the device {name} is not available because")
        assert f"the Python module {module} is not installed" in errors[name]
        assert install_command(extra) in errors[name]
    for name, error in without("llvmlite").items():
        if name in ("LLVM", "C", "WASM"):
            # Where wasmtime is missing, too, one sentence names both modules.
            assert "llvmlite" in error and "not installed" in error and "pip install" in error
    assert "pocl" in install_command("opencl") or sys.platform != "linux"


class Own(type(Device["CUDA"])):  # type: ignore[misc]
    """A device of somebody's own, with machines."""

    name = "OWN"
    aliases = ()


def test_a_machine_goes_with_its_device() -> None:
    for name in ("CUDA:H100", "NULL:CUDA:H100"):
        with pytest.raises(DeviceError, match="the package's own"):
            Device.unregister(name)
    first, second = Own(), Own()
    Device.register(first)
    assert Device["OWN:H100"].device is first  # type: ignore[attr-defined]
    with pytest.raises(DeviceError, match="a machine is removed with its device"):
        Device.unregister("OWN:H100")
    Device.register(second)
    assert Device["OWN:H100"].device is second  # type: ignore[attr-defined]
    Device.unregister("OWN")
    with pytest.raises(DeviceError, match="no device 'OWN:H100'"):
        Device.canonical("OWN:H100")
