"""Run the course's notebooks and strip what changes from run to run.

    python scripts/run_notebooks.py                  rewrite notebooks/*.ipynb in place
    python scripts/run_notebooks.py --out DIR [...]  write the results to DIR instead
    python scripts/run_notebooks.py --measure        replace the pictures of times, too

Sources are kept, and outputs that show without Python (text, HTML, SVG, PNG). Widget state, widget
views, timestamps, versions, random ids and durations are removed. Cells tagged "measured" show
times, as pictures; their earlier outputs are kept, so that a second run changes nothing. A cell
tagged "machine" shows what differs on another processor: instructions, or how many floats a
register holds. A cell tagged "solution" is folded in JupyterLab.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from workbench import Device
from workbench.base.errors import WorkbenchError
from workbench.base.installation import library
from workbench.cli.tour import execute

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
MAX_BYTES = 500_000
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
WIDGET_TYPES = (
    "application/vnd.jupyter.widget-view+json",
    "application/vnd.jupyter.widget-state+json",
)
MEASURED = "measured"
MACHINE = "machine"
SOLUTION = "solution"
FOLDED = "<details>"
_TIME = r"\d[\d.,]* (?:ns|[µu]s|ms|s)\b"
# How long a pass took: a column of text, a cell of a table, what follows a heading.
COLUMN = re.compile(rf"(?m)^( *[\w-]+) +{_TIME}(?=  )")
CELL = re.compile(rf'(<td class="n">|<span class="mu">){_TIME}(?=<)')
AFTER = re.compile(rf", {_TIME}(?=</span>)")
FIGURE = re.compile(rf"(?<![\w.]){_TIME}|\d [GM]?(?:FLOP|B)/s")
ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
OBJECT = re.compile(r"\bat 0x[0-9a-f]{8,}\b")
# Where a path from the root of a disk begins: not in a closing tag, URL or fraction.
START = r"(?<![\w/.:<])"
ROOTS = "etc|home|lib|media|mnt|opt|private|root|srv|tmp|usr|var|Users|Volumes"
ABSOLUTE_PATH = re.compile(rf"{START}/(?:{ROOTS})/[\w.-]+|(?<!\w)[A-Za-z]:\\+\w+")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run and strip the notebooks.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="all, where none is named")
    parser.add_argument("--out", type=Path, default=None, help="in place, where absent")
    parser.add_argument("--measure", action="store_true", help="show the new times")
    options = parser.parse_args(arguments)

    failed = False
    for path in options.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        try:
            before = nbformat.read(path, as_version=4)
            executed = execute(path)
            executed.metadata["machine"] = machine()
            text = dumps(
                stripped(executed if options.measure else stored_outputs(executed, before))
            )
        except WorkbenchError as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        violations = list(problems(text))
        for problem in violations:
            print(f"{path.name}: {problem}", file=sys.stderr)
        failed = failed or bool(violations)
        target = path if options.out is None else options.out / path.name
        target.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text.encode()) / 1000:.0f} kB")
    return int(failed)


def stored_outputs(executed: NotebookNode, before: NotebookNode) -> NotebookNode:
    """Return `executed` with the outputs that its measured cells had `before`, if their source is
    the same and they had any."""
    outputs = {c.source: c.outputs for c in before.cells if _is(c, MEASURED) and c.outputs}
    for cell in executed.cells:
        if _is(cell, MEASURED):
            cell.outputs = outputs.get(cell.source, cell.outputs)
    return executed


def machine() -> str:
    """Return the facts of this machine that cells tagged "machine" depend on."""
    binding = library("llvmlite.binding")
    target = Device["LLVM"].target
    version = ".".join(str(part) for part in binding.llvm_version_info)
    return (
        f"{binding.get_host_cpu_name()}, {target.cores} cores with {target.vector_registers}"
        f" registers of {target.vector_bytes} bytes, L2 {target.l2_bytes >> 10} KiB in"
        f" {target.cache_ways('L2')} ways, LLVM {version}"
    )


def differences(executed: NotebookNode, committed: NotebookNode) -> Iterator[str]:
    """Yield a sentence for every cell that shows other text than the committed one. Measured cells
    are skipped, and cells tagged "machine" if the committed ones are of another machine."""
    is_same_machine = executed.metadata.get("machine") == committed.metadata.get("machine")
    cells = zip(executed.cells, committed.cells, strict=True)
    for number, (now, before) in enumerate(cells):
        if _is(now, MEASURED) or (_is(now, MACHINE) and not is_same_machine):
            continue
        changed = unified_diff(_visible_lines(before), _visible_lines(now), lineterm="", n=0)
        lines = [line for line in changed if line[:3] not in ("---", "+++")]
        if lines:
            yield f"cell [{number}] shows other text than is committed:\n" + "\n".join(lines)


def stripped(notebook: NotebookNode) -> NotebookNode:
    """Return a copy of `notebook` that holds only what a reader sees."""
    cells = [
        _stripped_cell(cell, f"cell-{number:02}")
        for number, cell in enumerate(notebook.cells, start=1)
    ]
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for name in ("title", "machine"):
        if name in notebook.metadata:
            metadata[name] = notebook.metadata[name]
    copy: NotebookNode = nbformat.from_dict(
        {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    )
    return copy


def dumps(notebook: NotebookNode) -> str:
    """Return the text of `notebook` as it is committed."""
    return f"{nbformat.writes(notebook)}\n"


def problems(text: str) -> Iterator[str]:
    """Yield a sentence for everything that must not be in a committed notebook."""
    size_bytes = len(text.encode())
    if size_bytes > MAX_BYTES:
        yield f"it has {size_bytes} bytes, more than {MAX_BYTES}"
    notebook = json.loads(text)
    if "widgets" in notebook["metadata"]:
        yield "it holds widget state"
    for number, cell in enumerate(notebook["cells"], start=1):
        for problem in _cell_problems(cell):
            yield f"cell {number} {problem}"


def _cell_problems(cell: dict[str, Any]) -> Iterator[str]:
    texts = [_joined(cell["source"])]
    for output in cell.get("outputs", []):
        if output["output_type"] == "error":
            yield f"ended in {output['ename']}: {output['evalue']}"
        data = output.get("data", {})
        if any(kind in data for kind in WIDGET_TYPES):
            yield "shows a widget that needs Python"
        if "<svg" in _joined(data.get("text/html", "")):
            yield "has SVG inside of HTML, which GitHub takes out: an <img> stays"
        texts.append(_joined(output.get("text", "")))
        texts += [_joined(v) for kind, v in data.items() if kind != "image/png"]
        plain = _joined(output.get("text", "")) + _joined(data.get("text/plain", ""))
        page = _joined(data.get("text/html", ""))
        figure = FIGURE.search(plain) or ADDRESS.search(plain) or OBJECT.search(page)
        if figure and MEASURED not in cell["metadata"].get("tags", []):
            yield f"shows a time or an address, which the next run changes: {figure.group(0)}"
    for text in texts:
        path = _machine_path(text)
        if path:
            yield f"names a path of one machine: {path}"


def _machine_path(text: str) -> str | None:
    match = ABSOLUTE_PATH.search(text) or _path_here().search(text)
    return match.group(0) if match else None


@cache
def _path_here() -> re.Pattern[str]:
    """Return the pattern of this machine's own folders: home, temporary, checkout, Python."""
    places = (Path.home(), Path(tempfile.gettempdir()), NOTEBOOKS.parent, Path(sys.prefix))
    names = [re.escape(str(place)) for place in places if len(place.parts) > 1]
    return re.compile(rf"{START}(?:{'|'.join(names)})\b")


