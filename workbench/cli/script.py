"""The script of a command, which runs it as `python script.py` does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from workbench.base.errors import MissingFileError


def prepared_script(options: argparse.Namespace, what: str) -> Path:
    """Return the path of `options.script`, and set `sys.argv` and `sys.path` as Python does for it.

    Errors: MissingFileError for a script that is not there; `what` says what cannot be done.
    """
    path = Path(options.script)
    if not path.is_file():
        because = f"there is no such file in {Path.cwd()}"
        raise MissingFileError(f"cannot {what} {options.script}", because, "a path of a script")
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, str(path.parent.resolve()))
    return path
