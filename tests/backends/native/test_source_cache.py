"""The source cache: a second session lowers nothing, and what has changed is written anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workbench import Tensor, pipeline
from workbench.backends.device import Device
from workbench.backends.native import object_cache, source_cache
from workbench.backends.native.processor import Processor
from workbench.backends.native.source_cache import (
    kept_source,
    source_key,
    source_of_row,
    source_row,
)
from workbench.base.trace import observe
from workbench.execution.realize import schedule
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Memo
from workbench.ir.rewriting.rewrite import without
from workbench.search.realization import tuned

VALUES = np.random.default_rng(0).standard_normal((33, 65)).astype(np.float32)


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    new_session(monkeypatch)


def new_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the programs of this process, as another process would not have them."""
    monkeypatch.setattr(pipeline, "_programs", Memo())


def result() -> Tensor:
    return (Tensor(VALUES) @ Tensor(VALUES.T)).softmax(-1)


def kernels() -> list[UOp]:
    items = schedule([result().uop, Tensor(VALUES).exp().sum(1).uop])
    return [tuned(item.kernel, "LLVM") for item in items if item.kernel is not None]


def processor() -> Processor:
    info = Device["LLVM"]
    assert isinstance(info, Processor)
    return info


def test_a_row_has_what_runs() -> None:
    for kernel in kernels():
        source = pipeline.build(kernel, "LLVM").source
        assert source_of_row(source_row(source)) == source


def test_a_second_session_lowers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = result().numpy()
    new_session(monkeypatch)
    with monkeypatch.context() as patch:
        patch.delattr(pipeline, "levels")
        np.testing.assert_array_equal(result().numpy(), first)


def test_who_looks_sees_every_pass_and_a_rule_that_is_off_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = kernels()[0]
    pipeline.build(kernel, "LLVM")
    assert pipeline.build(kernel, "LLVM").linear is not None
    new_session(monkeypatch)
    assert pipeline.build(kernel, "LLVM").linear is None
    with observe() as watching:
        pipeline.build(kernel, "LLVM")
    assert "linearize" in [record.name for record in watching.records]
    new_session(monkeypatch)
    with without(["form-fma"]):
        assert pipeline.build(kernel, "LLVM").linear is not None


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"name": 1}', b"{" * 100_000])
def test_what_is_no_source_is_written_anew(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernels()[0]
    key = source_key(kernel, processor())
    assert key is not None
    good = pipeline.build(kernel, "LLVM").source
    object_cache.store_object(key, content)
    assert kept_source(key) is None
    new_session(monkeypatch)
    assert pipeline.build(kernel, "LLVM").source == good
    assert kept_source(key) == good


def test_keys_are_of_the_kernel_the_machine_and_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {source_key(kernel, processor()) for kernel in kernels()}
    assert len(keys) == len(kernels()) and None not in keys
    monkeypatch.setattr(source_cache, "code_stamp", lambda: "other code")
    assert keys.isdisjoint({source_key(kernel, processor()) for kernel in kernels()})
    monkeypatch.setattr(source_cache, "code_stamp", lambda: "")
    assert source_key(kernels()[0], processor()) is None
