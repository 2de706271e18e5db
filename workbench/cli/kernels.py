"""`workbench kernels`: kernel files, which are captured, replayed, compared and merged."""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path

from workbench.base.errors import WorkbenchError, plural
from workbench.base.files import writable_path
from workbench.base.terminal import say
from workbench.cli.script import exit_code, prepared_script
from workbench.kernel_files.capture_kernels import capture_kernels
from workbench.kernel_files.differences import kernel_differences
from workbench.kernel_files.kernel_file import KERNEL_FILE, KernelFile
from workbench.kernel_files.replay_kernels import replay_kernels


def capture(options: argparse.Namespace) -> int:
    """Run a script, and write the kernels that it runs; return its exit code."""
    path = prepared_script(options, "run")
    out = writable_path(options.file, KERNEL_FILE)  # before the script changes its folder
    code = 0
    try:
        with capture_kernels(out, program=path.name):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as error:
        code = exit_code(error)
    say(f"{plural(len(KernelFile.read(out).kernels), 'kernel')} in {options.file}")
    return code


def replay(options: argparse.Namespace) -> int:
    """Compile and check the kernels of files again; return 1 if one is wrong or fails, none is
    right, or a line is no row."""
    file = _read(options.files)
    replays = replay_kernels(file, options.device)
    say(replays)
    return 0 if replays.is_good and not file.refused else 1


def diff(options: argparse.Namespace) -> int:
    """Print how the kernels of two files differ, with the reasons; return 1 if a line is no row."""
    old, new = (KernelFile.read(path) for path in (options.old, options.new))
    say(kernel_differences(old, new))
    return int(bool(old.refused or new.refused))


def merge(options: argparse.Namespace) -> int:
    """Write kernel files as one, and say which lines are no rows; return 1 if there are any."""
    merged = _read(options.files)
    if merged.complaint:
        say(merged.complaint)
    merged.write(options.out)
    say(f"{plural(len(merged.kernels), 'kernel')} in {options.out}")
    return int(bool(merged.refused))


def models(options: argparse.Namespace) -> int:
    """Write the kernels of the benchmark's models, which do not run; return 0."""
    from workbench.bench.model_kernels import ALL_MODELS, model_kernels

    chosen = [m for m in ALL_MODELS if not options.only or m.name in options.only]
    if not chosen:
        names = ", ".join(model.name for model in ALL_MODELS)
        what = f"there is no model {', '.join(options.only)}"
        raise WorkbenchError(what, f"the models are {names}", ALL_MODELS[0].name)
    out = writable_path(options.file, KERNEL_FILE)
    file = model_kernels(chosen, options.device)
    file.write(out)
    say(f"{plural(len(file.kernels), 'kernel')} of {plural(len(chosen), 'model')}")
    return 0


def _read(paths: list[Path]) -> KernelFile:
    """Return kernel files as one, with the lines of each that are no rows."""
    files = [KernelFile.read(path) for path in paths]
    rows = [row for file in files for row in file.rows]
    return KernelFile.of(rows, [line for file in files for line in file.refused])
