"""What tests share: how many examples to try, and where the checkout is."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = os.environ.get("WORKBENCH_TEST_PROFILE") == "long"


def count(n_long: int) -> int:
    """Return `n_long` in the long profile and a tenth of it, at least one, otherwise."""
    return n_long if LONG else max(1, n_long // 10)
