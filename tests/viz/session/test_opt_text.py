"""Opts from text: what we print is read back, everything else is refused, nothing is run."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.viz.support import matmul
from workbench.base.errors import ParseError
from workbench.ir.opt.opt import Opt, OptOps
from workbench.viz.model.words import opts_words
from workbench.viz.session.opt_text import MOST_OPTS, parse_opt, parse_opts

NAMES = st.from_regex(r"[a-z][0-9]{1,2}", fullmatch=True)
OPTS = st.builds(
    Opt,
    st.sampled_from(list(OptOps)),
    st.one_of(st.none(), NAMES, st.integers(0, 9)),
    st.one_of(NAMES, st.integers(0, 64)),
).filter(lambda opt: opt.axis is not None)


@given(st.lists(OPTS, max_size=5))
def test_what_is_printed_is_read(opts: list[Opt]) -> None:
    expected = tuple(opts)
    for text in (
        ", ".join(map(str, opts)),
        "\n".join(map(repr, opts)),
        repr(opts),
        f"kernel.apply({', '.join(map(repr, opts))})",
    ):
        assert parse_opts(text) == expected


def test_a_printed_opt_is_read_without_ast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Python 3.11.8 a thread that calls `ast.parse` makes a cell fail that is parsed at the
    same time, and the page's threads read the opts of records."""
    kernel = matmul().kernels[0]
    opts = [*kernel.legal_opts(), Opt(OptOps.TC, 0), Opt(OptOps.ORDER, "r0", "g0")]
    monkeypatch.setattr(ast, "parse", None)
    assert [parse_opt(str(opt)) for opt in opts] == opts


def test_a_copied_kernel_is_read() -> None:
    kernel = matmul().kernels[0]
    assert parse_opts(kernel.to_python()) == ()
    chosen = (Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UNROLL, "r0", 2))
    assert parse_opts(kernel.apply(*chosen).to_python()) == chosen


def test_an_amount_below_zero_is_read_and_one_with_a_point_is_refused() -> None:
    """The kernel says which amounts there are."""
    expected = (Opt(OptOps.UPCAST, "g3", -4),)
    assert parse_opts('UPCAST("g3", -4)') == parse_opts("upcast g3 -4") == expected
    with pytest.raises(ParseError, match=r"1\.5 is no amount"):
        parse_opts('UPCAST("g3", 1.5)')


def test_opts_are_read_as_the_page_shows_them() -> None:
    listed = 'UPCAST("g1", 16), UNROLL("r0", 0), SWAP("g0", "r0")'
    opts = parse_opts(listed)
    assert opts_words(opts) == "UPCAST g1 16, UNROLL r0 whole, SWAP g0 r0"
    assert parse_opts(opts_words(opts)) == opts
    assert parse_opts("UPCAST g1 16\nUNROLL r0 whole;SWAP g0 r0") == opts
    assert parse_opts("upcast:g1:16, unroll r0 whole;Swap g0 r0") == opts
    assert parse_opts("upcast('g1', 16), Unroll('r0', 0), swap('g0', 'r0')") == opts
    assert parse_opts('UPCAST:g1:16, unroll("r0", 0); Swap g0 r0') == opts  # each in its own form
    for text in "UPCAST g1 2**9", "NONE g1 4", "UPCAST g1 4 5":
        with pytest.raises(ParseError):
            parse_opts(text)


def test_a_name_alone_is_an_opt_without_arguments() -> None:
    assert parse_opts("nolocals, UPCAST") == (Opt(OptOps.NOLOCALS), Opt(OptOps.UPCAST))


def test_words_for_arguments() -> None:
    assert parse_opt('Opt(OptOps.UPCAST, axis="g1", arg=4)') == parse_opt('UPCAST("g1", 4)')


def test_an_op_may_be_a_name_in_quotes() -> None:
    assert parse_opt('Opt("SWAP", "g0", "r0")') == Opt(OptOps.SWAP, "g0", "r0")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('__import__("os").system("x")', "is not an opt"),
        ('UPCAST("g1", 2 ** 9)', "is not an opt"),
        ('UPCAST("g1", open("x"))', "is not an opt"),
        ('UPCAST("g1", 4, 5)', "is not an opt"),
        ('UPCAST("g1", n=4)', "is not an opt"),
        ('UPCAST("g1", True)', "is not an opt"),
        ('UPCAST("g1", *x)', "is not an opt"),
        ('Opt(Other.UPCAST, "g1", 4)', "is not an opt"),
        ('"UPCAST"("g1", 4)', "is not an opt"),
        ('FASTER("g1", 4)', "there are UPCAST, UNROLL"),
        ("for x in y: pass", "is not an opt"),
        ("UPCAST(g1, 7)", 'the name of an axis stands in quotes\n  try      "g1"'),
        ("[UPCAST", "cannot read the opts"),
        ("upcast(0, 4), UPCAST:g1:16:2", "UPCAST:g1:16:2 is neither an opt nor words"),
        ("UPCAST g1 = 4 =", "neither an opt nor words such as UPCAST g1 4"),
        ("(" * 5000, "cannot read the opts"),
        ("x\0", "cannot read the opts"),
        ('UPCAST("g1", 4), ' * (MOST_OPTS + 1), f"more than {MOST_OPTS}"),
        ("#" * 300_000, "too long"),
    ],
)
def test_anything_else_is_refused(text: str, says: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_opts(text)
    assert says in str(caught.value)


def test_one_opt_is_one() -> None:
    for text in ("", 'UPCAST("g1", 4), UPCAST("g1", 4)'):
        with pytest.raises(ParseError, match="is not one opt"):
            parse_opt(text)
