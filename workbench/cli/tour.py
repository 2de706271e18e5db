"""`workbench tour`: a notebook run from top to bottom, as one HTML page that opens offline."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import WorkbenchError
from workbench.base.files import PAGE, write_whole
from workbench.base.installation import library
from workbench.base.terminal import say
from workbench.course import TOUR, course_folder

if TYPE_CHECKING:
    from nbformat import NotebookNode

CELL_TIMEOUT_S = 600
SOCKET_BYTES = 100
"""Limit of the path that sockets are named after: systems allow 104 or 108 bytes in all."""

# The page of nbconvert's "lab" template without the scripts that it fetches and without the state
# of widgets. STATIC_TYPES are the types of output that need neither Python nor the network, the
# richest first.
STATIC_TEMPLATE = """
{%- extends 'index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block footer -%}</html>{%- endblock -%}
"""
STATIC_TYPES = [
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "text/plain",
]
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FETCHED = re.compile(
    r"<(?:script|link|img|iframe|object|embed)\b[^>]*?"
    r"(?:src|href|data)\s*=\s*[\"']?(?:https?:)?//[^>]*>"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//[^;]*;"
    r"|\bimport\s*(?:\(|[^;]*?\bfrom\b)\s*[\"']https?://[^;]*",
    re.IGNORECASE,
)


def tour(options: argparse.Namespace) -> int:
    """Run the tour, write it to `options.html`, and return 0.

    Errors: WorkbenchError as `execute` and `static_page`, or where nothing can be written.
    """
    started = time.perf_counter()
    try:
        options.html.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkbenchError(f"cannot write {options.html}", str(error)) from error
    path = write_whole(options.html, PAGE, lambda: static_page(execute(course_folder() / TOUR)))
    seconds = time.perf_counter() - started
    say(f"wrote {options.html} ({path.stat().st_size / 1e6:.1f} MB) in {seconds:.0f} s")
    return 0


def execute(notebook: Path) -> NotebookNode:
    """Return `notebook` with the outputs of a run from top to bottom.

    It runs in a temporary copy of its folder: its data is there, and what it writes is deleted.

    Errors: WorkbenchError for a cell that fails or runs for more than CELL_TIMEOUT_S, and where the
    Python session cannot start or ends.
    """
    nbformat = library("nbformat")
    nbclient = library("nbclient")
    jupyter = library("jupyter_client.kernelspec")
    content: NotebookNode = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory(prefix="workbench-") as scratch:
        folder = shutil.copytree(notebook.parent, Path(scratch) / "notebooks")
        client = nbclient.NotebookClient(
            content,
            timeout=CELL_TIMEOUT_S,
            kernel_name="python3",
            # The session listens on the loopback address only: its warning about that is noise.
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
            resources={"metadata": {"path": str(folder)}},
            config=listening_at(Path(scratch) / "session"),
        )
        try:
            # LIVE=0: an exploration is a picture, since the page has no Python session.
            client.execute(env=os.environ | {"LIVE": "0"})
        except nbclient.exceptions.CellExecutionError as error:
            raise WorkbenchError(f"a cell of {notebook.name} failed:\n{error}") from error
        except nbclient.exceptions.CellTimeoutError as error:
            raise WorkbenchError(
                f"a cell of {notebook.name} was stopped",
                f"it ran for more than {CELL_TIMEOUT_S} seconds",
            ) from error
        except nbclient.exceptions.DeadKernelError as error:
            raise WorkbenchError(
                f"the Python session of {notebook.name} ended", str(error)
            ) from error
        except jupyter.NoSuchKernel as error:
            raise WorkbenchError(
                "cannot start a Python session", str(error), "pip install ipykernel"
            ) from error
    return content


def listening_at(place: Path) -> Any:
    """Return the settings of a Python session that listens at Unix sockets named after `place`;
    the default ones for a longer path, or without Unix sockets. TCP ports are chosen before the
    session starts: another process may take one in between, and the session would end."""
    settings = library("traitlets.config").Config()
    if hasattr(socket, "AF_UNIX") and len(os.fsencode(place)) < SOCKET_BYTES:
        settings.KernelManager.transport = "ipc"
        settings.KernelManager.ip = str(place)
    return settings


def static_page(notebook: NotebookNode) -> str:
    """Return an executed notebook as one HTML page that fetches nothing when opened.

    Errors: WorkbenchError that quotes the first thing that would be fetched.
    """
    nbconvert = library("nbconvert")
    config = library("traitlets.config").Config()
    config.NbConvertBase.display_data_priority = STATIC_TYPES
    exporter = nbconvert.HTMLExporter(
        config=config, template_name="lab", raw_template=STATIC_TEMPLATE, embed_images=True
    )
    resources = {"metadata": {"name": title_of(notebook)}}
    page, _ = exporter.from_notebook_node(notebook, resources=resources)
    fetched = FETCHED.search(page)
    if fetched:
        raise WorkbenchError(
            "the page would not open offline",
            f"it fetches {fetched.group(0)[:120]}",
            "removing it from the notebook, or embedding what it shows",
        )
    return str(page)


def title_of(notebook: NotebookNode) -> str:
    """Return the first heading of a notebook; "workbench" if it has none."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = (HEADING.search(text) for text in texts)
    return next((heading[1].strip() for heading in headings if heading), "workbench")
