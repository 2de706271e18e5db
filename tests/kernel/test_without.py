"""Rules switched off: source, counts and answers change, and what cannot do without one says so."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.agreement.programs import whole_program
from tests.support import by_rows, count
from tests.tools.compiler import needs_c
from tests.tools.silent_rules import package_rules
from workbench import Kernel, Opt, OptOps, Tensor, explore, pipeline
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError, WorkbenchError
from workbench.base.trace import PassStep
from workbench.execution.realize import planned
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.lower.low_precision import low_precision_rules
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule, rewrite, rules_off, without
from workbench.ir.rules.index import SIMPLIFY
from workbench.ir.schedule.plan import DecisionName
from workbench.ir.text.program import to_expr
from workbench.search.realization import tuned

Array = np.ndarray[Any, Any]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


X = numbers(257)
WHOLE = np.arange(-128, 129).astype(np.int32)
SHIFT = ("idiv-by-shift", "mod-by-mask")


def divided() -> Kernel:
    (kernel,) = explore(Tensor(WHOLE) // 8 + Tensor(WHOLE) % 16).kernels
    return kernel


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c)])
def test_source_and_counts_change_and_the_answer_does_not(device: str) -> None:
    shifted, plain = divided(), divided().without(*SHIFT)
    assert plain.rules_off == SHIFT and plain.ast is shifted.ast
    for _ in range(2):  # each finds its own program again
        assert plain.counts.other > shifted.counts.other
        assert shifted.compile(device).source != plain.compile(device).source
        for form in (shifted, plain):
            np.testing.assert_array_equal(form.run(device)[0], WHOLE // 8 + WHOLE % 16)
            assert form.check(device)
        assert plain.time(device, budget_s=0.01).median_s > 0
    assert fired(shifted) >= set(SHIFT) and not fired(plain) & set(SHIFT)
    assert divided().without(SHIFT[0]).without(SHIFT[1]).rules_off == SHIFT


def fired(kernel: Kernel) -> set[str]:
    return {repr(m.rule) for r in kernel.compile().passes for m in r.matches}


def test_counts_of_fused_multiply_adds() -> None:
    """One rule forms those of a loop, and those of lanes."""
    (kernel,) = explore((Tensor(X[:256]) * Tensor(X[1:])).sum()).kernels
    for each in (kernel, kernel.apply(Opt(OptOps.UNROLL, "r0", 256))):
        fmas = each.counts.fmas
        assert fmas and each.without("form-fma").counts.fmas == 0
        assert each.counts.fmas == fmas
    (kernel,) = explore(Tensor(X) * Tensor(X + 1) + Tensor(X - 1)).kernels
    assert kernel.counts.fmas == 0


def test_without_the_rule_no_random_sum_has_a_fused_multiply_add() -> None:
    """What is left are those of the formulas of functions, which the tree has already."""
    formed = 0
    for seed in range(count(400)):
        sample = whole_program(seed) if seed % 2 else case(seed)
        schedule, _ = planned([sample.run("LLVM")[0].uop])
        for item in schedule.items:
            if item.kernel is None:
                continue
            kernel = tuned(item.kernel, "LLVM")
            formed += _fmas(pipeline.stages(kernel, "LLVM", "linear").linear)
            with without(["form-fma"]):
                off = pipeline.stages(kernel, "LLVM", "linear")
            assert not _fmas(off.linear) or _fmas(off.lowered.toposort()), seed
    assert formed


def _fmas(nodes: Iterable[UOp]) -> int:
    return sum(node.op is Ops.FMA for node in nodes)


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c)])
def test_what_cannot_do_without_a_rule_shows_the_last_good_state(device: str) -> None:
    (kernel,) = explore(Tensor(X).exp2()).kernels
    with pytest.raises(CompileError, match="EXP2") as error:
        kernel.without("exp2-polynomial").compile(device)
    assert "exp2(p1[g0])" in str(error.value.last_good)
    assert kernel.run(device)[0].shape == (257,), "with the rule all is as it was"


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c)])
@pytest.mark.parametrize("kind", [dtypes.float16, dtypes.bfloat16])
def test_what_cannot_be_compiled_says_which_rule_is_needed(kind: DType, device: str) -> None:
    """In our words: what LLVM's parser says is of no help."""
    x = Tensor(X).cast(kind)
    (kernel, *_) = explore((x * x + 1).exp2().cast(dtypes.float64).cast(kind)).kernels
    needed = set()
    for rule in (*low_precision_rules().rules, *DECOMPOSE_RULES.rules):
        bare = kernel.without(rule.name)
        try:
            bare.run(device)
        except CompileError as error:
            needed.add(rule.name)
            assert rule.name in error.because and "switch" in error.hint
            assert "cast opcode" not in str(error), error
    assert "exp2-polynomial" in needed and len(needed) > 1


