"""Programs for machines that are not here: what a compiler says of an edited text."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import Tensor, explore
from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.compilers.refusal import about_line, line_before
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.native.host_memory import HOST
from workbench.backends.program.text import Source
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError, DeviceError
from workbench.base.target import Target
from workbench.pipeline import stages

BEFORE = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("lines", "numbers"),
    [
        (["a", "b", "c", "d"], [1, 2, 3, 4]),
        (["x", "a", "b", "c", "d"], [0, 1, 2, 3, 4]),
        (["a", "B", "c", "d"], [1, 2, 3, 4]),
        (["a", "x", "y", "c", "d"], [1, 0, 0, 3, 4]),
        (["a", "d"], [1, 4]),
    ],
)
def test_the_line_before(lines: list[str], numbers: list[int]) -> None:
    found = [line_before(BEFORE, lines, n) for n in range(1, len(lines) + 1)]
    assert found == numbers
    assert line_before(BEFORE, lines, len(lines) + 1) == 0


def test_a_compiler_gets_the_text_and_not_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error names the operation of the line before it was edited."""
    device = Device["CUDA:H100"]
    kernel = explore(Tensor.empty(64) * 2 + 1, device=device.name).kernels[0]
    source = stages(kernel.ast, device.name, upto="source").source
    assert source is not None
    lines = source.text.split("\n")
    place = next(i for i, line in enumerate(lines) if "2.0f" in line)
    texts: list[Source] = []

    def refuse(_: object, target: Target, given: Source) -> MachineCode | None:
        texts.append(given)
        raise CompileError("a compiler", "it is wrong", line=place + 2)

    monkeypatch.setattr(type(Device["CUDA"]), "compile_for", refuse)
    edited = "\n".join(["", *lines[:place], lines[place] + "!", *lines[place + 1 :]])
    program = device.load(source.edited(edited))
    with pytest.raises(CompileError, match="the code of ") as error:
        program.machine_code  # type: ignore[attr-defined]  # noqa: B018
    assert error.value.line == place + 2 and lines[place].strip() in str(error.value)
    assert f", before the edit {lines[place].strip()}, " in error.value.because
    assert texts[0].text == edited and not texts[0].linear and not texts[0].lines
    zeros = Buffer.of(HOST, dtypes.float32, np.zeros(64, np.float32))
    with pytest.raises(DeviceError, match="H100 is not here"):
        program([zeros, zeros])


def test_the_error_of_a_sum_names_what_the_register_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """`acc0 += ..` sets a register: what is wrong is what it is set to."""
    device = Device["CUDA:H100"]
    kernel = explore(Tensor.empty(4, 64).sum(1), device=device.name).kernels[0]
    source = stages(kernel.ast, device.name, upto="source").source
    assert source is not None
    place = next(i for i, t in enumerate(source.text.split("\n")) if "acc0 +=" in t)
    error = about_line(CompileError("a compiler", "wrong", line=place + 1), source)
    assert error.because.endswith("the code of ADD")
    assert "before the edit" not in error.because
