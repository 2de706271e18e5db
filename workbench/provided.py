"""Functions of upper layers that a lower one calls by name: the entry of the package provides them.

`realize` searches for opts where the setting BEAM says so, and the search is far above it. What
provides a function loads it when it is first called: importing the package stays light.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.base.errors import WorkbenchError

Function = Callable[..., Any]
_loaders: dict[str, Callable[[], Function]] = {}


def provide(name: str, load: Callable[[], Function]) -> None:
    """Let `call(name, ..)` call the function that `load` returns."""
    _loaders[name] = load


def call(name: str, *args: Any) -> Any:
    """Return what the function called `name` returns. Errors: WorkbenchError if there is none."""
    if name not in _loaders:
        names = ", ".join(_loaders) or "none"
        raise WorkbenchError(f"nothing provides {name}", f"what is provided: {names}")
    return _loaders[name]()(*args)