def test_a_shift_by_any_amount_is_refused_without_its_guard() -> None:
    """Processors have results of their own for it; the device PYTHON has ours."""
    x = Tensor(np.arange(40, dtype=np.int32)).realize()
    by_any, by_few = (explore(y, without=("guard-shift",)).kernels[0] for y in (x << x, x << 3))
    for device in ("LLVM", "WEBGPU"):
        with pytest.raises(CompileError, match="it takes guard-shift, switched off here"):
            by_any.code_for(device)
    assert by_any.check("PYTHON").ok and by_few.check("LLVM").ok


def test_an_index_in_bounds_stays_so_without_a_rule_that_is_not_used() -> None:
    """Lowered, x % 10 is a sum whose bounds are wider."""
    places = Tensor(WHOLE[:5]).realize() % 10
    for off in ("place-shuffle", "idiv-floor"):
        (*_, kernel) = explore(Tensor(numbers(10, 4)).realize()[places], without=(off,)).kernels
        assert kernel.check().ok


@by_rows("off", ["store-bfloat16", "load-bfloat16"])
def test_an_array_is_not_written_as_one_type_and_read_as_another(off: str) -> None:
    x = Tensor(numbers(32, 17)).realize().cast(dtypes.bfloat16).contiguous().realize()
    (kernel,) = explore((Tensor.arange(17) < x).cumsum(0), device="LLVM").kernels
    staged = kernel.apply(
        Opt(OptOps.PADTO, "g1", 4), Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.ORDER, "g1", "g0"),
        Opt(OptOps.STAGE, "g1", 1),
    )  # fmt: skip
    assert staged.check().ok
    with pytest.raises(CompileError, match="each array has one DEFINE") as error:
        staged.without(off).compile()
    assert off in error.value.because and error.value.hint == f"switch {off} on again"


@pytest.mark.parametrize("kind", [dtypes.float16, dtypes.bfloat16])
def test_what_a_library_would_round_is_refused_before_it_is_loaded(kind: DType) -> None:
    """Whether a process has that library depends on what else it has loaded."""
    (kernel,) = explore(Tensor(X).cast(dtypes.float64).cast(kind)).kernels
    refusal = f"no instruction for a CAST of float64 that gives {kind}"
    with without(["cast-to-small"]), pytest.raises(CompileError, match=refusal):
        pipeline.stages(kernel.ast, "LLVM", "source")


def test_opts_are_applied_anew_without_the_rule() -> None:
    """The index of a split axis is left as the opt made it."""
    (plain,) = explore(Tensor(numbers(4, 48)).transpose().reshape(16, 12) + 1.0).kernels
    upcast = plain.apply(Opt(OptOps.UPCAST, "g1", 4))
    assert fired(upcast) >= {"div-terms", "mod-terms"}
    ways = ("terms", "congruent", "common-factor")
    bare = upcast.without(*[f"{op}-{way}" for op in ("div", "mod") for way in ways])
    assert bare.applied_opts == upcast.applied_opts and bare.ast is not upcast.ast
    assert not fired(bare) & {"div-terms", "mod-terms"}
    assert bare.check(), "it is right all the same"


