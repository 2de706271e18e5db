"""Selections in a notebook's workbench, checked before the page gets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import inspect as types
from msgspec.structs import fields

from workbench.base.errors import PlaceError, WorkbenchError
from workbench.base.typed import typed
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.page.document import modes
from workbench.viz.record.about import language_rows
from workbench.viz.schema.messages import ViewState

FIELDS = {field.name: field for field in fields(ViewState) if field.name != "only"}
"""The fields that can be set; the one pane that is shown has a property of the exploration."""


def checked_view(
    ex: ScheduledTensors, view: Mapping[str, object], unnamed: Sequence[object] = ()
) -> ViewState:
    """Return the selection for a page; a Kernel becomes its number.

    Errors: WorkbenchError for a name or a value that a page does not know; PlaceError for a value
    without a name.
    """
    choices = {"mode": modes(), "language": tuple(r.name for r in language_rows())}
    if unnamed:
        raise _without_name(unnamed[0], choices)
    plain = dict(view)
    for name, value in view.items():
        if name not in FIELDS:
            raise _refused(name, value, f"there are {', '.join(FIELDS)}", 'mode="plan"')
        if name == "kernel":
            plain[name] = ex.kernel_at(value)[0]  # type: ignore[arg-type]  # it says what is wrong
        if name in choices and not _is_one_of(choices[name], value):
            because = f"there are {', '.join(choices[name])}"
            raise _refused(name, value, because, f'{name}="{choices[name][0]}"')
        try:
            typed(plain[name], FIELDS[name].type)
        except ValueError:
            raise _refused(name, value, *_words(name)) from None
    return typed(plain, ViewState)


def _without_name(value: object, choices: Mapping[str, tuple[str, ...]]) -> WorkbenchError:
    """Return the error for a value that does not say what it is of."""
    hints = {name: f'"{values[0]}"' for name, values in choices.items()}
    fits = [name for name in choices if _is_one_of(choices[name], value)]
    name = (*fits, "mode")[0]
    hint = f"{name}={value!r}" if fits else f"{name}={hints[name]}"
    because = f"a value needs its name: {', '.join(FIELDS)}"
    hint = f"kernel={value}" if type(value) is int else hint
    return PlaceError(f"cannot select {value!r:.40}", because, f"ex.select({hint})")


def _is_one_of(choices: tuple[str, ...], value: object) -> bool:
    return isinstance(value, str) and value in choices


def _words(name: str) -> tuple[str, str]:
    """Return what the value of a field must be, in words, and an example of one."""
    info = types.type_info(FIELDS[name].type)
    assert isinstance(info, types.Metadata)
    schema = info.extra_json_schema or {}
    return str(schema["title"]), str(schema["examples"][0])


def _refused(name: str, value: object, because: str, hint: str) -> WorkbenchError:
    what = f"cannot select {name}={value!r:.40}"
    return WorkbenchError(what, because, f"ex.select({hint})")
