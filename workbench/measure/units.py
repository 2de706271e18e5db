"""Numbers with their units, as text."""

from __future__ import annotations

BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def bytes_text(count: int) -> str:
    """Return a number of bytes in the unit that suits it: "320 B", "20 KiB", "1.5 MiB"."""
    value = float(count)
    for unit in BINARY:
        if value < 1024 or unit == BINARY[-1]:
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
        value /= 1024
    raise AssertionError


def number_text(value: float) -> str:
    """Return a number with three digits, and no exponent where it is large: "0.5", "98.7",
    "61,200"."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percent_text(fraction: float) -> str:
    """Return a share as text, with a digit behind the point where it is small: none is "0%"."""
    if 0 < fraction < 0.0005:
        return "<0.1%"
    return f"{fraction:.1%}" if fraction < 0.0995 else f"{fraction:.0%}"
