"""What our gradients are where they are not torch's: a line for each row at an edge.

A line has, of each gradient, its shape and three sums over its elements with fixed random weights:
of the finite elements, of those that are NaN, and of the signs of the infinite ones; or the first
line of a refusal. So another value, and a NaN in another place, is another line.

    python -m tests.tensor.cases.different_gradients     # writes the lines anew: read what changed
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tests.tensor.agree import Array
from workbench.base.errors import WorkbenchError

FILE = Path(__file__).with_name("different_gradients.txt")


def assert_as_recorded(name: str, gradients: Sequence[Array] | WorkbenchError) -> None:
    """Compare gradients with those that are recorded for a row at an edge."""
    have, want = summary(gradients), recorded().get(name)
    assert want is not None, f"{FILE.name} has no line for {name}: {have}"
    have_words, want_words = have.split(), want.split()
    assert len(have_words) == len(want_words), (name, have, want)
    for mine, other in zip(have_words, want_words, strict=True):
        assert mine == other or np.isclose(float(mine), float(other), rtol=1e-5, atol=1e-5), (
            name,
            have,
            want,
        )


def summary(gradients: Sequence[Array] | WorkbenchError) -> str:
    """Return the line of gradients, or of a refusal."""
    if isinstance(gradients, WorkbenchError):
        return f"{type(gradients).__name__}: {gradients.what}"
    return " | ".join(map(_sums, gradients))


def _sums(gradient: Array) -> str:
    weights = np.random.default_rng(0).standard_normal(gradient.shape)
    is_infinite = np.isinf(gradient)
    parts = (
        np.where(np.isfinite(gradient), gradient, 0.0),
        np.isnan(gradient),
        np.sign(np.where(is_infinite, gradient, 0.0)),
    )
    sums = [f"{np.sum(weights * part) + 0.0:.6g}" for part in parts]
    return " ".join(["x".join(map(str, gradient.shape)) or "()", *sums])


@cache
def recorded() -> dict[str, str]:
    """Return the lines by row and edge."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


def main() -> None:
    """Write the lines of all rows that differ."""
    from tests.tensor.cases import edges

    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for comparison in edges.edge_comparisons(True):
            if (comparison.case.name, comparison.edge) in edges.DIFFERENT:
                gradients = edges.different_gradients(comparison)
                if gradients is not None:
                    lines.append(f"{comparison.name}: {summary(gradients)}")
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
