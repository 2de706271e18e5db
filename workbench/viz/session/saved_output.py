"""The output of a workbench in a saved notebook: its picture, and a page without Python.

JupyterLab saves no widget unless the user asks for it in its settings: a notebook that is opened
later says "model not found" instead. So a cell has a second output, the picture with a table of the
variants. While the widget exists, its page hides the picture; without it, the picture's style hides
the output of the widget, and says why the picture is there: JupyterLab still waits for the widget,
or did not find it. The frame's page is light or dark, as the host is when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from secrets import token_hex
from typing import Any
from weakref import ref

from IPython.core.getipython import get_ipython
from msgspec import to_builtins

from workbench.measure.kernel_time import seconds_text
from workbench.viz.page import document
from workbench.viz.record.reduction import reduced
from workbench.viz.schema.messages import NO_VIEW, Message, ViewState
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.variant import VariantRow
from workbench.viz.session.constants import constants
from workbench.viz.session.opt_text import timing_text
from workbench.viz.session.session import Session, sending
from workbench.viz.still.cards import left_out_part, variants_part, verdict
from workbench.viz.still.svg import by_host

MOST_BYTES = 150_000
"""Most bytes of a record that is saved in a cell; a larger one is reduced."""
_OUTPUT_CLASS = ".jp-OutputArea-child"
_STYLE = """<style>
{place}:has(> .jp-OutputArea-output > [data-still="{key}"]) + {place}:not(:has(.wb)) {{
  display: none;
}}
.jp-NotebookPanel [data-still="{key}"]::before {{
  content: "{waits}"; display: block; margin: 2px 0; padding: 2px 8px;
  border-left: 3px solid var(--jp-warn-color1);
}}
.jp-NotebookPanel {place}:has(+ {place}:not(:has({not_found}))) [data-still="{key}"] {{
  min-height: {height};
}}
.jp-NotebookPanel {place}:has(+ {place} > {not_found}) [data-still="{key}"]::before {{
  content: "{unlinked}";
}}
[data-still="{key}"] > details {{ margin: 2px 0 8px; }}
[data-still="{key}"] iframe {{ display: block; width: 100%; height: 660px; border: 0; }}
[data-still="{key}"] iframe[hidden] {{ display: none; }}
{themes}
</style>"""
HIGH, LOW = "max(480px, 100vh - 250px)", "480px"
"""Heights of a live page, and of one pane alone (shell.css): a picture that waits is as high,
so that nothing below it moves."""
_NOT_FOUND = ".jp-OutputArea-output.jupyter-widgets"
"""What JupyterLab makes of the output of a widget that it cannot show."""
_WAITS = "Waiting for Python: until the live page comes, this is the copy as last saved."
_UNLINKED = (
    "The live page is not connected: this is the copy as last saved. Run the cell again to work"
    " with it; where Python still runs, loading the page again (F5) is enough."
)
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

    def html(self, record: PageRecord, session: Session | None = None) -> str:
        """Return HTML: the page of a record, folded, a table of the variants, and the picture;
        `session` knows the variants on the devices that the record does not show."""
        packed, left_out = reduced(record, self._visible(record), MOST_BYTES, constants())
        page = document.page_frame(self._title, packed, self.view, constants())
        tried = _tried(record, self.view.get("guess") is not None)
        frame = f'[data-still="{self.key}"] iframe'
        parts = [
            _STYLE.format(
                place=_OUTPUT_CLASS,
                not_found=_NOT_FOUND,
                waits=_WAITS,
                unlinked=_UNLINKED,
                key=self.key,
                height=LOW if self.view.get("only") else HIGH,
                themes=by_host(frame),
            ),
            _FOLD.format(page=escape(page), open=_OPEN),
            left_out_part(left_out),
            variants_part(
                [row for _, row in tried],
                [_times(variant, row, session) for variant, row in tried],
                [_answers(variant, row, session) for variant, row in tried],
            ),
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
            html = self.html(session.record, session)
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


def _tried(record: PageRecord, is_guessed: bool) -> list[tuple[int, VariantRow]]:
    """Return the variants that the user made or measured, with their places; none before the
    question is answered."""
    if record.ask is not None and not is_guessed:
        return []
    return [
        (variant, row)
        for variant, row in enumerate(record.variants)
        if not row.deleted
        if row.opts or row.timing or row.elsewhere or row.check or row.note
    ]


def _times(variant: int, row: VariantRow, session: Session | None) -> list[str]:
    """Return the time of a variant, measured or else predicted: on the device of the record, and on
    those that were chosen before."""
    speeds = None if session is None else session.recorder.speeds
    texts = [timing_text(row.timing, speeds)] if row.timing else _predicted(row)
    texts += [f"{t.device}: {timing_text(t, speeds)}" for t in row.elsewhere]
    if session is None or row.edited:  # edited source has one device
        return texts
    timed = {session.device, *(t.device for t in row.elsewhere)}
    before = ((d, known) for (v, d), known in session.elsewhere.items() if v == variant)
    others = [(d, known) for d, known in before if d not in timed]
    return texts + [f"{d}: {text}" for d, known in others for text in _predicted(known)]


def _predicted(row: VariantRow) -> list[str]:
    return [f"predicted {seconds_text(row.cost.predicted_s)}, not timed"] if row.cost else []


def _answers(variant: int, row: VariantRow, session: Session | None) -> list[str]:
    """Return the verdicts on a variant: on the device of the record, and on all others."""
    texts = [text] if (text := verdict(row)) else []
    if session is None or row.edited:
        return texts
    checks = [(d, each) for (v, d), each in session.checks.items() if v == variant]
    return texts + [f"{d}: {each.text}" for d, each in checks if d != session.device]
