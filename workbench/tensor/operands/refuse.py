"""Errors of the front end: what / because / try, and the user's own line as where."""

from __future__ import annotations

from workbench.base.errors import AxisError, DeviceError, DTypeError, GradientError, ShapeError
from workbench.base.source import user_line


def shape_error(what: str, because: str, hint: str = "") -> ShapeError:
    """Return the error for shapes that do not fit, with the user's line."""
    return ShapeError(what, because, hint, where())


def axis_error(what: str, because: str, hint: str = "") -> AxisError:
    """Return the error for an axis or an index out of range, with the user's line."""
    return AxisError(what, because, hint, where())


def dtype_error(what: str, because: str, hint: str = "") -> DTypeError:
    """Return the error for a dtype or a value that does not fit, with the user's line."""
    return DTypeError(what, because, hint, where())


def device_error(what: str, because: str, hint: str = "") -> DeviceError:
    """Return the error for a device that cannot do an operation, with the user's line."""
    return DeviceError(what, because, hint, where())


def gradient_error(what: str, because: str, hint: str = "") -> GradientError:
    """Return the error for a gradient that does not exist, with the user's line."""
    return GradientError(what, because, hint, where())


def where() -> str:
    """Return the user's line as "In[3], line 2"; empty if the package called itself."""
    line = user_line()
    return "" if line is None else line.where
