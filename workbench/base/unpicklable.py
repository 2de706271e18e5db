"""Values that cannot be pickled: they refer to memory or code of one process."""

from __future__ import annotations

from typing import Any, NoReturn

from workbench.base.errors import DeviceError


class Unpicklable:
    """A value that cannot be pickled or copied. `instead` says what to pickle in its place."""

    __slots__ = ()
    instead = "hand on the Kernel or the Tensor, and make this anew from it there"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise DeviceError(
            f"cannot pickle or copy {type(self).__name__}",
            "it holds memory or machine code of this process",
            self.instead,
        )
