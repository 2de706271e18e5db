"""What stays of a workbench in a saved notebook: its picture, and the page to look around in.

JupyterLab saves no widget, unless a reader asks for it in its settings: a notebook that is opened
tomorrow says "model not found" where one was. So a cell has a second output, the picture. While the
widget is there, the widget's page hides the picture; where it is not, the picture's style hides the
place of the widget. The page in its frame is light or dark as JupyterLab is: the frame's
`color-scheme` tells it.
"""

from __future__ import annotations

from html import escape
from secrets import token_hex

from IPython.core.getipython import get_ipython

from workbench.viz.page import document
from workbench.viz.schema.messages import NO_VIEW, Message, ViewState
from workbench.viz.session.messages import sending

MOST_BYTES = 400_000
"""Most bytes of a page that is saved in a cell; of a larger one there is the picture."""
_PLACE = ".jp-OutputArea-child"
_STYLE = """<style>
{place}:has(> .jp-OutputArea-output > [data-still="{key}"]) + {place}:not(:has(.wb)) {{
  display: none;
}}
[data-still="{key}"] > details {{ margin: 2px 0 8px; }}
[data-still="{key}"] iframe {{ display: block; width: 100%; height: 660px; border: 0; }}
[data-jp-theme-light="true"] [data-still="{key}"] iframe {{ color-scheme: light; }}
[data-jp-theme-light="false"] [data-still="{key}"] iframe {{ color-scheme: dark; }}
</style>"""
_FOLD = """<details><summary>Look around: the workbench as it was, without Python</summary>
<iframe loading="lazy" sandbox="allow-scripts allow-downloads" title="workbench"
srcdoc="{page}"></iframe>
<p>It is shown in a notebook that you trust. Run the cell again to work with it.</p></details>"""


class SavedOutput:
    """A Listener that keeps the picture of a cell as it should be saved; `picture` is HTML, `title`
    that of the page, which opens with `view`. `key` names the output, and is told to the widget
    that hides it."""

    def __init__(self, picture: str, title: str, view: ViewState = NO_VIEW):
        self.key = token_hex(8)
        self._picture, self._title, self._view = picture, title, view

    def html(self, record: str) -> str:
        """Return the page of a packed record, folded, and the picture."""
        page = document.document_of(self._title, record, self._view)
        fold = _FOLD.format(page=escape(page)) if len(page) <= MOST_BYTES else ""
        style = _STYLE.format(place=_PLACE, key=self.key)
        return f'<div data-still="{self.key}">{style}{fold}{self._picture}</div>'

    def publish(self, record: str, is_update: bool = False) -> None:
        """Show the output, or what has become of it."""
        shell = get_ipython()
        with sending() as may:
            if may and shell is not None:
                shell.display_pub.publish(
                    {"text/html": self.html(record)},
                    transient={"display_id": self.key},
                    update=is_update,
                )

    # a Listener

    def tell(self, message: Message) -> None:
        """Do nothing: what is saved is a record as a whole."""

    def renew(self, record: str) -> None:
        """Save another record."""
        self.publish(record, is_update=True)

    def look(self, view: ViewState) -> None:
        """Do nothing: a page that opens begins as every page does."""
