"""The helper that other tests trust: it must fail when it should."""

from __future__ import annotations

import pytest

from tests.tools.filecheck import filecheck

TEXT = """\
for g0 in 8 {
  acc  = 0
  acc += x[g0]
}
done"""


@pytest.mark.parametrize(
    "expected",
    [
        "CHECK: for g0 in 8 {",
        "CHECK: acc = 0\nCHECK-NEXT: acc += x[g0]\nCHECK-NEXT: }",
        "CHECK: for\n\n  CHECK-NOT: y[\nCHECK: done",
        "CHECK-NOT: store\nCHECK: for",
        "CHECK: done\nCHECK-NOT: for",
        "CHECK: for {{[gl]}}0 in {{[0-9]+}} {",
    ],
)
def test_it_holds(expected: str) -> None:
    filecheck(TEXT, expected)


@pytest.mark.parametrize(
    "expected, why",
    [
        ("CHECK: store", "is not after line 0"),
        ("CHECK: done\nCHECK: for", "is not after line 5"),
        ("CHECK: for\nCHECK: for", "is not after line 1"),
        ("CHECK: for\nCHECK-NEXT: acc +=", "is not after line 1"),
        ("CHECK: done\nCHECK-NEXT: x", "is not after line 5"),
        ("CHECK: for\nCHECK-NOT: acc +=\nCHECK: done", "CHECK-NOT"),
        ("CHECK-NOT: done", "CHECK-NOT"),
        ("CHECK: x{{[0-9]}}", "is not after"),
    ],
)
def test_it_does_not_hold(expected: str, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        filecheck(TEXT, expected)


@pytest.mark.parametrize(
    "expected, why",
    [
        ("CHEK: for", "not a directive"),
        ("CHECK-SAME: for", "not a directive"),
        ("check: for", "not a directive"),
        ("for g0 in 8 {", "not a directive"),
        ("CHECK:", "nothing to look for"),
        ("CHECK-NEXT: for", "no line before"),
        ("CHECK: for\nCHECK-NOT: x\nCHECK-NEXT: acc", "can stand between"),
        ("\n\n", "no directive"),
    ],
)
def test_a_mistake_in_the_test_fails(expected: str, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        filecheck(TEXT, expected)
