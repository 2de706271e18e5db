"""The OCLGRIND device computes what numpy does, and what it finds wrong is an error that names the
work-items, the lines and the nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.backends.gpu.checks import check_random_programs, check_tiled_product, tiled_product
from tests.backends.oclgrind.support import need_simulator
from workbench import Kernel, Opt, OptOps, Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.backends.oclgrind import oclgrind_device as runtime
from workbench.base.errors import CompileError, DefectError, DeviceError
from workbench.ir.nest.accesses import name_of
from workbench.ir.node.ops import Ops
from workbench.pipeline import Stages, stages

NAME = "OCLGRIND"
pytestmark = pytest.mark.usefixtures("simulator")


@pytest.fixture(scope="module")
def simulator() -> None:
    need_simulator()


def test_random_programs_are_clean() -> None:
    check_random_programs(NAME, 740_000)


def test_a_tiled_product() -> None:
    check_tiled_product(NAME)


def test_the_end_of_a_padded_row_is_no_defect() -> None:
    """Rounded to an integer, what is read there decides a branch; nothing uses the result."""
    values = np.arange(240, dtype=np.float32).reshape(6, 8, 5)
    x = Tensor(values, device="OCLGRIND").cast(dtypes.float16).cast(dtypes.int8) > 3
    kernel = explore(x.cast(dtypes.int32).sum(1)).kernels[-1]
    opts = Opt(OptOps.STAGE, "g1", 1), Opt(OptOps.PADTO, "r0", 16)
    assert kernel.apply(*opts).check()


def test_a_barrier_that_somebody_took_away() -> None:
    kernel, _ = tiled_product(NAME)
    built = stages(kernel.ast, NAME, "source")
    text = built.source.text
    line = "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    assert text.count(line) == 2
    with pytest.raises(DefectError, match="a defect: race") as error:
        run(kernel, built, text.replace(line, "//\n", 1))
    assert "work-item (1, 0, 0) of group (0, 0, 0)" in str(error.value)
    assert "As[" in error.value.where
    nodes = [built.linear[p] for p in error.value.positions]
    places = {name_of(n.place.param) for n in nodes if n.op in (Ops.LOAD, Ops.STORE)}
    assert "As" in places


def test_an_index_that_somebody_changed() -> None:
    kernel, _ = tiled_product(NAME)
    built = stages(kernel.ast, NAME, "source")
    (store,) = (x for x in built.source.text.splitlines() if x.strip().startswith("p0"))
    changed = store.replace("p0[", "p0[900 + ")
    with pytest.raises(DefectError, match="out of bounds") as error:
        run(kernel, built, built.source.text.replace(store, changed))
    number = built.source.text.splitlines().index(store) + 1
    assert error.value.line == number and "900" in error.value.where
    assert any(built.linear[p].op is Ops.STORE for p in error.value.positions)


def test_text_that_is_no_program() -> None:
    kernel, _ = tiled_product(NAME)
    built = stages(kernel.ast, NAME, "source")
    with pytest.raises(CompileError, match="undeclared") as error:
        run(kernel, built, built.source.text.replace("l0*8", "lO*8"))
    line = next(i for i, x in enumerate(built.source.text.split("\n"), 1) if "l0*8" in x)
    assert error.value.line == line and "the code of" in error.value.because


def test_a_kernel_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, expected = tiled_product(NAME)
    built = stages(kernel.ast, NAME, "source")
    endless = built.source.text.replace("r1 < 8", "r1 < 8 || p0")
    assert endless != built.source.text
    run(kernel, built, built.source.text)  # the process is there
    monkeypatch.setattr(runtime, "LIMIT_S", 1.0)
    with pytest.raises(DeviceError, match="cannot be simulated"):
        run(kernel, built, endless)
    monkeypatch.undo()
    np.testing.assert_allclose(kernel.run()[0], expected, rtol=1e-4, atol=1e-5)


def test_no_other_device_uses_the_simulator() -> None:
    other = Device.for_language(Device[NAME].languages[0].name)
    assert other is not None and other.name != NAME
    assert Device.emulator.name != NAME and Device.DEFAULT != NAME


def run(kernel: Kernel, built: Stages, text: str) -> None:
    """Run a kernel with another text."""
    buffers = kernel.data.buffers(kernel.original, NAME)
    Device[NAME].load(replace(built.source, text=text))(buffers)
