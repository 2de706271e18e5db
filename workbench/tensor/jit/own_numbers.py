"""Numbers that a captured function itself changes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.tensor.jit.paths import Path, words_of
from workbench.tensor.nest import same


@dataclass(frozen=True, slots=True)
class NumberChanges:
    """The numbers and texts at `paths` that the function `name` changed in its capture,
    and what ran there: its `items`, the `data` of constants, and the result without its tensors.

    A replay would not change them. One that only counts is never missed; one that goes into a
    kernel would stand still there. Two captures in succession tell these apart: the numbers differ
    between the two, so what ran differs where it depends on them. A list that has grown holds
    notes.
    """

    name: str
    paths: Sequence[Path]
    items: Sequence[tuple[Any, Sequence[int]]]
    data: Sequence[bytes]
    result: Any

    def runs_like(self, other: NumberChanges) -> bool:
        """Whether the same ran in both captures."""
        return (
            self.items == other.items
            and self.data == other.data
            and same(self.result, other.result)
        )

    def warn(self) -> None:
        """Say that the function is run at each call."""
        names = ", ".join(dict.fromkeys(filter(None, map(words_of, self.paths))))
        warnings.warn(
            f"TinyJit: {self.name} changes {names or 'a number that it reaches'}, and its kernels "
            "depend on that, so its Python code is run at each call: keep the number in a tensor, "
            "or change it outside of the function",
            RuntimeWarning,
            stacklevel=4,
        )
