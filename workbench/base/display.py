"""Pictures of values of lower layers: a table from type to mimebundle.

`viz` fills it; a class that inherits `Displayed` shows what the table says. So the compiler
never imports viz, and without viz everything still prints as text. A prompt in a terminal gets
the text alone, fitted to its window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from workbench.base import terminal

Bundle = dict[str, Any]


class _Look(NamedTuple):
    picture: Callable[[Any], Bundle]
    text: Callable[[Any], str]


_LOOKS: dict[type, _Look] = {}


def register(
    kind: type, picture: Callable[[Any], Bundle], text: Callable[[Any], str] = str
) -> None:
    """Show values of `kind` with `picture(value)`, a dict from MIME type to text, and where
    there are no pictures with `text(value)`."""
    _LOOKS[kind] = _Look(picture, text)


def bundle(value: object) -> Bundle | None:
    """Return the picture of `value`, or None when nothing is registered for its type."""
    look = _look(value)
    return None if look is None else look.picture(value)


def _look(value: object) -> _Look | None:
    return next((_LOOKS[k] for k in type(value).__mro__ if k in _LOOKS), None)


def _text(value: object) -> str:
    look = _look(value)
    return str(value) if look is None else look.text(value)


class Displayed:
    """Mix-in: Jupyter gets the mimebundle of the table; IPython's prompt and rich get text."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle | None:
        if terminal.is_prompt():
            return {"text/plain": terminal.fitted(_text(self))}
        return bundle(self) or {"text/plain": _text(self)}

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        width = max(options.max_width, terminal.LEAST_WIDTH)
        yield terminal.painted(terminal.fold(_text(self), width))


class Printed(Displayed):
    """Mix-in: a value that is shown as its text, in a cell and at a prompt. (For a
    dataclass with `repr=False`.)"""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print it inside of a list, or where it is itself a tuple, of which IPython knows."""
        text = str(self)
        printer.text(terminal.fitted(text) if terminal.is_prompt() else text)
