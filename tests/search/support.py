"""What tests of searches share: a kernel's data, and a search that is soon over."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import Kernel, SearchResult, Tensor
from workbench.search.search import run

BUDGET_S = 1.5


def numbers(*shape: int) -> Tensor:
    values = np.random.default_rng(0).standard_normal(shape)
    return Tensor(values.astype(np.float32)).realize()


def quick(kernel: Kernel, budget_s: float = BUDGET_S, **options: Any) -> SearchResult:
    return run(kernel, budget_s=budget_s, cached=False, shown=False, **options)


LONG_S = 60.0
"""More seconds than a search takes that something else ends."""
