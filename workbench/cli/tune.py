"""`workbench tune`: faster opts for a script or an ONNX file, in a tuning file beside it; and
several tuning files as one.

Sections: The command; The kernels of a script or an ONNX file; Clusters.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.base.context import Context
from workbench.base.errors import WorkbenchError, plural
from workbench.base.files import writable_path
from workbench.base.installation import library
from workbench.base.terminal import say
from workbench.cli.script import exit_code, script_path
from workbench.counters import counting_kernels
from workbench.search.model_search import ModelKernel, search_model
from workbench.search.search import checked
from workbench.search.tuning_file import FILE_NAME, TUNING_FILE, TuningFile

# --------------------------------------------------------------------------------------------------
# The command.


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `workbench tune`."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a Python script, or an ONNX file"
    )
    parser.add_argument("--budget", type=float, default=60.0, metavar="S", help="seconds (60)")
    parser.add_argument("--width", type=int, default=2, metavar="N", help="of the search (2)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help=f"the tuning file ({FILE_NAME} beside FILE)"
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="of a scheduler of Dask, such as tcp://10.0.0.1:8786"
    )
    parser.add_argument(
        "--shape", action="append", default=[], metavar="NAME=SIZES",
        help="of an input of an ONNX file that leaves it open: x=1,3,224,224",
    )  # fmt: skip
    parser.add_argument(
        "--merge", action="store_true", help="write several tuning files as one: the first, or OUT"
    )
    parser.set_defaults(command=tune)


def tune(options: argparse.Namespace) -> int:
    """Run `workbench tune`, print a line for each kernel, and return 0; of --merge 1 if a line of a
    file is no row.

    Errors: WorkbenchError as `search_model`, for a file of another kind, and for a cluster that
    does not answer.
    """
    if options.merge:
        return _merge(options.files, options.out or options.files[0])
    if len(options.files) > 1:
        because = f"there are {len(options.files)} files"
        raise WorkbenchError("cannot tune these", because, "one at a time; --merge takes several")
    (path,) = options.files
    checked(options.width, options.budget, None)  # before the script runs
    out = writable_path(options.out or path.absolute().parent / FILE_NAME, TUNING_FILE)
    is_onnx = path.suffix.lower() == ".onnx"
    kernels = onnx_kernels(path, options.shape) if is_onnx else script_kernels(path)
    say(f"{plural(len(kernels), 'kernel')} of {path.name}")
    with _cluster(options.cluster) as client:
        found = search_model(
            kernels, options.budget, options.width, out, client,
            lambda result: say(f"  {result}"),
        )  # fmt: skip
    say("\n".join(str(found).split("\n")[:2]))
    return 0


def _merge(paths: Sequence[Path], out: Path) -> int:
    """Write the rows of tuning files as one file; say what is in none of them a row."""
    files = [TuningFile.read(path) for path in paths]
    for path, file in zip(paths, files, strict=True):
        if file.refused:
            say(f"{path}: {file.complaint}")
    merged = TuningFile({}).merged(*files)
    merged.write(out)
    say(f"{plural(len(merged.rows), 'row')} in {out}")
    return int(any(file.refused for file in files))


# --------------------------------------------------------------------------------------------------
# The kernels of a script or an ONNX file.


def script_kernels(path: Path) -> list[ModelKernel]:
    """Run a script, and return the kernels that ran, replays included. Ctrl-C ends the script: what
    has run until then is returned.

    Errors: WorkbenchError for a script that is not there, or runs no kernel; those of the script.
    """
    script_path(path, "run")
    arguments, folder = sys.argv, str(path.absolute().parent)
    sys.argv = [str(path)]
    sys.path.insert(0, folder)
    try:
        with counting_kernels() as counts:
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as error:
        exit_code(error)  # what it says is printed
    except KeyboardInterrupt:
        say(f"interrupted: the kernels that {path.name} has run until now are searched")
    finally:
        sys.argv = arguments
        sys.path.remove(folder)
    if not counts:
        raise WorkbenchError(f"{path.name} ran no kernels", "it computes no Tensor", ".realize()")
    return [ModelKernel(plain, device, runs) for (plain, _, device), runs in counts.items()]


def onnx_kernels(path: Path, shapes: Sequence[str]) -> list[ModelKernel]:
    """Return the kernels of an ONNX file for inputs of random numbers.

    Errors: ModelError for a file that cannot be read, and for shapes that it leaves open.
    """
    from workbench.models.model import Model
    from workbench.models.onnx.source import OnnxSource
    from workbench.viz.exploration.explore import explore

    source = OnnxSource(path)
    with Context(TUNING="none"):
        ex = explore(Model(source), *source.random_inputs(_shapes(shapes)).values())
    return [ModelKernel(k.original, k.device, title=k.title) for k in ex.kernels]


def _shapes(texts: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    """Return shapes by name of texts such as "x=1,3,224,224". Errors: WorkbenchError."""
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        parts = sizes.split(",") if sizes else []
        if not name or not all(part.isdecimal() for part in parts):
            because = "it must be a name and sizes"
            raise WorkbenchError(f"cannot read --shape {text!r:.60}", because, "x=1,3,224,224")
        shapes[name] = tuple(map(int, parts))
    return shapes


# --------------------------------------------------------------------------------------------------
# Clusters.


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Yield the client of Dask's scheduler at an address; None without one.

    Errors: WorkbenchError if it does not answer, or Dask is missing.
    """
    if address is None:
        yield None
        return
    distributed = library("distributed")
    try:
        client = distributed.Client(address, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        what = f"there is no cluster at {address!r:.100}"
        raise WorkbenchError(what, str(error), "the address that `dask scheduler` prints") from None
    with client:
        yield client


CONNECT_S = 20
"""Seconds in which a scheduler must answer."""
