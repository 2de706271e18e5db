"""Constants: the parts that are the same in all records of a Python session.

A notebook has them once, beside the script of the page: they are over half of the record of a small
kernel.
"""

from __future__ import annotations

from functools import cache

from msgspec import to_builtins

from workbench.viz.glossary import glossary_rows
from workbench.viz.model.graph import FAMILIES, kind_rows
from workbench.viz.model.words import opt_kind_rows
from workbench.viz.page.document import Constants
from workbench.viz.page.panels.rules.panel import every_rule
from workbench.viz.record.about import device_rows, language_rows
from workbench.viz.schema.messages import RecordPatch
from workbench.viz.schema.record import PanelSection


@cache
def constants() -> Constants:
    """Return the parts that are the same in all records of this Python session; a record with a
    registered rule has rules of its own."""
    fields = {
        "kinds": kind_rows(), "opt_kinds": opt_kind_rows(), "families": FAMILIES,
        "glossary": list(glossary_rows()), "languages": language_rows(), "devices": device_rows(),
    }  # fmt: skip
    sections = {"rules": PanelSection(every_rule(), None)}
    return Constants(to_builtins(fields), to_builtins(sections))


def without_constants(patch: RecordPatch) -> RecordPatch:
    """Return a patch without the sections of panels that every page has already."""
    sections = constants().sections

    def is_new(path: list[str | int], value: object) -> bool:
        if len(path) != 2 or path[0] != "panels" or path[1] not in sections:
            return True
        return bool(to_builtins(value) != sections[str(path[1])])

    return RecordPatch(
        patch.append, [(path, value) for path, value in patch.set if is_new(path, value)]
    )
