"""The console command: `workbench lab`, `tour --html OUT`, `doctor` and `bench`.

Every import of a heavy library stands in the function that needs it, so that a broken or
missing one costs a sentence from that command and leaves the others working.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from workbench.bench.command import add_options
from workbench.bench.command import bench as measure
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from nbformat import NotebookNode

TOUR = "01_tour.ipynb"
CELL_TIMEOUT_S = 600
COPY_NAME = "workbench-notebooks"
LIBRARIES = ("numpy", "llvmlite", "jupyterlab", "ipywidgets", "anywidget")
VECTOR_FEATURE = re.compile(r"(avx|fma|sse4\.2|f16c|amx|neon|sve|v$)")

# JupyterLab's own page without scripts to fetch and without the state of widgets: an
# output is shown in the richest form that needs neither Python nor the network.
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
FETCHED = re.compile(
    r"<(?:script|link|img|iframe|object|embed)\b[^>]*?"
    r"(?:src|href|data)\s*=\s*[\"']?(?:https?:)?//[^>]*>"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//[^;]*;"
    r"|\bimport\s*(?:\(|[^;]*?\bfrom\b)\s*[\"']https?://[^;]*",
    re.IGNORECASE,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; what went wrong goes to stderr."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except WorkbenchError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return 1


def notebooks_folder() -> Path:
    """Return the folder of the course: the wheel's own copy, or the checkout's.

    Errors: WorkbenchError where neither is there.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_notebooks", package.parent / "notebooks"):
        if (folder / TOUR).is_file():
            return folder
    raise WorkbenchError(
        "cannot find the notebooks",
        f"{TOUR} is neither in the package nor beside it",
        "installing again from a wheel or a full checkout",
    )


def execute(notebook: Path) -> NotebookNode:
    """Return `notebook` with the outputs of a run from top to bottom.

    It runs in a copy of its folder, so that its data is at hand and nothing it writes stays.

    Errors: WorkbenchError that shows the cell that failed.
    """
    nbformat = _library("nbformat")
    nbclient = _library("nbclient")
    jupyter = _library("jupyter_client.kernelspec")
    content: NotebookNode = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory(prefix="workbench-") as scratch:
        folder = shutil.copytree(notebook.parent, Path(scratch) / "notebooks")
        client = nbclient.NotebookClient(
            content,
            timeout=CELL_TIMEOUT_S,
            kernel_name="python3",
            # It listens on the loopback address only; its warning about that is noise here.
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
            resources={"metadata": {"path": str(folder)}},
        )
        try:
            # A page that is sent around shows pictures that need no Python session.
            client.execute(env=os.environ | {"LIVE": "0"})
        except nbclient.exceptions.CellExecutionError as error:
            raise WorkbenchError(
                f"a cell of {notebook.name} failed:\n{error}"
            ) from error
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


def static_page(notebook: NotebookNode) -> str:
    """Return an executed notebook as one HTML page that fetches nothing when opened.

    Errors: WorkbenchError that quotes the first thing that would be fetched.
    """
    nbconvert = _library("nbconvert")
    config = _library("traitlets.config").Config()
    config.NbConvertBase.display_data_priority = STATIC_TYPES
    exporter = nbconvert.HTMLExporter(
        config=config,
        template_name="lab",
        raw_template=STATIC_TEMPLATE,
        embed_images=True,
    )
    page, _ = exporter.from_notebook_node(notebook)
    fetched = FETCHED.search(page)
    if fetched:
        raise WorkbenchError(
            "the page would not open offline",
            f"it fetches {fetched.group(0)[:120]}",
            "removing it from the notebook, or embedding what it shows",
        )
    return str(page)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="workbench", description="Explore kernels.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    lab = commands.add_parser("lab", help="open JupyterLab on the tour")
    lab.add_argument("--no-browser", action="store_true", help="only print the address")
    lab.set_defaults(command=_lab)

    tour = commands.add_parser(
        "tour", help="run the tour and write it as one HTML page"
    )
    tour.add_argument("--html", type=Path, required=True, metavar="OUT")
    tour.set_defaults(command=_tour)

    doctor = commands.add_parser(
        "doctor", help="say what is installed and what can run"
    )
    doctor.set_defaults(command=_doctor)

    bench = commands.add_parser("bench", help="measure, beside other libraries")
    add_options(bench)
    bench.set_defaults(command=measure)
    return parser


