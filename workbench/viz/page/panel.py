"""The Python half of a panel: how it prints, and what it needs of the record.

A panel is a folder below `panels/`, and its name is the folder's. Beside its scripts and its style
stands `panel.py`, with one `PANEL`; a panel that only shows what the record has anyway needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path

from workbench.base.errors import WorkbenchError
from workbench.kernel.kernel import Kernel
from workbench.viz.page import panels as folders
from workbench.viz.scheduled_tensors import ScheduledTensors

TextForm = Callable[[ScheduledTensors, Sequence[tuple[int, Kernel]]], str]
"""Prints a pane, of some kernels with their places."""


@dataclass(frozen=True, slots=True)
class Panel:
    """What Python knows of a panel. As `pane` it stands alone, in a notebook and as text; `mode`
    is the mode of the page that it belongs to."""

    pane: str
    mode: str
    text: TextForm


@cache
def panels() -> Mapping[str, Panel]:
    """Return the Python half of every panel that has one, by the name of its folder."""
    names = sorted(
        path.parent.name
        for place in folders.__path__
        for path in Path(place).glob("*/panel.py")
    )
    modules = [import_module(f"{folders.__name__}.{name}.panel") for name in names]
    return {n: module.PANEL for n, module in zip(names, modules, strict=True)}


def panes() -> dict[str, Panel]:
    """Return the panels that can stand alone, by the names of their panes."""
    return {panel.pane: panel for panel in panels().values()}


def pane_of(name: object, call: str) -> Panel:
    """Return the panel that stands alone under a name; `call` is the call that named it, with {}
    in place of the name.

    Errors: WorkbenchError where there is none.
    """
    named = panes()
    if isinstance(name, str) and name in named:
        return named[name]
    near = get_close_matches(str(name).lower(), named, 1) or ["loops"]
    listed = "there are " + ", ".join(named)
    hint = call.format(f'"{near[0]}"')
    raise WorkbenchError(f"there is no pane {name!r:.40}", listed, hint)
