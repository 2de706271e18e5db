"""Results of this package's code on disk, as pickles: schedules, default opts.

A pickle runs what it names, as the machine code beside it does: it has the protection of the object
cache, and is read only by the code that wrote it.
"""

from __future__ import annotations

import pickle
from typing import Any

from workbench.backends.native.code_stamp import code_stamp
from workbench.backends.native.object_cache import get, store_object
from workbench.base.cache import key_of
from workbench.ir.rewriting.rewrite import are_switched


def result_key(kind: str, *texts: str) -> str | None:
    """Return the key of what this code computes from some texts; None where other rules than the
    package's own are in force."""
    stamp = code_stamp()
    if not stamp or are_switched():
        return None
    return key_of(kind, stamp, *texts)


def kept_result(key: str | None) -> Any:
    """Return the value stored under a key, or None."""
    content = None if key is None else get(key)
    if content is None:
        return None
    try:
        return pickle.loads(content)
    except Exception:  # whatever a damaged pickle raises: the result is computed again
        return None


def keep_result(key: str | None, value: Any) -> None:
    """Store a value under a key. A value that cannot be pickled is left out."""
    if key is None:
        return
    try:
        content = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError):
        return
    store_object(key, content)
