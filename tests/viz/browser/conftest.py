"""What the tests in a browser share: Chromium, and one JupyterLab with one notebook.

In a run with several processes one of them has all tests of JupyterLab, and each folder of the others
stays in one (tests/conftest.py); a process starts Chromium once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import chromium, new_page, session_page, shown
from tests.viz.browser.lab import GIVEN_UP_MODEL, Notebook, server
from tests.viz.record.support import exported

Opener = Callable[[Any, Path, str], Iterator[Any]]

FAILED = pytest.StashKey[bool]()
GIVEN_UP = "Canceled future for "
"""What JupyterLab says of its own requests when a session that it still asks is shut down."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium serves a process: playwright can be started only once in each."""
    with chromium() as chrome:
        yield chrome


@pytest.fixture
def opener() -> Opener:
    """How a page of a record is shown: a folder whose pages are in another mode has its own."""
    return shown


@pytest.fixture
def page(opener: Opener, browser: Any, record: Any, tmp_path: Path) -> Iterator[Any]:
    """The exported page of the `record` that the test's file makes."""
    yield from opener(browser, tmp_path, exported(record))


@pytest.fixture
def session(opener: Opener, browser: Any, record: Any, tmp_path: Path) -> Iterator[Any]:
    """The page of the `record` before a Python session that the test plays."""
    yield from opener(browser, tmp_path, session_page(record))


@pytest.fixture(scope="session")
def opened_notebook(browser: Any, tmp_path_factory: Any) -> Iterator[Notebook]:
    """A notebook in a page of its own."""
    with server(tmp_path_factory.mktemp("lab")) as lab:
        page = new_page(browser, viewport={"width": 1400, "height": 900})
        notebook = Notebook(page, lab)
        notebook.open()
        yield notebook


@pytest.fixture
def notebook(opened_notebook: Notebook, request: Any) -> Iterator[Notebook]:
    """The notebook, without cells; what nobody caught in the page fails the test. A test that
    fails leaves a picture."""
    opened_notebook.clear()
    yield opened_notebook
    if request.node.stash.get(FAILED, False):
        picture = opened_notebook.lab.folder.parent / f"{request.node.name}.png"
        opened_notebook.page.screenshot(path=picture)
        request.node.add_report_section("teardown", "picture", str(picture))
    faults, opened_notebook.page.faults = opened_notebook.page.faults, []
    expected = GIVEN_UP, GIVEN_UP_MODEL
    assert [f for f in faults if not any(text in f for text in expected)] == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report
