"""`np.asarray(x)` and its relatives over Tensors, while a function over arrays runs.

numpy turns an argument into an array by `__array__`, which must return one, and asks a Tensor what
to do (`__array_function__`) only with `like=`. So for the time these names of numpy are functions
that add `like=` where an argument is a Tensor. Code of other threads sees them, too: what has no
Tensor in it goes to numpy as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from threading import Lock
from typing import Any

import numpy as np

from workbench.tensor.variable_operators import tensors

Maker = Callable[..., Any]

NAMES = ("array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "require")
_lock = Lock()
_count_inside = 0
"""How many blocks of `makers_of_tensors` there are now, of all threads."""


@contextmanager
def makers_of_tensors() -> Generator[None, None, None]:
    """Within the block, `np.asarray` and the others of `NAMES` return Tensors of Tensors."""
    _enter(1)
    try:
        yield
    finally:
        _enter(-1)


def _enter(change: int) -> None:
    global _count_inside
    with _lock:
        _count_inside += change
        for name, (numpys, ours) in _MAKERS.items():
            setattr(np, name, ours if _count_inside else numpys)


def _with_like(maker: Maker) -> Maker:
    @wraps(maker)
    def make(*args: Any, **named: Any) -> Any:
        parts = next(iter((*args, *named.values())), None)
        found = next(iter(tensors(parts)), None)
        if found is not None:
            named.setdefault("like", found)
        return maker(*args, **named)

    return make


_MAKERS = {name: (getattr(np, name), _with_like(getattr(np, name))) for name in NAMES}
"""Each of the functions as numpy has it, and with `like=`."""
