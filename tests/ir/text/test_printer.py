"""Text that parses back to the same node, and the human form."""

from __future__ import annotations

import math
import re
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ir import samples
from tests.ir.samples import DEEP, F, V, at, axis, chain, load, param
from tests.support import calls_of
from workbench.base.dtypes import dtypes
from workbench.base.errors import ParseError
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp, gated
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.text.program import to_expr

GRAPHS: dict[str, Any] = {
    **samples.KERNELS,
    "tensor": samples.pooled(),
    "tree": samples.tree(),
    "program": samples.program(),
    "empty program": (),
    "constant": UOp.const(F, -0.0),
    "statement in two places": (samples.program()[0], param(0, 1), samples.program()[0]),
    "two ranges of one name": axis("g0", 3) + axis("g0", 4),
    "a range named as a word": UOp.range(3, "nan", AxisType.LOOP)
    + UOp.range(3, "ADD", AxisType.LOOP),
    "a name that is not one": UOp.range(2, "a b\n\"'\\ é\ud800", AxisType.FILL) + 1,
    "a name that numbering would give": axis("g0", 2) * 2 + UOp.range(3, "v1", AxisType.LOOP) * 3,
    "vector": UOp(Ops.STACK, F.vec(2), (UOp.const(F, 1.0), UOp.const(F, 2.0)))
    + UOp.const(F.vec(2), 1.5),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_text_parses_back_to_the_same_node(name: str) -> None:
    graph = GRAPHS[name]
    assert (
        parse(to_text(graph)) is graph if isinstance(graph, UOp) else parse(to_text(graph)) == graph
    )


def test_text_is_what_a_person_would_write() -> None:
    g0 = axis("g0", 512)
    node = load(param(1, 512), g0) * 1.5 < UOp.const(F, 0.1)
    # fmt: off
    assert to_text(UOp.sink(node, arg=KernelInfo("k", ("g0",)))) == "\n".join([
        'p0 = PARAM.float32 {1, 512}',
        'g0 = RANGE.index 512 {"g0", GLOBAL}',
        'v2 = INDEX.float32 p0, g0',
        'v3 = LOAD.float32 v2',
        'v4 = MUL.float32 v3, 1.5',
        'v5 = CMPLT.bool v4, 0.10000000149011612:float32',
        'SINK v5 {KernelInfo("k", ("g0",))}',
    ]).replace("p0", "p1")
    # fmt: on


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
    st.sampled_from([*Ops, *AxisType]), st.sampled_from([F, dtypes.bool, dtypes.int64.vec(4)]),
)  # fmt: skip
shapes = st.lists(st.integers(0, 9), max_size=3).map(tuple)
args = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.builds(KernelInfo, st.text(), st.lists(st.text(), max_size=2).map(tuple), scalars),
        st.builds(Storage, st.text(), shapes, st.text()),
    ),
    max_leaves=6,
)


def bits(arg: Any) -> Any:
    """Tell apart what == does not: types, signs of zero, NaNs."""
    if isinstance(arg, tuple):
        return type(arg), [bits(a) for a in arg]
    return type(arg), struct.pack("<d", arg) if isinstance(arg, float) else arg


@given(args, st.sampled_from([Ops.REDUCE, Ops.BUFFER, Ops.VAR]))
def test_every_arg_reads_back_bit_by_bit(arg: Any, op: Ops) -> None:
    node = UOp(op, F, (UOp.const(F, 0.0),), arg)
    again = parse(to_text(node))
    assert isinstance(again, UOp) and again.op is op and bits(again.arg) == bits(node.arg)