def _joined(text: Any) -> str:
    """Return a field as one string; the format also allows a list of lines, or JSON."""
    if isinstance(text, str):
        return text
    if isinstance(text, list):
        return "".join(map(str, text))
    return json.dumps(text)


def _visible_lines(cell: NotebookNode) -> list[str]:
    """Return the lines of text that a cell shows, also those of a folded answer."""
    texts = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        texts.append(_joined(output.get("text", "") or data.get("text/plain", "")))
        html = _joined(data.get("text/html", ""))
        if html.startswith(FOLDED):
            texts.append(html)
    return "\n".join(texts).splitlines()


def _is(cell: NotebookNode, tag: str) -> bool:
    return cell.cell_type == "code" and tag in cell.metadata.get("tags", [])


def _stripped_cell(cell: NotebookNode, name: str) -> dict[str, Any]:
    bare: dict[str, Any] = {"cell_type": cell.cell_type, "id": name}
    bare["source"] = cell.source.rstrip()
    tags = cell.metadata.get("tags", [])
    bare["metadata"] = {"tags": tags} if tags else {}
    if cell.cell_type == "code":
        if _is(cell, SOLUTION):
            bare["metadata"]["jupyter"] = {"source_hidden": True}
        bare["execution_count"] = cell.execution_count
        outputs = [_stripped_output(o, _is(cell, MEASURED)) for o in cell.outputs]
        bare["outputs"] = _in_one_piece(outputs)
    return bare


def _stripped_output(output: NotebookNode, is_measured: bool) -> dict[str, Any]:
    bare = dict(output)
    if "data" in bare:
        data = {k: v for k, v in bare["data"].items() if k not in WIDGET_TYPES}
        if "text/html" in data:
            html = CELL.sub(r"\1", _joined(data["text/html"]))
            data["text/html"] = AFTER.sub("", html)
        if "text/plain" in data:
            plain = COLUMN.sub(r"\1", _joined(data["text/plain"]))
            data["text/plain"] = "times of one machine" if is_measured else plain
        bare["data"], bare["metadata"] = data, {}
    return bare


def _in_one_piece(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join printed text: how it was cut depends on when it arrived."""
    joined: list[dict[str, Any]] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        is_stream = output["output_type"] == "stream"
        if is_stream and last.get("name") == output["name"]:
            last["text"] = _joined(last["text"]) + _joined(output["text"])
        else:
            joined.append(output)
    return joined


if __name__ == "__main__":
    sys.exit(main())
