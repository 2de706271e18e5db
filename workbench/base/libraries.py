"""Optional libraries: imported on first use, with an error that says how to install one."""

from __future__ import annotations

import importlib
from types import ModuleType

from workbench.base.errors import WorkbenchError


def library(name: str) -> ModuleType:
    """Return the module `name`, imported now.

    Errors: WorkbenchError that says which package to install.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise WorkbenchError(
            f"{package} cannot be imported", str(error), f"pip install {package}"
        ) from error
