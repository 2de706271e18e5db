"""Loops whose rounds are known before they run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.base.dtypes import DType

MOST_ROUNDS = 1 << 30
"""Most rounds of a loop."""
MOST_LISTED = 4096
"""Most rounds of a loop that multiplies, divides or shifts its variable."""
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


@dataclass(frozen=True)
class Fixed:
    """A number that stands in the text, or follows from its constants; a dtype of None: it takes
    the type of what it meets (WGSL)."""

    number: int
    dtype: DType | None


@dataclass(frozen=True)
class KnownRounds:
    """The values of a loop's variable: `first` + round * `step`, or those `listed`."""

    name: str
    dtype: DType
    count: int
    first: int
    step: int
    listed: tuple[int, ...] = ()

    def values(self) -> Iterator[int]:
        """Yield the variable's value in each round."""
        if self.listed:
            yield from self.listed
            return
        for number in range(self.count):
            yield self.first + number * self.step


def known_values(
    begin: int, kind: str, amount: int, sign: str, last: int, dtype: DType
) -> tuple[int, int, int, tuple[int, ...]] | None:
    """Return the count, the first value, the step and the list of the values of a loop whose
    variable `begin`s at a number and changes by `kind` and `amount` while `sign` and `last` hold;
    None where they are not known: the loop does not end, or leaves the numbers of `dtype`."""
    if not dtype.min <= begin <= dtype.max:
        return None
    if kind in ("+", "-"):
        step = amount if kind == "+" else -amount
        total = _affine_count(begin, step, sign, last)
        if total is None or not 0 <= total <= MOST_ROUNDS:
            return None
        ends = begin, begin + total * step
        if not all(dtype.min <= value <= dtype.max for value in ends):
            return None
        return total, begin, step, ()
    listed: list[int] = []
    value = begin
    while _compares(value, sign, last):
        if len(listed) >= MOST_LISTED:
            return None
        listed.append(value)
        changed = _changed(value, kind, amount)
        if changed is None or not dtype.min <= changed <= dtype.max:
            return None
        value = changed
    return len(listed), begin, 0, tuple(listed)


def _affine_count(begin: int, step: int, sign: str, last: int) -> int | None:
    if not _compares(begin, sign, last):
        return 0
    if step == 0:
        return None
    if sign == "!=":
        whole, rest = divmod(last - begin, step)
        return whole if rest == 0 and whole > 0 else None
    rises = sign in ("<", "<=")
    if rises != (step > 0):
        return None
    distance = abs(last - begin) + (sign in ("<=", ">="))
    return -(-distance // abs(step))


def _compares(value: int, sign: str, last: int) -> bool:
    return {
        "<": value < last,
        ">": value > last,
        "<=": value <= last,
        ">=": value >= last,
        "!=": value != last,
    }[sign]


def _changed(value: int, kind: str, amount: int) -> int | None:
    if kind == "*":
        return value * amount
    if kind == "/" and amount:
        return int(math.copysign(abs(value) // abs(amount), value * amount)) if value else 0
    if kind == "<<" and 0 <= amount < 64:
        return value << amount
    if kind == ">>" and 0 <= amount < 64:
        return value >> amount
    return None
