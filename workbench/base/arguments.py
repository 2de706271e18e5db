"""Checks of the arguments of functions: an argument of the wrong type is refused before it fails
inside.
"""

from __future__ import annotations

from typing import Any

from workbench.base.errors import DTypeError


def require(value: object, kinds: type | tuple[type, ...], name: str, hint: str) -> Any:
    """Return the value of the argument `name`, which is of one of `kinds`.

    Errors: DTypeError for another one; `hint` is an example of what fits.
    """
    if isinstance(value, kinds):
        return value
    types = kinds if isinstance(kinds, tuple) else (kinds,)
    expected = " or ".join(kind.__name__ for kind in types)
    raise DTypeError(
        f"{name} does not take {value!r:.40}",
        f"it must be {expected}, and this is {type(value).__name__}",
        hint,
    )
