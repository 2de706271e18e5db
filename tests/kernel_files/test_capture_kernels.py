"""`capture_kernels`: which kernels a file has, with which opts, and how often they ran."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import Context, Opt, OptOps, Tensor, TinyJit, capture_kernels, explore
from workbench.base.errors import WorkbenchError
from workbench.kernel_files.kernel_file import CapturedKernel, KernelFile
from workbench.search.tuning_file import opts_of, opts_text


def numbers(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).standard_normal(shape, np.float32)).realize()


def rows(path: Path) -> list[CapturedKernel]:
    file = KernelFile.read(path)
    assert not file.refused
    return [*file.kernels.values()]


def test_what_ran_is_in_the_file(tmp_path: Path) -> None:
    x, y = numbers(16, 32), numbers(32, 8)
    with Context(DEV="LLVM"), capture_kernels(tmp_path / "k.jsonl", program="products"):
        for _ in range(3):
            (x @ y).realize()
    (row,) = rows(tmp_path / "k.jsonl")
    kernel = explore(x @ y, device="LLVM").kernels[0].optimized()
    assert row.graph() is kernel.original
    assert (row.kernel, row.program, row.device, row.launches) == (
        kernel.name, "products", "LLVM", 3
    )  # fmt: skip
    assert row.opts == opts_text(kernel.applied_opts) and row.origin == "default"
    assert row.line.startswith("test_capture_kernels.py:")
    assert len(row.steps) == len(kernel.steps) and row.source_lines > 1
    assert row.counts["stores"] == kernel.counts.stores
    assert any("place-reduction" in rule for rule in row.rules)


def test_launches_of_replays_count(tmp_path: Path) -> None:
    x = numbers(64)
    double = TinyJit(lambda x: (x * 2).realize())
    with capture_kernels(tmp_path / "k.jsonl"):
        for _ in range(7):
            double(x)
    assert [row.launches for row in rows(tmp_path / "k.jsonl")] == [7]


def test_opts_are_those_that_it_ran_with(tmp_path: Path) -> None:
    x = numbers(32, 64)
    with capture_kernels(tmp_path / "k.jsonl"):
        with Context(NOOPT=1, DEV="LLVM"):
            x.sum(0).realize()
        with Context(BEAM=1, DEV="LLVM"):
            x.sum(1).realize()
        with Context(DEV="LLVM"):
            (x + 1).contiguous(arg=(Opt(OptOps.UPCAST, 0, 4),)).realize()
    plain, searched, asked = rows(tmp_path / "k.jsonl")
    assert (plain.opts, plain.origin) == ("", "none")
    assert searched.origin == "search" and searched.opts is not None
    assert (asked.opts, asked.origin) == ('UPCAST("g0", 4)', "code")
    assert all(isinstance(opt, Opt) for opt in opts_of(searched.opts))


def test_a_block_that_fails_leaves_what_ran_before(tmp_path: Path) -> None:
    path, x = tmp_path / "k.jsonl", numbers(8)
    with pytest.raises(KeyboardInterrupt), capture_kernels(path):
        (x + 1).realize()
        raise KeyboardInterrupt
    assert len(rows(path)) == 1
    (x + 3).realize()
    with capture_kernels(tmp_path / "inner.jsonl"):
        pass
    assert not rows(tmp_path / "inner.jsonl")


def test_blocks_inside_each_other_and_threads(tmp_path: Path) -> None:
    outer, inner, x = tmp_path / "outer.jsonl", tmp_path / "inner.jsonl", numbers(8)

    def work() -> None:
        own = x.clone().realize()  # an equal value that another thread has is not computed again
        for _ in range(20):
            (own * 3).realize()

    with capture_kernels(outer):
        (x * 3).realize()
        with capture_kernels(inner):
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    runs = [max(row.launches for row in rows(path)) for path in (inner, outer)]
    assert runs == [60, 61]


@pytest.mark.parametrize("path", ["", "no/such/folder/k.jsonl", 3])
def test_a_path_that_cannot_be_written_is_refused_before_the_block(path: Any) -> None:
    with pytest.raises(WorkbenchError, match="cannot write"), capture_kernels(path):
        raise AssertionError("the block runs")
