"""Set up before any test imports the package: an empty cache and the profile."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.support import LONG, count

# Each process of the run has a cache of its own, so that no test depends on what an
# earlier run, the user or another worker compiled.
_CACHE = tempfile.TemporaryDirectory(prefix="workbench-test-")
os.environ["XDG_CACHE_HOME"] = _CACHE.name

# Tests start Python hundreds of times: only the first start compiles the package, whatever the
# shell says of bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What checks notebooks imports this, and it compiles a grammar when it is imported, which takes
# longer than all other imports of the run; without it only the syntax of IRIs is not checked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# A shell starts background jobs with Ctrl-C ignored, and children inherit that; what Ctrl-C
# does is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Short runs repeat exactly; long ones look for new failures.
settings.register_profile(
    "workbench",
    max_examples=count(1000),
    deadline=None,
    database=None,
    derandomize=not LONG,
)
settings.load_profile("workbench")


SHARED = (
    "tests/viz/browser/test_lab_", "tests/viz/browser/", "tests/test_project.py",
    "tests/test_words.py",
)  # fmt: skip
"""Tests that share what is dear to start, by how their names begin: JupyterLab, another browser,
the installed wheel, the package's syntax trees."""

SINGLE = "tests/notebooks/", "tests/agreement/", "tests/bench/", "tests/nn/"
"""Long tests, which share nothing."""


class SharedStarts(LoadScopeScheduling):
    """What SHARED names goes to one process each, at the beginning; then SINGLE goes out one by
    one, and at last all others file by file, which share what their modules make and compile."""

    def _split_scope(self, nodeid: str) -> str:
        shared = next(filter(nodeid.startswith, SHARED), None)
        return shared or (
            nodeid if nodeid.startswith(SINGLE) else nodeid.partition("::")[0]
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what must begin early."""
    items.sort(key=lambda item: -_urgency(item.nodeid))


def _urgency(nodeid: str) -> int:
    return 2 if nodeid.startswith(SHARED) else int(nodeid.startswith(SINGLE))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedStarts:
    return SharedStarts(config, log)


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # the order is that of the items
    from tests.tools.silent_rules import SilentRules  # imports the package

    config.pluginmanager.register(SilentRules(), "silent-rules")


def pytest_collection_finish() -> None:
    """What all tests share lives to the end: the collector need not look at it again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    _CACHE.cleanup()
