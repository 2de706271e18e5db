"""The linear program: lanes as vectors, loads by their strides, values hoisted to their loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.ir.samples import at, axis, kernel, load, param, reduced
from tests.tools.compiler import needs_c
from tests.tools.filecheck import filecheck
from tests.tools.kernels import EXAMPLES, LLVM, interpreted, matmul_bias_relu, random_form, run
from workbench import Context, Kernel, Tensor, explore
from workbench.base.target import Target
from workbench.ir.lower.lower import lower
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.verify.verify import verify

Program = tuple[UOp, ...]


def program(graph: UOp, *opts: Opt, target: Target = LLVM) -> Program:
    """Return the linear program of `graph` with `opts`: verified, and right when it runs."""
    for opt in opts:
        graph, _ = apply_opt(graph, opt, target)
    linear = lower(graph, target)[1]
    verify(linear, "linear")
    return linear


def upcast(name: str, amount: int) -> Opt:
    return Opt(OptOps.UPCAST, name, amount)


def depths(linear: Program) -> Iterator[tuple[tuple[str, ...], UOp]]:
    """Yield each step with the names of the loops it stands in."""
    path: list[str] = []
    for step in linear:
        if step.op is Ops.LOOP:
            path.append(step.src[0].axis_name)
        elif step.op is Ops.ENDLOOP:
            path.pop()
        else:
            yield tuple(path), step


def loads(linear: Program, slot: int) -> list[tuple[tuple[str, ...], UOp]]:
    """Return the loads of one parameter, with the loops round them."""
    return [
        (path, step)
        for path, step in depths(linear)
        if step.op is Ops.LOAD and step.src[0].src[0].arg[0] == slot
    ]


def test_golden() -> None:
    assert to_text(program(matmul_bias_relu(8, 16, 12).graph, upcast("g1", 8))) == GOLDEN


GOLDEN = """\
LINEAR
BLOCK {KernelInfo("sample", ("g0", "g1", "r0"))}
v0 = BROADCAST.float32x8 0.0:float32
let g0 = RANGE.index 8 {"g0", GLOBAL}
LOOP g0 {"chunked"}
v2 = MUL.index g0, 12
v3 = MUL.index g0, 16
let g1 = RANGE.index 2 {"g1", GLOBAL}
LOOP g1
let v5 = REG.float32x8 {"acc0", 0}
SET v5, v0
v6 = MUL.index g1, 8
let r0 = RANGE.index 12 {"r0", REDUCE}
LOOP r0
v8 = ADD.index v2, r0
let p1 = PARAM.float32 {1, 96}
v10 = INDEX.float32 p1, v8
v11 = LOAD.float32 v10
v12 = BROADCAST.float32x8 v11
v13 = MUL.index r0, 16
v14 = ADD.index v6, v13
let p2 = PARAM.float32 {2, 192}
v16 = INDEX.float32 p2, v14
v17 = LOAD.float32x8 v16
v18 = FMA.float32x8 v12, v17, v5
SET v5, v18
ENDLOOP r0
v19 = ADD.index v3, v6
let p0 = PARAM.float32 {0, 128}
v21 = INDEX.float32 p0, v19
let p3 = PARAM.float32 {3, 16}
v23 = INDEX.float32 p3, v6
v24 = LOAD.float32x8 v23
v25 = ADD.float32x8 v5, v24
v26 = MAX.float32x8 v25, v0
STORE v21, v26
ENDLOOP g1
ENDLOOP g0"""


def test_one_axis_of_unit_stride_loads_and_stores_vectors() -> None:
    """B, the bias and the output are neighbours along g1; A does not depend on it."""
    linear = program(EXAMPLES["matmul_bias_relu"].graph, upcast("g1", 8))
    assert [step.dtype.count for _, step in loads(linear, 1)] == [1]
    assert [step.dtype.count for _, step in loads(linear, 2)] == [8]
    assert [step.dtype.count for _, step in loads(linear, 3)] == [8]
    stores = [step for step in linear if step.op is Ops.STORE]
    assert [s.src[1].dtype.count for s in stores] == [8]


def test_a_register_tile_loads_each_operand_once() -> None:
    """4 rows x 16 columns: 4 scalars of A, 2 vectors of B, 8 FMAs, and no extraction."""
    graph = EXAMPLES["matmul_bias_relu"].graph
    linear = program(graph, upcast("g1", 16), upcast("g0", 4))
    assert len(loads(linear, 1)) == 4 and len(loads(linear, 2)) == 2
    fmas = [step for step in linear if step.op is Ops.FMA]
    assert len(fmas) == 8 and all(f.dtype.count == 8 for f in fmas)
    assert not any(step.op in (Ops.EXTRACT, Ops.STACK, Ops.HREDUCE) for step in linear)
    registers = {s.src[0] for s in linear if s.op is Ops.SET}
    assert len(registers) == 8


@pytest.mark.parametrize("vector_bytes, width", [(4, 1), (16, 4), (32, 8), (64, 16)])
def test_vectors_are_cut_to_the_target(vector_bytes: int, width: int) -> None:
    target = Target("LLVM", vector_bytes=vector_bytes)
    graph = EXAMPLES["matmul_bias_relu"].graph
    linear = program(graph, upcast("g1", 16), target=target)
    assert {s.dtype.count for _, s in loads(linear, 2)} == {width}
    assert len(loads(linear, 2)) == 16 // width


@pytest.mark.parametrize("lanes, width", [(2, 2), (3, 1), (4, 4), (6, 2), (12, 4)])
def test_a_vector_is_a_power_of_two_that_divides_the_lanes(lanes: int, width: int) -> None:
    graph = matmul_bias_relu(2, 12, 3).graph
    reads = loads(program(graph, upcast("g1", lanes)), 2)
    assert {s.dtype.count for _, s in reads} == {width} and len(reads) == lanes // width


def test_a_strided_operand_is_gathered() -> None:
    filecheck(
        to_text(program(EXAMPLES["transpose"].graph, upcast("g1", 4))),
        """
        CHECK: LOAD.float32 v
        CHECK: LOAD.float32 v
        CHECK: LOAD.float32 v
        CHECK: LOAD.float32 v
        CHECK-NEXT: STACK.float32x4
        CHECK-NEXT: STORE
        CHECK-NOT: STORE
        """,
    )


def test_lanes_of_rows_are_stored_one_by_one() -> None:
    linear = program(EXAMPLES["transpose"].graph, upcast("g0", 4))
    assert sum(step.op is Ops.STORE for step in linear) == 4
    assert all(step.dtype.count == 1 for step in linear)


def test_a_gate_along_the_vector_masks_its_lanes() -> None:
    filecheck(
        to_text(program(EXAMPLES["convolution"].graph, upcast("g1", 4))),
        """
        CHECK: CMPLT.boolx4
        CHECK: CMPLT.boolx4
        CHECK: [m] = AND.boolx4
        CHECK: LOAD.float32x4 {{v[0-9]+, v[0-9]+}}
        """.replace("[m]", "{{v[0-9]+}}"),
    )


def test_a_gate_across_the_vector_is_one_condition() -> None:
    """Rows: whether a row is inside is the same for all lanes of it, and is broadcast."""
    g0, g1 = axis("g0", 6), axis("g1", 8)
    inside = (g0 >= 1) & (g0 < 5)
    value = load(param(1, 32), gated((g0 + -1) * 8 + g1, inside))
    graph = kernel("g0 g1", (at(param(0, 48), g0 * 8 + g1), value, "g0 g1"))
    linear = program(graph, upcast("g1", 8))
    conditions = [(p, s) for p, s in depths(linear) if s.op is Ops.AND]
    assert [(p, s.dtype.count) for p, s in conditions] == [(("g0",), 1)]
    ((_, wide),) = loads(linear, 1)
    assert wide.dtype.count == 8 and len(wide.src) == 2


def test_a_settled_part_of_a_gate_is_left_out() -> None:
    """Of four rows the first is always inside of a padded axis: its gate is about columns alone."""
    opts = [Opt(OptOps.PADTO, "g0", 16), Opt(OptOps.PADTO, "g1", 24)]
    graph = matmul_bias_relu(13, 21, 5).graph
    linear = program(graph, *opts, upcast("g0", 4), upcast("g1", 4))
    gates = [step.src[2].op for step in linear if step.op is Ops.STORE]
    assert gates == [Ops.CMPLT, Ops.AND, Ops.AND, Ops.AND]


def test_a_value_stands_in_the_deepest_loop_it_needs() -> None:
    """A row's own element is loaded outside of the loop over columns."""
    g0, g1, r0 = axis("g0", 4), axis("g1", 8), axis("r0", 5)
    row, column = load(param(1, 4), g0), load(param(2, 8), g1)
    total = reduced(Ops.ADD, load(param(3, 160), (g0 * 8 + g1) * 5 + r0) * (row * column), r0)
    graph = kernel("g0 g1 r0", (at(param(0, 32), g0 * 8 + g1), total, "g0 g1"))
    linear = program(graph)
    assert [path for path, _ in loads(linear, 1)] == [("g0",)]
    assert [path for path, _ in loads(linear, 2)] == [("g0", "g1")]
    assert [path for path, _ in loads(linear, 3)] == [("g0", "g1", "r0")]
    products = [p for p, s in depths(linear) if s.op is Ops.MUL and s.dtype.is_float]
    assert products == [("g0", "g1")]


