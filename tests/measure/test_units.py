"""Numbers as text."""

from __future__ import annotations

import pytest

from workbench.measure.timing import number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0125, "0.0125"),
        (98.74, "98.7"),
        (999.4, "999"),
        (61234.5, "61,234"),
        (1.98e6, "1,980,000"),
    ],
)
def test_a_large_number_has_no_exponent(value: float, text: str) -> None:
    assert number_text(value) == text