@given(st.floats(width=32), st.floats(), st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_every_constant_reads_back_bit_by_bit(
    single: float, double: float, whole: int, truth: bool
) -> None:
    # fmt: off
    constants = (UOp.const(F, single), UOp.const(dtypes.float64, double), UOp.index(whole),
                 UOp.const(dtypes.bool, truth), UOp.const(F.vec(4), single))
    # fmt: on
    node = UOp.sink(*constants)
    assert parse(to_text(node)) is node
    assert all(parse(to_text(c)) is c for c in constants)
    lanes = UOp(Ops.LANES, dtypes.float64.vec(2), (), (double, -0.0))
    assert parse(to_text(lanes)) is lanes


def test_a_nan_keeps_its_sign_and_payload() -> None:
    odd = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_1234))[0]
    node = UOp.const(dtypes.float64, odd) + UOp.const(dtypes.float64, math.nan)
    assert "nan(0xfff8000000001234)" in to_text(node) and parse(to_text(node)) is node


ERRORS = {
    "v1 = ADD.float32 v0, 1.0": ("line 1, column 18: no value v0", "the name of a line above"),
    "\n\n  p0 = PARAM.float33 {0, 1}": ("line 3, column 14: no dtype float33", "float32"),
    "p0 = PARAM.float32x0 {0, 1}": ("line 1, column 12: no dtype has 0 lanes", "1 to 16,384"),
    "p0 = PARAM.float32x99999 {0, 1}": ("line 1, column 12: no dtype has 99,999", "1 to 16,384"),
    "p0 = FOO.float32": ("line 1, column 6: FOO is neither an op", "an op"),
    "p0 = ": ("line 1, column 1: p0 is neither an op", "an op"),
    "=": ("line 1, column 1: not a node", "name = OP.dtype"),
    "v = ADD.float32+1.0, 1.0": ("line 1, column 16: '+1.0, 1.0' after the op", "a space"),
    "p0 = PARAM.float32 {0, 1}\np0 = PARAM.float32 {1, 1}": (
        "line 2, column 1: the name p0",
        "of its own",
    ),
    "r = REDUCE.float32 1.0 {SUM}": ("line 1, column 25: no Ops SUM", "ADD"),
    'r = RANGE.index 2 {"g0", ADD}': ("line 1, column 26: no AxisType ADD", "GLOBAL"),
    "r = RANGE.index 2": ("line 1, column 5: not a range", "KIND"),
    "c = CONST.int8": ("line 1, column 5: a constant without a value", "number"),
    "c = CONST.float32 {0x1" + "0" * 400 + "}": ("line 1, column 19: CONST has no such", "float32"),
    "c = ADD.int8 300, 1": ("line 1, column 14: '300' is not a int8", "a number"),
    "c = ADD.int8 1,   1.5": ("line 1, column 19: '1.5' is not a int8", "a number"),
    "c = ADD.int8 1, , 2": ("line 1, column 16: '' is not a int8", "a number"),
    "c = NEG.bool 1": ("line 1, column 14: '1' is not a bool", "a number"),
    "c = ADD.index 0:int9, 1": ("line 1, column 17: no dtype int9", "int8"),
    "l = LANES.int8x2 {3}": ("line 1, column 5: lanes without values", "number"),
    "x = VAR.int8 {1, 2": ("line 1, column 14: the brace is not closed", "}"),
    "x = VAR.int8 {1) + (2}": ("line 1, column 14: cannot read '1 + 2'", "a number"),
    "x = VAR.int8 {[1]}": ("line 1, column 15: cannot read '[1]'", "tuple"),
    "x = VAR.int8 {1, 2 3}": ("line 1, column 18: cannot read the arg", "tuple"),
    "x = VAR.int8 {open('f')}": ("line 1, column 15: cannot read", "KernelInfo"),
    "x = VAR.int8 {dtypes.vec.__class__}": ("line 1, column 15: cannot read", "a number"),
    "x = VAR.int8 {dtypes.__class__}": ("line 1, column 15: no dtypes __class__", "float32"),
    "x = VAR.int8 {KernelInfo()}": ("line 1, column 15: KernelInfo with 0 parts", "order"),
    "x = VAR.int8 {0x1" + "0" * 5000 + "}": ("line 1, column 15: an integer of too", "number"),
    "x = VAR.int8 {" + "(" * 5000 + ")" * 5000 + "}": ("line 1, column", "tuples"),
    "x = VAR.int8 {" + "-" * 50000 + "1}": ("line 1, column", "tuples"),
    "# only a remark\n": ("the text holds no node", "lines like"),
}


