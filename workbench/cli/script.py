"""The script of a command, which runs it as `python script.py` does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from workbench.base.errors import MissingFileError


def script_path(script: str | Path, what: str) -> Path:
    """Return the path of a script. Errors: MissingFileError for one that is not there, or a folder;
    `what` says what cannot be done."""
    path = Path(script)
    if not path.is_file():
        because = "it is a folder" if path.is_dir() else f"there is no such file in {Path.cwd()}"
        raise MissingFileError(f"cannot {what} {path}", because, "the path of a script")
    return path


def exit_code(error: SystemExit) -> int:
    """Return the exit code of a script that ended itself; what it said is printed as by Python."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def prepared_script(options: argparse.Namespace, what: str) -> Path:
    """Return the path of `options.script`, and set `sys.argv` and `sys.path` as Python does for it.

    Errors: as `script_path`.
    """
    path = script_path(options.script, what)
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, str(path.parent.resolve()))
    return path
