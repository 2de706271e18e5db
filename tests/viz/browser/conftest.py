"""What the tests in a browser share: Chromium, and one JupyterLab with one notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.viz.browser.browser import chromium
from tests.viz.browser.lab import Notebook, server

FAILED = pytest.StashKey[bool]()
GIVEN_UP = "Canceled future for "
"""What JupyterLab says of its own requests when a session that it still asks is shut down."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium serves a process: playwright can be started only once in each."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def opened_notebook(browser: Any, tmp_path_factory: Any) -> Iterator[Notebook]:
    """A notebook in a page of its own."""
    with server(tmp_path_factory.mktemp("lab")) as lab:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
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
    assert [f for f in faults if not f.startswith(GIVEN_UP)] == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report
