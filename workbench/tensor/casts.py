"""Short names for casts. They hide Python's own names in a class body, so they come last."""

from __future__ import annotations

from typing import Self

from workbench.base.dtypes import dtypes
from workbench.tensor.convolution import Convolution


class Casts(Convolution):
    """`t.float()` for `t.cast(dtypes.float32)`, and so on."""

    __slots__ = ()

    def half(self) -> Self:
        """Return the values as float16; what is too large is infinite."""
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Return the values as bfloat16, which has the range of float32 and 8 bits of it."""
        return self.cast(dtypes.bfloat16)

    def float(self) -> Self:
        """Return the values as float32."""
        return self.cast(dtypes.float32)

    def double(self) -> Self:
        """Return the values as float64."""
        return self.cast(dtypes.float64)

    def int(self) -> Self:
        """Return the values as int32; floats truncate and saturate."""
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """Return the values as int64; floats truncate and saturate."""
        return self.cast(dtypes.int64)

    def bool(self) -> Self:
        """Return where the values are not 0."""
        return self.cast(dtypes.bool)
