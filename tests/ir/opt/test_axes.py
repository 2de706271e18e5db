"""Axes of kernels under opts: their names, integers that stand for them, opts as text."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.opt.support import MATMUL, apply, opt, sizes
from tests.ir.samples import at, axis, kernel, load, param, reduced
from tests.tools.kernels import LLVM, run
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.opt.apply import apply_opt, resolve
from workbench.ir.opt.opt import Axis, Opt, OptOps, axes, ranges
from workbench.ir.verify.verify import verify

# names


def test_splitting_an_axis_leaves_every_other_name() -> None:
    for op, name in (("UPCAST", "g1"), ("SPLIT", "g0"), ("LOCAL", "g1"), ("UNROLL", "r0")):
        before, after = sizes(MATMUL), sizes(apply(MATMUL, opt(op, name, 4)))
        fresh = set(after) - set(before)
        assert len(fresh) == 1 and after[fresh.pop()] == 4
        assert after[name] == before[name] // 4
        assert all(after[n] == before[n] for n in before if n != name)


def test_the_inner_part_is_named_anew_each_time() -> None:
    graph = apply(MATMUL, opt("UPCAST", "g1", 2), opt("UPCAST", "g1", 2), opt("UPCAST", "g0", 4))
    assert sizes(graph) == {"g0": 2, "g1": 4, "r0": 12, "u0": 2, "u1": 2, "u2": 4}


def test_axes_are_listed_by_kind_then_in_loop_order() -> None:
    graph = apply(
        MATMUL,
        opt("UNROLL", "r0", 2),
        opt("UPCAST", "g0", 2),
        opt("LOCAL", "g1", 4),
        opt("ORDER", "g1", "g0"),
    )
    assert axes(graph) == (
        Axis("g1", AxisType.GLOBAL, 4),
        Axis("g0", AxisType.GLOBAL, 4),
        Axis("l0", AxisType.LOCAL, 4),
        Axis("r0", AxisType.REDUCE, 6),
        Axis("u0", AxisType.UPCAST, 2),
        Axis("n0", AxisType.UNROLL, 2),
    )


def test_a_loop_that_leaves_the_outside_is_a_loop_and_becomes_global_again() -> None:
    moved = apply(MATMUL, opt("ORDER", "r0", "g1"))
    kinds = {a.name: a.kind for a in axes(moved)}
    assert kinds == {"g0": AxisType.GLOBAL, "g1": AxisType.LOOP, "r0": AxisType.REDUCE}
    assert apply(moved, opt("ORDER", "g1", "r0")) is MATMUL


# integer axes


@pytest.mark.parametrize(
    "op, place, name",
    [
        ("UPCAST", 0, "g0"), ("UPCAST", 1, "g1"), ("LOCAL", 1, "g1"), ("UNROLL", 0, "r0"),
        ("SPLIT", 0, "g0"), ("SPLIT", 2, "r0"),
    ],
)  # fmt: skip
def test_an_integer_counts_the_axes_that_the_op_applies_to(op: str, place: int, name: str) -> None:
    after, named = apply_opt(MATMUL, opt(op, place, 4), LLVM)
    assert named == opt(op, name, 4)
    assert after is apply(MATMUL, named)
    assert resolve(MATMUL, opt(op, place, 4)) == named


@pytest.mark.parametrize(
    "number, named",
    [
        (opt("SWAP", 0, 1), opt("SWAP", "g0", "g1")),
        (opt("SWAP", "g0", 2), opt("SWAP", "g0", "r0")),
        (opt("ORDER", 2, 0), opt("ORDER", "r0", "g0")),
        (opt("ORDER", 1, "g0"), opt("ORDER", "g1", "g0")),
        (opt("STAGE", 0, 2), opt("STAGE", "g0", 2)),
        (opt("STAGE", 1, 1), opt("STAGE", "g1", 1)),
    ],
)  # fmt: skip
def test_an_integer_counts_the_loops_that_are_moved_or_staged_in(number: Opt, named: Opt) -> None:
    assert apply_opt(MATMUL, number, LLVM) == apply_opt(MATMUL, named, LLVM)
    assert resolve(MATMUL, number) == named


def test_integers_skip_what_has_no_place_in_the_loop_order() -> None:
    graph = apply(MATMUL, opt("UPCAST", "g0", 2), opt("ORDER", "r0", "g0"))
    # listed by kind first: g0 g1 r0 u0, whatever the order of the loops
    assert [resolve(graph, opt("SWAP", n, 0)).axis for n in range(4)] == ["g0", "g1", "r0", 3]


def test_unroll_counts_from_the_first_reduction_also_after_splits() -> None:
    graph = apply(MATMUL, opt("SPLIT", "r0", 4), opt("UPCAST", "g0", 2))
    assert resolve(graph, opt("UNROLL", 0, 2)).axis == "r0"
    assert resolve(graph, opt("UNROLL", 1, 2)).axis == "r1"


def test_upcast_counts_work_items_too() -> None:
    graph = apply(MATMUL, opt("LOCAL", "g0", 4))
    assert [resolve(graph, opt("UPCAST", n, 2)).axis for n in range(3)] == ["g0", "g1", "l0"]


def test_every_input_has_a_name_for_its_tile() -> None:
    """Letters are 26; a fused sum can have more inputs."""
    g0, r0, inputs = axis("g0", 4), axis("r0", 3), 29
    loads = [load(param(slot, 3), r0) for slot in range(1, inputs + 1)]
    total = reduced(Ops.ADD, sum(loads[1:], loads[0]), r0)
    graph = kernel("g0 r0", (at(param(0, 4), g0), total, "g0"))
    for slot in range(1, inputs + 1):
        graph, _ = apply_opt(graph, opt("STAGE", "g0", slot), LLVM)
    verify(graph, "kernel")
    names = [*"abcdefghijklmnopqrstuvwxyz", "in27", "in28", "in29"]
    assert {f"{name}_r0" for name in names} <= set(ranges(graph))
    stages = {n.arg[0] for n in graph.toposort() if n.op is Ops.STAGE}
    assert stages == {f"{name.upper()}s" for name in names}
    arrays = [np.zeros(4, np.float32), *np.eye(29, 3, dtype=np.float32)]
    for device in ("PYTHON", "LLVM"):
        assert run(graph, device, arrays).tolist() == [3.0] * 4


# opts as values


@pytest.mark.parametrize(
    "value, code, short",
    [
        (opt("UPCAST", "g1", 4), "Opt(OptOps.UPCAST, 'g1', 4)", 'UPCAST("g1", 4)'),
        (opt("SWAP", "g0", "r0"), "Opt(OptOps.SWAP, 'g0', 'r0')", 'SWAP("g0", "r0")'),
        (opt("UNROLL", 0, 0), "Opt(OptOps.UNROLL, 0, 0)", "UNROLL(0, 0)"),
    ],
)
def test_an_opt_prints_as_python_that_makes_it(value: Opt, code: str, short: str) -> None:
    assert repr(value) == code and str(value) == short
    assert eval(code, {"Opt": Opt, "OptOps": OptOps}) == value
    assert hash(value) == hash(eval(code, {"Opt": Opt, "OptOps": OptOps}))


def test_ranges_are_those_of_the_graph() -> None:
    assert {name: r.extent for name, r in ranges(MATMUL).items()} == sizes(MATMUL)
