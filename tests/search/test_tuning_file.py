"""Tuning files: lines that are rows, lines that are none, and files as one."""

from __future__ import annotations

import json
import random

import pytest
from msgspec.structs import replace

from tests.support import count
from workbench import Kernel, Tensor, explore
from workbench.base.errors import FileError, ParseError
from workbench.base.installation import version
from workbench.base.typed import to_json
from workbench.ir.opt.opt import OptOps
from workbench.search.tuning_file import (
    MOST_OPTS,
    TuningFile,
    TuningRow,
    kernel_hash,
    machine_of,
    opts_of,
    opts_text,
    structure_hash,
)

ROW = TuningRow(
    "r_64_32_128", "0" * 32, "1" * 32, "LLVM", "a machine, 2 cores", version(),
    'UPCAST("g1", 4), THREAD("g0", 2)', 10.0, 20.0, "2026-01-31",
)  # fmt: skip


def product(rows: int, columns: int, device: str = "") -> Kernel:
    return explore(Tensor.empty(rows, 64) @ Tensor.empty(64, columns), device=device).kernels[0]


@pytest.mark.parametrize("device", ["LLVM:Raspberry Pi 5", "CUDA:H100", "METAL:M3"])
def test_every_opt_is_read_as_it_prints(device: str) -> None:
    kernel = product(64, 64, device)
    opts = [*kernel.legal_opts(), *kernel.optimized().applied_opts]
    assert {opt.op for opt in opts} - {OptOps.UPCAST}
    for place in range(len(opts)):
        listed = tuple(opts[place : place + 3])
        assert opts_of(opts_text(listed)) == listed
    assert opts_of("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", 'UPCAST("g1", 4),', 'UPCAST("g1", 4), ',
        'UPCAST("g1", 4) UPCAST("g1", 4)', 'NOTHING("g1", 4)', 'UPCAST("g1", -4)',
        'UPCAST("g1", 4)\n', 'UPCAST("g1", 4.5)', 'UPCAST("g1", 1234567890)', "UPCAST(",
        'UPCAST("g1", "a\\"b")', ", ".join(['UPCAST("g1", 4)'] * (MOST_OPTS + 1)), " ", "\0",
    ],
)  # fmt: skip
def test_other_texts_are_no_opts(text: str) -> None:
    with pytest.raises(ParseError):
        opts_of(text)


def test_a_file_is_read_as_it_was_written() -> None:
    rows = [ROW, replace(ROW, hash="2" * 32), replace(ROW, machine="another, 8 cores")]
    file = TuningFile.of(rows)
    again = TuningFile.parse(file.text())
    assert again.rows == file.rows and not again.refused
    assert again.text() == TuningFile.of(reversed(rows)).text() == file.text()


def test_lines_that_are_no_rows_are_refused_one_by_one() -> None:
    plain = json.loads(to_json(ROW))
    lines = [
        to_json(ROW), "", "<<<<<<< HEAD", "[" * 100_000, "null", "{}", "\ud800\0",
        *(
            json.dumps(plain | change)
            for change in (
                {"opts": "exit()"}, {"hash": "../../etc"}, {"time_us": -1.0}, {"time_us": "1"},
                {"kernel": "k\x1b[2J"}, {"when": "now"}, {"more": 1}, {"machine": "m" * 1000},
            )
        ),
        json.dumps(plain).replace("10.0", "1e999"),
        to_json(ROW)[:-1] + ', "hash": "' + "3" * 32 + '"}',
        to_json(replace(ROW, hash="4" * 32)),
    ]  # fmt: skip
    file = TuningFile.parse("\n".join(lines))
    assert [row.hash[0] for row in file.rows.values()] == ["0", "4"]
    refused = [number for number, _ in file.refused]
    assert refused == [n for n, line in enumerate(lines, 1) if line and 1 < n < len(lines)]
    assert file.complaint.startswith(f"{len(refused) + 2} of {len(lines) - 1} lines not used: ")
    assert "line 3: " in file.complaint and "2 of another machine: a machine" in file.complaint
    assert len(file.complaint) < 1000


def test_a_damaged_file_is_read_as_far_as_it_is_whole() -> None:
    text = TuningFile.of([ROW, replace(ROW, hash="2" * 32)]).text()
    for seed in range(count(3000)):
        draw = random.Random(seed)
        letters = list(text)
        for _ in range(draw.randint(1, 4)):
            letters[draw.randrange(len(letters))] = draw.choice('"{}[],:\\\n0x \x00é')
        file = TuningFile.parse("".join(letters))
        for row in file.rows.values():
            opts_of(row.opts)
            assert TuningFile.parse(to_json(row)).rows == {row.key: row}, f"{seed=}"


def test_merging_keeps_the_faster_of_equal_keys_and_all_others() -> None:
    faster = replace(ROW, time_us=5.0, opts="")
    slower_clock = replace(ROW, time_us=1.0, default_us=1.5)  # on a day when all was faster
    other, old = replace(ROW, machine="other"), replace(ROW, version="0.0.1")
    merged = TuningFile.of([ROW, other]).merged(
        TuningFile.of([faster, old]), TuningFile.of([slower_clock])
    )
    assert {*merged.rows.values()} == {faster, other, old}
    assert "1 of version 0.0.1" in merged.complaint


def test_what_is_not_for_this_machine_is_no_complaint_beside_what_is() -> None:
    here = replace(ROW, machine=machine_of("LLVM"))
    assert not TuningFile.of([here, ROW]).complaint
    assert "2 of another machine" in TuningFile.of([ROW, replace(ROW, hash="9" * 32)]).complaint


@pytest.mark.parametrize("device", ["CUDA", "METAL", "HIP", "NOPE"])
def test_rows_of_devices_that_are_not_here_are_of_another_machine(device: str) -> None:
    away, here = replace(ROW, device=device), replace(ROW, machine=machine_of("LLVM"))
    assert "1 of another machine" in TuningFile.of([away]).complaint
    assert not TuningFile.of([away, here]).complaint


def test_kernels_of_one_structure_differ_in_sizes_alone() -> None:
    one, other, third = (product(n, m).original for n, m in ((8, 16), (32, 48), (8, 1)))
    assert kernel_hash(one) != kernel_hash(other)
    assert structure_hash(one) == structure_hash(other) != structure_hash(third)


def test_a_file_that_is_not_there_or_too_large_is_an_error(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError):
        TuningFile.read(f"{tmp_path}/none.jsonl")
    path = TuningFile.of([ROW]).write(f"{tmp_path}/file.jsonl")
    assert TuningFile.read(path).rows == {ROW.key: ROW}
    monkeypatch.setattr("workbench.search.tuning_file.MOST_BYTES", 10)
    with pytest.raises(FileError, match="more than 10 bytes"):
        TuningFile.read(path)
