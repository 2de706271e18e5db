"""The console command: `lab`, `tour --html OUT`, `doctor`, `bench`, `tune`, `show`, `kernels` and
`profile`.

Heavy libraries are imported in the functions that need them: where one is missing or broken, its
command prints a sentence, and the other commands work.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from workbench.base.errors import WorkbenchError
from workbench.base.installation import library
from workbench.bench.command import add_options
from workbench.bench.command import bench as measure
from workbench.cli.doctor import doctor
from workbench.cli.tour import tour
from workbench.cli.tune import add_options as add_tune_options
from workbench.course import TOUR, course_folder

COPY_NAME = "workbench-notebooks"
_GENERATED_FOLDERS = {"__pycache__", ".ipynb_checkpoints"}
"""Folders that Python and Jupyter make: they are not copied."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a WorkbenchError is printed to stderr."""
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

    page = commands.add_parser("tour", help="run the tour and write it as one HTML page")
    page.add_argument("--html", type=Path, required=True, metavar="OUT")
    page.set_defaults(command=tour)

    findings = commands.add_parser("doctor", help="say what is installed and what can run")
    findings.set_defaults(command=doctor)

    bench = commands.add_parser("bench", help="measure, beside other libraries")
    add_options(bench)
    bench.set_defaults(command=measure)

    tune = commands.add_parser("tune", help="search faster opts for a script or an ONNX file")
    add_tune_options(tune)

    pane = commands.add_parser("show", help="print a pane of a saved exploration or run")
    pane.add_argument("file", help="a file of ex.save(path) or run.save(path)")
    pane.add_argument("pane", nargs="?", default="", help="loops, plan, code, ..; of a run kernels,"
        " gaps, memory, phases, modules or kinds")  # fmt: skip
    pane.add_argument("--kernel", type=int, metavar="N", help="one kernel; they count from 1")
    pane.add_argument("--before", metavar="FILE", help="an earlier run: print what differs")
    pane.add_argument("--json", action="store_true", help="as data")
    pane.set_defaults(command=_show)

    _add_kernels(commands.add_parser("kernels", help="capture kernels, replay and compare them"))

    script = commands.add_parser("profile", help="run a script, and say where its time went")
    script.add_argument("--save", type=Path, metavar="OUT", help="the run as a file, for show")
    script.add_argument("--html", type=Path, metavar="OUT", help="the run as a page")
    script.add_argument("--before", metavar="FILE", help="an earlier run: print what differs, too")
    script.add_argument("--trace", type=Path, metavar="OUT", help="the run for ui.perfetto.dev")
    script.add_argument("--json", action="store_true", help="print it as data")
    script.add_argument("script")
    script.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    script.set_defaults(command=_profile)
    return parser


def _add_kernels(parser: argparse.ArgumentParser) -> None:
    """Add the commands of `workbench kernels`."""
    parser.epilog = (
        "The exit code is 1 if a line of a file is no row, of replay also if a kernel is wrong or"
        " fails or none is right, and of capture that of the script."
    )
    commands = parser.add_subparsers(required=True, metavar="WHAT", dest="what")
    parser.set_defaults(command=_kernels)

    script = commands.add_parser("capture", help="run a script, and write the kernels that it runs")
    script.add_argument("file", type=Path, help="the kernel file to write")
    script.add_argument("script")
    script.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")

    again = commands.add_parser("replay", help="compile and check the kernels of files again")
    again.add_argument("files", type=Path, nargs="+", metavar="FILE")
    again.add_argument("--device", default="", help="the device to run them on (that of each)")

    change = commands.add_parser("diff", help="say how kernels differ between two files, and why")
    change.add_argument("old", type=Path)
    change.add_argument("new", type=Path)

    one = commands.add_parser("merge", help="write kernel files as one")
    one.add_argument("out", type=Path)
    one.add_argument("files", type=Path, nargs="+", metavar="FILE")

    models = commands.add_parser("models", help="write the kernels of the benchmark's models")
    models.add_argument("file", type=Path, help="the kernel file to write")
    models.add_argument("--device", default="", help="the device to compile for")
    models.add_argument("--only", nargs="+", default=[], metavar="NAME", help="some models")


def _kernels(options: argparse.Namespace) -> int:
    return int(getattr(import_module("workbench.cli.kernels"), options.what)(options))


def _show(options: argparse.Namespace) -> int:
    return int(import_module("workbench.cli.run").show(options))


def _profile(options: argparse.Namespace) -> int:
    return int(import_module("workbench.cli.run").profile_script(options))


def _lab(options: argparse.Namespace) -> int:
    labapp = library("jupyterlab.labapp")
    folder = _editable_notebooks()
    _trust(folder)
    arguments = [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url=/lab/tree/{TOUR}"]
    if options.no_browser:
        arguments.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print("running as root: notebooks can change anything on this machine")
        arguments.append("--allow-root")
    labapp.LabApp.launch_instance(arguments)
    return 0


def _trust(folder: Path) -> None:
    """Sign the notebooks in `folder`: Jupyter shows no saved HTML of unsigned ones."""
    notebooks, sign = library("nbformat"), library("nbformat.sign")
    notary = sign.NotebookNotary()
    for path in sorted(folder.glob("*.ipynb")):
        notary.sign(notebooks.read(path, as_version=4))


def _editable_notebooks() -> Path:
    """Copy the course into a folder that the user may change, and return the folder: beside the
    notebooks of a checkout, else in the current directory. Notebooks there are not replaced."""
    course = course_folder()
    is_checkout = course.name != "_notebooks"
    copy = (course.parent if is_checkout else Path.cwd()) / COPY_NAME
    for path in sorted(course.rglob("*")):
        target = copy / path.relative_to(course)
        is_kept = path.suffix == ".ipynb" and target.exists()
        if path.is_file() and not is_kept and not _GENERATED_FOLDERS & set(path.parts):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    print(f"your copy of the notebooks: {copy} (delete one there to have it anew)")
    return copy


if __name__ == "__main__":
    sys.exit(main())
