"""Rules on values: a right rule has no counterexample, a wrong one has it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import by_rows
from workbench import Tensor, explore
from workbench.base.dtypes import dtypes
from workbench.check.rule_values import TESTED, compare_sides
from workbench.ir.rewriting.rewrite import typed_rule

RIGHT = [
    "x * 2 -> x + x",
    "x + 0 -> x",
    "x << 1 -> x * 2",
    "x:integer >> 1 -> x // 2",
    "x % 8 -> x & 7",
    "~(~x) -> x",
    "where(a, x, x) -> x",
    "x:float / 2 -> x * 0.5",
    "x & (x | y) -> x",
    "(x + y) + z:integer -> x + (y + z)",
]

WRONG = [
    ("x * 0 -> 0", "float16", "inf"),
    ("x / x -> 1", "float16", "x = 0.0"),
    ("x // c * c -> x", "int8", "c = 0"),
    ("(x < y) -> ~(y <= x)", "bool", "nan"),
    ("x + 1 -> x", "bool", ""),
    ("x:float + y + z -> x + (y + z)", "float16", ""),
    ("x << y -> x", "int8", ""),
    ("x:integer // 2 -> x >> 2", "int8", ""),
    ("max(x, y) -> where(x < y, y, x)", "float16", "nan"),
    ("sqrt(x) * sqrt(x) -> x", "float16", ""),
    ("x:integer * y + z -> fma(x, y, z)", "int8", "FMA: int8 is not a float"),
    ("x + 1 -> x < 1", "bool", ""),
    ("x * 256 -> x << 8", "int16", ""),
]


@by_rows("text", RIGHT)
def test_right_rules(text: str) -> None:
    outcome = compare_sides(typed_rule(text))
    assert outcome.counterexample is None, (text, str(outcome.counterexample))
    assert outcome.dtypes and outcome.compared > 2000, text


@by_rows("text, dtype, words", WRONG[:-1])
def test_wrong_rules(text: str, dtype: str, words: str) -> None:
    found = compare_sides(typed_rule(text)).counterexample
    assert found is not None and words in str(found), (text, str(found))
    assert str(found.dtype) == dtype, (text, str(found))


def test_every_dtype_of_values_is_tested() -> None:
    every = compare_sides(typed_rule("where(a, x, x) -> x"))
    assert every.dtypes == TESTED
    assert compare_sides(typed_rule("x:float + 0 -> x")).dtypes == tuple(
        d for d in TESTED if d.is_float
    )
    assert dtypes.int64 in compare_sides(typed_rule("x // 1 -> x")).dtypes


def test_every_dtype_is_tested_with_comparisons_and_constants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workbench.check.rule_values.CONSTANTS", 4)
    monkeypatch.setattr("workbench.check.rule_values.VALUES", 64)
    rule = typed_rule("where(a < c, where(b < c1, x * 0, 0), 0) -> 0")
    counterexample = compare_sides(rule).counterexample
    assert counterexample is not None and counterexample.dtype.is_float  # x is infinite


def test_a_kernel_with_a_rule() -> None:
    x = Tensor(np.arange(16, dtype=np.float32)).realize()
    kernel = explore(x * 2 + 1).kernels[-1]
    trial = kernel.try_rule("x * 2 -> x + x", "C")
    assert trial.holds and len(trial.fired) == trial.count == 1 and trial.kernel is not None
    assert trial.fired[0].after == "p1[g0] + p1[g0]"
    assert any(line.startswith("+") for line in trial.difference)
    assert trial.kernel.code_for("C") != kernel.code_for("C")
    assert "fired 1 time" in str(trial) and "right" in str(trial)
    assert str(trial).index("the answer: right") < str(trial).index("fired 1 time")
    assert str(trial.fired[0]) == "p1[g0] * 2.0  ->  p1[g0] + p1[g0]"
    silent = kernel.try_rule("x << 1 -> x * 2", "C")
    assert not silent.holds and silent.check is None
    assert "it did not fire in this kernel, so nothing was compared (" in str(silent)
    assert "not the arithmetic of indexes" in str(silent)
    wrong = kernel.try_rule("x * 0 -> 0", "C")
    assert not wrong.holds and wrong.kernel is None and "was not applied" in str(wrong)
    endless = kernel.try_rule("x + y -> y + x", "C")
    assert not endless.holds and "did not end" in endless.error
    growing = explore(x.exp2()).kernels[-1].try_rule("exp2(x) -> exp2(x + 0.0)", "C")
    assert "did not end" in growing.error and not growing.fired  # no text of 50,000 matches
    again = trial.kernel.try_rule("x + 1 -> 1 + x * 1", "C")
    assert again.kernel is None or again.kernel.rules_off[0] == "x * 2 -> x + x"


def test_a_long_match_is_printed_with_its_nearest_values() -> None:
    """Both sides name a value alike, and a line has one value: no unbroken list of all of them."""
    x = Tensor(np.arange(16, dtype=np.float32)).realize()
    kernel = explore(x.exp() * 2).kernels[-1]
    first, *values, last = str(kernel.try_rule("x * 2 -> x + x", "C").fired[-1]).split("\n")
    before, after = first.split("  ->  ")
    name = before.removesuffix(" * 2.0")
    assert after == f"{name} + {name}" and values[0].startswith(f"  {name} = ")
    assert len(values) == 3 and last.endswith("values before")
