"""A run by itself as a Jupyter widget: the page with the pane Run alone, without a session."""

from __future__ import annotations

import anywidget
import traitlets
from ipywidgets import widget_serialization  # type: ignore[import-untyped]
from msgspec import to_builtins

from workbench.viz.page import document as page
from workbench.viz.run.page import RUN_VIEW, page_record
from workbench.viz.schema.run import RunRecord
from workbench.viz.session.constants import constants
from workbench.viz.session.widget import LOADER, PageParts, carried_parts, page_parts


class RunWidget(anywidget.AnyWidget):
    """A widget that shows a run; the traits are those of Workbench."""

    _esm = LOADER
    record = traitlets.Unicode().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    live = traitlets.Bool(False).tag(sync=True)
    still = traitlets.Unicode().tag(sync=True)
    parts = traitlets.Instance(PageParts, allow_none=True).tag(sync=True, **widget_serialization)
    carried = traitlets.Dict().tag(sync=True)

    def __init__(self, run: RunRecord, shares_parts: bool = True):
        super().__init__(
            record=page.packed(page_record([run]), constants()), view=to_builtins(RUN_VIEW),
            parts=page_parts() if shares_parts else None,
            carried={} if shares_parts else carried_parts(),
        )  # fmt: skip
