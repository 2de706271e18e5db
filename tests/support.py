"""What tests share: how many examples to try, where the checkout is, how much work is done."""

from __future__ import annotations

import cProfile
import os
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = os.environ.get("WORKBENCH_TEST_PROFILE") == "long"


def count(n_long: int) -> int:
    """Return `n_long` in the long profile and a tenth of it, at least one, otherwise."""
    return n_long if LONG else max(1, n_long // 10)


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions are called in `work`: how it grows shows on a busy machine too."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())
