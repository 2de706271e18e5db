"""The tuning files in force, and kernels with the opts that these have.

With the setting TUNING it is the file that it names. Otherwise it is `workbench-tuning.jsonl` in
the folder of the script, and of each ONNX file that was loaded. A file is read when a kernel is
first run, and again when it has changed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from workbench.backends.device import Device
from workbench.base.context import TUNING
from workbench.base.errors import FileError
from workbench.base.interrupts import free_lock
from workbench.base.source import warn_user
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_if_legal, resolve
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.passes import Memo
from workbench.search.tuning_file import FILE_NAME, TuningFile, opts_of

NO_FILE = "none"
"""The value of TUNING without any file."""


class _Read(NamedTuple):
    """A file as it was read; `signature` tells whether it has changed since (None: no file)."""

    signature: tuple[int, ...] | None
    file: TuningFile


_model_folders: dict[str, None] = {}
_files: dict[str, _Read] = {}
_lock = free_lock()
KernelWithOpts = tuple[UOp, tuple[Opt, ...]]
_kernels = Memo[tuple[KernelWithOpts | None]]()
"""Kernels with the opts of a file, by kernel, device and file; None for one without."""


def note_model_file(path: str | os.PathLike[str]) -> None:
    """Note that a model is read from a file: its folder may have a tuning file."""
    _model_folders.setdefault(os.path.dirname(os.path.abspath(path)))


def default_path(model_file: str = "") -> Path:
    """Return the path of the tuning file that a search writes: that of TUNING, or else that of the
    folder of a model's file, or else that of the folder of the script."""
    named = TUNING.value
    if named and named != NO_FILE:
        return Path(named).absolute()
    beside = os.path.join(os.path.dirname(model_file), FILE_NAME)
    return Path(beside if model_file else _script_path()).absolute()


def tuned_kernel(kernel: UOp, device: str) -> KernelWithOpts | None:
    """Return `kernel` with the opts that a tuning file in force has for it, and these; None without
    such a file, row, or legal opts."""
    for path in _paths():
        file = _file(path)
        if file.rows:
            applied = _with_opts_of(file, kernel, device)
            if applied is not None:
                return applied
    return None


def _paths() -> list[str]:
    """Return the paths of the files in force. It must be quick: each kernel that runs asks."""
    named = TUNING.value
    if named:
        return [] if named == NO_FILE else [named]
    return [_script_path(), *(os.path.join(folder, FILE_NAME) for folder in _model_folders)]


def _script_path() -> str:
    """Return the path of the file in the folder of the script that Python runs; without a script
    in the current folder, which is that of a notebook."""
    script = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    return os.path.join(os.path.dirname(script), FILE_NAME)


def _file(path: str) -> TuningFile:
    """Return the file at a path; one without rows if there is none. What is of no use in it is said
    once, in a warning."""
    try:
        status = os.stat(path)
        signature = status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev
    except (OSError, ValueError):
        signature = None
    known = _files.get(path)
    if known is not None and known.signature == signature:
        return known.file
    file, complaint = TuningFile({}), ""
    if signature is not None:
        try:
            file = TuningFile.read(path)
            complaint = file.complaint
        except FileError as error:
            complaint = error.because
    elif TUNING.value:
        complaint = "there is no such file"
    with _lock:
        _files[path] = _Read(signature, file)
    if complaint:
        warn_user(f"tuning file {path}: {complaint}")
    return file


def _with_opts_of(file: TuningFile, kernel: UOp, device: str) -> KernelWithOpts | None:
    info = Device[device]
    (applied,) = _kernels.value((kernel, info, file), lambda: (_applied(file, kernel, device),))
    return applied


def _applied(file: TuningFile, kernel: UOp, device: str) -> KernelWithOpts | None:
    row = file.row_for(kernel, device)
    if row is None:
        return None
    target, applied, opts = Device[device].target, kernel, opts_of(row.opts)
    for opt in opts:
        after = apply_if_legal(applied, resolve(applied, opt, target), target)
        if after is None:
            because = f"{opt} is not legal on {row.kernel}"
            warn_user(f"tuning file: {because}; it runs with the default opts")
            return None
        applied = after
    return applied, opts
