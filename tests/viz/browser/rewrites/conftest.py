"""Rewrites mode in a real browser: the functions of the page alone, the exported page, and the
page before a Python session that the test plays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.viz.browser.rewrites.support import Record, rewrites_page
from tests.viz.layouts import Functions, functions_page
from tests.viz.record.support import plain
from tests.viz.support import array
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.record.record import Recorder

HOSTILE = "<img src=x onerror=\"document.title='run'\">"


@pytest.fixture(scope="session")
def recorder() -> Recorder:
    tensors = softmax_and_chain()
    page_recorder = Recorder(explore(*tensors))
    page_recorder.first()
    for _ in page_recorder.rest():
        pass
    return page_recorder


def softmax_and_chain() -> tuple[Tensor, Tensor]:
    return array(64, 48).softmax(1), chain(24)


def chain(steps: int) -> Tensor:
    """Return elementwise arithmetic in which many rewrites each change one node of a long chain."""
    x = y = array(16, 16)
    for step in range(steps):
        y = (y * (0.5 + step) + x).relu()
    return y


@pytest.fixture(scope="session")
def record(recorder: Recorder) -> Record:
    page_record: Record = plain(recorder.record)
    page_record["rules"][0]["doc"] = HOSTILE
    return page_record


@pytest.fixture(scope="session")
def functions(record: Record) -> Functions:
    """The functions of the page, and the record as `record`."""
    page_functions = Functions()
    page_functions.evaluate(
        "(made) => { globalThis.record = withReadings(made); }", record
    )
    return page_functions


@pytest.fixture
def drawing_functions(browser: Any, record: Record) -> Iterator[Any]:
    """A page with the functions of the page as globals, and the record as `record`."""
    page = functions_page(browser)
    page.evaluate("(made) => { window.record = withReadings(made); }", record)
    yield page
    page.context.close()


@pytest.fixture
def opener() -> Any:
    return rewrites_page
