"""Kernel files: lines that are rows, lines that are none, and files as one."""

from __future__ import annotations

import json
import random

import pytest
from msgspec.structs import replace

from tests.support import count
from workbench import Tensor, explore
from workbench.base.errors import FileError, ParseError
from workbench.base.typed import to_json
from workbench.kernel_files.kernel_file import CapturedKernel, CapturedProgram, KernelFile

ROW = CapturedKernel(
    kernel="r_8_4", program="net", device="LLVM", machine="a machine, 2 cores", version="0.1.0",
    axes="g0=8 r0=4", opts='UPCAST("g0", 4)', origin="default", launches=3, line="net.py:3",
    source="0" * 32, source_lines=12, counts={"loads": 8}, steps=["vector-lanes: stride 1"],
    rules={"decompose: form-fma": 1}, ir=explore(Tensor.empty(8, 4).sum(1)).kernels[0].to_text(),
)  # fmt: skip
PROGRAM = CapturedProgram(
    program="net", device="LLVM", machine="a machine, 2 cores", version="0.1.0",
    rules={"simplify-kernel: add-zero": 2}, decisions={"fuse-free": 1},
)  # fmt: skip


def test_a_file_is_read_as_it_was_written() -> None:
    file = KernelFile.of([PROGRAM, ROW, replace(ROW, device="C"), replace(ROW, opts=None)])
    again = KernelFile.parse(file.text())
    assert again.rows == file.rows and not again.refused
    assert [*again.kernels.values()][0].graph() is ROW.graph()
    assert "r_8_4: g0=8 r0=4; unknown opts, on LLVM; 3 launches" in str(again)


def test_lines_that_are_no_rows_are_refused_one_by_one() -> None:
    plain = json.loads(to_json(ROW))
    lines = [
        to_json(ROW), "", "<<<<<<< HEAD", "[" * 100_000, "null", "{}", "\ud800\0",
        to_json(ROW)[:-40], json.dumps({**plain, "row": "program"}),
        *(
            json.dumps(plain | change)
            for change in (
                {"row": "x"}, {"opts": "exit()"}, {"source": "../../etc"}, {"launches": -1},
                {"kernel": "k\x1b[2J"}, {"more": 1}, {"machine": "m" * 1000}, {"origin": "me"},
                {"steps": ["a\nb"]}, {"rules": {"a": "b"}}, {"ir": "x" * (1 << 21)},
                {"counts": {"a\0": 1}}, {"ir": None}, {"version": ["0.1.0"]},
            )
        ),
        to_json(replace(ROW, device="C")),
    ]  # fmt: skip
    file = KernelFile.parse("\n".join(lines))
    assert [row.device for row in file.kernels.values()] == ["LLVM", "C"]
    assert [n for n, _ in file.refused] == [
        n for n, line in enumerate(lines, 1) if line and 1 < n < len(lines)
    ]
    assert file.complaint.startswith(f"{len(file.refused)} lines refused: line 3: ")
    assert len(file.complaint) < 1000 and file.complaint in str(file)


def test_a_damaged_file_is_read_as_far_as_it_is_whole() -> None:
    text = KernelFile.of([PROGRAM, ROW, replace(ROW, device="C")]).text()
    for seed in range(count(1000)):
        draw = random.Random(seed)
        letters = list(text[: draw.randrange(1, len(text))] if draw.random() < 0.3 else text)
        for _ in range(draw.randint(1, 4)):
            letters[draw.randrange(len(letters))] = draw.choice('"{}[],:\\\n0x \x00é')
        for row in KernelFile.parse("".join(letters)).rows:
            assert KernelFile.parse(to_json(row)).rows == [row], f"{seed=}"


def test_ir_of_a_row_is_parsed_and_not_evaluated() -> None:
    for text in ("__import__('os').abort()", "v0 = CONST.int32 {exit()}", "", "LINEAR"):
        with pytest.raises(ParseError):
            replace(ROW, ir=text).graph()


def test_merging_twice_changes_nothing() -> None:
    later, noted = replace(ROW, launches=2, steps=["other"]), replace(ROW, note="why")
    merged = KernelFile.of([ROW, PROGRAM]).merged(KernelFile.of([noted]), KernelFile.of([later]))
    assert merged.rows == [PROGRAM, replace(later, launches=3, note="why")]
    assert merged.merged(merged).text() == merged.text()


def test_a_file_that_is_not_there_or_too_large_is_an_error(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match="capture_kernels"):
        KernelFile.read(f"{tmp_path}/none.jsonl")
    path = KernelFile.of([ROW]).write(f"{tmp_path}/file.jsonl")
    monkeypatch.setattr("workbench.kernel_files.kernel_file.MOST_BYTES", 10)
    with pytest.raises(FileError, match="more than 10 bytes"):
        KernelFile.read(path)
