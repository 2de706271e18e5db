"""Wrong kernels: each is refused in words, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tensor.custom.kernels import add, numbers
from workbench import Tensor, dtypes
from workbench.base.errors import (
    AxisError,
    DeviceError,
    DTypeError,
    ParseError,
    ShapeError,
    VerifyError,
    WorkbenchError,
)
from workbench.ir.node.uop import UOp

LINES = """
p0 = PARAM.float32 {0, 4}
g0 = RANGE.index 4 {"g0", GLOBAL}
p1 = PARAM.float32 {1, 4}
to = INDEX.float32 p0, g0
at = INDEX.float32 p1, g0
value = LOAD.float32 at
done = STORE to, value
end = END done, g0
SINK end {KernelInfo("copy", ("g0",))}
"""


def edited(*changes: tuple[str, str]) -> str:
    text = LINES
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


def beyond(out: Any, x: Any) -> None:
    i = out.axis(0)
    out[i] = x[i + 1]


def from_memory(out: Any, x: Any) -> None:
    i = out.axis(0)
    out[i] = x[x[i].cast(dtypes.int32)]


def scattered(out: Any, x: Any) -> None:
    i = x.axis(0)
    out[x[i].cast(dtypes.int32).max(0).min(3)] = x[i]


def half_of_it(out: Any, x: Any) -> None:
    i = out.loop(2)
    out[i * 2] = x[i]


def each_twice(out: Any, x: Any) -> None:
    i, j = out.axis(0), x.axis(0)
    out[i] = x[j]


def over_itself(out: Any, x: Any) -> None:
    i, j = out.axis(0), out.loop(1)
    out[i] = x[i]
    out[j] = x[j] * 2


WRONG: dict[str, tuple[Any, type[WorkbenchError], str]] = {
    "a read beyond the end": (beyond, AxisError, r"it is in 1\.\.4"),
    "a read where memory says": (from_memory, AxisError, r"leaves its axis 0"),
    "a write where memory says": (scattered, VerifyError, "may be anywhere"),
    "not all is written": (half_of_it, VerifyError, "2 of its 4 elements are written"),
    "several steps write one": (each_twice, VerifyError, "a REDUCE combines steps"),
    "two statements write one": (over_itself, VerifyError, "cannot be shown"),
    "another dtype": (
        lambda out, x: out.__setitem__(0, x[0].cast(dtypes.int32)), DTypeError, "it holds float32",
    ),
    "one index too many": (lambda out, x: x[0, 0], ShapeError, "has 1 axes, and not 2"),
    "a float as an index": (lambda out, x: x[0.5], DTypeError, "0.5 is not an index"),
    "not a condition": (lambda out, x: x.read(4, where=True), DTypeError, "not a condition"),
    "a condition that lets it out": (
        lambda out, x: out.__setitem__(i := out.axis(0), x.read(i + 1, where=i < 4)),
        VerifyError, "leaves its 4 elements",
    ),
    "days of steps": (
        lambda out, x: out.__setitem__(
            i := out.axis(0), (x[i] + 1).reduce(out.loop(1 << 40), out.loop(1 << 20))
        ),
        VerifyError, "would not end",
    ),
    "an axis that is not there": (lambda out, x: x.axis(1), AxisError, "no axis 1"),
    "nothing": (lambda out, x: None, DTypeError, "None is not a kernel"),
    "a number": (lambda out, x: 3, DTypeError, "3 is not a kernel"),
    "not a function": (7, DTypeError, "7 is not a kernel"),
    "no store": (lambda out, x: UOp.sink(), ShapeError, "it uses the slots none"),
    "not IR": ("x + y", ParseError, "line 1"),
    "no SINK": (edited(("SINK end", "# end")), ParseError, "not a kernel"),
    "text: a read beyond the end": (
        edited(("p1, g0", "p1, next"), ("at =", "next = ADD.index g0, 1\nat =")),
        VerifyError, r"in 1\.\.4, and there are 4",
    ),
    "text: a write beyond the end": (
        edited(("RANGE.index 4", "RANGE.index 5")), VerifyError, r"in 0\.\.4",
    ),
    "text: other sizes": (edited(("{1, 4}", "{1, 5}")), ShapeError, "slot 1 has 5 elements"),
    "text: other dtypes": (
        edited(("float32", "float64")), DTypeError, "its slot 0 holds float64",
    ),
    "text: another slot": (edited(("{1, 4}", "{2, 4}")), ShapeError, "the slots 0, 2"),
    "text: dtypes that do not meet": (
        edited(("LOAD.float32", "LOAD.int32")), VerifyError, "the first source is float32",
    ),
    "text: a variable": (
        edited(("g0 = RANGE.index 4", 'n = VAR.index {"n", 1, 4}\ng0 = RANGE.index n')),
        VerifyError, "has the variable n",
    ),
    "text: a loop that stays open": (
        edited(("END done, g0", "END done")), VerifyError, "g0 stays open",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_refused_in_words(name: str) -> None:
    fxn, kind, words = WRONG[name]
    x = Tensor(numbers(4))
    with pytest.raises(kind, match=words) as error:
        Tensor.empty(4).custom_kernel(x, fxn=fxn)
    assert error.value.because
    assert "test_refusals.py" in error.value.where


TENSORS: dict[str, tuple[Callable[[], Any], type[WorkbenchError], str]] = {
    "too few": (lambda: Tensor.empty(4).custom_kernel(fxn=LINES), ShapeError, "1 tensor"),
    "too many": (
        lambda: Tensor.empty(4).custom_kernel(*[Tensor.empty(4)] * 3, fxn=LINES),
        ShapeError, "4 tensors",
    ),
    "an array": (
        lambda: Tensor.empty(4).custom_kernel(numbers(4), fxn=LINES),  # type: ignore[arg-type]
        DTypeError, "is not a tensor",
    ),
    "two devices": (
        lambda: Tensor.empty(4, device="C").custom_kernel(
            Tensor.empty(4, device="LLVM"), Tensor.empty(4, device="PYTHON"), fxn=add
        ),
        DeviceError, "on C and on LLVM",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TENSORS)
def test_wrong_tensors_are_refused_in_words(name: str) -> None:
    call, kind, words = TENSORS[name]
    with pytest.raises(kind, match=words) as error:
        call()
    assert error.value.because and "test_refusals.py" in error.value.where
