"""Convolutions of narrow dtypes get tensor cores by default, and what these make is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest

from tests.ir.opt.heuristic.work_groups.kernels import Array
from tests.support import LONG
from workbench import Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.ir.node.ops import Ops
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.opt import OptOps
from workbench.pipeline import stages

H100 = "CUDA:H100"
CORES = [
    *[(H100, kind) for kind in ("float16", "bfloat16", "int8")],
    *[("HIP:MI300X", kind) for kind in ("float16", "bfloat16")],
    ("METAL:M3", "float16"),
]
"""Devices, and dtypes that their tensor cores multiply."""


class Windows(NamedTuple):
    """A convolution: the shapes of the image and of the weights, and the options."""

    image: tuple[int, ...]
    weights: tuple[int, ...]
    options: Mapping[str, int] = {}


CASES = {
    "3 x 3": Windows((2, 32, 9, 13), (24, 32, 3, 3)),
    "padded": Windows((1, 32, 14, 14), (40, 32, 3, 3), {"padding": 1}),
    "every second": Windows((2, 32, 11, 15), (16, 32, 3, 3), {"stride": 2, "padding": 1}),
    "1 x 1": Windows((2, 48, 7, 9), (33, 48, 1, 1)),
    "one axis": Windows((2, 32, 50), (16, 32, 5)),
    "volume": Windows((1, 32, 5, 6, 12), (16, 32, 2, 3, 3)),
}  # fmt: skip
TWINS = "float16", "bfloat16"
"""They have the same opts, and only the instruction differs: of a device that multiplies both, a
short run takes one in every case, and each in every second one; and of all that a third."""
BOTH = H100, "HIP:MI300X"
TRIED = [
    (name, device, kind)
    for place, name in enumerate(CASES)
    for device, kind in CORES
    if LONG or device not in BOTH or kind != TWINS[(place + BOTH.index(device)) % 2]
][:: 1 if LONG else 3]


def arrays(case: Windows, kind: str) -> tuple[Array, Array]:
    """Return numbers that the dtype holds exactly."""
    dice = np.random.default_rng(len(case.image))
    scale = 1 if kind == "int8" else 8
    low, high = (-128, 128) if kind == "int8" else (-8, 9)
    image, weights = (
        dice.integers(low, high, shape).astype(np.float32) / scale
        for shape in (case.image, case.weights)
    )
    return image, weights


def convolution(case: Windows, image: Tensor, weights: Tensor, kind: str) -> Tensor:
    """Return the convolution; of integers in a dtype that holds their products."""
    x, w = (t.cast(getattr(dtypes, kind)).realize() for t in (image, weights))
    if kind == "int8":
        x, w = x.cast(dtypes.int32), w.cast(dtypes.int32)
    stride, padding = (case.options.get(n, d) for n, d in (("stride", 1), ("padding", 0)))
    return x.conv2d(w, stride=stride, padding=padding)


def convolved(case: Windows, image: Array, weights: Array) -> Array:
    """Return the convolution by numpy, in float64."""
    axes = tuple(range(2, image.ndim))
    around = case.options.get("padding", 0)
    x = np.pad(image.astype(np.float64), ((0, 0), (0, 0), *[(around, around)] * len(axes)))
    windows = np.lib.stride_tricks.sliding_window_view(x, weights.shape[2:], axes)
    step = slice(None, None, case.options.get("stride", 1))
    windows = windows[(slice(None), slice(None), *[step] * len(axes))]
    places, inside = "abc"[: len(axes)], "ijk"[: len(axes)]
    result: Array = np.einsum(
        f"nz{places}{inside},oz{inside}->no{places}", windows, weights, optimize=True
    )
    return result


def first_step(tensor: Tensor, device: str) -> HeuristicStep:
    kernel = [item.kernel for item in tensor.schedule() if item.kernel is not None][-1]
    return heuristic(kernel, Device[device].target)[2][0]


@pytest.mark.parametrize("name, device, kind", TRIED)
def test_convolutions_are_numpys(name: str, device: str, kind: str) -> None:
    case = CASES[name]
    image, weights = arrays(case, kind)
    x, w = (Tensor(a, device=device) for a in (image, weights))
    tensor = convolution(case, x, w, kind)
    step = first_step(tensor, device)
    assert step.name == "tensor-tile"
    if device in BOTH and kind in TWINS:
        twin = convolution(case, x, w, TWINS[1 - TWINS.index(kind)])
        assert first_step(twin, device).opts == step.opts
    exact = {"float16": 2e-3, "bfloat16": 1e-2, "int8": 0.0}[kind]
    result = tensor.cast(dtypes.int32 if kind == "int8" else dtypes.float32).numpy()
    np.testing.assert_allclose(result, convolved(case, image, weights), exact, 2 * exact)


def of_images(side: int, channels: int, kind: str = "float16") -> Tensor:
    shapes = (16, channels, side, side), (channels, channels, 3, 3)
    x, w = (Tensor.empty(*s, dtype=getattr(dtypes, kind)) for s in shapes)
    return x.conv2d(w, padding=1)


@pytest.mark.parametrize("side", [14, 7])
def test_a_work_group_has_lines_where_one_has_few_pixels(side: int) -> None:
    step = first_step(of_images(side, 256), H100)
    counts = step.counts
    assert counts["staged_inputs"] == 2
    assert counts["warps_of_a_group"] * counts["tiles_of_a_warp"] >= 16
    assert counts["outputs_computed_for_a_useful_one"] <= 1.4
    axes = [opt.axis for opt in step.opts if opt.op in (OptOps.UPCAST, OptOps.LOCAL)]
    assert "g2" in axes, "the lines"


def test_places_of_a_window_are_loops_outside_of_work_items() -> None:
    ordered = [o.axis for o in first_step(of_images(56, 64), H100).opts if o.op is OptOps.ORDER]
    assert ordered == ["r0", "r1", "r2"]


def test_a_padded_image_is_stored_in_its_own_dtype() -> None:
    images = explore(of_images(56, 64, "bfloat16")).kernels[0]
    assert images.ast.stores[0].value.dtype is dtypes.bfloat16


def test_loads_of_narrow_elements_are_under_way_together() -> None:
    """Rows of odd length are not aligned to words: a work-item waits once for several loads."""
    a, b = (Tensor.empty(999, 999, dtype=dtypes.float16) for _ in range(2))
    opts = first_step(a @ b, H100).opts
    fills = [o for o in opts if o.op is OptOps.UPCAST and str(o.axis)[:2] in ("a_", "b_")]
    assert [o.arg for o in fills] == [8, 8]


@pytest.mark.parametrize("rows", [64, 97])
def test_bytes_that_lie_across_the_steps_are_turned_as_they_are_copied(rows: int) -> None:
    """The fragments of a product of int8 are rows along the steps, for either operand."""
    dice = np.random.default_rng(rows)
    a, b = (dice.integers(-128, 128, s).astype(np.int8) for s in ((rows, 160), (160, rows)))
    x, y = (Tensor(n, device=H100).realize().cast(dtypes.int32) for n in (a, b))
    assert first_step(x @ y, H100).name == "tensor-tile"
    kernel, _, _ = heuristic(explore(x @ y).kernels[-1].ast, Device[H100].target)
    linear = stages(kernel, H100, "linear").linear
    fragments = [n for n in linear if n.op is Ops.EXCHANGE]
    assert {n.dtype.itemsize for n in fragments} == {16, 8}, "those of A and of B"
    np.testing.assert_array_equal((x @ y).numpy(), a.astype(np.int64) @ b)
