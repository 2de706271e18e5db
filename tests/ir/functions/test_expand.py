"""Functions of the tensor level: their formulas are what their rows say, to a few last digits."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from tests.ir.rules.meaning import fired
from tests.ir.samples import buffer
from tests.support import by_rows
from tests.tools.compiler import needs_c
from workbench import Tensor, explore
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError, VerifyError
from workbench.ir.functions.expand import EXPAND_FUNCTIONS, FUNCTION_RULES, FUNCTIONS
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule, rewrite, without
from workbench.ir.rules.values import VALUE_RULES
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.verify.verify import verify

EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 2.0, -3.0)
VALUES = np.array([*EDGES, *np.linspace(-9, 9, 801), *np.geomspace(1e-6, 50, 200)])
ULPS = 16
"""What a formula may be off, in units of the last place, beside numpy's answer. POW says more
where the exponent of the result is large: at most 40 times as much here."""


def function(op: Ops, dtype: DType) -> tuple[UOp, dict[UOp, np.ndarray]]:  # type: ignore[type-arg]
    """Return an op of its own buffers, and what they hold: of two, every pair of values."""
    if op is Ops.THREEFRY:
        words = np.random.default_rng(0).integers(0, 1 << 32, (5, 200), np.uint32)
        words[4] %= 2
        values = {buffer(i, 200, dtype=dtypes.uint32): row for i, row in enumerate(words)}
        return UOp(op, dtypes.uint32, tuple(values)), values
    arrays = [VALUES.astype(dtype.numpy)]
    if OPS[op].arity == 2:
        few = np.concatenate([VALUES[: len(EDGES)], VALUES[len(EDGES) :: 40]])
        arrays = [a.ravel().astype(dtype.numpy) for a in np.meshgrid(few, few)]
    values = {buffer(i, a.size, dtype=dtype): a for i, a in enumerate(arrays)}
    return UOp(op, dtype, tuple(values)), values


@by_rows("dtype", [dtypes.float32, dtypes.float64], ids=str)
@by_rows("rule", FUNCTION_RULES.rules, ids=repr)
def test_a_formula_is_what_the_op_means(rule: Rule, dtype: DType) -> None:
    """Where numpy has a NaN or an infinity, so has the formula."""
    assert rule.match.ops is not None
    before, values = function(rule.match.ops[0], dtype)
    after = EXPAND_FUNCTIONS(before)
    assert fired(before, FUNCTION_RULES) == {rule.name}
    assert not FUNCTIONS & {n.op for n in after.toposort()}
    want, actual = interpret_tensor(before, values), interpret_tensor(after, values)
    ulps = ULPS * (40 if before.op is Ops.POW else 1)
    np.testing.assert_allclose(actual, want, rtol=ulps * 2.0**-dtype.fraction_bits)
    assert actual.dtype == before.dtype.numpy


@by_rows("dtype", [dtypes.float32, dtypes.float64], ids=str)
@by_rows("op", [Ops.SIGMOID, Ops.TANH], ids=str)
def test_what_is_lost_beside_1_is_no_denormal_number(op: Ops, dtype: DType) -> None:
    """A processor takes ten times as long for these, and results of a matrix product are large."""
    at = buffer(0, 3001, dtype=dtype)
    values = np.linspace(-80, 1500, 3001).astype(dtype.numpy)
    nodes = EXPAND_FUNCTIONS(UOp(op, dtype, (at,))).toposort()
    floats = [n for n in nodes if n.dtype is dtype and n.op is not Ops.CONST]
    assert any(node.op is Ops.EXP2 for node in floats)
    for node in floats:
        sizes = np.abs(interpret_tensor(node, {at: values}))
        assert not ((sizes > 0) & (sizes < np.finfo(dtype.numpy).tiny)).any(), to_text(node)
        assert node.op is not Ops.EXP2 or (sizes > 0).all()


@pytest.mark.parametrize("op", sorted(FUNCTIONS, key=str), ids=str)
def test_a_function_is_a_node_like_any_other(op: Ops) -> None:
    """It prints, parses, pickles and verifies at the tensor level, and at no other."""
    source = function(op, dtypes.float32)[0].src[0].like(1)
    node = UOp(op, source.dtype, (source,) * (OPS[op].arity or 1))
    verify(node, "tensor")
    assert parse(to_text(node)) is node and pickle.loads(pickle.dumps(node)) is node
    assert OPS[op].levels == "t" and node.is_elementwise
    assert rewrite(node, FUNCTION_RULES).shape == ()


def test_a_softmax_is_as_small_as_its_formula() -> None:
    """Until it is scheduled: what a gradient or an oracle sees."""
    x = Tensor(np.zeros((4, 8), np.float32)).softmax(-1)
    ops = [n.op for n in x.uop.toposort()]
    assert ops.count(Ops.EXP) == 1 and Ops.EXP2 not in ops and Ops.TRUNC not in ops


def test_functions_of_constants_are_known() -> None:
    x = Tensor(2.0).exp() + Tensor(0.25).tanh()
    assert x.item() == pytest.approx(math.exp(2.0) + math.tanh(0.25), rel=1e-6)
    y = (Tensor.ones(3) * 2.0).sigmoid()
    np.testing.assert_allclose(y.numpy(), [1 / (1 + math.exp(-2.0))] * 3, rtol=1e-6)


@pytest.mark.parametrize("rule", FUNCTION_RULES.rules, ids=repr)
def test_the_scheduler_pays_for_a_function_what_its_formula_costs(rule: Rule) -> None:
    """In float32; so what is stored does not change with the level at which functions expand."""
    assert rule.match.ops is not None
    before, _ = function(rule.match.ops[0], dtypes.float32)
    formula = rewrite(EXPAND_FUNCTIONS(before), VALUE_RULES)
    computed = [n.op for n in formula.toposort() if n.is_elementwise]
    assert sum(OPS[op].cost for op in computed) == OPS[before.op].cost


def test_a_plan_is_as_small_as_the_formula() -> None:
    """Scheduling decides about functions as the user wrote them, and kernels are made without."""
    x = Tensor(np.zeros((4, 8), np.float32))
    ex = explore(x.softmax(-1) + x.tanh())
    ops = {d.node.op for d in ex.decisions}
    assert {Ops.EXP, Ops.TANH} <= ops and not ops & {Ops.EXP2, Ops.TRUNC}
    assert {r.name for r in ex.passes} >= {"expand-functions", "simplify-kernel"}
    for kernel in ex.kernels:
        assert not FUNCTIONS & {n.op for n in kernel.ast.toposort()}
        verify(kernel.ast, "kernel")
    assert [k.title for k in ex.kernels] == ["max+exp+sum+div+..."]


def test_a_schedule_without_functions_does_without_the_pass() -> None:
    x = Tensor(np.zeros((4, 8), np.float32))
    names = {r.name for r in explore((x + 1.0).exp2().sum()).passes}
    assert "simplify-kernel" in names and "expand-functions" not in names


def test_a_function_has_no_place_in_a_kernel() -> None:
    with pytest.raises(VerifyError, match="op"):
        verify(UOp.sink(UOp(Ops.EXP, dtypes.float32, (UOp.const(dtypes.float32, 1.0),))), "kernel")


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c), "PYTHON"])
@by_rows("rule", FUNCTION_RULES.rules, ids=repr)
def test_without_its_rule_a_function_is_refused_in_words(rule: Rule, device: str) -> None:
    """The kernel can be looked at, with the op in it; no device compiles it."""
    assert rule.match.ops is not None
    op = rule.match.ops[0]
    x = Tensor(np.linspace(0.1, 0.9, 6, dtype=np.float32))
    node = x.uop.alu(op, *[x.uop] * ((OPS[op].arity or 1) - 1))
    ex = explore(x._with(node) + 1.0, without=(rule.name,))
    (kernel,) = ex.kernels
    assert op in {n.op for n in kernel.ast.toposort()}
    assert OPS[op].word in kernel.title and OPS[op].word in str(ex.loops)
    for what in (kernel.run, kernel.compile, kernel.check):
        with pytest.raises(CompileError, match=op.name) as error:
            what(device)
        assert rule.name in error.value.because and rule.name in error.value.hint
        assert OPS[op].word in error.value.last_good


def test_values_are_computed_as_before_once_a_rule_is_on_again() -> None:
    x = Tensor(np.linspace(-2, 2, 6, dtype=np.float32))
    with without(["tanh-formula"]), pytest.raises(CompileError, match="tanh-formula"):
        x.tanh().numpy()
    np.testing.assert_allclose(x.tanh().numpy(), np.tanh(x.numpy()), rtol=1e-6)
