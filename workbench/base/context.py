"""Settings that a `with` block scopes: `with Context(DEV="PYTHON"): ...`."""

from __future__ import annotations

import os
from contextvars import ContextVar, Token
from typing import Any

from workbench.base.errors import WorkbenchError


class Setting:
    """A named setting with a default, read with `.value`; the environment gives the default."""

    __slots__ = ("_var", "default", "name")

    def __init__(self, name: str, default: Any):
        raw = os.environ.get(name)
        self.name, self.default = name, default
        start = default if raw is None else _parsed(name, raw, default)
        self._var: ContextVar[Any] = ContextVar(name, default=start)

    @property
    def value(self) -> Any:
        """The setting in this context: what the innermost `with Context` says."""
        return self._var.get()

    def set(self, value: Any) -> Token[Any]:
        """Change the setting in this context; the token is for `reset`."""
        return self._var.set(value)

    def reset(self, token: Token[Any]) -> None:
        """Undo a `set`."""
        self._var.reset(token)


def _parsed(name: str, raw: str, default: Any) -> Any:
    """Return the environment's value, in the type of the default."""
    try:
        return type(default)(raw)
    except ValueError:
        because = f"the environment says {name}={raw!r}"
        hint = f"a number, such as {default}, or no {name} at all"
        raise WorkbenchError(
            f"the setting {name} is not a number", because, hint
        ) from None


DEV = Setting("DEV", "")
"""The device of tensors without a `device` argument; "" means the best available one."""

DEBUG = Setting("DEBUG", 0)
"""From 2 on, a line for every kernel that runs."""

LIVE = Setting("LIVE", 2)
"""How a notebook shows `explore`: 2 the workbench, with prefetched measurements; 1 the workbench,
which measures on request; 0 a static picture."""

TRAINING = Setting("TRAINING", 0)
"""1 while a model is trained: dropout drops, and normalisation uses the statistics of the batch."""

NO_MEMORY_PLANNER = Setting("NO_MEMORY_PLANNER", 0)
"""1 gives each value on the way to a result memory of its own; else they share it, each for as long
as it is read."""

_SETTINGS = {s.name: s for s in (DEV, DEBUG, LIVE, TRAINING, NO_MEMORY_PLANNER)}


class Context:
    """Scope settings to a block: `with Context(DEV="PYTHON"):`.

    Errors: WorkbenchError for a setting that does not exist, or a value of another type.
    """

    def __init__(self, **values: Any):
        unknown = sorted(set(values) - set(_SETTINGS))
        if unknown:
            raise WorkbenchError(
                f"no setting {', '.join(unknown)}",
                "Context takes the settings " + ", ".join(_SETTINGS),
            )
        for name, value in values.items():
            kind = type(_SETTINGS[name].default)
            if not isinstance(value, kind):
                because = f"it is of type {kind.__name__}, not {type(value).__name__}"
                raise WorkbenchError(f"cannot set {name}", because)
        self._values = values
        self._tokens: list[tuple[Setting, Token[Any]]] = []

    def __enter__(self) -> Context:
        for name, value in self._values.items():
            setting = _SETTINGS[name]
            self._tokens.append((setting, setting.set(value)))
        return self

    def __exit__(self, *exc: object) -> None:
        while self._tokens:
            setting, token = self._tokens.pop()
            setting.reset(token)
