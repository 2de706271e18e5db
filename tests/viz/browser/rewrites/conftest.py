"""Rewrites mode in a real browser: the functions of the page alone, the exported page, and the
page before a Python session that the test plays."""

from __future__ import annotations

import json
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
    """The first kernel has a sum of products, EXP2 and LOG2: a rule of `decompose` for each."""
    scores = array(64, 8) @ array(8, 48)
    return (scores.softmax(1) + 1.0).log2(), chain(48)


def chain(steps: int) -> Tensor:
    """Return elementwise arithmetic in which many rewrites each change one node of a long chain."""
    x = y = array(16, 16).cast("int32")
    for _ in range(steps):
        y = (y // 2) ^ x
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
    page_functions.evaluate("(made) => { globalThis.record = withReadings(made); }", record)
    return page_functions


@pytest.fixture
def drawing_functions(browser: Any, record: Record) -> Iterator[Any]:
    """A page with the functions of the page as globals, and the record as `record`."""
    page = functions_page(browser)
    text = json.dumps(record)  # Playwright would walk through it part by part
    page.evaluate("(text) => { window.record = withReadings(JSON.parse(text)); }", text)
    yield page
    page.context.close()


@pytest.fixture
def opener() -> Any:
    return rewrites_page