def test_a_rule_must_be_one_that_kernels_are_made_with() -> None:
    with pytest.raises(WorkbenchError, match="idiv-flor") as error:
        divided().without("idiv-flor")
    assert "idiv-floor" in error.value.hint
    with pytest.raises(WorkbenchError, match="scheduling uses it") as error:
        divided().without("reshape-reshape")
    assert error.value.hint == "explore(y, without=('reshape-reshape',))"


def test_every_rule_and_step_of_the_package_is_in_the_list() -> None:
    listed = pipeline.switches()
    names = [switch.name for switch in listed]
    assert len(names) == len(set(names))
    rules, steps = ({s.name for s in listed if isinstance(s, kind)} for kind in (Rule, PassStep))
    assert rules == set(package_rules())
    modules = [m for name, m in sys.modules.items() if name.startswith("workbench.")]
    values = [v for module in modules for v in vars(module).values()]
    assert steps == {v.name for v in values if isinstance(v, PassStep)}
    y = Tensor(X) + 1
    assert explore(y, without=tuple(names[:1])).rules_off == (names[0],)
    for name in names:
        pipeline.check_switches([name], listed)
    assert pipeline.compile_switches().keys() <= listed.keys()


@by_rows(
    ("name", "hint"),
    [
        ("hoist-value", "hoist-values"),
        ("form_fma", "form-fma"),
        ("open-loop", "open-loops or close-loop or open-row"),
        ("no-such", 'a name of explore(y, show="rules")'),
        ("banana", 'a name of explore(y, show="rules")'),
    ],
)
def test_only_close_names_are_suggested(name: str, hint: str) -> None:
    with pytest.raises(WorkbenchError, match=f"no rule '{name}' to switch off") as error:
        explore(Tensor(X) + 1, without=(name,))
    assert error.value.hint == hint


@by_rows("name", ["store-asked", "fuse-once", "gradient-mul"])
def test_what_is_no_rule_is_named_as_what_it_is(name: str) -> None:
    with pytest.raises(WorkbenchError, match=f"cannot switch {name} off") as error:
        explore(Tensor(X) + 1, without=(name,))
    assert ("decision" in error.value.because) is not name.startswith("gradient")
    assert not {*get_args(DecisionName)} & {s.name for s in pipeline.switches()}


def test_a_block_switches_rules_off_and_on_again() -> None:
    node = explore(Tensor(X) * 2.0).kernels[0].ast
    zero = next(n for n in node.toposort() if n.dtype.is_float) + 0.0
    with without(["add-zero"]):
        assert rewrite(zero, SIMPLIFY) is zero and rules_off() == {"add-zero"}
        with without(["mul-one"]):
            assert rules_off() == {"add-zero", "mul-one"}
    assert rewrite(zero, SIMPLIFY) is not zero and rules_off() == frozenset()


def test_to_python_and_explore_carry_it() -> None:
    kernel = divided().without(*SHIFT)
    namespace: dict[str, Any] = {}
    exec(kernel.to_python(), namespace)
    again = namespace["kernel"]
    assert again.rules_off == SHIFT and again.counts == kernel.counts
    off = ("reshape-reshape", *SHIFT)
    ex = explore(Tensor(WHOLE) // 8 + Tensor(WHOLE) % 16, without=off)
    assert ex.rules_off == off and ex.kernels[0].rules_off == SHIFT
    assert ex.kernels[0].counts == kernel.counts
    assert ex.kernels[0].optimized().rules_off == SHIFT
    assert ex.replan({}).rules_off == off
    with pytest.raises(WorkbenchError, match="no rule"):
        explore(Tensor(X) + 1, without="nothing")  # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="cannot read these rules"):
        explore(Tensor(X) + 1, without=3)  # type: ignore[arg-type]


def test_scheduling_does_without_a_rule() -> None:
    y = (Tensor(X).reshape(1, 257) * 1.0).reshape(257, 1) + 1.0
    assert "1.0" in to_expr(explore(y, without=("mul-one",)).outputs[0])
    fired = [
        {m.rule.name for r in ex.passes for m in r.matches if hasattr(m.rule, "match")}
        for ex in (explore(y), explore(y, without=("mul-one",)))
    ]
    assert "mul-one" in fired[0] and "mul-one" not in fired[1]