@pytest.mark.parametrize("text", ERRORS, ids=[*map(str, range(len(ERRORS)))])
def test_a_parse_error_says_where_and_what_was_expected(text: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(text)
    what, expected = ERRORS[text]
    assert error.value.what.startswith(what) and expected in error.value.because
    place = re.match(r"line (\d+), column (\d+)", error.value.what)
    assert (error.value.line, error.value.column) == (
        tuple(map(int, place.groups())) if place else (None, None)
    )


def test_a_name_that_is_almost_right_is_the_hint() -> None:
    typed = {"v1 = ADDD.float32 1.0, 2.0": "ADD", "a1 = NEG.int8 1\nb = NEG.int8 aa1": "a1"}
    for text, hint in typed.items():
        with pytest.raises(ParseError) as error:
            parse(text)
        assert error.value.hint == hint


def test_the_work_grows_with_the_length_of_a_line() -> None:
    def calls(length: int) -> int:
        lines = " " * length + "{", "," * length, "(" * length, "x" * length, "=" * length
        return sum(calls_of(lambda line=line: _refused(f"v = NEG.int8 {line}")) for line in lines)

    assert calls(20_000) < 14 * calls(2_000)


def _refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_the_work_grows_with_the_number_of_nodes() -> None:
    def calls(length: int) -> int:
        node = chain(length)
        assert parse(to_text(node)) is node
        return calls_of(lambda: (parse(to_text(node)), to_expr(node)))

    assert calls(DEEP) < 14 * calls(DEEP // 10)


# the human form


def test_a_kernel_reads_like_its_definition() -> None:
    # fmt: off
    assert to_expr(samples.matmul(512, 512, 512)) == "\n".join([
        "kernel sample",
        "p0 = PARAM 0 float32[262144]",
        "p1 = PARAM 1 float32[262144]",
        "p2 = PARAM 2 float32[262144]",
        "p3 = PARAM 3 float32[512]",
        "g0 = RANGE 512 global",
        "g1 = RANGE 512 global",
        "r0 = RANGE 512 reduce",
        "order g0 g1 r0",
        "s7 = REDUCE(add, p1[g0*512 + r0] * p2[r0*512 + g1], r0)",
        "STORE(p0[g0*512 + g1], max(s7 + p3[g1], 0.0))  END g0 g1",
    ])
    # fmt: on


def test_a_staged_kernel_names_its_stages() -> None:
    lines = to_expr(samples.softmax(3, 7)).split("\n")
    assert "e = STAGE(exp2(p1[g0*7 + f0] - s7), f0)" in lines
    assert lines[-1].startswith("STORE(p0[g0*7 + i0], e[i0] / s") and lines[-1].endswith(
        "END g0 i0"
    )


def test_a_guarded_index_says_where() -> None:
    g0 = axis("g0", 4)
    assert to_expr(load(param(1, 2), gated(g0, g0 < 2))) == "p1[g0 where g0 < 2]"


def test_a_statement_tree_is_indented() -> None:
    # fmt: off
    assert to_expr(samples.tree()).split("\n")[-9:] == [
        "n0 = RANGE 2 unroll",
        "order g0 r0",
        "for g0 in 4 (global, chunked) {",
        "  acc[u0] = 0.0  (lanes u0)",
        "  for r0 in 8 (reduce) {",
        "    acc[u0] += p1[g0*16 + r0*2 + n0] * p2[(r0*2 + n0)*8 + u0]  (lanes u0)",
        "  }",
        "  p0[g0*8 + u0] = acc[u0] * 2.0  (lanes u0)",
        "}",
    ]
    # fmt: on


def test_a_tensor_graph_shows_shapes() -> None:
    assert to_expr(samples.pooled()).split("\n") == [
        "b0 = BUFFER NPY float32[3, 4]",
        "v1: float32[4, 3] = PERMUTE(b0, (1, 0))",
        "v2: float32[5, 5] = PAD(v1, ((1, 0), (0, 2)))",
        "v3: float32[5, 5] = FLIP(v2, (1,))",
        "v4: float32[25] = RESHAPE(v3, (25,))",
        "v5: float32[24] = SHRINK(v4, ((1, 25),))",
        "v6: float32[6, 4] = RESHAPE(v5, (6, 4))",
        "v7: float32[6, 1] = REDUCE_AXIS(max, v6, axes=(1,))",
        "float32[2, 6, 3] = EXPAND(v7 * 2.0, (2, 6, 3))",
    ]


g, h, k = axis("g0", 9), axis("g1", 9), axis("g2", 9)
x, y = load(param(1, 9), g), load(param(2, 9), h)
INFIX = {
    (g + h) + k: "g0 + g1 + g2",
    g + (h + k): "g0 + (g1 + g2)",
    (g + h) * 2: "(g0 + g1)*2",
    g * 2 + h: "g0*2 + g1",
    g // 3 % 2: "g0 // 3 % 2",
    g // (h % 2): "g0 // (g1 % 2)",
    g + -3: "g0 - 3",
    x + -y: "p1[g0] - p2[g1]",
    -(x * y): "-(p1[g0] * p2[g1])",
    -x * y: "-p1[g0] * p2[g1]",
    x * -2.0: "p1[g0] * -2.0",
    x * 0.1: "p1[g0] * 0.1",
    (g < h) & (h <= 3): "(g0 < g1) & (g1 <= 3)",
    (g < h).alu(Ops.NOT): "~(g0 < g1)",
    (g < h).where(x, y): "where(g0 < g1, p1[g0], p2[g1])",
    g.cast(F).bitcast(dtypes.int32): "bitcast(float32(g0), int32)",
    x.alu(Ops.EXP2).alu(Ops.MAX, y): "max(exp2(p1[g0]), p2[g1])",
}


@pytest.mark.parametrize("node", INFIX, ids=INFIX.values())
def test_parentheses_are_as_few_as_can_be(node: UOp) -> None:
    assert to_expr(node) == INFIX[node]


def test_what_is_used_twice_is_named_once() -> None:
    node = x
    for _ in range(60):
        node = node * node + 1.0
    lines = to_expr(node).split("\n")
    assert len(lines) == 60 and max(map(len, lines)) < 40


def test_a_shared_value_is_named_in_each_statement_that_uses_it() -> None:
    acc = samples.define("acc", 8)
    shared = load(acc, axis("u0", 8)) * 3.0
    twice = samples.store(at(param(0, 8), axis("u0", 8)), shared * shared)
    text = to_expr(samples.block(twice, samples.store(at(acc, axis("u0", 8)), x.like(1)), twice))
    assert text.count("= acc[u0] * 3.0") == 2


def test_every_op_has_an_expression() -> None:
    for op in Ops:
        arg = {Ops.RANGE: ("g0", AxisType.GLOBAL), Ops.PARAM: (0, 4), Ops.REDUCE: Ops.ADD}.get(op)
        if op in (Ops.CONST, Ops.BUFFER, Ops.DEFINE, Ops.VAR, Ops.STAGE, Ops.BLOCK, Ops.LANES):
            continue  # their args have forms of their own
        count = 3 if op in (Ops.WHERE, Ops.FMA) else 1 if op is Ops.RANGE else 2
        sources = (g, h, k)[:count] if op is not Ops.RANGE else (UOp.index(4),)
        assert to_expr(UOp(op, V if op in (Ops.STORE, Ops.END) else F, sources, arg))
