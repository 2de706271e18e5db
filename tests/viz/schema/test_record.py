"""What Python sends is of the types that the schema gives it, to the last field."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.viz.record.support import plain
from tests.viz.support import matmul
from workbench import explore
from workbench.tensor.tensor import Tensor
from workbench.viz.model import loops as loops_module
from workbench.viz.record.record import build
from workbench.viz.schema.record import PageRecord


def softmax() -> Any:
    return explore(Tensor.ones(8, 16).softmax())


def nothing() -> Any:
    return explore(Tensor([1.0, 2.0]))


@pytest.mark.parametrize("detail", ["first", "full"])
@pytest.mark.parametrize("explored", [matmul, softmax, nothing])
def test_a_record_is_of_its_type(explored: Any, detail: str) -> None:
    record = plain(build(explored(), detail))
    typed = msgspec.convert(record, PageRecord)
    assert json.loads(msgspec.json.encode(typed)) == record


def test_a_machine_whose_caches_are_unknown_has_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page shows none; the schema had said that there always is one."""
    monkeypatch.setattr(loops_module, "caches", lambda: ())
    page_record = msgspec.convert(plain(build(matmul(), "first")), PageRecord)
    loops = page_record.variants[0].loops
    assert loops is not None
    assert {u.level for row in loops.rows for u in row.uses.values()} == {None}
