"""Layouts: each element of a tile is in a lane; and they are those of the makers' documents, whose
formulas stand here as they are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest

from tests.tools.tensor_cores import BY_ARCH, CORES, PROCESSOR_CORES, core_named
from workbench.base.tensor_cores import (
    TILE_AXES,
    BitRun,
    Fragment,
    TensorCore,
    is_transposed,
    misfit,
    row_layout,
)

Place = Callable[[int, int], tuple[int, int]]


@pytest.mark.parametrize("core", CORES + PROCESSOR_CORES, ids=str)
def test_every_element_is_in_a_lane(core: TensorCore) -> None:
    assert misfit(core) == ""
    sizes = {"m": core.m, "n": core.n, "k": core.k}
    for tile, fragment in core.fragments.items():
        down, across = TILE_AXES[tile]
        count = Counter(
            tuple(fragment.position(lane, element).get(axis, 0) for axis in (down, across))
            for lane, element in product(range(core.lanes), range(fragment.per_lane))
        )
        assert count.keys() == {*product(range(sizes[down]), range(sizes[across]))}
        copies = core.lanes * fragment.per_lane // (sizes[down] * sizes[across])
        assert set(count.values()) == {copies}, "each as often as any other"


@pytest.mark.parametrize("arch", BY_ARCH)
def test_a_kernel_says_which_core_it_means(arch: str) -> None:
    keys = [(c.shape, c.operand, c.accumulator) for c in BY_ARCH[arch]]
    assert keys and len(keys) == len(set(keys))
    assert len({core.lanes for core in BY_ARCH[arch]}) == 1, "all are of its warps"


@dataclass(frozen=True)
class Document:
    """The rows and columns of the tiles by formulas of lane and element."""

    arch: str
    core: str
    a: Place
    b: Place
    c: Place


def group(lane: int) -> int:
    return lane >> 2


def thread(lane: int) -> int:
    return lane % 4


def ptx_c(lane: int, i: int) -> tuple[int, int]:
    return group(lane) + (8 if i >= 2 else 0), thread(lane) * 2 + (i & 1)


DOCUMENTS = [
    # Arm Architecture Reference Manual, BFMMLA: rows of 4 of A, and columns of 4 of B
    Document(
        "bf16", "2x2x4 bfloat16 -> float32",
        lambda _, i: (i // 4, i % 4), lambda _, i: (i % 4, i // 4), lambda _, i: divmod(i, 2),
    ),
    # Intel SDM, VDPBF16PS, for four rows
    Document(
        "avx512bf16", "4x16x2 bfloat16 -> float32",
        lambda _, i: divmod(i, 2), lambda _, i: (i % 2, i // 2), lambda _, i: divmod(i, 16),
    ),
    # Intel SDM, TDPBF16PS: row r of the register of B has the steps 2 r and 2 r + 1
    Document(
        "amx-bf16", "16x16x32 bfloat16 -> float32",
        lambda _, i: divmod(i, 32),
        lambda _, i: (i // 32 * 2 + i % 2, i % 32 // 2),
        lambda _, i: divmod(i, 16),
    ),
    # PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": a_i, b_i, c_i
    Document(
        "sm_80", "16x8x16 float16 -> float32",
        lambda lane, i: (
            group(lane) if 0 <= i < 2 or 4 <= i < 6 else group(lane) + 8,
            thread(lane) * 2 + (i & 1) + (0 if i < 4 else 8),
        ),
        lambda lane, i: (thread(lane) * 2 + (i & 1) + (0 if i < 2 else 8), group(lane)),
        ptx_c,
    ),
    # PTX ISA, "Matrix Fragments for mma.m16n8k8": .f16 and .bf16
    Document(
        "sm_75", "16x8x8 float16 -> float32",
        lambda lane, i: (group(lane) + (0 if i < 2 else 8), thread(lane) * 2 + (i & 1)),
        lambda lane, i: (thread(lane) * 2 + i, group(lane)),
        ptx_c,
    ),
    # PTX ISA, "Matrix Fragments for mma.m16n8k8": .tf32
    Document(
        "sm_80", "16x8x8 float32 as tf32 -> float32",
        lambda lane, i: (
            group(lane) if i in (0, 2) else group(lane) + 8,
            thread(lane) if i in (0, 1) else thread(lane) + 4,
        ),
        lambda lane, i: (thread(lane) if i == 0 else thread(lane) + 4, group(lane)),
        ptx_c,
    ),
    # PTX ISA, "Matrix Fragments for mma.m16n8k32": .s8
    Document(
        "sm_80", "16x8x32 int8 -> int32",
        lambda lane, i: (
            group(lane) if 0 <= i < 4 or 8 <= i < 12 else group(lane) + 8,
            thread(lane) * 4 + (i & 3) + (0 if i < 8 else 16),
        ),
        lambda lane, i: (thread(lane) * 4 + (i & 3) + (0 if i < 4 else 16), group(lane)),
        ptx_c,
    ),
    # PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f64 floating point type"
    Document(
        "sm_80", "8x8x4 float64 -> float64",
        lambda lane, i: (lane >> 2, lane % 4),
        lambda lane, i: (lane % 4, lane >> 2),
        lambda lane, i: (lane >> 2, lane % 4 * 2 + (i & 1)),
    ),
    # AMD matrix instruction calculator, v_mfma_f32_32x32x8_f16 (CDNA3): A[i][k], B[k][j], D[i][j]
    Document(
        "gfx942", "32x32x8 float16 -> float32",
        lambda lane, e: (lane % 32, 4 * (lane // 32) + e),
        lambda lane, e: (4 * (lane // 32) + e, lane % 32),
        lambda lane, e: (8 * (e // 4) + 4 * (lane // 32) + e % 4, lane % 32),
    ),
    # AMD matrix instruction calculator, v_mfma_f32_16x16x16_f16
    Document(
        "gfx90a", "16x16x16 float16 -> float32",
        lambda lane, e: (lane % 16, 4 * (lane // 16) + e),
        lambda lane, e: (4 * (lane // 16) + e, lane % 16),
        lambda lane, e: (4 * (lane // 16) + e, lane % 16),
    ),
    # AMD matrix instruction calculator, v_mfma_f32_32x32x2_f32
    Document(
        "gfx942", "32x32x2 float32 -> float32",
        lambda lane, e: (lane % 32, lane // 32),
        lambda lane, e: (lane // 32, lane % 32),
        lambda lane, e: (8 * (e // 4) + 4 * (lane // 32) + e % 4, lane % 32),
    ),
    # GPUOpen, WMMA on RDNA 3: a_frag[ele] = a[16*lane + ele] with lane = thread % 16,
    # r = ele * 2 + thread / 16
    Document(
        "gfx1100", "16x16x16 float16 -> float32",
        lambda thread, ele: (thread % 16, ele),
        lambda thread, ele: (ele, thread % 16),
        lambda thread, ele: (ele * 2 + thread // 16, thread % 16),
    ),
    # MLX, BaseMMAFrag<T, 8, 8>::get_coord: qid = lane / 4
    Document(
        "apple7", "8x8x8 float16 -> float32",
        *[
            lambda lane, e: (
                (lane // 4 & 4) + lane // 2 % 4,
                (lane // 4 & 2) * 2 + lane % 2 * 2 + e,
            )
        ] * 3,
    ),
    # cl_intel_subgroup_matrix_multiply_accumulate, sub-groups of 8: a[row] packs two columns
    Document(
        "xe-hpg", "8x8x16 float16 -> float32",
        lambda lane, e: (e // 2, lane * 2 + e % 2),
        lambda lane, e: (e, lane),
        lambda lane, e: (e, lane),
    ),
    # the same, sub-groups of 16: a[row] is one column
    Document(
        "xe-hpc", "8x16x16 bfloat16 -> float32",
        lambda lane, e: (e, lane),
        lambda lane, e: (e, lane),
        lambda lane, e: (e, lane),
    ),
]  # fmt: skip


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: f"{d.arch} {d.core}")
def test_layouts_are_those_of_the_documents(document: Document) -> None:
    core = core_named(document.arch, document.core)
    for tile, place in (("a", document.a), ("b", document.b), ("c", document.c)):
        fragment, axes = core.fragments[tile], TILE_AXES[tile]
        for lane, element in product(range(core.lanes), range(fragment.per_lane)):
            position = fragment.position(lane, element)
            actual = tuple(position.get(axis, 0) for axis in axes)
            assert actual == place(lane, element), f"{tile} of lane {lane}, {element}"


def test_a_position_in_the_docstring() -> None:
    assert Fragment("k1 k2 m0 m1 m2", "k0 m3 k3").position(6, 3) == {"m": 9, "k": 5}


def test_runs_are_the_fewest_terms() -> None:
    fragment = Fragment("k1 k2 m0 m1 m2", "k0 m3 k3")
    assert [*fragment.runs("m")] == [BitRun("m", 0, True, 2, 3), BitRun("m", 3, False, 1, 1)]
    assert [*fragment.runs("k")] == [
        BitRun("k", 1, True, 0, 2),
        BitRun("k", 0, False, 0, 1),
        BitRun("k", 3, False, 2, 1),
    ]


@pytest.mark.parametrize("core", CORES, ids=str)
def test_runs_give_the_position(core: TensorCore) -> None:
    for tile, fragment in core.fragments.items():
        for lane, element in product(range(core.lanes), range(fragment.per_lane)):
            position = fragment.position(lane, element)
            for axis in TILE_AXES[tile]:
                total = 0
                for run in fragment.runs(axis):
                    number = lane if run.is_lane else element
                    total += (number >> run.begin) % (1 << run.bits) << run.place
                assert total == position.get(axis, 0)


def test_a_wrong_layout_is_seen() -> None:
    core = core_named("sm_80", "16x8x16 float16 -> float32")
    twice = core._replace(a=Fragment("k1 k2 m0 m1 m1", "k0 m3 k3"))
    assert "a has the bits" in misfit(twice)
    assert "lanes" in misfit(core._replace(lanes=64))
    assert "b has the bits" in misfit(core._replace(b=Fragment("k1 k2 n0 n1 -", "k0 k3")))


def test_rows_become_fragments_as_ldmatrix_does_it() -> None:
    """PTX ISA 8.5, ldmatrix: lane 8 * j + r has the address of row r of matrix j; register j of
    lane n is the word n % 4 of row n // 4, transposed the elements 2 * (n % 4) and the next of
    column n // 4."""
    checked = []
    for core in (c for arch in ("sm_80", "sm_90") for c in BY_ARCH[arch]):
        itemsize = core.operand.itemsize
        for tile, axis in product("ab", "kmn"):
            fragment = core.fragments[tile]
            layout = row_layout(fragment, axis, itemsize)
            if layout is None:
                continue
            in_word = 4 // itemsize
            is_columns = is_transposed(layout.rows, fragment)
            for lane, element in product(range(32), range(fragment.per_lane)):
                matrix, part = divmod(element, in_word)
                row, place = lane // 4, lane % 4 * in_word + part
                if is_columns:
                    row, place = place, row
                read = layout.rows.position(8 * matrix + row, place)
                assert read == fragment.position(lane, element), (core, tile, axis)
            checked.append((str(core), tile, axis, is_columns))
    assert {c[1:] for c in checked} >= {
        ("a", "k", False), ("a", "m", True), ("b", "k", False), ("b", "n", True)
    }  # fmt: skip
