"""Numbers as text."""

from __future__ import annotations

import pytest

from workbench.measure.timing import bytes_text, number_text


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


def test_half_a_unit_is_rounded_up_as_the_page_does() -> None:
    sizes = (131_584, 12_544, 1_000, 1023, 1 << 20, 3 << 19)
    texts = ["129 KiB", "12.3 KiB", "1000 B", "1023 B", "1 MiB", "1.5 MiB"]
    assert [bytes_text(size) for size in sizes] == texts
