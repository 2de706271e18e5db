"""Buffers that detect writes outside of their bounds: edited source is not verified."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backends.memory import Buffer

STRIP_BYTES = 4096
FILL = 0xA5


class SandboxedBuffer:
    """A copy of a buffer, on a device, between two strips of memory that no program may write
    to."""

    def __init__(self, original: Buffer, device: str):
        self._original, strip = original, STRIP_BYTES // max(1, original.dtype.itemsize)
        self._whole = Buffer(device, original.dtype, original.size + 2 * strip)
        self._whole.copy_in(np.full(self._whole.nbytes, FILL, np.uint8))
        self.buffer = self._whole.window(strip, original.size)
        self.buffer.copy_from(original)

    def spoilt(self, name: int | str, is_output: bool) -> str:
        """Return a text about a write outside of the buffer, or to an input; "" for none. `name`
        stands for the buffer in the text."""
        contents = self._bytes()
        strips = np.concatenate([contents[:STRIP_BYTES], contents[-STRIP_BYTES:]])
        if np.any(strips != FILL):
            return f"writes outside of buffer {name}"
        before, after = (b.to_numpy().view(np.uint8) for b in (self._original, self.buffer))
        same = is_output or np.array_equal(before, after)
        return "" if same else f"changes buffer {name}, an input"

    def _bytes(self) -> Any:
        return self._whole.to_numpy().view(np.uint8)
