"""The exported page in a real browser, from disk and with the network off; and the page before
a Python session that the test plays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import session_page, shown
from tests.viz.browser.page.support import Record, timing
from tests.viz.support import softmax
from workbench.viz.page import export_html
from workbench.viz.record.record import build


@pytest.fixture(scope="session")
def record() -> Record:
    """A record of two kernels, the first of which is timed; a test changes only a copy."""
    made: Record = json.loads(json.dumps(build(softmax())))
    made["variants"][0]["timing"] = timing(2e-3, spread=0.05)
    return made


@pytest.fixture
def page(browser: Any, record: Record, tmp_path: Path) -> Iterator[Any]:
    yield from shown(browser, tmp_path, export_html(record))


@pytest.fixture
def session(browser: Any, record: Record, tmp_path: Path) -> Iterator[Any]:
    yield from shown(browser, tmp_path, session_page(record))
