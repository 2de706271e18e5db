"""The pipeline: the same program watched or not, states that replay, failures that say where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.tools.kernels import EXAMPLES, convolution, matmul_bias_relu, nested_reduction, softmax
from workbench import Kernel, Opt, OptOps, Tensor, pipeline
from workbench.backends.device import Device, DeviceInfo
from workbench.backends.program.text import Source
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError, DeviceError
from workbench.base.trace import PassRecord, observe, unobserved
from workbench.execution.buffers import memory_of
from workbench.execution.realize import planned
from workbench.ir.lower import lower as lowering
from workbench.ir.meaning.interpret import interpret_kernel, interpret_tensor
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.rewriting.passes import Memo, Pass
from workbench.ir.rewriting.patterns import op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet, replay, rewrite
from workbench.ir.text.printer import to_text
from workbench.ir.text.program import to_expr
from workbench.ir.verify.verify import verify

DEVICES = ("LLVM", "PYTHON")
TILED = (Opt(OptOps.UPCAST, "g1", 16), Opt(OptOps.UPCAST, "g0", 4), Opt(OptOps.SPLIT, "r0", 8))
Array = np.ndarray[Any, Any]


def expression() -> Tensor:
    generator = np.random.default_rng(0)
    a, b, c = [
        Tensor(generator.standard_normal(shape).astype(np.float32))
        for shape in ((64, 64), (64, 64), (64,))
    ]
    return (a @ b + c).relu()


def kernel_of(tensor: Tensor) -> UOp:
    return next(i.kernel for i in planned([tensor.uop])[0].items if i.kernel is not None)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """Forget what was compiled before, in memory and on the disk, for the length of one test."""
    programs = Memo[Any]()
    monkeypatch.setattr(pipeline, "kept_source", lambda key: None)
    monkeypatch.setattr(pipeline, "_programs", programs)
    return programs.entries


def compiled(graph: UOp, device: str, *opts: Opt) -> tuple[UOp, tuple[PassRecord, ...]]:
    """Return a kernel with opts, and the passes from it to the program."""
    text = to_text(graph)
    plain = Kernel.from_text(text)
    opted = plain.apply(*opts)
    return opted.ast, opted.compile(device).passes


# watched or not


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("opts", [(), TILED], ids=["plain", "tiled"])
def test_the_program_is_the_same_watched_or_not(
    device: str, opts: tuple[Opt, ...], fresh: dict[Any, Any]
) -> None:
    graph, passes = compiled(kernel_of(expression()), device, *opts)
    watched: Source = next(p.after for p in passes if p.name == "render")
    fresh.clear()
    with unobserved():
        alone = pipeline.build(graph, device)
    assert alone.source is not watched
    assert alone.source.text == watched.text and alone.source == watched
    linear = next(p.after for p in passes if p.name == "linearize")
    assert alone.linear == linear


def test_scheduling_is_the_same_watched_or_not() -> None:
    with observe():
        watched = kernel_of(expression())
    with unobserved():
        assert kernel_of(expression()) is watched


def test_equal_kernels_compile_once(fresh: dict[Any, Any]) -> None:
    first, second = kernel_of(expression()), kernel_of(expression())
    assert first is second
    built = pipeline.build(first, "LLVM")
    assert pipeline.build(second, "LLVM") is built and len(fresh) == 1
    assert pipeline.build(first, "PYTHON") is not built and len(fresh) == 2


def test_compiling_under_observation_always_records() -> None:
    graph = kernel_of(expression())
    names = [tuple(p.name for p in pipeline.recorded(graph, "LLVM")[1]) for _ in range(2)]
    assert names[0] == names[1] != ()


# the passes


def test_the_passes_stand_in_the_order_in_which_they_ran() -> None:
    _, passes = compiled(kernel_of(expression()), "LLVM", *TILED)
    assert [(p.name, p.parent) for p in passes] == [
        ("opt-upcast", None), ("simplify-kernel", "opt-upcast"),
        ("opt-upcast", None), ("simplify-kernel", "opt-upcast"),
        ("opt-split", None), ("simplify-kernel", "opt-split"),
        ("statement-tree", None), ("decompose", None), ("linearize", None),
        ("render", None), ("load", None),
    ]  # fmt: skip
    assert all(p.error is None and p.seconds >= 0 and p.doc and not p.dropped for p in passes)


def test_each_pass_begins_with_what_the_one_before_left() -> None:
    graph, passes = compiled(kernel_of(expression()), "LLVM", *TILED)
    outer = [p for p in passes if p.parent is None]
    opts, stages = outer[:3], outer[3:]
    assert [m.rule for p in opts for m in p.matches] == list(TILED)
    for before, after in zip(opts, opts[1:], strict=False):
        assert after.before is before.after
    assert opts[-1].after is graph and stages[0].before is graph
    for before, after in zip(stages, stages[1:], strict=False):
        assert after.before is before.after
    verify(stages[1].before, "lowered")
    verify(stages[2].before, "lowered")
    verify(stages[2].after, "linear")
    for record in passes:
        assert str(record.after) if record.name == "load" else to_expr_of(record.after)


def to_expr_of(state: Any) -> str:
    return str(state) if isinstance(state, Source) else to_expr(state)


def test_the_scheduler_records_its_passes_and_decisions() -> None:
    tensor = expression()
    with observe() as watching:
        plan, _ = planned([tensor.uop])
    names = [r.name for r in watching.records]
    assert names[:4] == ["simplify-tensor", "split-reductions", "decide", "rangeify"]
    decide = watching.records[2]
    assert [m.rule for m in decide.matches] == list(plan.decisions)


def test_the_scheduler_records_what_it_does_to_indexes() -> None:
    tensor = Tensor(np.ones((1, 2, 9, 9), np.float32)).max_pool2d(3, 2, padding=1)
    with observe() as watching:
        planned([tensor.uop])
    by_parent = {r.parent: r for r in watching.records if r.name == "simplify-index"}
    assert set(by_parent) == {"decide", "rangeify"}
    fired = {p: {m.rule.name for m in r.matches} for p, r in by_parent.items()}
    assert {"mod-terms", "mod-congruent", "div-congruent"} <= fired["decide"]
    assert {"distribute", "at-most", "fold-known"} <= fired["rangeify"]
    for record in by_parent.values():
        assert replay(record.before, record.matches) is record.after
        assert len(record.before.src) == len(record.after.src)


# replay


def rewrites() -> Iterator[tuple[str, PassRecord]]:
    """Yield the rewrite passes of several kernels, with what they rewrite."""
    graphs = {
        "matmul": matmul_bias_relu(16, 32, 8).graph, "softmax": softmax(4, 16).graph,
        "convolution": convolution(8, 3).graph, "nested": nested_reduction(3, 4, 8).graph,
    }  # fmt: skip
    for name, graph in graphs.items():
        opts = [
            o for o in Kernel.from_text(to_text(graph)).legal_opts() if o.op is not OptOps.ORDER
        ]
        for number in range(0, len(opts), 7):
            for record in compiled(graph, "LLVM", opts[number])[1]:
                if isinstance(record.before, UOp) and isinstance(record.after, UOp):
                    yield f"{name}, {opts[number]}", record
    with observe() as watching:
        x = Tensor(np.arange(24, dtype=np.float32).reshape(4, 6))
        y = (x.pad(((1, 1), (0, 0))).reshape(3, 12).sigmoid()[1:] * 1 + 0).flip(1)
        planned([(y + Tensor.zeros(2, 12)).uop])
    for record in watching.records:
        if isinstance(record.before, UOp) and isinstance(record.after, UOp):
            yield "tensor", record


REWRITES = ("simplify-tensor", "expand-functions", "simplify-kernel", "decompose")


def test_the_last_replayed_state_is_the_result() -> None:
    counts: dict[str, int] = {}
    for what, record in rewrites():
        if record.name not in REWRITES:
            continue
        counts[record.name] = counts.get(record.name, 0) + len(record.matches)
        assert replay(record.before, record.matches, 0) is record.before
        assert replay(record.before, record.matches) is record.after, (what, record.name)
    assert set(counts) == set(REWRITES) and all(counts.values()), "passes that rewrite nothing"


def test_every_state_on_the_way_is_sound_and_means_the_same() -> None:
    for what, record in rewrites():
        level = {"simplify-tensor": "tensor", "simplify-kernel": "kernel"}.get(record.name)
        for number in range(1, len(record.matches) + 1) if record.name in REWRITES else ():
            state = replay(record.before, record.matches, number)
            message = f"{what}, {record.name} after {record.matches[number - 1].rule}"
            if level == "kernel" or record.name == "expand-functions":
                state = _ordered(state)
                if level == "kernel":  # until all are expanded, some are functions
                    verify(state, "kernel")
                assert np.allclose(
                    _interpreted(state), _interpreted(record.before), equal_nan=True
                ), message
            elif level == "tensor":
                for node, old in zip(state.src, record.before.src, strict=True):
                    verify(node, "tensor")
                    actual, expected = (_tensor_value(n) for n in (node, old))
                    assert np.array_equal(actual, expected), message
            else:
                verify(state, "lowered")


def _ordered(state: UOp) -> UOp:
    """Drop the axes that a rewrite has made needless: `kinds` does so when the pass is over."""
    present = {n.axis_name for n in state.toposort() if n.op is Ops.RANGE}
    order = tuple(n for n in state.arg.order if n in present)
    return state.replace(arg=state.arg._replace(order=order))


def _interpreted(kernel: UOp) -> Array:
    generator = np.random.default_rng(0)
    params = {n.arg[0]: n for n in kernel.toposort() if n.op is Ops.PARAM}
    arrays = [
        generator.standard_normal(params[i].arg[1]).astype(np.float32) for i in sorted(params)
    ]
    return interpret_kernel(kernel, arrays)[0]


def _tensor_value(node: UOp) -> Array:
    buffers = [n for n in node.toposort() if n.op is Ops.BUFFER]
    arrays = {b: memory_of(b).array.reshape(b.shape) for b in buffers}
    return np.broadcast_to(interpret_tensor(node, arrays), node.shape)


# failures


def test_a_rule_that_raises_is_recorded_and_named(
    monkeypatch: pytest.MonkeyPatch, fresh: dict[Any, Any]
) -> None:
    bad = RuleSet(
        "decompose", [Rule("bad-rule", op(Ops.MAX, var("x"), var("y"), name="n"), _raises)]
    )
    monkeypatch.setattr(lowering, "DECOMPOSED", Pass("decompose", "It fails.", bad))
    graph = EXAMPLES["matmul_bias_relu"].graph
    with observe() as watching, pytest.raises(CompileError) as caught:
        pipeline.build(graph, "LLVM")
    error = caught.value
    assert error.stage == "decompose" and "on purpose" in error.because
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "last good state" in str(error)
    failed = next(r for r in watching.records if r.name == "decompose")
    assert error.last_good == to_expr(failed.before)  # the statement tree
    assert isinstance(failed.error, ZeroDivisionError) and failed.after is None
    good = next(r for r in watching.records if r.name == "statement-tree")
    assert good.error is None and good.after is failed.before
    assert watching.parents == [] and not fresh


def _raises(n: UOp, x: UOp, y: UOp) -> UOp:
    raise ZeroDivisionError("on purpose")


def test_a_failure_in_the_middle_keeps_the_matches_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        Rule("double-neg", op(Ops.NEG, op(Ops.NEG, var("x"))), var("x")),
        Rule("bad-rule", op(Ops.MAX, var("x"), var("y"), name="n"), _raises),
    ]
    a = UOp(Ops.PARAM, dtypes.float32, (), (0, 1))
    with observe() as watching, pytest.raises(ZeroDivisionError):
        rewrite(a.alu(Ops.NEG).alu(Ops.NEG).alu(Ops.MAX, -a), RuleSet("rows", rows))
    (record,) = watching.records
    assert [m.rule.name for m in record.matches] == ["double-neg"]
    assert isinstance(record.error, ZeroDivisionError)


@pytest.mark.parametrize("stage", ["render", "load"])
def test_a_failure_of_a_back_end_names_its_stage(
    stage: str, monkeypatch: pytest.MonkeyPatch, fresh: dict[Any, Any]
) -> None:
    kind: type[DeviceInfo] = type(Device["LLVM"])
    monkeypatch.setattr(kind, stage, _fails)
    with observe() as watching, pytest.raises(CompileError, match="on purpose") as caught:
        pipeline.build(EXAMPLES["transpose"].graph, "LLVM")
    assert caught.value.stage == stage and caught.value.last_good
    assert watching.records[-1].name == stage and watching.records[-1].error is not None
    assert not fresh, "what failed is not kept"


def _fails(*_: object) -> None:
    raise ZeroDivisionError("on purpose")


def test_a_kernel_that_breaks_a_rule_never_reaches_the_compiler(fresh: dict[Any, Any]) -> None:
    graph = EXAMPLES["transpose"].graph
    wrong = graph.replace(arg=KernelInfo("wrong", ("g0",)))
    with pytest.raises(CompileError) as caught:
        pipeline.build(wrong, "LLVM")
    assert caught.value.stage == "verify-kernel" and "g1" in str(caught.value)


def test_too_much_scratch_names_the_stage_and_shows_the_kernel(
    monkeypatch: pytest.MonkeyPatch, fresh: dict[Any, Any]
) -> None:
    target = Device["PYTHON"].target
    monkeypatch.setitem(vars(Device["PYTHON"]), "target", replace(target, scratch_bytes=16))
    with pytest.raises(CompileError) as caught:
        pipeline.build(EXAMPLES["tiled_matmul"].graph, "PYTHON")
    assert caught.value.stage == "statement-tree"
    assert "As = STAGE" in str(caught.value.last_good)


def test_a_device_that_is_missing_is_no_fault_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch, fresh: dict[Any, Any]
) -> None:
    def missing(*_: object) -> None:
        raise DeviceError("there is no compiler")

    kind: type[DeviceInfo] = type(Device["LLVM"])
    monkeypatch.setattr(kind, "load", missing)
    with pytest.raises(DeviceError, match="no compiler"):
        pipeline.build(EXAMPLES["transpose"].graph, "LLVM")


def test_a_pass_that_never_ends_is_stopped_and_named(
    monkeypatch: pytest.MonkeyPatch, fresh: dict[Any, Any]
) -> None:
    swap = Rule("swap", op(Ops.MUL, var("x"), var("y"), name="n"), _swapped)
    monkeypatch.setattr(
        lowering, "DECOMPOSED", Pass("decompose", "It spins.", RuleSet("d", [swap]))
    )
    monkeypatch.setattr("workbench.ir.rewriting.rewrite.FUSE", 1000)
    with pytest.raises(CompileError, match="swap"):
        pipeline.build(EXAMPLES["nested_reduction"].graph, "LLVM")


def _swapped(n: UOp, x: UOp, y: UOp) -> UOp:
    return n.replace(src=(y, x))
