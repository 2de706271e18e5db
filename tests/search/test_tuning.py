"""Kernels run with the opts that tuning files have for them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tests.peers import peer
from tests.support import count
from workbench import Context, Device, Opt, OptOps, Tensor, TinyJit, explore, load_model
from workbench.base.installation import version
from workbench.ir.node.uop import UOp
from workbench.search import tuning
from workbench.search.moves import applied
from workbench.search.realization import tuned
from workbench.search.tuning_file import (
    FILE_NAME,
    TuningFile,
    TuningRow,
    kernel_hash,
    machine_of,
    opts_of,
    opts_text,
    structure_hash,
)
from workbench.viz.exploration import scheduled_tensors

OPTS = 'UPCAST("g0", 2), UPCAST("g1", 8)'


def operands() -> tuple[Tensor, Tensor]:
    draw = np.random.default_rng(0)
    return Tensor(draw.standard_normal((6, 5)).astype(np.float32)), Tensor(
        draw.standard_normal((5, 16)).astype(np.float32)
    )


@pytest.fixture
def kernel() -> UOp:
    a, b = operands()
    return explore(a.realize() @ b.realize()).kernels[0].original


def row_of(kernel: UOp, opts: str = OPTS, device: str = "LLVM") -> TuningRow:
    return TuningRow(
        kernel.arg.name, kernel_hash(kernel), structure_hash(kernel), device, machine_of(device),
        version(), opts, 1.0, 2.0, "2026-01-31",
    )  # fmt: skip


@pytest.fixture
def path(kernel: UOp, tmp_path: Path) -> str:
    return str(TuningFile.of([row_of(kernel)]).write(tmp_path / "net.jsonl"))


def with_opts(kernel: UOp) -> UOp:
    found = applied(kernel, opts_of(OPTS), Device["LLVM"].target)
    assert found is not None
    return found


def test_realize_runs_a_kernel_with_the_opts_of_its_row(kernel: UOp, path: str) -> None:
    a, b = operands()
    default = tuned(kernel, "LLVM")
    with Context(TUNING=path):
        assert tuned(kernel, "LLVM") is with_opts(kernel) is not default
        np.testing.assert_allclose((a @ b).numpy(), a.numpy() @ b.numpy(), rtol=1e-5)
        with Context(NOOPT=1):
            assert tuned(kernel, "LLVM") is kernel
        with Context(TUNING="none"):
            assert tuned(kernel, "LLVM") is default
    assert tuned(kernel, "LLVM") is default


def test_tinyjit_captures_anew_where_the_file_is_another(path: str) -> None:
    a, b = operands()
    a.realize(), b.realize()
    calls: list[int] = []

    @TinyJit
    def product(x: Tensor, y: Tensor) -> Tensor:
        calls.append(1)
        return (x @ y).realize()

    for name, expected in (("none", 2), (path, 4), (path, 4)):
        with Context(TUNING=name):
            for _ in range(4):
                result = product(a, b)
        assert len(calls) == expected
        np.testing.assert_allclose(result.numpy(), a.numpy() @ b.numpy(), rtol=1e-5)


def test_opts_in_the_code_come_before_those_of_a_file(path: str) -> None:
    a, b = operands()
    asked = (a.realize() @ b.realize()).contiguous(arg=(Opt(OptOps.UPCAST, 1, 4),))
    kernel = explore(asked).kernels[0].original
    file = TuningFile.of([row_of(kernel)])
    file.write(path)
    with Context(TUNING=path):
        in_code = tuned(kernel, "LLVM")
    with Context(TUNING="none"):
        assert tuned(kernel, "LLVM") is in_code


@pytest.mark.parametrize("change", [{"machine": "another"}, {"version": "0.0.1"}])
def test_rows_of_others_are_left_alone_and_said_once(
    kernel: UOp, tmp_path: Path, change: dict[str, str]
) -> None:
    path = TuningFile.of([replace(row_of(kernel), **change)]).write(tmp_path / "others.jsonl")
    with Context(TUNING=str(path)):
        with pytest.warns(RuntimeWarning, match="1 of 1 line not used"):
            found = tuned(kernel, "LLVM")
        assert tuned(kernel, "LLVM") is found  # without a second warning, which is an error
    assert found is tuned(kernel, "LLVM")


@pytest.mark.parametrize("opts", ['UPCAST("g7", 4)', 'UPCAST("g0", 5)', 'TC("g0", "x")'])
def test_opts_that_are_not_legal_leave_the_default_ones(
    kernel: UOp, tmp_path: Path, opts: str
) -> None:
    path = TuningFile.of([row_of(kernel, opts)]).write(tmp_path / "wrong.jsonl")
    with Context(TUNING=str(path)), pytest.warns(RuntimeWarning, match="is not legal on r_"):
        found = tuned(kernel, "LLVM")
    assert found is tuned(kernel, "LLVM")


def test_a_missing_file_is_said_once_and_read_when_it_is_there(kernel: UOp, tmp_path: Path) -> None:
    path = tmp_path / "later.jsonl"
    with Context(TUNING=str(path)):
        with pytest.warns(RuntimeWarning, match="there is no such file"):
            default = tuned(kernel, "LLVM")
        assert tuned(kernel, "LLVM") is default
        TuningFile.of([row_of(kernel)]).write(path)
        assert tuned(kernel, "LLVM") is with_opts(kernel)
        os.truncate(path, 0)
        assert tuned(kernel, "LLVM") is default


SCRIPT = """
import numpy as np
from workbench import Tensor, explore
from workbench.search.moves import applied
from workbench.search.realization import tuned
a = Tensor(np.ones((6, 5), np.float32)).realize()
b = Tensor(np.ones((5, 16), np.float32)).realize()
kernel = explore(a @ b).kernels[0]
tuned_name = tuned(kernel.original, "LLVM")
print(tuned_name is kernel.optimized().ast, (a @ b).numpy().sum())
"""


def test_a_script_uses_the_file_of_its_folder(kernel: UOp, tmp_path: Path) -> None:
    script = tmp_path / "net.py"
    script.write_text(SCRIPT)

    def run() -> str:
        process = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, cwd="/", check=True
        )
        return process.stdout.strip()

    assert run() == "True 480.0"
    TuningFile.of([row_of(kernel)]).write(tmp_path / FILE_NAME)
    assert run() == "False 480.0"


def test_the_folder_of_a_model_is_looked_in(
    kernel: UOp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "_model_folders", {})
    TuningFile.of([row_of(kernel)]).write(tmp_path / FILE_NAME)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tuned(kernel, "LLVM") is not with_opts(kernel)
        tuning.note_model_file(tmp_path / "net.onnx")
        assert tuned(kernel, "LLVM") is with_opts(kernel)


def test_a_search_of_a_model_writes_beside_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx = peer("onnx")
    text = '<ir_version: 9, opset_import: ["": 17]> net (float[4] x) => (float[4] y) {y = Exp(x)}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    ex = explore(load_model("net.onnx"), np.ones(4, np.float32))
    monkeypatch.chdir(tmp_path.parent)
    paths: list[Any] = []
    monkeypatch.setattr(scheduled_tensors, "search_model", lambda *args: paths.append(args[3]))
    ex.search()
    ex.replan().search()
    ex.search(path="other.jsonl")
    with Context(TUNING=str(tmp_path / "named.jsonl")):
        ex.search()
    beside, named = tmp_path / FILE_NAME, tmp_path / "named.jsonl"
    assert paths == [beside, beside, "other.jsonl", named]


def test_no_opts_of_a_file_break_a_run(kernel: UOp) -> None:
    values = [None, 0, 1, 3, 8, 999_999_999, "g0", "g1", "r0", "x", "8x8", "g0 g1 r0", " "]
    for seed in range(count(4000)):
        draw = random.Random(seed)
        opts = []
        for _ in range(draw.randint(1, 3)):
            axis = draw.choice(values)
            arg = None if axis is None else draw.choice(values)
            opts.append(Opt(draw.choice(list(OptOps)), axis, arg))
        file = TuningFile.of([row_of(kernel, opts_text(opts))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            after = tuning._applied(file, kernel, "LLVM")
        assert after is None or after[0].op is kernel.op, f"{seed=} {opts}"
