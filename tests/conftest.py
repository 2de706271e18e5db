"""Set up before any test imports the package: an empty cache and the profile."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# What tests share says what differs, as they do: it is imported after this.
_SHARED = [f"tests.{path.stem}" for path in Path(__file__).parent.iterdir()]
pytest.register_assert_rewrite(*_SHARED)

from tests.support import LONG, count  # noqa: E402

# Each process of the run has a cache of its own, so that no test depends on what an
# earlier run, the user or another worker compiled.
_CACHE = tempfile.TemporaryDirectory(prefix="workbench-test-")
os.environ["XDG_CACHE_HOME"] = _CACHE.name

# Tests start Python hundreds of times: only the first start compiles the package, whatever the
# shell says of bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Several processes of the run share the cores: libraries that start a thread for each core, in
# processes that tests start too, would spin beside each other.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# What checks notebooks imports this, and it compiles a grammar when it is imported, which takes
# longer than all other imports of the run; without it only the syntax of IRIs is not checked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# A shell starts background jobs with Ctrl-C ignored, and children inherit that; what Ctrl-C
# does is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What operands of two kinds become is numpy 2's, which the tests compare with; numpy 1.26 has it on
# request (numpy enhancement proposal 50).
if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    np._set_promotion_state("weak")

# Short runs repeat exactly; long ones look for new failures.
settings.register_profile(
    "workbench", max_examples=count(1000), deadline=None, database=None, derandomize=not LONG
)
settings.load_profile("workbench")


BROWSER = "tests/viz/browser/"
LAB = BROWSER + "test_lab_", BROWSER + "models/"
"""Tests of one JupyterLab, by how their names begin: one process has them all, and begins early."""

SHARED = BROWSER, "tests/test_project.py"
"""Tests that share what is dear to start: Chromium (and the records of a folder), the installed
wheel, the package's syntax trees."""

SINGLE = "tests/notebooks/", "tests/agreement/", "tests/bench/", "tests/nn/"
"""Long tests, which share nothing."""


class SharedStarts(LoadScopeScheduling):
    """JupyterLab's tests go to one process; then each folder of the browser, and each file that is
    SHARED, to one; then SINGLE goes out one by one, and at last all others file by file, which
    share what their modules make and compile."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(LAB):
            return "JupyterLab"
        if nodeid.startswith(SINGLE):
            return nodeid
        file = nodeid.partition("::")[0]
        return file.rpartition("/")[0] if nodeid.startswith(BROWSER) else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what must begin early."""
    items.sort(key=lambda item: -_urgency(item.nodeid))


def _urgency(nodeid: str) -> int:
    """Return how early a test begins: the sum of the groups that it is in."""
    return sum(map(nodeid.startswith, (LAB, SHARED, SHARED + SINGLE)))


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip, in its midst, a test that finds that there is no C compiler; where everything must be
    tested it fails. Those that would wait for one in vain are marked `needs_c`."""
    from tests.tools.compiler import NONE_HERE

    try:
        return (yield)
    except Exception as error:
        if NONE_HERE and "needs a C compiler" in str(error):
            pytest.skip("no C compiler here")
        raise


@pytest.fixture
def nothing_saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give the test a cache folder of its own, and return it. In it are the speeds of this machine
    that the process has measured: to measure them again takes longer than most tests."""
    from workbench.base.cache import cache_folder
    from workbench.measure import speeds

    machine_speeds, cache = speeds.speeds(), tmp_path / "cache"
    shared, own = cache_folder() / speeds.FOLDER, cache / "workbench" / speeds.FOLDER
    if shared.exists():  # not where the machine was so busy that they are kept in memory alone
        shutil.copytree(shared, own)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setitem(speeds._by_place, speeds._place(), machine_speeds)
    return cache


@pytest.fixture
def clean_registry(nothing_saved: Path) -> Iterator[None]:
    """Leave nothing that a test registers, and no files."""
    from workbench import Device, OptOps, unregister
    from workbench.ir.rewriting.rewrite import added_rules

    yield
    for thing in (*OptOps.registered, *(added.rules for added in added_rules())):
        unregister(thing)
    for name in {"MINE", "SHADER"} & {*Device.names()}:
        unregister(name)


@pytest.fixture(autouse=True)
def estimated_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict by estimated registers: what is predicted must not depend on compilers here."""
    module = sys.modules.get("workbench.kernel.compiled")
    if module is not None:
        monkeypatch.setattr(module, "_registers", lambda *_: None)


@pytest.fixture(autouse=True)
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time as on a machine where no other program takes a core: what a test asks of times must not
    depend on what else runs. Tests of the share of the cores have their own."""
    modules = map(sys.modules.get, (
        "workbench.viz.session.handlers.measurement", "workbench.search.evaluation",
    ))  # fmt: skip
    timing = sys.modules.get("workbench.measure.timing")
    if timing is None:
        return
    monkeypatch.setattr(timing, "core_use", lambda threads: None)
    for module in filter(None, modules):  # what a worker process answers
        monkeypatch.setattr(module, "Samples", lambda samples, shares: timing.Samples(samples))


@pytest.fixture(autouse=True)
def unchanged_settings() -> Iterator[None]:
    """Fail the test that leaves a setting changed, not a later one."""
    from workbench.base.context import SETTINGS

    before = {name: setting.value for name, setting in SETTINGS.items()}
    yield
    after = {name: setting.value for name, setting in SETTINGS.items()}
    for name, value in before.items():
        SETTINGS[name].set(value)
    assert after == before, "the test left settings changed"
