"""Selections of a notebook's workbench, checked before they are sent to the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.viz.page.document import modes
from workbench.viz.record.about import language_rows
from workbench.viz.scheduled_tensors import ScheduledTensors

PLACES = ("variant", "node", "line")
"""Fields whose values are places in the record."""
FIELDS = ("mode", "kernel", *PLACES, "axis", "language")


def checked_view(ex: ScheduledTensors, view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the selection for a page; a Kernel becomes its number.

    Errors: WorkbenchError for a name or a value that a page does not know.
    """
    return {name: _value(ex, name, value) for name, value in view.items()}


def _value(ex: ScheduledTensors, name: str, value: Any) -> Any:
    if name not in FIELDS:
        raise _refused(name, value, f"there are {', '.join(FIELDS)}", 'mode="plan"')
    if name == "kernel":
        return ex.form(value)[0]
    if name == "mode":
        return _one_of(modes(), name, value)
    if name == "language":
        return _one_of(tuple(r.name for r in language_rows()), name, value)
    if name in PLACES and value is not None:
        if type(value) is not int or value < 0:
            because = f"a {name} is named by its place in the record, a whole number"
            raise _refused(name, value, because, f"{name}=0")
    if name == "axis" and not isinstance(value, str | None):
        hint = f'axis="{ex.kernels[0].axes[0].name}"' if _has_axes(ex) else "axis=None"
        raise _refused(name, value, "an axis is named by a text", hint)
    return value


def _one_of(choices: tuple[str, ...], name: str, value: Any) -> str:
    if isinstance(value, str) and value in choices:
        return value
    raise _refused(
        name, value, f"there are {', '.join(choices)}", f'{name}="{choices[0]}"'
    )


def _has_axes(ex: ScheduledTensors) -> bool:
    return bool(ex.kernels) and bool(ex.kernels[0].axes)


def _refused(name: str, value: Any, because: str, hint: str) -> WorkbenchError:
    what = f"cannot select {name}={value!r:.40}"
    return WorkbenchError(what, because, f"ex.select({hint})")
