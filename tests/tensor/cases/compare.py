"""All comparisons with torch, counted by kind and device.

    python -m tests.tensor.cases.compare [--device CUDA] [--part 0/8]

makes those of the long profile, goes on where one fails, and ends with how many values, gradients,
second gradients and gradients at edges were compared on each device, and what was not compared, or
is different, by reason. With a device all rows are compared there alone, without edges; of several
parts each can run in a process of its own.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

from tests.tensor.cases.case import compare_values
from tests.tensor.cases.edges import EdgeComparison, compare_at_edge, edge_comparisons
from tests.tensor.cases.gradients import compare_gradients, gradient_comparisons, without_gradient
from tests.tensor.cases.table import Comparison, cases, comparisons

ANYWHERE = "LLVM"
"""The device on which each row is compared."""
ORDERS = ("gradients", "second gradients")

counts: Counter[tuple[str, str]] = Counter()
"""How many comparisons agreed, by kind and device."""
skips: Counter[str] = Counter()
"""How many were not made, by reason."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="keys that begin like this")
    parser.add_argument("--device", default="", help="compare there alone")
    parser.add_argument("--part", default="0/1", help="the first of eight: 0/8")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    warnings.simplefilter("ignore")  # numpy's, of torch's infinities
    chosen = [run for run in _all(arguments.device) if run[0].startswith(arguments.only)]
    wrong = sum(not _agrees(key, run) for key, run in chosen[part::parts])
    reasons = (without_gradient(key, row) for key, row in cases())
    skips.update(f"no gradient of a row: {reason}" for reason in reasons if reason)
    print(f"{counts.total()} comparisons with torch, {wrong} wrong")
    for (kind, device), number in sorted(counts.items()):
        print(f"{number:6} {kind} on {device}")
    for reason, number in skips.most_common():
        print(f"{number:6} not compared: {reason}")
    return wrong > 0


def _all(device: str) -> Iterator[tuple[str, Callable[[], None]]]:
    for values in _on(device, comparisons(True)):
        yield values.key, lambda c=values: _values(c)  # type: ignore[misc]
    for gradients in _on(device, gradient_comparisons(True)):
        yield gradients.key, lambda c=gradients: _gradients(c)  # type: ignore[misc]
    for edge in edge_comparisons(True) if not device else ():
        yield edge.name, lambda c=edge: _at_edge(c)  # type: ignore[misc]


def _on(device: str, rows: Iterator[Comparison]) -> Iterator[Comparison]:
    """Yield comparisons, once each, on a device; as they are where none is named."""
    for row in rows:
        if not device:
            yield row
        elif row.device == ANYWHERE:
            yield row._replace(device=device)


def _values(comparison: Comparison) -> None:
    compare_values(comparison.case, comparison.dtype, comparison.device)
    counts["values", comparison.device] += 1


def _gradients(comparison: Comparison) -> None:
    number = compare_gradients(comparison, len(ORDERS))
    for kind in ORDERS[:number]:
        counts[kind, comparison.device] += 1
    for kind in ORDERS[number:]:
        skips[f"{kind} that torch lacks"] += 1


def _at_edge(comparison: EdgeComparison) -> None:
    reason = compare_at_edge(comparison)
    if reason:
        skips[f"gradients at edges: {reason}"] += 1
    else:
        counts["gradients at edges", ANYWHERE] += 1


def _agrees(key: str, run: Callable[[], None]) -> bool:
    try:
        run()
    except Exception as error:
        print(f"{key}: {type(error).__name__}: {error}", flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
