"""Cases from textbooks and vendors' guides: transactions and conflicts, against counts by hand.

A warp is 32 work-items, a transaction of global memory a sector of 32 bytes (8 floats), and shared
memory has 32 banks of 4 bytes. So a warp that reads 32 neighbouring floats takes 4 transactions.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.assembly import Assembly
from tests.emulator.kernels import (
    Array,
    Handwritten,
    interleaved_sum,
    numbers,
    product,
    stencil,
    transpose,
    tree_sum,
)
from workbench.backends.device import Device
from workbench.base.dtypes import DType, dtypes
from workbench.emulator.accesses import AccessCount
from workbench.emulator.steps import Trace

N = 1024
WARPS = N // 32


@pytest.mark.parametrize("stride, sectors", [(1, 4), (2, 8), (3, 12), (4, 16), (8, 32), (32, 32)])
def test_strided_access(stride: int, sectors: int) -> None:
    """NVIDIA, CUDA C++ Best Practices Guide, "Strided Accesses": a stride of 2 loads twice the
    bytes, as half of each sector is not used; from 8 floats on each element has its own sector.

    32 floats `stride` apart span 32 * stride / 8 sectors, and are in no more than 32.
    """
    loads, stores = load_and_store(copy(stride=stride).run())
    assert loads.transactions == WARPS * sectors
    assert (loads.bytes_wanted, loads.bytes_moved) == (N * 4, WARPS * sectors * 32)
    assert loads.least == stores.transactions == WARPS * 4


@pytest.mark.parametrize("shift, sectors", [(0, 4), (1, 5), (7, 5), (8, 4)])
def test_misaligned_access(shift: int, sectors: int) -> None:
    """The same guide, "A Sequential but Misaligned Access Pattern": a warp whose 128 bytes begin
    beside a sector takes five transactions, not four."""
    loads, _ = load_and_store(copy(shift=shift).run())
    assert loads.transactions == WARPS * sectors


def test_naive_transpose() -> None:
    """M. Harris, An Efficient Matrix Transpose in CUDA C/C++ (2013): a row is read at once, and
    written down a column, 64 floats apart: a sector for each of the 32 elements.

    64 x 96 floats are 192 warps: 192 * 4 = 768 loads, and 192 * 32 = 6,144 stores.
    """
    loads, stores = load_and_store(transpose(tiled=False).run())
    assert (loads.transactions, stores.transactions) == (768, 6144)
    assert (stores.bytes_wanted, stores.bytes_moved) == (24_576, 8 * 24_576)


@pytest.mark.parametrize("pad, passes", [(0, 32), (1, 1), (2, 2)])
def test_transpose_through_shared_memory(pad: int, passes: int) -> None:
    """The same: by tiles of 32 x 32 rows are written too. A column of a tile has words 32 + pad
    apart: without a pad they are all in one bank (32 passes), with one of 1 in 32 banks; with one
    of 2 in the 16 even ones.

    192 warps write a row (1 pass) and read a column.
    """
    trace = transpose(pad=pad).run()
    loads, stores = load_and_store(trace)
    assert (loads.transactions, stores.transactions) == (768, 768)
    reads, writes = shared(trace)
    assert (writes.transactions, reads.transactions) == (192, 192 * passes)
    assert reads.conflicts == 192 * (passes - 1)


def test_reduction_with_interleaved_addresses() -> None:
    """M. Harris, Optimizing Parallel Reduction in CUDA (2007), kernel 2: work-item i adds the words
    2 * s * i and 2 * s * i + s, s = 1, 2, 4 .. 32.

    Of 64 words, 32 / s work-items access each 2 * s-th: two of them meet in each bank, as words 32
    apart do, but at s = 32, where there is one. So each of 3 accesses takes 2 passes in 5 steps, in
    2 groups: 30 passes are for conflicts.
    """
    trace = interleaved_sum(by="strides").run()
    assert trace.total("shared").conflicts == 3 * 5 * 2
    assert not any(n.kind == "divergent branch" for n in trace.inefficiencies)


def test_reduction_with_divergent_branches() -> None:
    """The same, kernel 1: work-item i adds if 2 * s divides i. Both warps of a group go on, up to
    s = 16, though from s = 1 on one would hold all that do. At s = 32 one is left."""
    trace = interleaved_sum(by="branches").run()
    parted = [n for n in trace.inefficiencies if n.kind == "divergent branch"]
    assert [(n.transactions, n.least) for n in parted] == [(4, 2)] * 5
    assert trace.total("shared").conflicts == 0


def test_reduction_with_sequential_addresses() -> None:
    """The same, kernel 3: work-item i < s adds the words i and i + s: neighbours, no conflicts.

    8 groups of 128 floats of which the last has 104: 8 * 16 sectors less 3.
    """
    trace = tree_sum().run()
    assert trace.total("shared").conflicts == 0 and not trace.inefficiencies
    loads, stores = load_and_store(trace)
    assert (loads.transactions, stores.transactions) == (8 * 16 - 3, 8)


def test_product_by_tiles() -> None:
    """D. Kirk and W. Hwu, Programming Massively Parallel Processors, chapter 4 (5 in the fourth
    edition): tiles of 16 x 16 read each element a 16th as often.

    C[32, 32] = A[32, 48] B[48, 32]: every work-item reads 48 elements of both, 1024 * 96 * 4 bytes
    (393,216); by tiles 4 groups in 3 rounds read 2 * 256, 24,576 bytes. A warp is two rows of 16:
    without tiles a step reads two elements of A (2 sectors) and 16 of B (2), in 32 warps and 48
    steps 6,144; with tiles two rows of 64 bytes (4), of A and B in 8 warps of 4 groups in 3 rounds.
    """
    by_tiles, _ = load_and_store(product().run())
    assert by_tiles.bytes_wanted == by_tiles.bytes_moved == 24_576
    assert by_tiles.transactions == 4 * 2 * 8 * 4 * 3 == 768
    plain, _ = load_and_store(plain_product().run())
    assert plain.bytes_wanted == 393_216 == 16 * by_tiles.bytes_wanted
    assert plain.transactions == 6144


def test_product_reads_its_tiles_without_conflicts() -> None:
    """The same: a step reads one word of A for each of two rows, and 16 neighbours of B, whose
    words the two rows share: one pass each. 32 warps, 3 rounds, 16 steps; the fills 2 a round."""
    reads, writes = shared(product().run())
    assert (reads.transactions, reads.conflicts) == (32 * 3 * 16 * 2, 0)
    assert (writes.transactions, writes.conflicts) == (32 * 3 * 2, 0)


def test_stencil_with_halo() -> None:
    """D. Kirk and W. Hwu, the same, chapter on convolution: each group reads its elements once, and
    one of each neighbour's.

    1,000 floats are 125 sectors; 15 groups have a left, and 15 a right neighbour.
    """
    loads, stores = load_and_store(stencil().run())
    assert (loads.transactions, stores.transactions) == (125 + 15 + 15, 125)


def test_structures_and_arrays() -> None:
    """NVIDIA, CUDA C++ Best Practices Guide, on arrays of structures: of (x, y, z), each field is
    read 12 bytes apart, and 3 loads move the same 12 sectors each time; three arrays need 4 each.
    """
    structures, _ = load_and_store(sum_of_fields(3, 1).run())
    arrays, _ = load_and_store(sum_of_fields(1, N).run())
    assert structures.transactions == WARPS * 3 * 12
    assert arrays.transactions == arrays.least == WARPS * 3 * 4


def test_one_element_for_all() -> None:
    """NVIDIA, CUDA C++ Programming Guide, "Shared Memory": words that several work-items of a warp
    read are broadcast; in global memory they are one sector."""
    p = Assembly(grid=(16,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y, s = p.param(1, N), p.param(0, N), p.shared("s", 2)
    p.store(s, lane, p.load(x, g), lane < 2)
    p.barrier()
    # both words of a warp's halves are in banks of their own
    p.store(y, g * 64 + lane, p.load(s, lane // 16 % 2))
    values = numbers(N)
    trace = Handwritten(p, np.repeat(values[:16], 64), (values,)).run()
    loads, _ = load_and_store(trace)
    assert (loads.transactions, loads.bytes_wanted) == (WARPS, N * 4)
    reads, _ = shared(trace)
    assert (reads.transactions, reads.conflicts) == (WARPS, 0)


def test_words_of_64_bits_in_shared_memory() -> None:
    """The same guide, compute capability 5.x and later: a warp that reads 64-bit words does so in
    two halves, without conflicts where each half has 32 words of 32 bits in different banks; two
    doubles apart, both words of lanes i and i + 8 of a half meet."""
    for stride, passes in ((1, 2), (2, 4)):
        p = Assembly(grid=(16,), group=(64,))
        (g,), (lane,) = p.groups, p.items
        x, y = p.param(1, N, dtypes.float64), p.param(0, N, dtypes.float64)
        s = p.shared("s", 64 * stride, dtypes.float64)
        p.store(s, lane * stride, p.load(x, g * 64 + lane))
        p.barrier()
        p.store(y, g * 64 + lane, p.load(s, lane * stride))
        values = numbers(N).astype(np.float64)
        reads, writes = shared(Handwritten(p, values, (values,)).run())
        assert reads.transactions == writes.transactions == WARPS * passes
        assert reads.conflicts == WARPS * (passes - 2)


@pytest.mark.parametrize("stride, passes", [(1, 2), (2, 4), (32, 64)])
def test_a_wave_of_64_in_shared_memory(stride: int, passes: int) -> None:
    """AMD CDNA 3 ISA: the local data share has 32 banks, so a wave of 64 work-items takes two
    cycles where no words of a half meet. Words 2 apart meet twice in each half."""
    p = Assembly(grid=(16,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y, s = p.param(1, N), p.param(0, N), p.shared("s", 64 * stride)
    p.store(s, lane * stride, p.load(x, g * 64 + lane))
    p.barrier()
    p.store(y, g * 64 + lane, p.load(s, lane * stride))
    values = numbers(N)
    trace = Handwritten(p, values, (values,)).run(target=Device["HIP:MI300X"].target)
    for count in shared(trace):
        assert (count.requests, count.transactions) == (16, 16 * passes)
        assert (count.least, count.conflicts) == (16 * 2, 16 * (passes - 2))
    slow = [n for n in trace.inefficiencies if n.kind == "bank conflict"]
    assert bool(slow) == (passes > 2)


def test_vectors() -> None:
    """J. Luitjens, CUDA Pro Tip: Increase Performance with Vectorized Memory Access (2013): loads
    of float4 are a quarter as many, and move the same sectors: 512 bytes are 16."""
    scalar, _ = load_and_store(copy().run())
    vector, stores = load_and_store(copy(lanes=4).run())
    assert (scalar.requests, scalar.transactions) == (32, 128)
    assert (vector.requests, vector.transactions) == (8, 128)
    assert vector.least == stores.transactions == 128


def test_elements_of_a_byte() -> None:
    """NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access": the bytes that a warp wants
    decide, not its work-items: 32 neighbouring bytes are one sector, halves two, doubles eight."""
    for dtype, sectors in ((dtypes.uint8, 1), (dtypes.int16, 2), (dtypes.float64, 8)):
        loads, stores = load_and_store(copy(dtype=dtype).run())
        assert loads.transactions == stores.transactions == WARPS * sectors


# helpers


def copy(
    stride: int = 1, shift: int = 0, lanes: int = 1, dtype: DType = dtypes.float32
) -> Handwritten:
    """1,024 elements, `stride` apart from `shift` on; a work-item copies `lanes` of them."""
    size = N * stride + shift
    p = Assembly(grid=(16 // lanes,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y = p.param(1, size, dtype), p.param(0, N, dtype)
    i = (g * 64 + lane) * lanes
    p.store(y, i, p.load(x, i * stride + shift, lanes=lanes))
    values = (numbers(size) % 100).astype(dtype.numpy)
    return Handwritten(p, values[shift::stride][:N].copy(), (values,), is_fresh=False)


def plain_product() -> Handwritten:
    """The matrices of `product`, each element of the result on its own."""
    m, n, k = 32, 32, 48
    p = Assembly(grid=(n // 16, m // 16), group=(16, 16))
    (gx, gy), (lx, ly) = p.groups, p.items
    a, b, c = p.param(1, m * k), p.param(2, k * n), p.param(0, m * n)
    row, column, acc = gy * 16 + ly, gx * 16 + lx, p.register("acc")
    p.set(acc, 0.0)
    with p.loop(k) as r:
        left = p.load(a, row * k + r)
        p.set(acc, acc + left * p.load(b, r * n + column))
    p.store(c, row * n + column, acc)
    left_matrix, right_matrix = product().inputs
    return Handwritten(p, left_matrix @ right_matrix, (left_matrix, right_matrix))


def sum_of_fields(stride: int, apart: int) -> Handwritten:
    """x + y + z, whose elements are `stride` floats apart, and the fields `apart`."""
    p = Assembly(grid=(16,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y, i = p.param(1, 3 * N), p.param(0, N), g * 64 + lane
    fields = [p.load(x, i * stride + field * apart) for field in range(3)]
    p.store(y, i, fields[0] + fields[1] + fields[2])
    values = numbers(3 * N)
    rows: Array = values.reshape(N, 3).T if stride == 3 else values.reshape(3, N)
    return Handwritten(p, rows.sum(0), (values,))


def load_and_store(trace: Trace) -> tuple[AccessCount, AccessCount]:
    """Return the counts of all loads and of all stores of global memory."""
    return _total(trace, "global")


def shared(trace: Trace) -> tuple[AccessCount, AccessCount]:
    """Return the counts of all reads and of all writes of shared memory."""
    return _total(trace, "shared")


def _total(trace: Trace, space: str) -> tuple[AccessCount, AccessCount]:
    assert not trace.findings, trace
    totals = AccessCount(space, False), AccessCount(space, True)
    for count in trace.accesses.values():
        if count.space == space:
            total = totals[count.is_store]
            for name in ("requests", "transactions", "least", "conflicts"):
                setattr(total, name, getattr(total, name) + getattr(count, name))
            total.bytes_wanted += count.bytes_wanted
            total.bytes_moved += count.bytes_moved
    return totals
