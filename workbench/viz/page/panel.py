"""The Python half of a panel: its printed text, and the sections of the record that it needs.

A panel is a folder below `panels/`, and its name is the folder's. Beside its scripts and its style
stands `panel.py`, with one `PANEL`; a panel that only shows what the record has anyway needs none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import to_builtins

from workbench.base.errors import WorkbenchError
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.page import panels as folders
from workbench.viz.page.document import modes
from workbench.viz.record.kernels import fold_rows, run_rows
from workbench.viz.record.nodes import Nodes
from workbench.viz.record.variants import error_row, kernel_origin, kernel_row
from workbench.viz.schema.record import PanelSection
from workbench.viz.text import KernelTable, kernel_heading

TextForm = Callable[[ScheduledTensors, Sequence[tuple[int, Kernel]]], str]
"""Returns the text of a pane for some kernels with their places."""
Section = Callable[[ScheduledTensors, Nodes], Any]
"""Returns rows of the record that no other panel reads: a Struct, or plain data. They refer to a
node by its place in the record (`nodes.add(node)`)."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The Python half of a panel. `pane` is its name where it stands alone, in a notebook and as
    text; `mode` is the layout of the page that it belongs to. `section` is built after the opening
    record, once for each plan. `has_steps`: it shows runs on the emulator, so that a record for
    this pane alone has them."""

    pane: str
    mode: str
    text: TextForm
    section: Section | None = None
    has_steps: bool = False


@cache
def modules() -> Mapping[str, ModuleType]:
    """Return the `panel.py` of every panel that has one, by the name of its folder."""
    paths = [p for place in folders.__path__ for p in Path(place).glob("*/panel.py")]
    names = sorted({path.parent.name for path in paths})
    return {name: import_module(f"{folders.__name__}.{name}.panel") for name in names}


def panels() -> dict[str, Panel]:
    """Return the Python half of every panel that has one, by its name."""
    return {name: module.PANEL for name, module in modules().items()}


def sections() -> dict[str, Section]:
    """Return the function that builds each section of the record, by the name of its panel."""
    return {name: p.section for name, p in panels().items() if p.section is not None}


def section_row(section: Section, ex: ScheduledTensors, nodes: Nodes) -> PanelSection:
    """Return the section of one panel, or the error of building it: a fault of one panel, or a
    value that JSON lacks, must not lose the record."""
    try:
        data = to_builtins(section(ex, nodes), str_keys=True)
        return PanelSection(json.loads(json.dumps(data, allow_nan=False)), None)
    except Exception as error:
        return PanelSection(None, error_row(error))


def panes() -> dict[str, Panel]:
    """Return the panels that can stand alone, by the names of their panes."""
    listed = sorted(panels().values(), key=lambda panel: panel.pane)
    return {panel.pane: panel for panel in listed}


def pane_of(name: object, call: str) -> Panel:
    """Return the panel of a pane. The error quotes `call`, the user's call, with {} in place of the
    name of the pane.

    Errors: WorkbenchError where there is none.
    """
    named = panes()
    if isinstance(name, str) and name in named:
        return named[name]
    near = get_close_matches(str(name).lower(), named, 1) or list(named)
    layouts = [mode for mode in modes() if mode not in named]
    listed = f"there are {', '.join(named)}; of layouts, {', '.join(layouts)}"
    hint = call.format(f'"{near[0]}"')
    raise WorkbenchError(f"there is no pane {name!r:.40}", listed, hint)


def kernels_text(
    ex: ScheduledTensors,
    kernels: Sequence[tuple[int, Kernel]],
    text_of: Callable[[int, Kernel], str],
) -> str:
    """Return the text of each kernel below its heading; without kernels, the reason."""
    parts = [f"{heading(place, k)}\n{text_of(place, k)}" for place, k in kernels]
    return "\n\n".join(parts) or f"{ex.headline}\n{ex.nothing_to_do}"


def heading(place: int, kernel: Kernel) -> str:
    """Return the number of a kernel, what it computes, and the user's line."""
    return kernel_heading(place, kernel_row(kernel), kernel_origin(kernel))


def kernel_table(ex: ScheduledTensors) -> KernelTable:
    """Return the kernels of tensors as a table, with times if the tensors are displayed."""
    session = ex.display.session
    if session is None:
        runs = run_rows(ex.kernels)
    else:
        with session.lock:
            runs = [copy(run) for run in session.record.plan.runs]
    rows = [kernel_row(kernel) for kernel in ex.kernels]
    origins = [kernel_origin(kernel) for kernel in ex.kernels]
    return KernelTable(rows, fold_rows(ex.kernels), runs, origins)
