"""The console command: `workbench lab`, `tour --html OUT`, `doctor` and `bench`.

Every import of a heavy library stands in the function that needs it, so that a broken or
missing one costs a sentence from that command and leaves the others working.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.base.errors import WorkbenchError
from workbench.base.libraries import library
from workbench.bench.command import add_options
from workbench.bench.command import bench as measure
from workbench.cli.doctor import doctor
from workbench.cli.tour import tour
from workbench.course import TOUR, course_folder

COPY_NAME = "workbench-notebooks"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; what went wrong goes to stderr."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except WorkbenchError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="workbench", description="Explore kernels.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    lab = commands.add_parser("lab", help="open JupyterLab on the tour")
    lab.add_argument("--no-browser", action="store_true", help="only print the address")
    lab.set_defaults(command=_lab)

    page = commands.add_parser(
        "tour", help="run the tour and write it as one HTML page"
    )
    page.add_argument("--html", type=Path, required=True, metavar="OUT")
    page.set_defaults(command=tour)

    findings = commands.add_parser(
        "doctor", help="say what is installed and what can run"
    )
    findings.set_defaults(command=doctor)

    bench = commands.add_parser("bench", help="measure, beside other libraries")
    add_options(bench)
    bench.set_defaults(command=measure)
    return parser


def _lab(options: argparse.Namespace) -> int:
    labapp = library("jupyterlab.labapp")
    folder = _editable_notebooks()
    _trust(folder)
    arguments = [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{TOUR}",
    ]
    if options.no_browser:
        arguments.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print("running as root: notebooks can change anything on this machine")
        arguments.append("--allow-root")
    labapp.LabApp.launch_instance(arguments)
    return 0


def _trust(folder: Path) -> None:
    """Sign the notebooks that we ship: Jupyter strips pictures from notebooks of strangers."""
    notebooks, sign = library("nbformat"), library("nbformat.sign")
    notary = sign.NotebookNotary()
    for path in sorted(folder.glob("*.ipynb")):
        notary.sign(notebooks.read(path, as_version=4))


def _editable_notebooks() -> Path:
    """The checkout's notebooks, or a copy of the wheel's that the user may change."""
    folder = course_folder()
    if folder.name != "_notebooks":
        return folder
    copy = Path.cwd() / COPY_NAME
    if not copy.exists():
        shutil.copytree(folder, copy)
        print(f"copied the notebooks to {copy}")
    return copy


if __name__ == "__main__":
    sys.exit(main())
