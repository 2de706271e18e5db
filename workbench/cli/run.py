"""`workbench show`, panes of saved explorations and runs as text, and `workbench profile`."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from workbench.base.errors import WorkbenchError, plural
from workbench.base.files import PAGE, writable_path
from workbench.base.terminal import say
from workbench.cli.script import exit_code, prepared_script
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.explore import load
from workbench.viz.run.run import RUN_FILE, TRACE, Run, profile

RUN_PANES = ("kernels", "gaps", "memory", "phases", "modules", "kinds")
"""The tables of a run, which `show` prints."""


def show(options: argparse.Namespace) -> int:
    """Print a pane of a saved exploration or run, as text or as JSON.

    Errors: WorkbenchError for a file that cannot be loaded, and for a pane or a kernel that does
    not exist.
    """
    if options.before is not None:
        say(loaded_run(options.file) - loaded_run(options.before))
        return 0
    value = load(options.file)
    if isinstance(value, Run):
        if options.kernel is not None:
            because = "a run has no kernels with panes of their own"
            raise WorkbenchError("--kernel is for explorations", because, "the pane kernels")
        text, data = _of_run(value, options.pane)
    else:
        text, data = _of_exploration(value, options.pane, options.kernel)
    say(json.dumps(data, indent=1) if options.json else text)
    return 0


def profile_script(options: argparse.Namespace) -> int:
    """Run a script as `python script.py` does, print where its time went, and save the run where
    that was requested. Return the script's exit code; 1 if it fails: the run has what ran before.

    Errors: MissingFileError for a script that is not there; WorkbenchError, before it runs, if a
    file cannot be written.
    """
    before = None if options.before is None else loaded_run(options.before)
    page, saved, trace = _outputs(options)
    path = prepared_script(options, "profile")
    code = 0
    try:
        with profile(f"of {path.name}") as run:
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as error:
        code = exit_code(error)
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        say(json.dumps(run.to_dict()) if options.json else run)
        if before is not None and not options.json:
            say(run - before)
    finally:  # also where the terminal is gone
        _write(run, before, page, saved, trace)
    return code


def _write(
    run: Run, before: Run | None, page: Path | None, saved: Path | None, trace: Path | None
) -> None:
    """Write the files of a run, and say on stderr where they are."""
    if page is not None:
        print(f"the page: {run.to_html(page, before=before)}", file=sys.stderr)
    if saved is not None:
        print(f"the run: {run.save(saved)}", file=sys.stderr)
    if trace is not None:
        print(f"the trace: {run.to_chrome_trace(trace)}", file=sys.stderr)


def _outputs(options: argparse.Namespace) -> list[Path | None]:
    """Return the absolute paths of the page, the saved run and the trace, before the script runs
    and changes its folder; None for what is not to be written.

    Errors: WorkbenchError for a path that cannot be written, and for one that is named twice.
    """
    asked = ((options.html, PAGE), (options.save, RUN_FILE), (options.trace, TRACE))
    paths = [None if path is None else writable_path(path, kind) for path, kind in asked]
    for place, path in enumerate(paths):
        if path is not None and path in paths[:place]:
            because = "it is named for two outputs"
            raise WorkbenchError(f"cannot write {path}", because, "two paths")
    return paths


def loaded_run(path: str) -> Run:
    """Return the run of a file. Errors: WorkbenchError for a file of another kind."""
    value = load(path)
    if isinstance(value, Run):
        return value
    because = "it has an exploration, and only two runs are compared"
    raise WorkbenchError(f"cannot compare {path}", because, "a file of run.save(path)")


def _of_run(run: Run, pane: str) -> tuple[str, Any]:
    if not pane:
        return str(run), run.to_dict()
    tables = {
        "kernels": lambda: run.kernels, "gaps": lambda: run.gaps, "memory": lambda: run.memory,
        "phases": lambda: run.phases, "modules": run.by_module, "kinds": run.by_kind,
    }  # fmt: skip
    if pane not in tables:
        because = f"a run has {', '.join(RUN_PANES)}"
        raise WorkbenchError(f"there is no pane {pane!r:.40}", because, "kernels")
    table = tables[pane]()
    return str(table), [row._asdict() for row in table]


def _place(ex: Exploration, kernel: int) -> int:
    """Return the position of a kernel that counts from 1. Errors: WorkbenchError without one."""
    count = len(ex.kernels)
    if not 1 <= kernel <= count:
        because = f"the exploration has {plural(count, 'kernel')}, which count from 1"
        raise WorkbenchError(f"there is no kernel {kernel}", because, "--kernel 1" * bool(count))
    return kernel - 1


def _of_exploration(ex: Exploration, pane: str, kernel: int | None) -> tuple[str, Any]:
    """Return the text and the data of a pane; kernels count from 1, as on the page."""
    place = None if kernel is None else _place(ex, kernel)
    if not pane and place is None:
        return str(ex), to_builtins(ex.page.record(ex), str_keys=True)
    shown = ex.pane(pane or "loops", place)
    text = str(shown)
    data: dict[str, Any] = {"pane": shown.name, "kernel": kernel, "text": text}
    section = ex.page.record(ex).panels.get(shown.name)
    if section is not None and section.data is not None:
        data["data"] = section.data
    return text, data
