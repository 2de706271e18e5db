"""Text for a terminal: lines folded at its width, coloured if `rich` is installed.

Values print the same text everywhere; only an IPython prompt fits it to its window. A line that is
too long is continued below, indented, so nothing is cut off. Where the output is not a terminal,
the text is as it is: no colour, and no folding unless COLUMNS is set.

Sections: Text for a terminal; Pictures of values of lower layers.
"""

from __future__ import annotations

import importlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from textwrap import TextWrapper
from types import ModuleType
from typing import Any, NamedTuple

from workbench.base.errors import WorkbenchError

# --------------------------------------------------------------------------------------------------
# Text for a terminal.

LEAST_WIDTH = 20
PROMPT_WIDTH = 10
"""Characters of the prompt to the left of a single line: "Out[123]: "."""
HANGING = 4
"""Spaces by which the rest of a folded line is indented further."""

# fmt: off
STYLES = (
    (r"(?m)^ *kernel \d+: .*$|^\w+$|^best: .*$",          "bold"),
    (r"(?m)^ *[A-Z]{1,2} \w+ x[\d,]+",                    "bold blue"),  # a loop
    (r"(?m)^\+.*$",                                       "green"),      # of a difference
    (r"(?m)^-.*$",                                        "red"),
    (r"\b\d[\d,.]* (?:ns|µs|ms|s|B|[KMG]iB|[MG]FLOP/s)(?!\w)", "cyan"),
    (r"\bstored\b|\bvector\b|\bequal\b|\bright\b",        "green"),
    (r"\bWRONG\b.*|\bDIFFERENT\b.*|\bfailed\b.*",         "bold red"),
)
# fmt: on


def is_prompt() -> bool:
    """Whether values are shown at an IPython prompt, in a terminal and not a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is None


def say(value: object) -> None:
    """Print a value as a command does. Letters that the output cannot have become "?". Where nobody
    reads on, as with `| head`, the rest is dropped: what the command writes to files stays.

    Errors: WorkbenchError where the output cannot be written, as on a full disk.
    """
    if sys.stdout is None or getattr(sys.stdout, "closed", False):  # by a script
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(str(value).encode(encoding, "replace").decode(encoding), flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
        if not isinstance(error, BrokenPipeError):
            raise WorkbenchError("cannot print", str(error.strerror), "another output") from None


def fitted(text: str) -> str:
    """Return `text` as the prompt should print it."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    if not is_terminal and "COLUMNS" not in os.environ:
        return text
    beside = 0 if "\n" in text else PROMPT_WIDTH
    folded = fold(text, shutil.get_terminal_size().columns - beside)
    return _coloured(folded) if is_terminal else folded


def fold(text: str, width: int) -> str:
    """Return `text` with lines of at most `width` characters (20 at least): a longer line is
    continued below, indented, if possible from a space on."""
    width = max(width, LEAST_WIDTH)
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width))


def painted(text: str) -> Any:
    """Return `text` as rich's Text, with colours.

    Errors: ModuleNotFoundError where rich is not installed.
    """
    rich_text = importlib.import_module("rich.text").Text(text)
    for pattern, style in STYLES:
        rich_text.highlight_regex(pattern, style)
    return rich_text


def _folded(line: str, width: int) -> list[str]:
    indent = len(line) - len(line.lstrip())
    hanging = " " * min(indent + HANGING, width // 2)
    wrapper = TextWrapper(
        width, subsequent_indent=hanging, break_on_hyphens=False,
        expand_tabs=False, replace_whitespace=False,
    )  # fmt: skip
    return (wrapper.wrap(line) or [""]) if len(line) > width else [line]


def _coloured(text: str) -> str:
    rich = _rich()
    if rich is None or "NO_COLOR" in os.environ:
        return text
    console = rich.Console(force_terminal=True, file=io.StringIO())
    console.print(painted(text), soft_wrap=True, end="")
    output: str = console.file.getvalue()
    return output


def _rich() -> ModuleType | None:
    try:
        return importlib.import_module("rich.console")
    except ImportError:
        return None


# --------------------------------------------------------------------------------------------------
# Pictures of values of lower layers: a table from type to mimebundle.
#
# `viz` fills it; a class that inherits `Displayed` shows what the table says. So the compiler never
# imports viz, and without viz everything still prints as text. A prompt in a terminal gets the text
# alone, fitted to its window.

Bundle = dict[str, Any]


class _Rendering(NamedTuple):
    picture: Callable[[Any], Bundle]
    text: Callable[[Any], str]


_RENDERINGS: dict[type, _Rendering] = {}


def register(
    kind: type, picture: Callable[[Any], Bundle], text: Callable[[Any], str] = str
) -> None:
    """Show values of `kind` as `picture(value)`, a dict from MIME type to text, or, where no
    pictures are shown, as `text(value)`."""
    _RENDERINGS[kind] = _Rendering(picture, text)


def bundle(value: object) -> Bundle | None:
    """Return the picture of `value`, or None when nothing is registered for its type."""
    rendering = _rendering(value)
    return None if rendering is None else rendering.picture(value)


def _rendering(value: object) -> _Rendering | None:
    return next((_RENDERINGS[k] for k in type(value).__mro__ if k in _RENDERINGS), None)


def _text(value: object) -> str:
    rendering = _rendering(value)
    return str(value) if rendering is None else rendering.text(value)


class Displayed:
    """Mix-in: Jupyter gets the picture in the table; IPython's prompt and rich get text."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle | None:
        if is_prompt():
            return {"text/plain": fitted(_text(self))}
        return bundle(self) or {"text/plain": _text(self)}

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        width = max(options.max_width, LEAST_WIDTH)
        yield painted(fold(_text(self), width))


class Printed(Displayed):
    """Mix-in: a value that is shown as its text, in a cell and at a prompt. A dataclass needs
    `repr=False` for it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text also within a list, and for a tuple, which IPython would print itself."""
        text = str(self)
        printer.text(fitted(text) if is_prompt() else text)
