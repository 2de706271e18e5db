"""Sections of the record: what panels alone need of it."""

from __future__ import annotations

import json

from msgspec import to_builtins

from workbench.viz.page.panel import Section
from workbench.viz.record.nodes import Nodes
from workbench.viz.record.variants import error_row
from workbench.viz.scheduled_tensors import ScheduledTensors
from workbench.viz.schema.record import PanelSection


def section_row(section: Section, ex: ScheduledTensors, nodes: Nodes) -> PanelSection:
    """Return the section of one panel, or the error that building it ended with. A fault of one
    panel, or a value that JSON lacks, must not take the record down."""
    try:
        data = to_builtins(section(ex, nodes), str_keys=True)
        return PanelSection(json.loads(json.dumps(data, allow_nan=False)), None)
    except Exception as error:
        return PanelSection(None, error_row(error))
