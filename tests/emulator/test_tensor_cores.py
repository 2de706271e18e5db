"""Kernels with tiles of every tensor core, run by the emulator, against numpy: odd sizes, several
tiles, other opts on top; and what their products are refused to be.

Tolerances: those of the project's acceptance list, 3e-2 absolute and 1e-3 relative for operands of
16 bits, 1e-4 for float32; sums are of few hundred terms.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.support import LONG
from tests.tools.tensor_cores import (
    BY_ARCH,
    CORES,
    PROCESSOR_CORES,
    core_named,
    gpu_with,
    target_with,
)
from workbench import Tensor, dtypes, explore
from workbench.base.target import Target
from workbench.base.tensor_cores import Fragment, TensorCore
from workbench.emulator.program import emulated
from workbench.emulator.steps import Trace
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt, legal_opts
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.verify.verify import verify
from workbench.pipeline import Stages, stages

Array = np.ndarray[Any, Any]
TC, UPCAST, UNROLL, LOCAL = OptOps.TC, OptOps.UPCAST, OptOps.UNROLL, OptOps.LOCAL
STAGE, ORDER, PADTO, SPLIT, SWAP, PIPELINE = (
    OptOps.STAGE, OptOps.ORDER, OptOps.PADTO, OptOps.SPLIT, OptOps.SWAP, OptOps.PIPELINE,
)  # fmt: skip
F16 = "16x8x16 float16 -> float32"


def matmul(core: TensorCore, m: int, n: int, k: int) -> UOp:
    a, b = (Tensor.empty(*s, dtype=core.operand) for s in ((m, k), (k, n)))
    return explore(a.cast(core.accumulator) @ b.cast(core.accumulator)).kernels[-1].ast


def numbers(shape: Sequence[int], dtype: Any, seed: int) -> Array:
    dice = np.random.default_rng(seed)
    if dtype.is_int:
        return dice.integers(-100, 100, shape).astype(dtype.numpy)
    return dice.uniform(-1.5, 1.5, shape).astype(dtype.numpy)


def applied(graph: UOp, opts: Sequence[Opt], target: Target) -> UOp:
    for opt in opts:
        graph, _ = apply_opt(graph, opt, target)
    return graph


def lowered(graph: UOp, opts: Sequence[Opt], target: Target) -> Stages:
    built = stages(applied(graph, opts, target), target, "linear")
    verify(built.kernel, "kernel")
    verify(built.lowered, "lowered")
    verify(built.linear, "linear")
    return built


def run(built: Stages, target: Target, out: Array, *inputs: Array) -> Trace:
    arrays = [out.reshape(-1), *(x.reshape(-1).copy() for x in inputs)]
    return emulated(built.linear, arrays, target)


def check(core: TensorCore, shape: tuple[int, int, int], opts: Sequence[Opt]) -> Trace:
    """Fail unless A @ B is numpy's, computed by the tensor core, and nothing is wrong."""
    m, n, k = shape
    target = target_with(core)
    built = lowered(matmul(core, m, n, k), opts, target)
    a, b = numbers((m, k), core.operand, 1), numbers((k, n), core.operand, 2)
    out = np.zeros((m, n), core.accumulator.numpy)
    trace = run(built, target, out, a, b)
    assert trace.findings == ()
    assert any(node.op is Ops.WMMA for node in built.linear)
    wide = np.int64 if core.operand.is_int else np.float64
    right = a.astype(wide) @ b.astype(wide)
    absolute, relative = (3e-2, 1e-3) if core.operand.bits < 32 else (1e-4, 1e-4)
    if core.rounds_to:
        absolute, relative = 0.25, 0.01
    result = trace.outputs[0].reshape(m, n).astype(wide)
    np.testing.assert_allclose(result, right, relative, absolute)
    return trace


def tile(core: TensorCore) -> Opt:
    return Opt(TC, 0, core.shape)


@pytest.mark.parametrize("core", CORES + PROCESSOR_CORES, ids=str)
def test_every_tensor_core(core: TensorCore) -> None:
    check(core, (core.m, core.n, core.k), [tile(core)])
    check(core, (2 * core.m, 3 * core.n, 2 * core.k), [tile(core)])


