"""Each rule of each level: good graphs pass, and one bad graph per rule is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.ir import samples
from tests.ir.samples import DEEP, F, V, at, axis, buffer, load, param, tensor  # fmt: skip
from tests.ir.verify.broken_graphs import COPY, KERNEL, LOWERED, TENSOR, Ir, g0, sink, x
from tests.ir.verify.broken_programs import LINEAR, good, register, vector
from tests.support import by_rows
from workbench.base.dtypes import dtypes
from workbench.base.errors import VerifyError
from workbench.ir.node.exact_range import exact_range
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, invalid
from workbench.ir.verify.linear import _ORDER_RULES
from workbench.ir.verify.verify import LEVELS, verify

GOOD: list[tuple[str, Any]] = [
    *[("kernel", k) for k in samples.KERNELS.values()],
    ("tensor", samples.pooled()),
    ("tensor", tensor(Ops.CUSTOM, buffer(1, 4), ("copy", 0, ((2, 2),), COPY))),
    ("tensor", UOp.sink(samples.pooled(), buffer(2, 3).cast(dtypes.int32))),
    ("lowered", samples.tree()),
    ("linear", samples.program()),
    ("kernel", sink(UOp(Ops.LOAD, F, (at(param(1, 4), invalid()),)))),
    ("kernel", sink(load(param(1, 4), (g0 * 3 + 1) // 8 * 3))),  # bounds say 0..3
    ("kernel", sink(load(param(1, 30), g0 * 7 // 4 * 4 + g0 * 7 % 4 + 8))),  # bounds say 8..31
]


@pytest.mark.parametrize("level, ir", GOOD)
def test_good_graphs_pass(level: Any, ir: Ir) -> None:
    verify(ir, level)


BROKEN = {
    f"{level}-{rule}-{place}": (level, rule, make)
    for level, rules in (
        ("tensor", TENSOR),
        ("kernel", KERNEL),
        ("lowered", LOWERED),
        ("linear", LINEAR),
    )  # fmt: skip
    for rule, makes in rules.items()
    for place, make in enumerate(makes)
}


@by_rows("level, rule, make", BROKEN.values(), ids=[*BROKEN])
def test_a_broken_rule_is_named(level: Any, rule: str, make: Callable[[], Ir]) -> None:
    with pytest.raises(VerifyError) as error:
        verify(make(), level)
    assert error.value.what.startswith(f"{rule}: "), str(error.value)
    assert error.value.where or error.value.because


def test_every_rule_has_a_graph_that_breaks_it() -> None:
    rules = {spec.name for table in LEVELS.values() for specs in table.values() for spec in specs}
    assert (rules | set(_ORDER_RULES)) <= {rule for _, rule, _ in BROKEN.values()}


def test_the_error_shows_node_and_reason() -> None:
    with pytest.raises(VerifyError) as error:
        verify(sink(load(param(1, 4), g0 + 1)), "kernel")
    assert str(error.value).split("\n") == [
        "in-bounds: an index is in bounds or guarded",
        "  because  an index is in 1..4, and there are 4 elements",
        "  where    INDEX.float32 p1, ADD(..)",
    ]


def test_levels_do_not_mix() -> None:
    for level in ("tensor", "kernel", "lowered"):
        with pytest.raises(VerifyError):
            verify(good, level)
    with pytest.raises(VerifyError):
        verify(sink(x), "tensor")


def test_reach_is_exact_where_bounds_are_not() -> None:
    a, c = axis("g3", 13), axis("g4", 1 << 30)
    split = a // 8 * 8 + a % 8
    assert split.bounds == (0, 15) and exact_range(split) == (0, 12)
    assert exact_range(c * 13 + split) == (0, (1 << 30) * 13 - 1)
    assert exact_range((a * 5 + 3) % 7 + (a * 5 + 3) // 7 * 7 + -3) == (0, 60)
    assert exact_range((g0 < 2).where(g0, g0 * -1)) == (-3, 1)


def test_verification_is_one_pass() -> None:
    """Twice as many nodes take about twice as many calls."""
    short, long = (sink(long_chain(n)) for n in (DEEP // 8, DEEP // 4))
    assert calls(lambda: verify(long, "kernel")) < 2.5 * calls(lambda: verify(short, "kernel"))


def long_chain(links: int) -> UOp:
    value = x
    for _ in range(links):
        value = value * 2.0 + 1.0
    return value


def calls(work: Callable[[], None]) -> int:
    """Return how many functions are called while something is done: the same on every machine."""
    events: list[str] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, arg: events.append(event))
    try:
        work()
    finally:
        sys.setprofile(before)
    return events.count("call") + events.count("c_call")


def test_a_deep_graph_is_no_trouble() -> None:
    verify(sink(long_chain(DEEP // 2)), "kernel")
    program: list[UOp] = list(good[:8])
    node = good[8]
    for _ in range(DEEP):
        program.append(node)
        node = node + vector
    verify((*program, UOp(Ops.SET, V, (register, node.src[0])), *good[11:]), "linear")
