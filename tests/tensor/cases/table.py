"""All rows of all tables, and the comparisons that a run makes of them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from tests.tensor.cases import tables
from tests.tensor.cases.case import Case


class Comparison(NamedTuple):
    """A row in one dtype on one device; `key` names it."""

    key: str
    case: Case
    dtype: str
    device: str


def cases() -> Iterator[tuple[str, Case]]:
    """Yield each row with its key: table, method, and number among those of the method."""
    for module in sorted(pkgutil.iter_modules(tables.__path__), key=lambda m: m.name):
        counts: dict[str, int] = {}
        for case in import_module(f"{tables.__name__}.{module.name}").CASES:
            counts[case.name] = counts.get(case.name, 0) + 1
            yield f"{module.name}-{case.name}-{counts[case.name]}", case


def comparisons(is_long: bool) -> Iterator[Comparison]:
    """Yield what a run compares: on LLVM each row in its first dtype, in the long profile in all of
    its dtypes; a tenth of that on PYTHON and (in the short one a fortieth) on C too."""
    number = 0
    for key, case in cases():
        for dtype in case.dtypes if is_long else case.dtypes[:1]:
            for device in devices(number, is_long):
                yield Comparison(f"{key}-{dtype}-{device}", case, dtype, device)
            number += 1


def devices(number: int, is_long: bool) -> tuple[str, ...]:
    """Return the devices that comparison `number` is made on."""
    if number % (10 if is_long else 40) == 0:
        return "LLVM", "C", "PYTHON"
    return ("LLVM", "PYTHON") if number % 10 == 0 else ("LLVM",)


def by_table(listed: Iterable[Any]) -> dict[str, list[Any]]:
    """Return comparisons by the table of their rows, in which their keys begin."""
    tables: dict[str, list[Any]] = {}
    for comparison in listed:
        tables.setdefault(comparison.key.partition("-")[0], []).append(comparison)
    return tables
