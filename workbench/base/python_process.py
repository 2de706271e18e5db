"""Processes of Python that this package starts for itself."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path


def python_environment() -> dict[str, str]:
    """Return the environment of a process that imports this package from where this one has it, but
    no modules of the current folder."""
    home = str(Path(__file__).resolve().parents[2])
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    if home in installed:
        return dict(os.environ)
    paths = [os.environ.get("PYTHONPATH", ""), home]
    return os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)}
