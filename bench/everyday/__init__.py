"""Everyday expressions, as one sees them in the code of models, for Tensors and for torch's.

Each is a Case: what it is called, its inputs, and how either library says it. The sizes are such
that torch needs about 50 µs or more for most of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from everyday.case import Case
from everyday.convolutions import convolutions, pooling
from everyday.elementwise import broadcasts, elementwise
from everyday.layers import layers
from everyday.models import models
from everyday.movement import gathers, movement
from everyday.products import products
from everyday.reductions import norms, reductions

FAMILIES = (
    convolutions, products, layers, reductions, norms, movement, gathers, broadcasts, elementwise,
    pooling, models,
)  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield all of them; a name says what it is and on which sizes."""
    for family in FAMILIES:
        yield from family()
