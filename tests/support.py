"""What tests share: how many examples to try, where the checkout is, how much work is done."""

from __future__ import annotations

import cProfile
import os
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 250.0
"""A busy machine may take so long for anything; a hang fails all the same, within a test's time."""
LONG = os.environ.get("WORKBENCH_TEST_PROFILE") == "long"


def count(n_long: int, part: int = 10) -> int:
    """Return `n_long` in the long profile, and a tenth of it, or another part, at least one,
    otherwise: a random test takes a second or two there."""
    return n_long if LONG else max(1, n_long // part)


def eventually(is_so: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Wait until something is so; a machine with much else to do has time, too."""
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until, f"it is not so after {within_s:g} s"
        time.sleep(0.01)


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions are called in `work`: how it grows shows on a busy machine too."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())
