"""The folder of the course: its notebooks and their data."""

from __future__ import annotations

from pathlib import Path

from workbench.base.errors import WorkbenchError

TOUR = "01_tour.ipynb"
"""The first notebook for a newcomer."""


def course_folder() -> Path:
    """Return the folder of the course: the wheel's own copy, or the checkout's.

    Errors: WorkbenchError if there is neither.
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
