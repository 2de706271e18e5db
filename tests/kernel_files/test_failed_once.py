"""Kernels that once failed, in `failed_once.jsonl`: each is compiled as it was then, and is right.

The IR of a line is the kernel that failed, not what its expression becomes today. To add one, run
`workbench kernels capture failed.jsonl case.py`, write into its `note` what was wrong, and append
the line.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.compiler import NONE_HERE
from workbench.kernel_files.kernel_file import CapturedKernel, KernelFile
from workbench.kernel_files.replay_kernels import replay_kernel

FILE = KernelFile.read(Path(__file__).with_name("failed_once.jsonl"))
ROWS = [*FILE.kernels.values()]
PROCESSORS = ("LLVM", "PYTHON") if NONE_HERE else ("LLVM", "PYTHON", "C")
"""The devices on which a kernel of any of them is replayed."""


def test_each_line_is_a_kernel_with_its_reason() -> None:
    assert not FILE.refused and len(ROWS) >= 12
    assert all(row.note.endswith(".") and row.launches == 0 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.kernel}-{row.device}" for row in ROWS])
def test_it_is_right_with_its_opts(row: CapturedKernel) -> None:
    for device in (row.device,) if ":" in row.device else PROCESSORS:
        replay = replay_kernel(row, device)
        assert replay.is_good and not replay.changes, f"{row.note}\n{replay}"
