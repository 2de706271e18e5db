"""Kernels on low-precision floats, lowered for devices that convert float16 and that do not:
what is left of the types, and that each rule fires and keeps the value."""

from __future__ import annotations

import numpy as np
import pytest

from tests.agreement.edge_cases import same
from tests.ir.lower.graphs import evaluate
from tests.ir.samples import at, axis, kernel, load, param, reduced, stage
from tests.support import by_rows
from workbench.backends.device import Device
from workbench.backends.llvm.llvm_device import load as load_program
from workbench.backends.llvm_ir.render import render
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.base.target import Target
from workbench.base.trace import observe
from workbench.ir.lower.examples import LOW_PRECISION_EXAMPLES
from workbench.ir.lower.low_precision import low_precision_rules
from workbench.ir.lower.lower import lower
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.verify.verify import verify

F16, BF16, F32 = dtypes.float16, dtypes.bfloat16, dtypes.float32
SMALL = (F16, BF16, *dtypes.fp8s)
SOFTWARE = Target("LLVM")
UNCOMPUTED = (Ops.PARAM, Ops.DEFINE, Ops.INDEX, Ops.LOAD, Ops.CAST, Ops.BITCAST, Ops.CONST)
SIZE = 64


def unary(make: object, source: DType, result: DType) -> UOp:
    """Return the kernel that stores make(x) as `result` for each x of `source`."""
    g0 = axis("g0", SIZE)
    value = make(load(param(1, SIZE, source), g0))  # type: ignore[operator]
    return kernel("g0", (at(param(0, SIZE, result), g0), value, "g0"))


def staged(dtype: DType) -> UOp:
    """Return the row sums of what a STAGE of `dtype` holds."""
    g0, j, r0 = axis("g0", 8), axis("f0", 8), axis("r0", 8)
    row = stage("row", (8,), load(param(1, SIZE, dtype), g0 * 8 + j) * 3.0, j)
    total = reduced(Ops.ADD, load(row, r0).cast(F32), r0).cast(dtype)
    return kernel("g0 f0 r0", (at(param(0, 8, dtype), g0), total, "g0"))


def padded(dtype: DType) -> UOp:
    """Return a kernel with a gated load."""
    g0 = axis("g0", SIZE)
    value = load(param(1, SIZE, dtype), gated(g0 + 3, g0 < SIZE - 3))
    return kernel("g0", (at(param(0, SIZE, dtype), g0), value, "g0"))


def samples(dtype: DType) -> dict[str, UOp]:
    other = BF16 if dtype is F16 else F16
    word = dtypes.int8 if dtype.bits == 8 else dtypes.int16
    return {
        "copied": unary(lambda x: x, dtype, dtype),
        "computed": unary(lambda x: x * x + 1.1, dtype, dtype),
        "compared": unary(lambda x: x < 0.5, dtype, dtypes.bool),
        "chosen": unary(lambda x: (x < 0.5).where(x, x.like(0.3)), dtype, dtype),
        "constant": unary(lambda x: UOp.const(dtype, 0.1), F32, dtype),
        "constant cast": unary(lambda x: x.like(0.1).cast(dtype), F32, dtype),
        "widened": unary(lambda x: x.cast(F32), dtype, F32),
        "rounded": unary(lambda x: x.cast(dtype), F32, dtype),
        "to double": unary(lambda x: x.cast(dtypes.float64), dtype, dtypes.float64),
        "from double": unary(lambda x: x.cast(dtype), dtypes.float64, dtype),
        "to int": unary(lambda x: x.cast(dtypes.int32), dtype, dtypes.int32),
        "from int": unary(lambda x: x.cast(dtype), dtypes.int32, dtype),
        "to the other": unary(lambda x: x.cast(other), dtype, other),
        "bits": unary(lambda x: x.bitcast(word), dtype, word),
        "bits of a sum": unary(lambda x: (x + x).bitcast(word), dtype, word),
        "of bits": unary(lambda x: x.bitcast(dtype) + 1.0, word, dtype),
        "bits of a constant": unary(lambda x: x.like(1.5).bitcast(word), dtype, word),
        "staged": staged(dtype),
        "gated": padded(dtype),
    }


def arrays(graph: UOp) -> list[np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(0)
    params = sorted((n for n in graph.toposort() if n.op is Ops.PARAM), key=lambda n: n.arg)
    values = [np.zeros(params[0].arg[1], params[0].dtype.numpy)]
    for p in params[1:]:
        values.append((rng.standard_normal(p.arg[1]) * 100).astype(p.dtype.numpy))
    return values


@by_rows("native", [True, False], ids=["native", "software"])
@by_rows("dtype", SMALL, ids=str)
@by_rows("name", samples(F16))
def test_lowered_kernels_mean_the_same(name: str, dtype: DType, native: bool) -> None:
    graph = samples(dtype)[name]
    target = Device["LLVM"].target if native else SOFTWARE
    verify(graph, "kernel")
    lowered, linear = lower(graph, target)
    verify(lowered, "lowered")
    verify(linear, "linear")
    left = [n for n in lowered.toposort() if n.dtype.is_low_precision]
    if native and target.conversions:
        assert all(n.dtype is F16 and n.op in UNCOMPUTED for n in left)
    else:
        assert not left
    inputs = arrays(graph)
    (want,) = interpret_kernel(graph, inputs)
    buffers = []
    for array in inputs:
        buffers.append(Buffer("LLVM", dtypes.from_numpy(array.dtype), array.size))
        buffers[-1].array[:] = array
    load_program(render(linear, target))(buffers)
    assert same(buffers[0].array, want).all()


def test_every_rule_fires_and_has_a_doc() -> None:
    fired = set()
    for dtype in SMALL:
        for graph in samples(dtype).values():
            with observe() as watching:
                lower(graph, SOFTWARE)
            matches = [m for r in watching.records if r.name == "low-precision" for m in r.matches]
            fired |= {str(match.rule.name) for match in matches}
    assert fired == {rule.name for rule in low_precision_rules().rules}
    assert all(rule.doc for rule in low_precision_rules().rules)


@pytest.mark.parametrize("rule", low_precision_rules().rules, ids=lambda r: r.name)
def test_a_rule_fires_at_its_example_and_both_sides_agree(rule: Rule) -> None:
    """Memory has other bits' dtype afterwards: the kernels above say that it means the same."""
    before = LOW_PRECISION_EXAMPLES[rule.name]
    after = rule.matcher(before)
    assert after is not None and after is not before
    nodes = before.toposort()
    if any(node.op in (Ops.LOAD, Ops.STORE) for node in nodes):
        return
    rng = np.random.default_rng(2)
    bits = {n: rng.integers(0, 256, 4000 * n.dtype.itemsize, np.uint8) for n in nodes
            if n.op is Ops.VAR}  # fmt: skip
    env = {n: values.view(n.dtype.numpy) for n, values in bits.items()}
    assert same(evaluate(after, env), evaluate(before, env)).all()


def test_kernels_without_low_precision_types_have_no_such_pass() -> None:
    with observe() as watching:
        lower(unary(lambda x: x + 1.0, F32, F32), SOFTWARE)
        lower(unary(lambda x: x + 1.0, F16, F16), Device["PYTHON"].target)
    assert "low-precision" not in [r.name for r in watching.records]