def _lab(options: argparse.Namespace) -> int:
    labapp = _library("jupyterlab.labapp")
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
    notebooks, sign = _library("nbformat"), _library("nbformat.sign")
    notary = sign.NotebookNotary()
    for path in sorted(folder.glob("*.ipynb")):
        notary.sign(notebooks.read(path, as_version=4))


def _tour(options: argparse.Namespace) -> int:
    started = time.perf_counter()
    try:  # before the tour runs: a wrong path should not cost its time
        options.html.parent.mkdir(parents=True, exist_ok=True)
        with options.html.open("a", encoding="utf-8"):
            pass
        page = static_page(execute(notebooks_folder() / TOUR))
        options.html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise WorkbenchError(f"cannot write {options.html}", str(error)) from error
    seconds = time.perf_counter() - started
    print(f"wrote {options.html} ({len(page) / 1e6:.1f} MB) in {seconds:.0f} s")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    for line in _findings():
        print(line)
    return 0


def _findings() -> Iterator[str]:
    yield f"workbench   {_version('workbench')}"
    yield (
        f"python      {platform.python_version()} ({platform.python_implementation()},"
        f" {platform.system()} {platform.machine()})"
    )
    for library in LIBRARIES:
        yield f"{library:11} {_version(library)}"
    yield f"cpu         {_cpu()}"
    yield from _speeds()
    yield from _devices()
    yield f"cache       {_cache()}"


def _speeds() -> Iterator[str]:
    """Measure the machine again: on a quiet one this betters what was seen on a busy one."""
    try:
        from workbench.backends.runtime.speeds import measured

        found = measured()
    except (ImportError, WorkbenchError) as error:
        yield f"speeds      cannot be measured: {error}"
        return
    for kind, rate in found.peak.items():
        speed = (
            f"{rate.one / 1e9:.3g} GFLOP/s on one thread, {rate.all / 1e9:.3g} on all"
        )
        yield f"peak {kind:6} {speed}"
    for level, read in found.read.items():
        copy = found.copy[level]
        yield (
            f"{level:11} read {read.one / 1e9:.3g} GB/s on one thread, {read.all / 1e9:.3g} on"
            f" all; copy {copy.one / 1e9:.3g}, {copy.all / 1e9:.3g}"
        )


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return f"not installed: pip install {distribution}"


def _cpu() -> str:
    cores = f"{os.cpu_count()} cores"
    try:
        llvm = _library("llvmlite.binding")
        features = llvm.get_host_cpu_features()
    except (WorkbenchError, RuntimeError) as error:
        return f"{cores} ({error})"
    vector = sorted(name for name, on in features.items() if on and _is_vector(name))
    return f"{llvm.get_host_cpu_name()}, {cores}, {' '.join(vector)}"


def _is_vector(feature: str) -> bool:
    return VECTOR_FEATURE.match(feature) is not None


def _devices() -> Iterator[str]:
    try:
        from workbench import Device
    except ImportError as error:
        yield f"devices     cannot be listed: {error}"
        return
    for name in Device.names():
        state = "available" if Device.available(name) else "not available here"
        yield f"device      {name}: {state}"


def _cache() -> str:
    try:
        from workbench.backends.runtime.cache import cache_folder
    except ImportError as error:
        return f"cannot be found: {error}"
    return str(cache_folder())


def _editable_notebooks() -> Path:
    """The checkout's notebooks, or a copy of the wheel's that the user may change."""
    folder = notebooks_folder()
    if folder.name != "_notebooks":
        return folder
    copy = Path.cwd() / COPY_NAME
    if not copy.exists():
        shutil.copytree(folder, copy)
        print(f"copied the notebooks to {copy}")
    return copy


def _library(name: str) -> ModuleType:
    """Import `name`, or say which package to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise WorkbenchError(
            f"{package} cannot be imported", str(error), f"pip install {package}"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
