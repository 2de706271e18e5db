"""The exported page in a real browser, from disk and with the network off; and the page before
a Python session that the test plays."""

from __future__ import annotations

import pytest

from tests.viz.browser.page.support import Record, timing
from tests.viz.record.support import plain
from tests.viz.support import softmax
from workbench.viz.record.record import build


@pytest.fixture(scope="session")
def record() -> Record:
    """A record of two kernels, the first of which is timed; a test changes only a copy."""
    page_record: Record = plain(build(softmax()))
    page_record["variants"][0]["timing"] = timing(2e-3, spread=0.05)
    return page_record
