"""Sequences compared element by element."""

from __future__ import annotations

from itertools import takewhile
from typing import TypeVar

T = TypeVar("T")


def common_prefix(*rows: tuple[T, ...]) -> tuple[T, ...]:
    """Return what all rows begin with, of at least one."""
    columns = zip(*rows, strict=False)
    alike = takewhile(lambda column: len(set(column)) == 1, columns)
    return tuple([column[0] for column in alike])