@pytest.mark.parametrize("core", CORES + PROCESSOR_CORES, ids=str)
def test_odd_sizes_are_padded(core: TensorCore) -> None:
    dice = random.Random(str(core))
    for _ in range(2 if LONG else 1):
        shape = [dice.randrange(max(2, n // 4 + 1), 3 * n) for n in (core.m, core.n, core.k)]
        check(core, (shape[0], shape[1], shape[2]), [tile(core)])


@pytest.mark.parametrize("core", CORES, ids=str)
def test_several_tiles_of_a_warp_through_shared_memory(core: TensorCore) -> None:
    opts = [
        tile(core), Opt(UPCAST, "g0", 2), Opt(UPCAST, "g1", 2),
        Opt(STAGE, "r0", 1), Opt(STAGE, "r0", 2),
    ]  # fmt: skip
    check(core, (4 * core.m, 4 * core.n, 2 * core.k), opts)


ON_TOP: dict[str, list[Opt]] = {
    "tiles": [Opt(UPCAST, "g0", 2), Opt(UPCAST, "g1", 4)],
    "steps": [Opt(UNROLL, "r0", 2)],
    "all steps": [Opt(UNROLL, "r0", 0)],
    "warps": [Opt(LOCAL, "g0", 2), Opt(LOCAL, "g1", 2)],
    "warps and tiles": [Opt(LOCAL, "g1", 4), Opt(UPCAST, "g0", 2), Opt(UNROLL, "r0", 3)],
    "one operand staged": [Opt(STAGE, "r0", 2)],
    "both operands staged for four warps": [
        Opt(LOCAL, "g0", 2), Opt(LOCAL, "g1", 2), Opt(ORDER, "r0", "l0"),
        Opt(STAGE, "r0", 1), Opt(STAGE, "r0", 2),
    ],
    "staged for each warp": [Opt(LOCAL, "g0", 2), Opt(STAGE, "r0", 1)],
    "larger stages": [Opt(SPLIT, "r0", 2), Opt(STAGE, "r0", 1), Opt(STAGE, "r0", 2)],
    "padded steps": [Opt(PADTO, "r0", 8), Opt(UNROLL, "r0", 2)],
    "padded steps of a stage": [Opt(STAGE, "r0", 1), Opt(PADTO, "r0", 8)],
    "padded tiles": [Opt(PADTO, "g0", 3), Opt(UPCAST, "g0", 3)],
    "another order": [Opt(SWAP, "g0", "g1")],
}  # fmt: skip


@pytest.mark.parametrize("name", ON_TOP)
@pytest.mark.parametrize(
    ("arch", "words"),
    [
        ("sm_80", F16), ("gfx1100", "16x16x16 float16 -> float32"),
        ("gfx90a", "32x32x2 float32 -> float32"), ("xe-hpg", "8x8x16 float16 -> float32"),
    ],
)  # fmt: skip
def test_opts_on_top(arch: str, words: str, name: str) -> None:
    core = core_named(arch, words)
    shape = 4 * core.m, 8 * core.n, 6 * core.k
    check(core, shape, [tile(core), *ON_TOP[name]])


# in a short run two buffers and three alternate
AHEAD = [(b, c) for b in (2, 3) for n, c in enumerate(CORES) if LONG or (n + b) % 2]


@pytest.mark.parametrize(("buffers", "core"), AHEAD, ids=str)
def test_tiles_that_are_filled_ahead(core: TensorCore, buffers: int) -> None:
    """Also where an axis is no multiple of a tile, and there are fewer steps than buffers."""
    warps = 1024 // core.lanes > 3
    opts = [
        tile(core), Opt(UPCAST, "g0", 2), *[Opt(LOCAL, n, 2) for n in ("g0", "g1") if warps],
        Opt(SPLIT, "r0", 2), *[Opt(ORDER, "r0", "l0") for _ in range(warps)],
        Opt(STAGE, "r0", 1), Opt(STAGE, "r0", 2), Opt(PIPELINE, "r0", buffers),
    ]  # fmt: skip
    check(core, (4 * core.m, 4 * core.n, 8 * core.k), opts)
    pads = [
        Opt(PADTO, name, amount)
        for name, amount in (("g0", 4 * core.m), ("g1", 4 * core.n), ("r0", 4 * core.k))
    ]
    check(core, (4 * core.m - 3, 4 * core.n - 1, 4 * core.k - 1), [*pads, *opts])


MATRIX_CORES = [
    core for core in CORES if core.instruction.startswith("mma") and core.operand.bits < 64
]


@pytest.mark.parametrize("core", MATRIX_CORES, ids=str)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
def test_rows_are_exchanged(core: TensorCore, turned: tuple[bool, bool]) -> None:
    """Rows along the steps always; along rows or columns of the result with elements of 16 bits,
    whose matrices are transposed then, and of 8 bits, whose tile has the steps as its rows."""
    m, n, k = 2 * core.m, 2 * core.n, 4 * core.k
    target, arrays = gpu_with(core), []
    operands = []
    for (rows, columns), is_turned, seed in zip(((m, k), (k, n)), turned, (1, 2), strict=True):
        shape = (columns, rows) if is_turned else (rows, columns)
        arrays.append(numbers(shape, core.operand, seed))
        x = Tensor.empty(*shape, dtype=core.operand)
        operands.append((x.T if is_turned else x).cast(core.accumulator))
    graph = explore(operands[0] @ operands[1]).kernels[-1].ast
    opts = [Opt(UPCAST, "g0", 2), Opt(STAGE, "r0", 1), Opt(STAGE, "r0", 2)]
    built = lowered(graph, [tile(core), *opts], target)
    out = np.zeros((m, n), core.accumulator.numpy)
    trace = run(built, target, out, *arrays)
    assert trace.findings == ()
    wide = np.int64 if core.operand.is_int else np.float64
    a, b = (x.T if t else x for x, t in zip(arrays, turned, strict=True))
    right = a.astype(wide) @ b.astype(wide)
    result = trace.outputs[0].reshape(m, n).astype(wide)
    np.testing.assert_allclose(result, right, 1e-2, 0.25 if core.rounds_to else 3e-2)
    memories = {node.src[0].place.param.name for node in built.linear if node.op is Ops.EXCHANGE}
    along_steps = {"As": not turned[0], "Bs": turned[1]}
    expected = {name for name, is_so in along_steps.items() if is_so}
    assert memories == ({"As", "Bs"} if core.operand.bits in (8, 16) else expected)


def test_upcast_before_and_exchanged_axes() -> None:
    core = core_named("sm_80", F16)
    check(core, (64, 32, 32), [Opt(UPCAST, "g0", 2), tile(core)])
    check(core, (64, 32, 32), [Opt(TC, "g1 g0 r0", 2)])


def test_random_lists_of_opts() -> None:
    """Whatever is legal after TC computes the same."""
    dice, core = random.Random(7), core_named("sm_80", F16)
    for _ in range(12):
        opts, shape = [tile(core)], tuple(n * dice.choice((1, 2, 4)) - dice.randrange(3)
                                          for n in (core.m, core.n, core.k))  # fmt: skip
        graph = applied(matmul(core, *shape), opts, gpu_with(core))
        for _ in range(dice.randrange(1, 4)):
            legal = [o for o in legal_opts(graph, gpu_with(core)) if o.op is not TC]
            if not legal:
                break
            opts.append(dice.choice(legal))
            graph = applied(graph, opts[-1:], gpu_with(core))
        try:
            check(core, (shape[0], shape[1], shape[2]), opts)
        except AssertionError as error:
            raise AssertionError(f"{shape} {opts}") from error


def test_nine_choices_agree() -> None:
    """A convolution by each of its axes: absolute 0.1, relative 0.15, of sums of 144 products."""
    x, w = (Tensor.empty(*s, dtype=dtypes.float16) for s in ((8, 16, 10, 10), (8, 16, 3, 3)))
    graph = explore(x.conv2d(w)).kernels[-1].ast
    target = gpu_with(*BY_ARCH["sm_80"])
    inputs = [numbers(s, dtypes.float16, i) for i, s in enumerate(((8, 16, 10, 10), (8, 16, 3, 3)))]
    windows = np.lib.stride_tricks.sliding_window_view(inputs[0].astype(np.float64), (3, 3), (2, 3))
    right = np.einsum("bchwij,ocij->bohw", windows, inputs[1].astype(np.float64))
    results = []
    for choice in range(9):
        built = lowered(graph, [Opt(TC, choice, 2)], target)
        trace = run(built, target, np.zeros(right.shape, np.float16), *inputs)
        assert trace.findings == ()
        result = trace.outputs[0].view(np.float16).reshape(right.shape)
        results.append(result.astype(np.float64))
        np.testing.assert_allclose(results[-1], right, 1e-2, 0.25)
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], 0.15, 0.1)


def test_an_epilogue_is_of_each_element() -> None:
    core, target = core_named("sm_80", F16), gpu_with(core_named("sm_80", F16))
    a, b = (Tensor.empty(*s, dtype=dtypes.float16) for s in ((33, 40), (40, 20)))
    bias = Tensor.empty(20)
    graph = explore((a.cast(dtypes.float32) @ b.cast(dtypes.float32) + bias).relu())
    built = lowered(graph.kernels[-1].ast, [Opt(TC, 0, 2)], target)
    x, y = numbers((33, 40), core.operand, 1), numbers((40, 20), core.operand, 2)
    z = numbers((20,), core.accumulator, 3)
    trace = run(built, target, np.zeros((33, 20), np.float32), x, y, z)
    right = np.maximum(x.astype(np.float64) @ y.astype(np.float64) + z, 0)
    np.testing.assert_allclose(trace.outputs[0].reshape(33, 20), right, 1e-3, 3e-2)


def test_infinities_beyond_the_end_do_not_matter() -> None:
    """A padded step multiplies 0 by 0: the row of B that is read again may hold infinities."""
    core, target = core_named("sm_80", F16), gpu_with(core_named("sm_80", F16))
    built = lowered(matmul(core, 16, 8, 17), [tile(core)], target)
    a, b = numbers((16, 17), core.operand, 1), numbers((17, 8), core.operand, 2)
    a[:, 16], b[16, 3] = 1, np.inf
    trace = run(built, target, np.zeros((16, 8), np.float32), a, b)
    out = trace.outputs[0].reshape(16, 8)
    assert np.isposinf(out[:, 3]).all() and np.isfinite(np.delete(out, 3, 1)).all()


def test_a_wrong_layout_gives_wrong_results() -> None:
    """The emulator puts tiles together by the layout of the instruction, so that a kernel that
    loads by another one is wrong, as on the device."""
    core = core_named("sm_80", F16)
    wrong = core._replace(a=Fragment("k1 k2 m0 m1 m2", "k0 k3 m3"))
    built = lowered(matmul(core, 16, 8, 16), [tile(core)], gpu_with(wrong))
    meant = tuple(n.replace(arg=core) if n.op is Ops.WMMA else n for n in built.linear)
    places = {old: new for old, new in zip(built.linear, meant, strict=True) if old is not new}
    program = tuple(n.substitute(places) for n in built.linear)
    a, b = numbers((16, 16), core.operand, 1), numbers((16, 8), core.operand, 2)
    arrays = [np.zeros(16 * 8, np.float32), a.reshape(-1), b.reshape(-1)]
    trace = emulated(program, arrays, gpu_with(core))
    right = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(trace.outputs[0].reshape(16, 8) - right).max() > 0.5


def test_a_lane_that_is_switched_off_is_a_finding() -> None:
    core = core_named("sm_80", F16)
    built = lowered(matmul(core, 16, 8, 32), [tile(core)], gpu_with(core))
    lane = next(n.axis for n in built.linear if n.op is Ops.SPECIAL)
    condition = lane < 31
    begin = UOp(Ops.IF, dtypes.void, (condition,))
    end = UOp(Ops.ENDIF, dtypes.void, (condition,))
    program = []
    for node in built.linear:
        if node.op is Ops.SET and node.value.op is Ops.WMMA:
            program[-1:] = [condition, begin, program[-1], node, end]
        else:
            program.append(node)
    arrays = [np.zeros(16 * 8, np.float32), np.zeros(512, np.float16), np.zeros(256, np.float16)]
    kinds = {f.kind for f in emulated(tuple(program), arrays, gpu_with(core)).findings}
    assert "partial warp" in kinds


@pytest.mark.parametrize("core", CORES, ids=str)
def test_text_parses_back(core: TensorCore) -> None:
    built = lowered(matmul(core, 2 * core.m, 2 * core.n, 2 * core.k), [tile(core)], gpu_with(core))
    for state in (built.kernel, built.tree, built.lowered, built.linear):
        text = to_text(state)
        again = parse(text)
        assert again is state if isinstance(state, UOp) else again == state


def test_without_that_tensor_core_a_work_item_computes_the_tile() -> None:
    """The kernel means the same anywhere: a Target with other tensor cores has lanes instead."""
    core = core_named("sm_80", F16)
    graph = applied(matmul(core, 16, 8, 16), [tile(core)], gpu_with(core))
    other = gpu_with(*BY_ARCH["gfx1100"])
    built = stages(graph, other, "linear")
    assert not any(n.op is Ops.WMMA for n in built.linear)
    a, b = numbers((16, 16), core.operand, 1), numbers((16, 8), core.operand, 2)
    trace = run(built, other, np.zeros((16, 8), np.float32), a, b)
    right = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(trace.outputs[0].reshape(16, 8), right, 1e-4, 1e-4)
