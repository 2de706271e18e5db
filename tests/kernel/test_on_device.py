"""Kernels for another device, and for machines that are not here."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tests.tools.compiler import needs_c
from workbench.backends.device import Device
from workbench.base.errors import CompileError, DeviceError
from workbench.ir.opt.opt import Opt, OptOps
from workbench.kernel.kernel import Kernel
from workbench.tensor.tensor import Tensor
from workbench.viz import explore

MACHINES = [n for n in Device.machine_names() if Device[n].target.has_groups]


def matmul() -> Kernel:
    a, b = (Tensor(np.ones((32, 32), np.float32)) for _ in range(2))
    return explore(a @ b).kernels[0]


@pytest.mark.parametrize("machine", MACHINES)
def test_opts_are_replayed_on_another_device(machine: str) -> None:
    kernel = matmul().apply(Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UNROLL, "r0", 4))
    replay = kernel.on(machine)
    assert replay.kernel.device == machine
    assert replay.refused == () and replay.kernel.applied_opts == kernel.applied_opts
    assert replay.kernel.check().ok
    assert kernel.device != machine


def test_what_is_not_legal_there_is_listed() -> None:
    columns, rows = Opt(OptOps.LOCAL, "g1", 32), Opt(OptOps.LOCAL, "g0", 32)
    kernel = matmul().on("CUDA:H100").kernel.apply(columns, rows)
    replay = kernel.on("OPENCL:Iris Xe")
    assert replay.refused[0][0] == rows and "512" in replay.refused[0][1]
    assert replay.kernel.applied_opts == (columns,)
    assert "1 opt is refused there" in str(replay) and str(rows) in str(replay)
    back = replay.kernel.on("CUDA", "H100").kernel
    assert back.device == "CUDA:H100" and back.check().ok


def test_a_replay_names_the_kernel_that_has_the_methods() -> None:
    """No method of the kernel is its own: one would hide that opts were refused."""
    replay = matmul().on("CUDA:H100")
    names = [name for name in dir(Kernel) if not name.startswith("_")]
    assert {"bound", "cost", "optimized", "time", "run"} <= {*names}
    for name in names:
        with pytest.raises(AttributeError, match=rf"\.on\(\.\.\)\.kernel\.{name},"):
            getattr(replay, name)
    misspelt = "bounds"
    with pytest.raises(AttributeError, match=r"an OptsReplay has no \.bounds$"):
        getattr(replay, misspelt)
    assert copy.deepcopy(replay).refused == () and not hasattr(replay, "__len__")


def test_kernels_of_text_and_pickled_ones_go_there_too() -> None:
    for kernel in (Kernel.from_text(matmul().to_text()), pickle.loads(pickle.dumps(matmul()))):
        there = kernel.on("CUDA:H100").kernel
        assert there.device == "CUDA:H100" and there.check().ok


@pytest.mark.parametrize("machine", MACHINES)
def test_the_text_that_a_machine_gets(machine: str) -> None:
    kernel, language = matmul(), Device[machine].language
    assert language is not None
    text = kernel.code_for(machine)
    assert kernel.name in text
    assert kernel.code_for(machine, language.name) == text
    assert kernel.code_for(machine) == kernel.on(machine).kernel.code_for(machine)


def test_what_there_is_not() -> None:
    with pytest.raises(DeviceError, match="writes no Fortran"):
        matmul().code_for("CUDA:H100", "Fortran")
    assert matmul().code_for("H100", "ptx") == matmul().code_for("CUDA:H100", "PTX")
    with pytest.raises(DeviceError, match="no machine 'Cray'"):
        matmul().on("CUDA", "Cray")


@needs_c
def test_the_tile_of_a_tensor_core_that_a_machine_lacks_is_refused() -> None:
    """Its text would be right and very slow; `on` says what it leaves out, and C can be read."""
    a = Tensor(np.ones((32, 32), np.float16))
    plain = explore(a @ a, device="CUDA:H100").kernels[0]
    kernel = plain.apply(Opt(OptOps.TC, 0, "16x8x16"))
    assert "mma" in kernel.code_for("A100") and "mma" not in kernel.code_for("C")
    for machine in ("METAL:M3", "HIP:MI300X", "LLVM:Graviton4", "WEBGPU:BROWSER"):
        with pytest.raises(CompileError, match="tiles of 16x8x16, and no tensor core"):
            kernel.code_for(machine)
        replay = kernel.on(machine)
        ((opt, _),) = replay.refused
        assert opt.op is OptOps.TC and f'kernel.on("{machine}")' in _error_of(kernel, machine)
        assert replay.kernel.code_for(machine) == plain.code_for(machine)


def _error_of(kernel: Kernel, machine: str) -> str:
    with pytest.raises(CompileError) as caught:
        kernel.code_for(machine)
    return str(caught.value)


def test_as_python_it_is_for_that_machine() -> None:
    kernel = matmul().on("CUDA:H100").kernel.apply(Opt(OptOps.LOCAL, "g1", 32))
    names: dict[str, Kernel] = {}
    exec(kernel.to_python(), names)  # type: ignore[arg-type]  # it binds modules, too
    pasted = names["kernel"]
    assert pasted.device == "CUDA:H100" and pasted.ast is kernel.ast


def test_what_is_too_large_is_refused_before_memory_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y = Tensor.empty(1 << 16, 1 << 16) + 1
    kernel = explore(y, device="CUDA:H100").kernels[0].optimized()

    def no_buffers(*_: object) -> None:
        raise AssertionError("memory is made")

    monkeypatch.setattr(type(kernel.data), "buffers", no_buffers)
    for act in (kernel.run, kernel.check, kernel.launch):
        with pytest.raises(DeviceError, match="too large to be emulated"):
            act()


@pytest.mark.parametrize("machine", Device.machine_names())
def test_the_target_of_its_costs_is_the_machine(machine: str) -> None:
    assert matmul().on(machine).kernel.target is Device[machine].target
    assert matmul().target is Device.processor.target


def test_tiles_of_a_processor_that_is_not_here() -> None:
    """The answer is emulated, the time predicted, and the machine code has the instruction."""
    values = np.ones((6, 12)), np.ones((12, 10))
    a, b = (Tensor(v.astype(np.float32)).cast("bfloat16").realize() for v in values)
    product = a.cast("float32") @ b.cast("float32")
    kernel = explore(product, device="LLVM:Graviton4").kernels[-1]
    assert [str(o) for o in kernel.legal_opts() if o.op is OptOps.TC] == ['TC("g0 g1 r0", "2x2x4")']
    tiled = kernel.apply(Opt(OptOps.TC, 0, 2))
    (actual,) = tiled.run()
    np.testing.assert_array_equal(actual, np.full((6, 10), 12, np.float32))
    assert tiled.check() and tiled.cost.predicted_s > 0
    assert "bfmmla" in str(tiled.compile().assembly)