def test_an_address_is_computed_loop_by_loop() -> None:
    linear = program(EXAMPLES["matmul_bias_relu"].graph)
    multiplied = {p for p, s in depths(linear) if s.op is Ops.MUL and s.dtype.kind == "index"}
    assert ("g0",) in multiplied, "the row's offset is computed once per row"


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX, Ops.MIN, Ops.MUL])
def test_a_reduction_over_unrolled_lanes_is_a_vector_until_the_end(op: Ops) -> None:
    g0, r0 = axis("g0", 3), axis("r0", 32)
    value = reduced(op, load(param(1, 96), g0 * 32 + r0), r0)
    graph = kernel("g0 r0", (at(param(0, 3), g0), value, "g0"))
    linear = program(graph, Opt(OptOps.UNROLL, "r0", 8))
    ((path, _),) = [(p, s) for p, s in depths(linear) if s.op is Ops.HREDUCE]
    assert path == ("g0",), "the lanes are combined once, after the loop"
    assert [(p, s.dtype.count) for p, s in loads(linear, 1)] == [(("g0", "r0"), 8)]


def test_a_dot_product_is_fused_multiply_adds_of_vectors() -> None:
    g0, r0 = axis("g0", 3), axis("r0", 32)
    a, b = load(param(1, 96), g0 * 32 + r0), load(param(2, 32), r0)
    graph = kernel("g0 r0", (at(param(0, 3), g0), reduced(Ops.ADD, a * b, r0), "g0"))
    filecheck(
        to_text(program(graph, Opt(OptOps.UNROLL, "r0", 8))),
        """
        CHECK:      LOOP r0
        CHECK:      LOAD.float32x8
        CHECK:      LOAD.float32x8
        CHECK-NEXT: FMA.float32x8
        CHECK-NEXT: SET
        CHECK-NEXT: ENDLOOP r0
        CHECK:      HREDUCE.float32
        CHECK-NEXT: STORE
        CHECK-NOT:  EXTRACT
        """,
    )
    arrays = [np.full(3, np.nan, np.float32), *[np.arange(n, dtype=np.float32) for n in (96, 32)]]
    assert np.array_equal(run(graph, "LLVM", arrays), interpreted(graph, arrays))


