"""The one way rich pictures reach values of lower layers: a table from type to mimebundle.

`viz` fills it; a class that inherits `Displayed` shows what the table says. So the compiler
never imports viz, and without viz everything still prints as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Bundle = dict[str, Any]
_PICTURES: dict[type, Callable[[Any], Bundle]] = {}


def register(kind: type, picture: Callable[[Any], Bundle]) -> None:
    """Show values of `kind` with `picture(value)`, a dict from MIME type to text."""
    _PICTURES[kind] = picture


def bundle(value: object) -> Bundle | None:
    """Return the picture of `value`, or None when nothing is registered for its type."""
    for kind in type(value).__mro__:
        if kind in _PICTURES:
            return _PICTURES[kind](value)
    return None


class Displayed:
    """Mix-in: Jupyter asks here, and gets what the table holds."""

    __slots__ = ()

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> Bundle | None:
        return bundle(self)


class Printed(Displayed):
    """Mix-in: a value that is looked at as text, in a cell and at a prompt, is that text. (For a
    dataclass with `repr=False`.)"""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
