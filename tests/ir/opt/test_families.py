"""Which axes are the parts of which axis of the plain kernel."""

from __future__ import annotations

import pytest

from tests.ir.opt.support import apply, opt
from tests.tools.kernels import EXAMPLES, Example, random_form
from workbench.ir.opt.opt import Opt, families, ranges

MATMUL = EXAMPLES["matmul_bias_relu"].graph


@pytest.mark.parametrize(
    ("opts", "expected"),
    [
        ((), "g0 | g1 | r0"),
        ((opt("UPCAST", "g0", 2), opt("UNROLL", "r0", 2)), "g0 u0 | g1 | r0 n0"),
        ((opt("UPCAST", "g0", 2), opt("UPCAST", "g1", 0)), "g0 u0 | u1 | r0"),
        ((opt("SPLIT", "r0", 4), opt("UNROLL", "r1", 2)), "g0 | g1 | r0 r1 n0"),
        ((opt("LOCAL", "g0", 2), opt("UPCAST", "l0", 0)), "g0 u0 | g1 | r0"),
        ((opt("THREAD", "g0", 2),), "g0 t0 | g1 | r0"),
        ((opt("GROUP", "r0", 4),), "g0 | g1 | r0 x0 | r1"),
        ((opt("STAGE", "g0", 2),), "g0 | g1 | r0 | b_r0 | b_g1"),
        ((opt("PADTO", "g0", 6), opt("ORDER", "r0", "g0")), "g0 | g1 | r0"),
    ],
    ids=str,
)
def test_families(opts: tuple[Opt, ...], expected: str) -> None:
    groups = families(MATMUL, opts)
    assert {" ".join(names) for names in groups} == set(expected.split(" | "))
    plain = [names[0] for names in families(MATMUL, ())]
    assert plain == list(ranges(MATMUL)), "in the order of the plain kernel"


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda e: e.name)
def test_every_axis_is_in_one_family(example: Example) -> None:
    for seed in range(10):
        opts = random_form(example, seed, 5).opts
        names = [name for family in families(example.graph, opts) for name in family]
        assert sorted(names) == sorted(ranges(apply(example.graph, *opts)))