def test_a_reduction_whose_whole_axis_is_unrolled_has_no_loop() -> None:
    g0, r0 = axis("g0", 3), axis("r0", 8)
    value = reduced(Ops.ADD, load(param(1, 24), g0 * 8 + r0), r0)
    graph = kernel("g0 r0", (at(param(0, 3), g0), value, "g0"))
    linear = program(graph, Opt(OptOps.UNROLL, "r0", 0))
    filecheck(
        to_text(linear),
        """
        CHECK:     LOOP g0
        CHECK-NOT: LOOP r0
        CHECK:     LOAD.float32x8
        CHECK:     HREDUCE.float32
        """,
    )
    assert not any(step.op in (Ops.REG, Ops.SET) for step in linear)


def test_no_exp2_log2_sine_or_floor_division_is_left_for_llvm() -> None:
    g0 = axis("g0", 12)
    x = load(param(1, 12), g0)
    number = (g0 // 5 + g0 % 7).cast(x.dtype)
    value = x.alu(Ops.EXP2) + x.alu(Ops.LOG2) + x.alu(Ops.SIN) + x.alu(Ops.COS) + number
    graph = kernel("g0", (at(param(0, 12), g0), value, "g0"))
    gone = {Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.IDIV, Ops.MOD}
    for opts in ((), (upcast("g0", 4),)):
        linear = program(graph, *opts)
        assert not gone & {node.op for step in linear for node in step.toposort()}


def test_programs_print_and_parse_back() -> None:
    for name, example in EXAMPLES.items():
        for seed in range(6):
            linear = lower(random_form(example, seed, 3).graph, LLVM)[1]
            assert parse(to_text(linear)) == linear, (name, seed)


CONSTANT_SUM = """p0 = PARAM.float32 {0, 10}
g0 = RANGE.index 10 {"g0", GLOBAL}
v2 = INDEX.float32 p0, g0
r0 = RANGE.index 14 {"r0", REDUCE}
s17 = REDUCE.float32 1, r0 {ADD}
v18 = STORE v2, s17
v19 = END v18, g0
SINK v19 {KernelInfo("r_10_14", ("g0", "r0"))}"""


@pytest.mark.parametrize("device", ["LLVM", "C", "PYTHON"])
def test_a_constant_is_added_as_often_as_the_loop_says(device: str) -> None:
    """A step of an accumulation is never hoisted, whatever its value depends on."""
    kernel = Kernel.from_text(CONSTANT_SUM)
    assert (kernel.run(device)[0] == 14).all() and kernel.check(device)
    x = Tensor(np.zeros((6, 10), np.float32)).pad(((1, 2), (0, 3))).exp().sum(1)
    padded = explore(x).kernels[0].apply(Opt(OptOps.PADTO, "g0", 4), Opt(OptOps.UPCAST, "g0", 0))
    assert (padded.run(device)[0] == 13).all() and padded.check(device)


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c), "PYTHON"])
def test_lanes_that_are_all_settled_are_each_counted(device: str) -> None:
    """From 8 on a position is beyond every element: a vector of conditions is one True, and a
    load beyond its gate one 0, and still both stand for all of their lanes."""
    numbers = np.random.default_rng(0).integers(0, 8, 64).astype(np.int32)
    with Context(DEV=device):
        places, x = Tensor.arange(64), Tensor(numbers)
        for actual, want in (
            (places >= x.clip(0, 3), np.arange(64) >= numbers.clip(0, 3)),
            (places != (x > 3), np.arange(64) != (numbers > 3)),
            ((places >= x.clip(0, 3)).where(2, 1), 1 + (np.arange(64) >= numbers.clip(0, 3))),
            (x.clip(0, 3).pad((64, 0)) + 1, np.pad(numbers.clip(0, 3), (64, 0)) + 1),
        ):
            np.testing.assert_array_equal(actual.cumsum(0).numpy(), np.cumsum(want))
            (kernel,) = explore(actual.int().sum().reshape(1)).kernels
            unrolled = kernel.apply(Opt(OptOps.UNROLL, kernel.axes[-1].name, 16))
            assert unrolled.run(device)[0] == want.sum()
