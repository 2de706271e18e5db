"""A captured method: a capture for each object, as long as it lives."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from weakref import ref

import numpy as np
import pytest

from tests.tensor.jit.support import held
from workbench import Tensor, TinyJit
from workbench.base.errors import JitError


def test_as_a_method_it_captures_for_each_object() -> None:
    class Layer:
        def __init__(self, weight: float):
            self.weight = held(np.full(3, weight, np.float32))

        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            """Scale."""
            return x * self.weight

    layers = [Layer(2.0), Layer(3.0)]
    for n in range(4):
        x = held(np.full(3, n, np.float32))
        assert [layer(x).tolist()[0] for layer in layers] == [2.0 * n, 3.0 * n]
    assert Layer.__call__.__doc__ == "Scale."


def test_equal_objects_capture_each_for_itself_and_are_let_go() -> None:
    @dataclass
    class Scale:  # equal where the names are, and so without a hash
        name: str
        weight: Tensor = field(compare=False)

        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.weight

    scales = [Scale("same", held(np.float32([w]))) for w in (2.0, 3.0)]
    for n in range(4):
        x = held(np.float32([n]))
        assert [scale(x).item() for scale in scales] == [2.0 * n, 3.0 * n]
    watched = ref(scales[0])
    del scales
    gc.collect()
    assert watched() is None


def test_an_object_that_cannot_be_watched_is_refused() -> None:
    class Slotted:
        __slots__ = ()
        double = TinyJit(lambda self, x: x * 2)

    with pytest.raises(JitError, match="__weakref__"):
        Slotted().double(held(np.float32([1])))
