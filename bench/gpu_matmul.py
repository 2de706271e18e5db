"""Matrix products on a GPU by several lists of opts, beside torch.

    python bench/gpu_matmul.py [--size 4096] [--kinds float16 float32] [--seconds 0.3] [--one NAME]

A row is a list of opts: its time, its share of the speed of torch's product (which is cuBLAS's),
and the norm of its error for the norm of the answer. The default opts come first. With
`--registers` each row has what the compiler says of registers, and nothing runs: it needs no GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from workbench import Tensor, explore
from workbench.base.dtypes import dtypes
from workbench.base.errors import WorkbenchError
from workbench.ir.opt.opt import Opt, OptOps

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

VECTOR_BYTES = 16
BOUND = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}
"""The norm of the error for the norm of the answer, at most."""


class TensorTiles(NamedTuple):
    """Tiles of a warp and warps of a group along rows and columns, tiles of 16 steps that are
    copied at a time, and buffers."""

    tiles: tuple[int, int]
    warps: tuple[int, int]
    deep: int
    buffers: int
    interleaved: bool = True
    """Whether each tile of 16 steps copies a part of the next tiles."""

    @property
    def name(self) -> str:
        rows, columns = (self.tiles[0] * self.warps[0] * 16, self.tiles[1] * self.warps[1] * 8)
        warps = "x".join(map(str, self.warps))
        return f"{rows}x{columns}x{self.deep * 16} by {warps} warps, {self.buffers} buffers" + (
            "" if self.interleaved else " apart"
        )

    def opts(self, itemsize: int) -> Iterator[Opt]:
        """Yield the opts, of operands whose elements have `itemsize` bytes."""
        yield Opt(OptOps.TC, "g0 g1 r0", "16x8x16")
        yield from _split_outputs(("g0", "g1"), self.tiles, self.warps)
        yield Opt(OptOps.SPLIT, "r0", self.deep)
        yield Opt(OptOps.ORDER, "r0", "l0")
        if self.interleaved and self.deep > 1:
            yield Opt(OptOps.ORDER, "r1", "l0")
        width = VECTOR_BYTES // itemsize
        second = "b_l1" if self.warps[0] > 1 else "b_l0"
        second = second if self.warps[1] > 1 else "b_u1"
        for slot, fill in ((1, "a_r1"), (2, second)):
            yield Opt(OptOps.STAGE, "r0", slot)
            yield Opt(OptOps.UPCAST, fill, width)
        if self.buffers > 1:
            yield Opt(OptOps.PIPELINE, "r0", self.buffers)


def _split_outputs(
    names: Sequence[str], tiles: Sequence[int], warps: Sequence[int]
) -> Iterator[Opt]:
    for name, tile, warp in zip(names, tiles, warps, strict=True):
        if tile > 1:
            yield Opt(OptOps.UPCAST, name, tile)
        if warp > 1:
            yield Opt(OptOps.LOCAL, name, warp)


class ItemTiles(NamedTuple):
    """Work-items along rows and columns, outputs of each, steps that are copied at a time, those
    of them in one iteration, and buffers."""

    items: tuple[int, int]
    outputs: tuple[int, int]
    deep: int
    unroll: int
    buffers: int

    @property
    def name(self) -> str:
        rows, columns = (a * b for a, b in zip(self.items, self.outputs, strict=True))
        items = "x".join(map(str, self.items))
        return (
            f"{rows}x{columns}x{self.deep} by {items} items, unrolled by {self.unroll},"
            f" {self.buffers} buffers"
        )

    def opts(self, itemsize: int) -> Iterator[Opt]:
        """Yield the opts: a vector of columns, and vectors of them as far apart as items are."""
        vector = VECTOR_BYTES // itemsize
        yield Opt(OptOps.UPCAST, "g0", self.outputs[0])
        yield Opt(OptOps.UPCAST, "g1", vector)
        yield Opt(OptOps.LOCAL, "g0", self.items[0])
        yield Opt(OptOps.LOCAL, "g1", self.items[1])
        if self.outputs[1] > vector:
            yield Opt(OptOps.UPCAST, "g1", self.outputs[1] // vector)
        yield Opt(OptOps.SPLIT, "r0", self.deep)
        yield Opt(OptOps.ORDER, "r0", "l0")
        yield Opt(OptOps.STAGE, "r0", 1)
        yield Opt(OptOps.STAGE, "r0", 2)
        if self.buffers > 1:
            yield Opt(OptOps.PIPELINE, "r0", self.buffers)
        if self.unroll > 1:
            yield Opt(OptOps.UNROLL, "r1", self.unroll)


HALVES = (
    TensorTiles((4, 8), (2, 2), 4, 3, False),
    TensorTiles((4, 8), (2, 2), 4, 2),
    TensorTiles((4, 8), (2, 2), 2, 4),
    TensorTiles((8, 4), (2, 2), 4, 3),
    TensorTiles((4, 8), (2, 4), 4, 3),
    TensorTiles((4, 8), (2, 4), 4, 4),
    TensorTiles((4, 8), (2, 4), 2, 4),
    TensorTiles((4, 8), (4, 2), 4, 3),
    TensorTiles((4, 8), (2, 4), 8, 2),
    TensorTiles((4, 4), (2, 4), 4, 3),
    TensorTiles((2, 8), (4, 2), 4, 3),
    TensorTiles((4, 8), (2, 4), 2, 1),
)
SINGLES = (
    ItemTiles((16, 16), (8, 8), 16, 1, 3),
    ItemTiles((16, 16), (8, 8), 16, 2, 3),
    ItemTiles((16, 16), (8, 8), 16, 4, 3),
    ItemTiles((16, 16), (8, 8), 8, 8, 4),
    ItemTiles((16, 16), (8, 8), 8, 4, 4),
    ItemTiles((16, 16), (8, 8), 16, 4, 2),
    ItemTiles((16, 16), (8, 8), 16, 4, 1),
    ItemTiles((16, 8), (8, 8), 16, 4, 3),
    ItemTiles((8, 16), (16, 8), 16, 2, 3),
    ItemTiles((8, 16), (16, 8), 8, 4, 4),
    ItemTiles((16, 32), (8, 8), 16, 4, 3),
)
CANDIDATES: dict[str, Sequence[TensorTiles | ItemTiles]] = {
    "float16": HALVES, "bfloat16": HALVES, "float32": SINGLES,
}  # fmt: skip


def candidates(kernel: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """Yield the name of each list of opts, and the kernel with it, or why it is refused."""
    yield "default opts", kernel.optimized()
    size = 4 if kind == "float32" else 2
    for tiles in CANDIDATES[kind]:
        try:
            yield tiles.name, kernel.apply(*tiles.opts(size))
        except WorkbenchError as error:
            yield tiles.name, str(error).splitlines()[1].strip()


def registers(size: int, kind: str) -> None:
    """Print what the compiler says of each row for an H100."""
    from workbench.backends.cuda import nvrtc

    a, b = (Tensor.empty(size, size, dtype=kind) for _ in range(2))
    kernel = explore(a @ b, device="CUDA", target="H100").kernels[0]
    for name, variant in candidates(kernel, kind):
        words = variant
        if not isinstance(variant, str):
            source = variant.built("CUDA:H100").source
            log = nvrtc.compile_text(source.text, "sm_90").log.splitlines()
            about = [line for line in log if "registers" in line or "spill" in line]
            words = f"{source.shared_bytes:,} bytes; {' '.join(about)}"
        print(f"{kind} {name:52} {words}", flush=True)


def times(size: int, kind: str, seconds: float, one: str) -> None:
    """Print the time of each row, beside torch's."""
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    x, y = (torch.from_numpy(n).cuda().to(getattr(torch, kind)) for n in (a, b))
    exact = x.double() @ y.double()
    theirs = torch_seconds(x, y)
    flops = 2.0 * size**3
    print(f"{kind} {size}: torch {theirs * 1e6:,.1f} us, {flops / theirs / 1e12:,.1f} TFLOP/s")
    own = [Tensor(n, device="CUDA").cast(getattr(dtypes, kind)).realize() for n in (a, b)]
    kernel = explore(own[0] @ own[1], device="CUDA").kernels[0]
    for name, variant in candidates(kernel, kind):
        if one not in name:
            continue
        if isinstance(variant, str):
            print(f"{kind} {name:52} refused: {variant}", flush=True)
            continue
        try:
            (result,) = variant.run()
            took = variant.time(budget_s=seconds).median_s
        except WorkbenchError as error:
            print(f"{kind} {name:52} FAILED {str(error)[:200]}", flush=True)
            continue
        actual = torch.from_numpy(result.astype(np.float32)).cuda().double()
        error = float((actual - exact).norm() / exact.norm())
        verdict = "right" if error <= BOUND[kind] else "WRONG"
        print(
            f"{kind} {name:52} {verdict} {error:.1e} {took * 1e6:9,.1f} us"
            f" {flops / took / 1e12:7,.1f} TFLOP/s, {theirs / took:5.2f} of torch's speed",
            flush=True,
        )


def torch_seconds(x: Any, y: Any) -> float:
    """Return the seconds of one of many products in a row."""
    for _ in range(5):
        x @ y
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    count = 50
    begin.record()
    for _ in range(count):
        x @ y
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3 / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--kinds", nargs="+", default=["float16", "float32"])
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--one", default="", help="only rows whose name has this")
    parser.add_argument("--registers", action="store_true")
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        if arguments.registers:
            registers(arguments.size, kind)
        else:
            torch.backends.cuda.matmul.allow_tf32 = False
            times(arguments.size, kind, arguments.seconds, arguments.one)


if __name__ == "__main__":
    main()
