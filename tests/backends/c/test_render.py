"""The C renderer: what a reader sees. What the text computes is tested with the runtime."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.backends.linear import (
    at,
    axis,
    begin,
    broadcast,
    constant_lanes,
    each,
    end,
    load_from,
    param,
    program,
    put,
    register,
    store,
)
from tests.ir import samples
from tests.support import ROOT
from tests.tools.kernels import convolution, matmul_bias_relu, softmax
from workbench.backends.c.c_dialect import C
from workbench.backends.c_like.render import render
from workbench.backends.program.text import Source, identifier
from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.lower.lower import levels, lower
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps

F = dtypes.float32
TARGET = Target("C", vector_bytes=32)
GOLDEN = ROOT / "tests" / "backends" / "golden"


def source_of(*statements: UOp, target: Target = TARGET) -> Source:
    linear = program(*statements)
    return render(C(), linear[0], linear, target)


def kernel_source(graph: UOp, *opts: Opt) -> Source:
    for opt in opts:
        graph, _ = apply_opt(graph, opt, TARGET)
    tree, lowered, linear = levels(graph, TARGET)
    return render(C(), lowered, linear, TARGET, tree)


def test_golden_matmul() -> None:
    graph = matmul_bias_relu(16, 32, 80).graph
    tiled = [Opt(OptOps.UPCAST, "g1", 8), Opt(OptOps.UPCAST, "g0", 2)]
    text = kernel_source(graph, *tiled).text
    assert text.count("\n") <= 80
    assert text == (GOLDEN / "matmul_bias_relu.c").read_text(encoding="utf-8")


def test_a_plain_kernel_reads_as_one_would_write_it() -> None:
    text = kernel_source(matmul_bias_relu(16, 32, 80).graph).text
    assert text[text.index("  for") :] == (
        "  for (long g0 = lo; g0 < hi; g0++) {  // global\n"
        "    for (long g1 = 0; g1 < 32; g1++) {  // global\n"
        "      float acc0 = 0.0f;\n"
        "      for (long r0 = 0; r0 < 80; r0++) {  // reduce\n"
        "        acc0 = fma_f32(p1[g0*80 + r0], p2[g1 + r0*32], acc0);\n"
        "      }\n"
        "      p0[g0*32 + g1] = max_f32(0.0f, acc0 + p3[g1]);\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


def each_element(make: Callable[[UOp], UOp], dtype: DType = F) -> UOp:
    """Return a kernel that computes `make(x)` of each element."""
    g0 = samples.axis("g0", 8)
    value = make(samples.load(samples.param(1, 8, dtype), g0))
    place = samples.at(samples.param(0, 8, dtype), g0)
    return samples.kernel("g0", (place, value, "g0"))


@pytest.mark.parametrize("op", [Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS])
@pytest.mark.parametrize("dtype", [F, dtypes.float64, dtypes.float16, dtypes.bfloat16])
def test_a_polynomial_is_told_by_its_function(op: Ops, dtype: DType) -> None:
    text = kernel_source(each_element(lambda x: x.alu(op) * 3.0, dtype)).text
    assert f"    // p0[g0] = {op.name.lower()}(p1[g0]) * 3.0\n" in text


def test_a_long_statement_is_told_by_what_it_reads_and_its_functions() -> None:
    def shared(x: UOp) -> UOp:
        wave = x.alu(Ops.EXP2) + x.alu(Ops.SIN)
        return wave * wave

    text = kernel_source(each_element(shared)).text
    assert "    // p0[g0] from p1, with exp2 and sin\n" in text


def test_a_staged_row_is_told_in_a_line() -> None:
    text = kernel_source(softmax(4, 16).graph).text
    assert "      // e[f0] = exp2(p1[g0*16 + f0] - acc0)\n" in text
    assert "p0[g0*16 + i0] = e[i0] / acc2;" in text


def test_source_says_what_a_runtime_needs() -> None:
    source = kernel_source(matmul_bias_relu(16, 32, 80).graph)
    assert (source.language, source.launch.steps, source.scratch_bytes) == ("C", 16, 0)
    assert source.params == ((F, 512), (F, 1280), (F, 2560), (F, 32))
    assert f"void {source.name}(void **args, long lo, long hi) {{" in str(source)
    large = render(C(), *lower(softmax(4, 16).graph, TARGET), Target("C", stack_bytes=0))
    assert large.scratch_bytes == 64
    assert "char *scratch = args[2];\n  float *e = (float *)(scratch + 0);" in large.text


def test_text_is_the_same_every_time() -> None:
    graph = convolution(6, 3).graph
    opt = Opt(OptOps.UPCAST, "g1", 2)
    assert kernel_source(graph, opt).text == kernel_source(graph, opt).text


def test_no_header_is_needed_but_the_integers() -> None:
    plain = kernel_source(matmul_bias_relu(4, 4, 4).graph).text
    assert "#include" not in plain
    text = kernel_source(convolution(6, 3).graph, Opt(OptOps.UPCAST, "g1", 2)).text
    assert text.count("#include") == 1 and text.startswith("#include <stdint.h>\n")


def test_a_load_is_not_moved_across_a_store() -> None:
    """out[i] = x[i] and x[i] = 0: the old x[i] is wanted, whichever comes first to C."""
    over = axis("g0", 8)
    x = load_from(at(param(1, F, 8), over))
    moved = [
        begin(over),
        put(register("s", F), x + x),
        store(at(param(1, F, 8), over), UOp.const(F, 0.0)),
        store(at(param(0, F, 8), over), register("s", F) * x),
        end(over),
    ]
    text = source_of(*moved).text
    assert "const float p1_v0 = p1[g0];" in text
    assert text.index("p1_v0 = p1[g0]") < text.index("p1[g0] = 0.0f")
    assert "p0[g0] = s * p1_v0;" in text


def test_a_register_is_read_before_it_is_set() -> None:
    over = axis("r0", 8)
    total = register("s", F)
    old = total * total
    linear = list(program(begin(over), put(total, total + old), end(over)))
    before = put(total, UOp.const(F, 1.0))
    update = store(at(param(0, F, 8), over), old)
    linear[1:1] = [before]
    linear[-1:-1] = [update.src[0], update]
    text = render(C(), linear[0], tuple(linear), TARGET).text
    assert text.index("const float v0 = s * s;") < text.index("s += v0;")
    assert "p0[r0] = v0;" in text


def test_a_register_that_outlives_a_loop_is_declared_before_it() -> None:
    over = axis("r0", 4)
    last = register("last", F)
    text = source_of(
        begin(over),
        put(last, load_from(at(param(1, F, 4), over))),
        end(over),
        store(at(param(0, F, 1), 0), last),
    ).text
    assert "  float last;\n  for (long r0" in text and "    last = p1[r0];" in text


def test_scalars_stand_beside_vectors_where_c_allows_it() -> None:
    over, index = each(16, 8)
    x = load_from(at(param(1, F, 16), index), 8)
    k = broadcast(load_from(at(param(2, F, 1), 0)), 8)
    value = (x * k + constant_lanes(F, *range(8))) * UOp.const(F.vec(8), 2.0)
    out = store(at(param(0, F, 16), index), value)
    text = source_of(begin(over), out, end(over)).text
    assert "* p2[0] + (f32x8){0.0f, 1.0f" in text and "* 2.0f;" in text
    assert "splat" not in text


def test_a_mask_of_equal_lanes_is_one_condition() -> None:
    """A loop over its lanes would be no masked instruction: compilers see a branch for each."""
    test = load_from(at(param(1, dtypes.bool, 1), 0))
    place = at(param(2, F, 8), 0)
    value = UOp(Ops.LOAD, F.vec(8), (place, broadcast(test, 8)))
    target = at(param(0, F, 8), 0)
    text = source_of(UOp(Ops.STORE, dtypes.void, (target, value, broadcast(test, 8)))).text
    assert "_where_" not in text and "(p1_v0 ? *(const f32x8 *)&p2[0]" in text
    lanes = load_from(at(param(1, dtypes.bool, 8), 0), 8)
    value = UOp(Ops.LOAD, F.vec(8), (place, lanes))
    text = source_of(UOp(Ops.STORE, dtypes.void, (target, value, lanes))).text
    assert text.count("#pragma omp simd\n  for (int i = 0; i < 8; i++)") == 2


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.0, dtypes.float32, "1.0f"),
        (0.1, dtypes.float32, "0.1f"),
        (1e-05, dtypes.float64, "1e-05"),
        (1 / 3, dtypes.float64, "0x1.5555555555555p-2"),
        (2.0**31, dtypes.float32, "0x1p+31f"),
        (-math.inf, dtypes.float32, "-__builtin_inff()"),
        (math.nan, dtypes.float64, '__builtin_nan("")'),
        (-0.0, dtypes.float32, "-0.0f"),
        (True, dtypes.bool, "1"),
        (200, dtypes.int8, "-56"),
        (7, dtypes.uint64, "7ul"),
        (-(1 << 31), dtypes.int32, "(-2147483647 - 1)"),
        (-(1 << 63), dtypes.int64, "(-9223372036854775807l - 1)"),
        (5, dtypes.index, "5"),
    ],
)
def test_constant_text(value: Const, dtype: DType, text: str) -> None:
    assert C().constant(value, dtype)[0] == text


@pytest.mark.parametrize(
    ("name", "spelling"),
    [("r_4_4", "r_4_4"), ("4x", "k4x"), ("for", "for_"), ('a "b"\n', "a__b__"), ("", "k")],
)
def test_names_are_identifiers(name: str, spelling: str) -> None:
    assert identifier(name, C.reserved) == spelling


def test_an_op_without_an_operator_is_told() -> None:
    value = load_from(at(param(1, F, 1), 0)).alu(Ops.EXP2)
    with pytest.raises(CompileError, match="no operator for EXP2"):
        source_of(store(at(param(0, F, 1), 0), value))


def test_a_register_without_a_value_is_told() -> None:
    with pytest.raises(CompileError, match="before it has a value"):
        source_of(store(at(param(0, F, 1), 0), register("s", F)))


def test_loops_must_end_in_order() -> None:
    a, b = axis("g0", 2), axis("g1", 2)
    with pytest.raises(CompileError, match="the loop over g1 is not the one that ends"):
        source_of(begin(a), begin(b), end(a), end(b))


def test_lanes_must_be_a_power_of_two() -> None:
    value = load_from(at(param(1, F, 3), 0), 3)
    with pytest.raises(CompileError, match="no vector of 3 lanes"):
        source_of(store(at(param(0, F, 3), 0), value))
