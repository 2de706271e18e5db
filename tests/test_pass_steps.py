"""The steps of passes that are functions: replayed, they lead from before the pass to after it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import DTypeLike

from tests.agreement.expressions import case
from tests.agreement.programs import whole_program
from tests.support import count
from tests.tools.kernels import legal_opt
from workbench import Kernel, explore, pipeline
from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError, WorkbenchError
from workbench.base.target import Target
from workbench.base.trace import LazyMatches, Match, Observer, PassRecord, PassStep, observe
from workbench.execution.realize import planned
from workbench.ir.lower import linearize, statement_tree
from workbench.ir.lower.expand_statements import innermost_change
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_if_legal
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.rewriting.rewrite import Rule, replay, without
from workbench.ir.schedule import build
from workbench.ir.schedule import schedule as merge
from workbench.ir.text.printer import to_text
from workbench.search.realization import tuned
from workbench.tensor.tensor import Tensor
from workbench.viz.record.nodes import States

DEVICE = "LLVM"
UNNAMED = {"place-registers", "place-barrier", "place-halves", "place-shuffle", "place-pipeline"}
"""Steps that are about all that is around them."""
OPTIONAL = {
    "place-registers", "place-halves", "place-shuffle", "place-pipeline", "hoist-values",
    "merge-loops",
}  # fmt: skip
"""Steps without which the program is another one, and right."""
STEPPED = {"rangeify", "merge-axes", "statement-tree", "linearize"}


def records(seed: int) -> Iterator[PassRecord]:
    """Yield the passes of a random expression: of its kernels with the default opts, and with one
    drawn at random."""
    sample = whole_program(seed) if seed % 2 else case(seed)
    dice = random.Random(seed)
    with observe() as watching:
        schedule, _ = planned([sample.run(DEVICE)[0].uop])
    kernels = [item.kernel for item in schedule.items if item.kernel is not None]
    yield from watching.records
    for kernel in kernels:
        opt = legal_opt(kernel, dice, Device[DEVICE].target)
        with observe() as watching:
            pipeline.stages(tuned(kernel, DEVICE), DEVICE, upto="linear")
            if opt is not None:
                pipeline.stages(kernel, DEVICE, upto="linear", opts=[opt])
        yield from watching.records


def check(record: PassRecord) -> None:
    """The last state is the pass's result; the record's own states are those of a replay."""
    last = replay(record.before, record.matches)
    if record.name == "rangeify":
        items = [item for item in record.after if item.kernel is not None]
        # the kernel of a CUSTOM is the user's, from the beginning
        kernels = [i.kernel for i in items if i.nodes[0].op is not Ops.CUSTOM]
        assert last is UOp.sink(*kernels) if kernels else not record.matches
    elif record.name in ("statement-tree", "merge-axes"):
        assert last is record.after
    else:
        assert last.src == record.after[1:]
    states = States(record.before)
    for number, match in enumerate(record.matches, 1):
        state = states.root
        assert states.apply(match) is replay(record.before, record.matches, number)
        assert states.root is not state, "a step changes the state"


@pytest.mark.parametrize("first", range(0, count(400), 50))
def test_replayed_they_lead_to_the_result(first: int) -> None:
    seen: set[str] = set()
    for seed in range(first, first + 50):
        for record in records(seed):
            if record.name in STEPPED:
                try:
                    check(record)
                except AssertionError as error:
                    pytest.fail(f"seed {seed}, {record.name}: {error}")
                for match in record.matches:
                    if not isinstance(match.rule, Rule):
                        assert match.rule.about or match.rule.name in UNNAMED
                    seen.add(match.rule.name)
    assert seen


STEPS = {
    step.name
    for module in (build, merge, statement_tree, linearize)
    for step in vars(module).values()
    if isinstance(step, PassStep)
}


def test_each_step_is_there_in_some_expression() -> None:
    """What it says is said of something; each name stands once, and rules have others."""
    x = Tensor(np.ones((64, 48), np.float32))
    image, kernels = (np.ones((1, 3, 9, 9), np.float32), np.ones((4, 3, 3, 3), np.float32))
    y = Tensor(image).conv2d(Tensor(kernels), padding=1).relu()
    seen = {match.rule.name for match in steps_of(x.softmax(-1), y, (x @ x.T).relu(), x + 1)}
    names = STEPS - UNNAMED  # these need loop orders, work-groups
    assert seen >= names, names - seen
    assert {s.name for s in pipeline.switches() if isinstance(s, PassStep)} == STEPS


def steps_of(*tensors: Tensor) -> Iterator[Match]:
    for tensor in tensors:
        with observe() as watching:
            schedule, _ = planned([tensor.uop])
            for item in schedule.items:
                if item.kernel is not None:
                    for kernel in (item.kernel, tuned(item.kernel, DEVICE)):
                        pipeline.stages(kernel, DEVICE, upto="linear")
        for record in watching.records:
            yield from (m for m in record.matches if isinstance(m.rule, PassStep))


def grouped_sum() -> tuple[UOp, Target]:
    """Return a sum of which the work-items of a group have a part each."""
    target = common_gpu("GPU")
    schedule, _ = planned([Tensor(np.ones(64, np.float32)).sum().uop])
    (kernel,) = (item.kernel for item in schedule.items if item.kernel is not None)
    grouped = apply_if_legal(kernel, Opt(OptOps.GROUP, "r0", 32), target)
    assert grouped is not None
    return grouped, target


def test_a_work_group_combines_partial_results_in_halves() -> None:
    grouped, target = grouped_sum()
    with observe() as watching:
        pipeline.stages(grouped, target, upto="linear")
    tree = next(r for r in watching.records if r.name == "statement-tree")
    names = [match.rule.name for match in tree.matches or ()]
    assert names.count("place-halves") >= 3  # of 32 parts, until four are left
    check(tree)


def test_a_work_group_fills_tiles_ahead() -> None:
    target = common_gpu("GPU")
    x, y = Tensor(np.ones((16, 32), np.float32)), Tensor(np.ones((32, 8), np.float32))
    schedule, _ = planned([(x @ y).uop])
    (kernel,) = (item.kernel for item in schedule.items if item.kernel is not None)
    for op, axis, arg in (
        (OptOps.LOCAL, "g0", 4), (OptOps.SPLIT, "r0", 4), (OptOps.ORDER, "r0", "l0"),
        (OptOps.STAGE, "r0", 1), (OptOps.PIPELINE, "r0", 3),
    ):  # fmt: skip
        changed = apply_if_legal(kernel, Opt(op, axis, arg), target)
        assert changed is not None, op
        kernel = changed
    with observe() as watching:
        pipeline.stages(kernel, target, upto="linear")
    tree = next(r for r in watching.records if r.name == "statement-tree")
    names = [match.rule.name for match in tree.matches or ()]
    assert names.count("place-pipeline") == 4, "a barrier and a fill, twice"
    check(tree)


def row_scaled() -> UOp:
    """Return a kernel whose inner loop reads what does not depend on it."""
    x, y = Tensor(np.ones((8, 6), np.float32)), Tensor(np.ones((8, 1), np.float32))
    schedule, _ = planned([((x - (y * 3).sqrt()) * y.exp()).sum(1).uop])
    (kernel,) = (item.kernel for item in schedule.items if item.kernel is not None)
    return kernel


def test_without_hoisting_values_are_computed_where_they_are_read() -> None:
    """The steps are what runs: without one of them the program is another, and right."""
    kernel = Kernel.from_text(to_text(row_scaled()))
    for variant in (kernel, kernel.without("hoist-values")):
        assert variant.check("LLVM").ok and variant.check("PYTHON").ok
    roots = []
    for off in ((), ("hoist-values",)):
        with without(off), observe() as watching:
            stages = pipeline.stages(row_scaled(), DEVICE, upto="linear")
        (record,) = (r for r in watching.records if r.name == "linearize")
        names = {match.rule.name for match in record.matches}
        assert ("hoist-values" in names) is (not off)
        assert replay(record.before, record.matches).src == stages.linear[1:]
        inner = stages.linear[ops(stages.linear).index(Ops.LOOP, 2) :]
        roots.append(Ops.SQRT in ops(inner))
    assert roots == [False, True], "in the inner loop"


def ops(program: Sequence[UOp]) -> list[Ops]:
    return [node.op for node in program]


def test_without_registers_an_array_is_combined_in_place() -> None:
    """The loops that only a reduction closes work on its array, element by element."""
    x = Tensor(np.arange(48, dtype=np.float32).reshape(8, 6)).realize()
    schedule, _ = planned([(x.T.sum(1)).uop])
    (kernel,) = (item.kernel for item in schedule.items if item.kernel is not None)
    split = Opt(OptOps.SPLIT, "r0", 4), Opt(OptOps.ORDER, "r0", "g0")
    tiled = Kernel.from_text(to_text(kernel)).apply(*split)
    other = tiled.without("place-registers")
    spaces = []
    for variant in (tiled, other):
        assert variant.check("LLVM").ok and variant.check("PYTHON").ok
        with without(variant.rules_off):
            tree = pipeline.stages(variant.ast, DEVICE, upto="tree").tree
        updates = [n for n in tree.toposort() if n.op is Ops.ACCUMULATE]
        spaces.append([n.place.memory.space for n in updates])
    assert spaces == [["register"], ["scratch"]]


def test_without_halves_a_loop_combines_all_partial_results() -> None:
    grouped, target = grouped_sum()
    with without(["place-halves"]), observe() as watching:
        pipeline.stages(grouped, target, upto="tree")
    tree = next(r for r in watching.records if r.name == "statement-tree")
    names = [match.rule.name for match in tree.matches]
    assert "place-halves" not in names and "place-reduction" in names
    check(tree)


def array(*shape: int, dtype: DTypeLike = np.float32) -> Tensor:
    numbers = np.random.default_rng(0).integers(-9, 9, shape)
    return Tensor(numbers.astype(dtype)).realize()


def kernels() -> Iterator[tuple[str, Kernel]]:
    """Yield kernels that need different steps, by name."""
    convolution = array(1, 3, 9, 9).conv2d(array(4, 3, 3, 3), padding=1)
    for name, tensor, device in (
        ("elementwise", array(5, 7) + 1, "LLVM"),
        ("sum", array(8, 6).sum(1), "LLVM"),
        ("matmul", array(24, 40) @ array(40, 16), "LLVM"),
        ("softmax", array(9, 33).softmax(-1), "LLVM"),
        ("convolution", convolution.relu(), "LLVM"),
        ("padded", array(5, 3).pad(((1, 2), (0, 3))).sum(0), "LLVM"),
        ("half", (array(33, dtype=np.float16) * 2).exp2(), "LLVM"),
        ("shuffles", array(1024).sum(), "CUDA:H100"),
        ("tile", array(32, 32) @ array(32, 32), "CUDA:H100"),
        ("halves", array(512).max(), "WEBGPU"),
    ):
        (kernel,) = explore(tensor, device=device).kernels
        yield f"plain {name}", kernel
        yield name, kernel.optimized()
    (kernel,) = explore(array(6, 8).T.sum(1)).kernels
    yield "array", kernel.apply(Opt(OptOps.SPLIT, "r0", 3), Opt(OptOps.ORDER, "r0", "g0"))
    (kernel,) = explore(array(16, 32) @ array(32, 8), device="CUDA:H100").kernels
    yield "pipeline", kernel.apply(
        Opt(OptOps.LOCAL, "g0", 4), Opt(OptOps.SPLIT, "r0", 4), Opt(OptOps.ORDER, "r0", "l0"),
        Opt(OptOps.STAGE, "r0", 1), Opt(OptOps.PIPELINE, "r0", 3),
    )  # fmt: skip


def compiled(kernel: Kernel, off: str) -> tuple[tuple[UOp, ...], set[str]]:
    """Return the linear program of a kernel without a step (""), and the names of its steps."""
    with without([off]), observe() as watching:
        linear = pipeline.stages(kernel.ast, kernel.device, upto="linear").linear
    matches = (m for record in watching.records for m in record.matches)
    return linear, {m.rule.name for m in matches if isinstance(m.rule, PassStep)}


def test_a_step_matters_where_it_does_something_and_nowhere_else() -> None:
    """Without it a kernel that has no use for it is the same, and one that has is another that is
    right, or is refused."""
    switches = [s.name for s in pipeline.compile_switches() if isinstance(s, PassStep)]
    uses = dict.fromkeys(switches, 0)
    for name, kernel in kernels():
        linear, steps = compiled(kernel, "")
        for off in switches:
            uses[off] += off in steps
            if off not in steps:
                assert compiled(kernel, off)[0] == linear, (name, off)
            elif off in OPTIONAL:
                other, left = compiled(kernel, off)
                assert other != linear and off not in left, (name, off)
                assert kernel.without(off).check().ok, (name, off)
            else:
                with pytest.raises(CompileError, match=f"it takes {off}, switched off") as error:
                    compiled(kernel, off)
                assert error.value.hint == f"switch {off} on again"
    assert all(uses.values()), uses


def test_steps_of_scheduling_are_needed_or_give_another_kernel() -> None:
    tensor = array(5, 7) + 1
    for off in ("open-loops", "name-axes"):
        with pytest.raises(WorkbenchError, match=f"it takes {off}, switched off"):
            explore(tensor, without=(off,))
    (merged,), (apart,) = (explore(tensor, without=o).kernels for o in ((), ("merge-loops",)))
    assert (merged.order, apart.order) == (("g0",), ("g0", "g1")) and apart.check().ok


def test_without_a_step_the_count_of_barriers_is_that_of_the_program() -> None:
    """Without halves a work-group waits once, without shuffles it combines in halves."""
    (kernel,) = explore(array(512).max(), device="WEBGPU").kernels
    halves = kernel.optimized()
    (kernel,) = explore(array(1024).sum(), device="CUDA:H100").kernels
    shuffles = kernel.optimized()
    for variant, other in (
        (halves, halves.without("place-halves")), (shuffles, shuffles.without("place-shuffle")),
    ):  # fmt: skip
        for each in (variant, other):
            linear = each.compile()["linear"]
            assert each.compile().counts == each.counts
            assert each.counts.barriers == sum(n.op is Ops.BARRIER for n in linear), each.rules_off
        assert variant.compile().source != other.compile().source


def test_steps_are_listed_when_somebody_looks() -> None:
    """Recording costs nothing, listing sees no observer, and what it needed is let go."""
    calls: list[int] = []

    def listed() -> Iterator[Match]:
        calls.append(len(watching.records))
        yield Match(PassStep("a-step", "A reason."), UOp.index(1), UOp.index(2))

    with observe() as watching:
        matches = LazyMatches(listed, watching)
        assert not calls
        assert len(matches) == 1 and repr(matches[0].rule) == "a-step"
        assert [m.after for m in matches] == [UOp.index(2)] and matches[:1]
    assert calls == [0] and watching.records == []
    assert matches._steps is None
    assert len(LazyMatches(listed, Observer(limit=0))) == 0


def test_a_change_is_the_innermost_loop() -> None:
    a, b, c = (UOp.range(8, name, AxisType.GLOBAL) for name in "abc")

    def loop(axis: UOp, *body: UOp) -> UOp:
        return UOp(Ops.LOOP, dtypes.void, (axis, *body))

    inner, longer = loop(b, a + b), loop(b, a + b, a * b)
    assert innermost_change(loop(a, c, inner), loop(a, c, longer)) == (inner, longer)
    other = loop(a, b, longer), loop(a, c, inner)
    assert innermost_change(*other) == other, "two parts differ"
    assert innermost_change(inner, longer) == (inner, longer)
