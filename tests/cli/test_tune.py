"""`workbench tune`: which kernels are searched, where the file is, and files as one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.peers import peer
from workbench.base.installation import version
from workbench.cli import tune
from workbench.cli.command import main
from workbench.search.model_search import ModelKernel, ModelSearch
from workbench.search.tuning_file import FILE_NAME, TuningFile, TuningRow

SCRIPT = """
import sys
import numpy as np
from beside import double
from workbench import Tensor, TinyJit

assert sys.argv == [__file__] or sys.argv[0] in __file__

@TinyJit
def step(x):
    return double(x).exp().realize()

if __name__ == "__main__":
    x = Tensor(np.ones(8, np.float32)).realize()
    for _ in range(5):
        step(x)
    x.sum().realize()
    {end}
"""
ROW = TuningRow(
    "r_2", "0" * 32, "1" * 32, "LLVM", "m", version(), "", 1.0, 2.0, "2026-01-31"
)  # fmt: skip


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return the arguments of searches, which find nothing."""
    called: list[tuple[Any, ...]] = []

    def search(kernels: Any, budget_s: float, width: int, path: Path, *others: Any) -> ModelSearch:
        called.append((kernels, budget_s, width, path))
        return ModelSearch((), path, 0.0, "complete")

    monkeypatch.setattr(tune, "search_model", search)
    return called


def runs(kernels: list[ModelKernel]) -> list[int]:
    return sorted(kernel.runs for kernel in kernels)


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise KeyboardInterrupt"])
def test_a_script_is_run_and_its_kernels_are_searched(
    searches: list[tuple[Any, ...]], tmp_path: Path, end: str
) -> None:
    (tmp_path / "beside.py").write_text("def double(x):\n    return x * 2\n")
    script = tmp_path / "net.py"
    script.write_text(SCRIPT.format(end=end))
    arguments, folders = sys.argv, [*sys.path]
    try:
        assert main(["tune", str(script), "--budget", "7", "--width", "3"]) == 0
    finally:
        sys.modules.pop("beside", None)
    ((kernels, *others),) = searches
    assert others == [7.0, 3, tmp_path / FILE_NAME] and runs(kernels) == [1, 5]
    assert sys.argv is arguments and sys.path == folders


def test_an_onnx_file_is_searched_for_inputs_of_its_shapes(
    searches: list[tuple[Any, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx = peer("onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    x, y = (helper.make_tensor_value_info(n, kinds.FLOAT, ["batch", 4]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    assert main(["tune", str(path)]) == 1 and not searches
    assert "the shape of 'x' is open" in capsys.readouterr().err
    assert main(["tune", str(path), "--shape", "x=3,4", "--out", "mine.jsonl"]) == 0
    ((kernels, *_, out),) = searches
    assert runs(kernels) == [1] and out == Path.cwd() / "mine.jsonl"
    assert "1 kernel of net.onnx" in capsys.readouterr().out


def test_files_are_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other, out = (tmp_path / f"{name}.jsonl" for name in ("one", "other", "out"))
    TuningFile.of([ROW, replace(ROW, machine="another")]).write(one)
    faster = replace(ROW, time_us=0.5)
    other.write_text(TuningFile.of([faster]).text() + "no row\n")
    assert main(["tune", "--merge", str(one), str(other), "--out", str(out)]) == 1, "no row"
    assert f"{other}: " in capsys.readouterr().out
    assert {*TuningFile.read(out).rows.values()} == {faster, replace(ROW, machine="another")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.py"], "there is no such file"),
        (["a.py", "b.py"], "there are 2 files"),
        (["--merge", "none.jsonl"], "cannot open none.jsonl"),
        (["none.onnx"], "none.onnx"),
        (["none.onnx", "--shape", "3,4"], "none.onnx"),
    ],
)
def test_what_cannot_be_tuned_is_said(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    peer("onnx")
    assert main(["tune", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_script_without_kernels_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "nothing.py"
    script.write_text("x = 1\n")
    assert main(["tune", str(script)]) == 1
    assert "nothing.py ran no kernels" in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with pytest.raises(Exception, match="there is no cluster at 'nonsense://'"):
        with tune._cluster("nonsense://"):
            raise AssertionError
