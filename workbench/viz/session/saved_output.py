"""The output of a workbench in a saved notebook: its picture, and a page without Python.

JupyterLab saves no widget unless the user asks for it in its settings: a notebook that is opened
later says "model not found" instead. So a cell has a second output, the picture with a table of the
variants. While the widget exists, its page hides the picture; without it, the picture's style hides
the output of the widget. The frame's page is light or dark, as the host is when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from secrets import token_hex
from typing import Any
from weakref import ref

from IPython.core.getipython import get_ipython
from msgspec import to_builtins

from workbench.measure.speeds import Speeds
from workbench.viz.page import document
from workbench.viz.record.reduction import reduced
from workbench.viz.schema.messages import NO_VIEW, Message, ViewState
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.variant import VariantRow
from workbench.viz.session.constants import constants
from workbench.viz.session.opt_text import timing_text
from workbench.viz.session.session import Session, sending
from workbench.viz.still.cards import left_out_part, variants_part
from workbench.viz.still.svg import by_host

MOST_BYTES = 150_000
"""Most bytes of a record that is saved in a cell; a larger one is reduced."""
_OUTPUT_CLASS = ".jp-OutputArea-child"
_STYLE = """<style>
{place}:has(> .jp-OutputArea-output > [data-still="{key}"]) + {place}:not(:has(.wb)) {{
  display: none;
}}
[data-still="{key}"] > details {{ margin: 2px 0 8px; }}
[data-still="{key}"] iframe {{ display: block; width: 100%; height: 660px; border: 0; }}
[data-still="{key}"] iframe[hidden] {{ display: none; }}
{themes}
</style>"""
_FOLD = """<details ontoggle="{open}">
<summary>Look around: the workbench as it was, without Python</summary>
<template><iframe sandbox="allow-scripts allow-downloads" title="workbench"
srcdoc="{page}"></iframe></template>
<p>It is shown in a notebook that you trust. Run the cell again to work with it.</p></details>"""
_OPEN = """const t = this.querySelector('template'), f = t?.content.querySelector('iframe');
t?.replaceWith(t.content);
const as = f && getComputedStyle(f).colorScheme;
if (['light', 'dark'].includes(as)) f.srcdoc = f.srcdoc.replace('<html', '<html theme=' + as);"""
"""Makes the frame when the fold is opened, in the theme that the style gives it: in VS Code a page
does not follow the `color-scheme` of its frame. A browser loads a frame with loading="lazy" that is
not drawn at once: each output drew its page a second time, unseen, beside the widget."""
_CARRIER = """<iframe hidden sandbox="allow-scripts" title="script and style of the workbench"
srcdoc="{page}"></iframe>"""


class SavedOutput:
    """A Listener that publishes the saved output of a cell. `picture` is HTML; the page has `title`
    and opens with `view`. `key` names the output for the widget, whose page hides it. One output of
    a notebook `carries` the script and style of all."""

    def __init__(self, picture: str, title: str, view: ViewState = NO_VIEW):
        self.key = token_hex(8)
        self.carries = False
        self.view: Mapping[str, Any] = to_builtins(view)
        self._picture, self._title = picture, title
        self._session: Callable[[], Session | None] = lambda: None

    def html(self, record: PageRecord, speeds: Speeds | None = None) -> str:
        """Return HTML: the page of a record, folded, a table of the variants, and the picture."""
        packed, left_out = reduced(record, self._visible(record), MOST_BYTES, constants())
        page = document.page_frame(self._title, packed, self.view, constants())
        tried = _tried(record, self.view.get("guess") is not None)
        frame = f'[data-still="{self.key}"] iframe'
        parts = [
            _STYLE.format(place=_OUTPUT_CLASS, key=self.key, themes=by_host(frame)),
            _FOLD.format(page=escape(page), open=_OPEN),
            left_out_part(left_out),
            variants_part(tried, [_times(row, speeds) for row in tried]),
            self._picture,
        ]
        if self.carries:
            parts.append(_CARRIER.format(page=escape(document.carrier(constants()))))
        return f'<div data-still="{self.key}">{"".join(parts)}</div>'

    def _visible(self, record: PageRecord) -> set[int]:
        """Return the visible variants: the one of the view, and the pinned one."""
        variant, kernel = self.view.get("variant"), self.view.get("kernel") or 0
        if variant is None and kernel < len(record.kernels):
            row = record.kernels[kernel]
            variant = row.root if row.opens is None else row.opens
        return {v for v in (variant, record.pinned) if v is not None}

    def publish(self, session: Session, is_update: bool = False) -> None:
        """Publish the output of a session, or update it."""
        shell, self._session = get_ipython(), ref(session)
        with session.lock:
            html = self.html(session.record, session.recorder.speeds)
        with sending() as is_open:
            if is_open and shell is not None:
                shell.display_pub.publish(
                    {"text/html": html}, transient={"display_id": self.key}, update=is_update
                )

    def publish_again(self) -> None:
        """Update the output, if its session still exists."""
        session = self._session()
        if session is not None:
            self.publish(session, is_update=True)

    # a Listener

    def receive(self, message: Message) -> None:
        """Do nothing: the record is saved as a whole."""

    def renew(self, record: str) -> None:
        """Update the output with the record as it is now."""
        self.publish_again()

    def select(self, view: ViewState) -> None:
        """Do nothing: the widget reports the selection of its page."""

    def watch(self, view: Mapping[str, Any]) -> None:
        """Store the selection of the page: the next output that is saved opens with it."""
        self.view = {name: view[name] for name in ViewState.__struct_fields__ if name in view}


def _tried(record: PageRecord, is_guessed: bool) -> list[VariantRow]:
    """Return the variants that the user made or measured; none before the question is answered."""
    if record.ask is not None and not is_guessed:
        return []
    return [
        row
        for row in record.variants
        if not row.deleted and (row.opts or row.timing or row.check or row.note)
    ]


def _times(row: VariantRow, speeds: Speeds | None) -> list[str]:
    own = [timing_text(row.timing, speeds)] if row.timing else []
    return own + [f"{t.device}: {timing_text(t, speeds)}" for t in row.elsewhere]
