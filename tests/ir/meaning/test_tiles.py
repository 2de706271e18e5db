"""What a tensor core computes, against numpy; and which lane has which element."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tools.tensor_cores import CORES, core_named
from workbench.base.errors import WorkbenchError
from workbench.base.tensor_cores import TensorCore
from workbench.ir.meaning.tiles import (
    fragments_of,
    lane_map,
    multiplied,
    tile_of,
    undefined_products,
)


def random_tile(core: TensorCore, tile: str, seed: int) -> np.ndarray:
    dice = np.random.default_rng(seed)
    rows, columns = lane_map(core, tile).holders.shape[:2]
    dtype = core.accumulator if tile == "c" else core.operand
    shape = (3, 2, rows, columns)  # three groups of two warps
    if dtype.is_int:
        return dice.integers(-100, 100, shape).astype(dtype.numpy)
    return dice.uniform(-1.5, 1.5, shape).astype(dtype.numpy)


@pytest.mark.parametrize("core", CORES, ids=str)
def test_products_are_numpys(core: TensorCore) -> None:
    a, b, c = (random_tile(core, tile, seed) for seed, tile in enumerate("abc"))
    fragments = [fragments_of(core, t, x) for t, x in (("a", a), ("b", b), ("c", c))]
    for tile, x, lanes in zip("abc", (a, b, c), fragments, strict=True):
        assert lanes.shape[:2] == (3, 2 * core.lanes)
        assert (tile_of(core, tile, lanes) == x).all()
    result = tile_of(core, "c", multiplied(core, *fragments))
    right = c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    tolerance = {"tf32": 2e-2}.get(core.rounds_to, 1e-5)
    np.testing.assert_allclose(result.astype(np.float64), right, tolerance, tolerance)
    if core.operand.is_low_precision:  # lanes have the bits, as memory has them
        word = f"u{core.operand.itemsize}"
        bits = [np.ascontiguousarray(x).view(word) for x in fragments[:2]]
        again = tile_of(core, "c", multiplied(core, *bits, fragments[2]))
        assert (again == result).all()


def test_tf32_has_ten_bits_of_a_fraction() -> None:
    core = core_named("sm_80", "16x8x8 float32 as tf32 -> float32")
    fine, coarse = np.float32(1 + 2**-11), np.float32(1 + 2**-10)
    zero = np.zeros((32, 4), np.float32)
    for number, seen in ((fine, 1.0), (coarse, coarse)):
        a = np.full((32, 4), number, np.float32)
        b = np.ones((32, 2), np.float32)
        assert (multiplied(core, a, b, zero) == 8 * np.float32(seen)).all()


@pytest.mark.parametrize("core", CORES, ids=str)
def test_what_is_undefined_spreads_along_rows_and_columns(core: TensorCore) -> None:
    a, b, c = (np.zeros(lane_map(core, t).holders.shape[:2], bool) for t in "abc")
    a[3, 1], b[0, 2], c[5, 5] = True, True, True
    masks = [fragments_of(core, t, x) for t, x in (("a", a), ("b", b), ("c", c))]
    right = c.copy()
    right[3, :] = right[:, 2] = True
    assert (tile_of(core, "c", undefined_products(core, *masks))[0] == right).all()


def test_the_map_as_a_table() -> None:
    """The first rows of C, as PTX ISA draws them: T0 has c0 and c1, T1 the next two."""
    core = core_named("sm_80", "16x8x16 float16 -> float32")
    lines = str(lane_map(core, "c")).split("\n")
    assert lines[0].split() == "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1".split()
    assert lines[8].split() == "0.2 0.3 1.2 1.3 2.2 2.3 3.2 3.3".split()
    assert len(lines) == 16 and len({len(line) for line in lines}) == 1


def test_who_has_an_element() -> None:
    core = core_named("sm_80", "16x8x16 float16 -> float32")
    where = lane_map(core, "a")
    assert (where.rows[6, 3], where.columns[6, 3]) == (9, 5)
    assert where.holders[9, 5].tolist() == [6, 3]
    wmma = core_named("gfx1100", "16x16x16 float16 -> float32")
    assert lane_map(wmma, "a").holders[..., 0].max() == 15, "the first of two copies"


@pytest.mark.parametrize(
    ("core", "tile", "words"),
    [
        ("16x8x16", "a", 'try      lane_map(Device["H100"].target.tensor_cores[0], "a")'),
        (CORES[0], "d", "because  a tensor core has a, b, c"),
    ],
)
def test_what_has_no_lane_map_is_refused(core: TensorCore, tile: str, words: str) -> None:
    with pytest.raises(WorkbenchError) as error:
        lane_map(core, tile)
    assert words in str(error.value)
