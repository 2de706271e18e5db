"""Refusals of the front end: what / because / try, and the user's own line as where."""

from __future__ import annotations

from workbench.errors import DeviceError, DTypeError, ShapeError
from workbench.source import here


def shape_error(what: str, because: str, hint: str = "") -> ShapeError:
    return ShapeError(what, because, hint, where())


def dtype_error(what: str, because: str, hint: str = "") -> DTypeError:
    return DTypeError(what, because, hint, where())


def device_error(what: str, because: str, hint: str = "") -> DeviceError:
    return DeviceError(what, because, hint, where())


def where() -> str:
    """Return the user's line as "In[3], line 2"; empty if the package called itself."""
    line = here()
    return "" if line is None else line.where
