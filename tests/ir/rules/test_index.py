"""Index rules are exact at every point of the axes, and what they leave is no dearer."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from tests.ir.rules.meaning import Array, evaluate, fired, interpreted, matches, same
from tests.ir.samples import at, axis, load, param, reduced
from tests.support import count
from workbench.base.dtypes import dtypes
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp, gated
from workbench.ir.rewriting.rewrite import rewrite
from workbench.ir.rules.examples.index import EXAMPLES, a, b
from workbench.ir.rules.index import INDEX_RULES, SIMPLIFY
from workbench.ir.text.program import to_expr

AXES = g0, g1, r0, u0 = axis("g0", 2), axis("g1", 3), axis("r0", 4), axis("u0", 6)
SIZES = (1, 2, 3, 4, 6, 8, 12)
FACTORS = (-3, -1, 0, *SIZES)
DIVISORS = (-6, -3, -2, -1, 0, *SIZES, *SIZES)


def values(node: UOp) -> Array:
    return evaluate(node, {}, AXES)


# rule by rule


@pytest.mark.parametrize("name", [rule.name for rule in INDEX_RULES.rules])
def test_one_rule(name: str) -> None:
    for before, expected in EXAMPLES[name]:
        after = rewrite(before, SIMPLIFY)
        assert name in fired(before, SIMPLIFY) or expected == to_expr(before)
        assert to_expr(after) == expected
        assert same(*interpreted(before, after))
    assert any(name in fired(before, SIMPLIFY) for before, _ in EXAMPLES[name])


STAYS = [
    b // 7, b % 7, (b + 1) // 8, (b * 3 + a) // 4, (b // 8) * 8 + b % 4, (b // 8) * 4 + b % 8,
    (a < 3).where(load(param(1, 5), a), UOp.const(dtypes.float32, 0.0)),
    (a < 3).where(load(param(1, 5), gated(a, a < 4)), UOp.const(dtypes.float32, 0.0)),
    (a < 3).where(load(param(1, 5), gated(a, a < 3)), UOp.const(dtypes.float32, 1.0)),
    a + b, b < 7, UOp.index(7) < b, (b % 5) % 3, (b // -2) // 3,
    b // 3 % -2 * 3 + b // -6 * -6, (a + -2) // (1 << 40) // (1 << 40),
]  # fmt: skip


@pytest.mark.parametrize("node", STAYS, ids=to_expr)
def test_what_is_simple_stays(node: UOp) -> None:
    assert rewrite(node, SIMPLIFY) is node


def test_a_product_over_a_range_it_does_not_depend_on_is_a_power() -> None:
    r = axis("r1", 5)
    value = reduced(Ops.MUL, load(param(1, 2), g0), r)
    after = rewrite(value, SIMPLIFY)
    assert r not in after.toposort()
    x = load(param(1, 2), g0)
    assert evaluate(after, {x: [[3.0], [-2.0]]}, (g0, g1)).tolist() == [[243.0] * 3, [-32.0] * 3]  # type: ignore[dict-item]


def test_splits_come_apart_and_back_together() -> None:
    """What reshapes make: flatten an index and divide it out again."""
    flat = (g0 * 3 + g1) * 24 + r0 * 6 + u0
    for expected, actual in (
        (g0, flat // 72),
        (g1, flat // 24 % 3),
        (r0, flat // 6 % 4),
        (u0, flat % 6),
        (g0 * 3 + g1, flat // 24),
        (r0 * 6 + u0, flat % 24),
    ):
        assert rewrite(actual, SIMPLIFY) is rewrite(expected, SIMPLIFY)
    back = (flat // 10) * 10 + flat % 10
    assert rewrite(back, SIMPLIFY) is rewrite(flat, SIMPLIFY)


# random expressions, at every point


def index(pick: random.Random, depth: int) -> UOp:
    if depth == 0 or pick.random() < 0.15:
        return pick.choice(AXES) if pick.random() < 0.8 else UOp.index(pick.randint(-6, 12))
    form, left = pick.random(), index(pick, depth - 1)
    if form < 0.45:
        return left + index(pick, depth - 1)
    if form < 0.6:
        return left * pick.choice(FACTORS)
    if form < 0.72:
        return left // pick.choice(DIVISORS)
    if form < 0.84:
        return left % pick.choice(DIVISORS)
    if form < 0.9:
        return quotient_and_rest(pick, left)
    if form < 0.95:
        return left.alu(pick.choice((Ops.MAX, Ops.MIN)), index(pick, depth - 1))
    return condition(pick, 1).where(left, index(pick, depth - 1))


def quotient_and_rest(pick: random.Random, whole: UOp) -> UOp:
    """Take `whole` apart and put it together, as reshapes do; it may be a quotient itself."""
    by, factor = pick.choice(DIVISORS), pick.choice((1, 2, 3, -1))
    if pick.random() < 0.5:
        whole = whole // pick.choice(DIVISORS)
    quotient = whole // by
    if whole.op is Ops.IDIV and whole.src[1].op is Ops.CONST and pick.random() < 0.7:
        quotient = whole.src[0] // (int(whole.src[1].arg) * by)  # not always the same
    return quotient * (by * factor) + (whole % by) * factor


def condition(pick: random.Random, depth: int) -> UOp:
    form = pick.random()
    if depth > 1 and form < 0.4:
        left, right = condition(pick, depth - 1), condition(pick, depth - 1)
        return left & right if form < 0.3 else left | right
    left, right = index(pick, depth), index(pick, 1)
    if form < 0.5:
        return condition(pick, max(1, depth - 1)).alu(Ops.NOT) if depth > 1 else left < 3
    if form < 0.6:
        return left.alu(pick.choice((Ops.CMPEQ, Ops.CMPNE)), right)
    if form < 0.7:
        return -left < pick.randint(-20, 5)
    return pick.choice([left < right, left <= right, left > right, left >= right])


def cost(root: UOp) -> int:
    """Return the number of operations written out as a tree, factors apart: sums are flat, so
    a factor of a sum becomes one of each term."""
    below: dict[UOp, int] = {}
    for node in root.toposort():
        scales = node.op is Ops.NEG or node.op is Ops.MUL and node.src[1].is_const
        own = bool(node.src) and node.op is not Ops.RANGE and not scales
        below[node] = own + sum(below[s] for s in node.src)
    return below[root]


@pytest.mark.parametrize("block", range(4))
def test_expressions_keep_their_value_at_every_point_and_do_not_grow(block: int) -> None:
    for seed in range(block, count(20_000), 4):
        pick = random.Random(seed)
        root = condition(pick, 3) if seed % 3 == 0 else index(pick, 4)
        after, rewrites = matches(root, SIMPLIFY)

        def said(seed: int = seed, root: UOp = root, after: UOp = after) -> str:
            return f"seed {seed}: {to_expr(root)}  ->  {to_expr(after)}"

        assert same(values(root), values(after)), said()
        assert rewrite(after, SIMPLIFY) is after, f"not at rest: {said()}"
        for match in rewrites:
            assert same(values(match.before), values(match.after)), f"{match.rule}, {said()}"
        # (4*i + 6) % 8 is 4*((i + 1) % 2) + 2, and (2*i + j + 7) // 2 is i + (j + 1) // 2 + 3:
        # smaller numbers may cost one addition
        rests = sum(m.rule.name in ("mod-common-factor", "div-terms") for m in rewrites)
        assert cost(after) <= cost(root) + rests, said()
        divisions = [sum(v.op in (Ops.IDIV, Ops.MOD) for v in e.toposort()) for e in (root, after)]
        assert divisions[1] <= divisions[0], said()


def test_bounds_hold_before_and_after() -> None:
    for seed in range(count(3_000)):
        root = index(random.Random(seed), 4)
        for node in (root, rewrite(root, SIMPLIFY)):
            numbers = values(node)
            assert node.vmin <= numbers.min() and numbers.max() <= node.vmax, f"seed {seed}"


def test_a_simplified_kernel_loads_the_same_elements() -> None:
    """Indexes behind gates, as PAD and reshapes make them: the whole kernel, interpreted."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal(64).astype(np.float32)
    shape = tuple(r.extent for r in AXES)
    for seed in range(count(1_500)):
        pick = random.Random(seed)
        place = index(pick, 3)
        inside = (place >= 0) & (place < 64) & condition(pick, 2)
        value = load(param(1, 64), gated(place, inside))
        if pick.random() < 0.5:
            value = inside.where(value, value.like(0.0))
        flat = ((g0 * 3 + g1) * 4 + r0) * 6 + u0
        store = UOp(Ops.STORE, dtypes.void, (at(param(0, 144), flat), value))
        end = UOp(Ops.END, dtypes.void, (store, *AXES))
        sink = UOp.sink(end, arg=KernelInfo("k", ("g0", "g1", "r0")))
        arrays = [np.full(np.prod(shape), np.nan, np.float32), x]
        before = interpret_kernel(sink, arrays)[0]
        after = rewrite(sink, SIMPLIFY)
        assert same(before, interpret_kernel(after, arrays)[0]), f"seed {seed}"


def test_random_expressions_fire_the_arithmetic_rules() -> None:
    """The generator above is only worth something if it reaches the rules."""
    others = {"reduce-independent", "load-invalid", "load-gate", "and-twice"}
    missing = {rule.name for rule in INDEX_RULES.rules} - others
    for seed in range(2_000):
        pick = random.Random(seed)
        root = condition(pick, 3) if seed % 3 == 0 else index(pick, 4)
        missing -= {m.rule.name for m in matches(root, SIMPLIFY)[1]}
        if not missing:
            break
    assert not missing


def test_every_rule_prints() -> None:
    for rule in INDEX_RULES.rules:
        assert re.fullmatch(rf"{rule.name}: .+ -> .+", str(rule)) and " at 0x" not in str(rule)
