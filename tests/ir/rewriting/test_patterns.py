"""Patterns match what they say, bind names, and print as what they are."""

from __future__ import annotations

import pytest

from tests.ir.samples import F, axis, load, param
from workbench.base.dtypes import dtypes
from workbench.base.errors import DTypeError, WorkbenchError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat, compile_rule, const, op, var

x, y, c = var("x"), var("y"), const("c")
g, h = axis("g0", 4), axis("g1", 5)
value = load(param(1, 4), g)


def bound(pattern: Pat, node: UOp, name: str) -> UOp | None:
    """Return what `pattern` binds to `name` on `node`; None where it does not match."""
    return compile_rule(pattern, var(name), None)(node)


def test_names_bind_what_is_there() -> None:
    pattern = (x + c) * y
    node = (g + 3) * h
    assert [bound(pattern, node, n) for n in "xcy"] == [g, UOp.index(3), h]
    assert bound(pattern, (g + h) * h, "x") is None
    assert bound(pattern, g + 3, "x") is None


def test_the_same_name_is_the_same_node() -> None:
    assert bound(x + x, g + g, "x") is g
    assert bound(x + x, g + h, "x") is None
    assert bound(op(Ops.WHERE, x < y, y, x), (g < h).where(h, g), "y") is h
    assert bound(op(Ops.WHERE, x < y, y, x), (g < h).where(g, h), "y") is None


def test_literals_match_values_of_any_dtype() -> None:
    for node in (g * 0, value * 0.0, value * -0.0):
        assert bound(x * 0, node, "x") is node.src[0]
    assert bound(x * 0, g * 1, "x") is None
    assert bound(x * 0, UOp.index(0) * g, "x") is None  # patterns are not commutative


@pytest.mark.parametrize(
    "kind, fits, not_",
    [
        ("index", [g], [value, g < h, g.cast(dtypes.int32)]),
        ("float", [value], [g]),
        ("bool", [g < h], [g]),
        ("integer", [g, g.cast(dtypes.uint8)], [value, g < h]),
        ("exact", [g, g < h], [value]),
        ("value", [value, g < h, g.cast(dtypes.int8)], [g]),
    ],
)
def test_kinds(kind: str, fits: list[UOp], not_: list[UOp]) -> None:
    pattern = op((Ops.EXP2, Ops.NOT), var("x", kind))
    for node in fits:
        assert bound(pattern, node.alu(Ops.NOT), "x") is node
    for node in not_:
        assert bound(pattern, node.alu(Ops.NOT), "x") is None
    assert bound(pattern, fits[0].alu(Ops.NEG), "x") is None


def test_args_and_source_counts() -> None:
    pattern = op(Ops.REDUCE, x, y, arg=Ops.ADD, name="n")
    total = UOp(Ops.REDUCE, F, (value, g), Ops.ADD)
    assert bound(pattern, total, "n") is total
    assert bound(pattern, total.replace(arg=Ops.MAX), "n") is None
    assert bound(pattern, total.replace(src=(value,)), "n") is None
    assert bound(Pat(Ops.REDUCE, None, name="n"), total.replace(src=(value,)), "n") is not None


def test_where_decides() -> None:
    rule = compile_rule(x + c, x, lambda c: c.arg > 2)
    assert rule(g + 3) is g and rule(g + 1) is None
    with pytest.raises(TypeError, match="z"):
        compile_rule(x + c, lambda z: z, None)


def test_the_right_side_is_built_with_the_right_dtypes() -> None:
    shifted = compile_rule(x < y, x + 1 < y, None)(g < h)
    assert shifted is (g + 1 < h) and shifted.dtype is dtypes.bool
    pick_branch = compile_rule(x.where(y, 0), (x & (y < 1)).where(y * 2, 0), None)
    assert pick_branch((g < h).where(value, value.like(0))) is (
        ((g < h) & (value < 1.0)).where(value * 2.0, value.like(0))
    )
    wide = UOp(Ops.BROADCAST, F.vec(4), (value,))
    compared = compile_rule(x + y, x < y, None)(wide + wide)
    assert compared is not None and compared.dtype is dtypes.bool.vec(4)


def test_patterns_print_as_what_they_are() -> None:
    assert repr((x + c) * 2) == "((x + c) * 2)"
    assert repr(op((Ops.MAX, Ops.MIN), x, y, name="n")) == "n=MAX|MIN(x, y)"
    assert repr(var("i", "index") // 3) == "(i:index // 3)"
    assert repr(x.where(y, 0)) == "WHERE(x, y, 0)"


def test_a_constant_may_stand_on_either_side() -> None:
    assert repr(2 * x) == repr(x * 2)
    assert repr(1 + x) == repr(x + 1)


def test_what_no_pattern_can_mean_is_refused_in_words() -> None:
    with pytest.raises(WorkbenchError, match="cannot ask for 'int'") as caught:
        var("a", "int")
    assert "integer" in caught.value.because
    for function in (var, const):
        with pytest.raises(DTypeError, match="name does not take 3"):
            function(3)  # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="the right side of a rule has y") as caught:
        compile_rule(x + x, y * 2, None)
    assert caught.value.because == "its left side names x"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (var("x") ^ var("y"), "(x ^ y)"), (var("x") << 2, "(x << 2)"),
        (var("x") >> var("y"), "(x >> y)"), (var("x") <= 1, "(x <= 1)"),
        (var("x") >= var("y"), "(y <= x)"), (2 < var("x"), "(2 < x)"), (1 / var("x"), "(1 / x)"),
        (7 // var("x"), "(7 // x)"), (7 % var("x"), "(7 % x)"),
    ],
)  # fmt: skip
def test_operators_of_python_make_patterns(pattern: Pat, text: str) -> None:
    assert str(pattern) == text


def test_what_is_no_pattern_says_what_to_write() -> None:
    x, y = var("x"), var("y")
    for subtract in (lambda: x - y, lambda: x - 1, lambda: 1 - x):
        with pytest.raises(DTypeError, match=r"try +x \+ -y, x \+ y \* -1"):
            subtract()
    for add in (lambda: x + "a", lambda: x * None, lambda: x.where("a", y)):  # type: ignore[operator, arg-type]
        with pytest.raises(DTypeError, match="cannot make a pattern of"):
            add()
