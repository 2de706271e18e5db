"""Every public method of Tensor, given values of every wrong kind: done, or refused in words.

Nothing may fail inside (AttributeError, AssertionError, a message of numpy's), hang, or take
gigabytes. A refusal gives a reason and what to try, is short whatever the value is, and names the
method that was called, not one that it is made of. What it says is tested in test_refusals.py.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.support import LONG
from workbench import Context
from workbench.base.errors import (
    CompileError,
    EndlessRewrite,
    ParseError,
    VerifyError,
    WorkbenchError,
)
from workbench.tensor import Tensor

resource = pytest.importorskip("resource", reason="memory is measured by POSIX means")


class Stranger:
    """Something that nobody expects."""


COMPILERS = (VerifyError, CompileError, EndlessRewrite, ParseError)
"""Errors of the compiler: bad arguments must not come that far."""
MOST_CHARACTERS = 200
"""A refusal's first line has no more."""

NASTY: list[Callable[[], Any]] = [
    *[
        lambda value=value: value  # type: ignore[misc]
        for value in [
            None, True, -1, -5, 99, 300, 2**31, 2**63, 2**70, 10**400, 1.5, float("nan"),
            float("inf"), 1j, "word", "", "index", b"x", (), [], ("a",), (None,), ((1, 2),), (1.5,),
            (0, 0), (-1, -1), (0, 1, 2, 3), (2**35,), (2**31, 2**32), (1,) * 70, [[1, 2], [3]],
            [[[]]], {}, {1}, {"a": 1}, len, int, np.ndarray, slice(None), slice(0.5), ...,
            Stranger(), range(2**40), range(2**70), np.float64(1.5), np.int64(1), np.int64(-300),
            np.bool_(True), np.complex64(1), np.array(3), np.ones(2), np.ones(2, complex),
            np.array([None]), np.array(["a"]), np.array(["2020"], "M8[Y]"), np.float16([1]),
            np.ma.masked_array([1, 2], [True, False]), np.zeros(2, [("a", int)]),
        ]
    ],
    lambda: iter([1, 2]),
    lambda: Tensor([1.0, 2.0]),
    lambda: Tensor(np.zeros((0, 3), np.float32)),
    lambda: Tensor(1),
    lambda: Tensor([2**31]).expand(2**40),
]  # fmt: skip

BASES = {
    "matrix": Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device="PYTHON"),
    "small": Tensor(np.array([1, 2, 3], np.int8), device="PYTHON"),
    "bools": Tensor([True, False], device="PYTHON"),
    "scalar": Tensor(2.0, device="PYTHON"),
    "empty": Tensor(np.zeros((0, 2), np.float32), device="PYTHON"),
    "wide": Tensor(np.array([1, 2], np.uint64), device="PYTHON"),
    "image": Tensor(np.ones((1, 2, 4, 4), np.float32), device="PYTHON"),
}
OPERATORS = """__getitem__ __add__ __rsub__ __mul__ __truediv__ __rfloordiv__ __mod__ __pow__
__rpow__ __and__ __ror__ __xor__ __lshift__ __rrshift__ __lt__ __eq__ __ge__ __matmul__
__rmatmul__ __array__""".split()
CALLERS = {"custom_kernel"}
"""It runs the function, or reads the kernel, that it is given (tests/tensor/custom has what it
refuses)."""
METHODS = [
    name
    for name in dir(Tensor)
    if (name in OPERATORS or not name.startswith("_"))
    and name not in CALLERS
    and callable(getattr(Tensor, name))
    and not isinstance(inspect.getattr_static(Tensor, name), property)
]


def calls(method: Callable[..., Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield arguments: each parameter nasty in turn, what else is needed sensible."""
    listed = inspect.signature(method).parameters.values()
    named = [p for p in listed if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = [p.name for p in named if p.default is p.empty]
    for make in NASTY:
        if len(named) < len(listed):
            yield (make(),), {}
            yield (1, make()), {}
        for parameter in named:
            others = [name for name in needed if name != parameter.name]
            for sensible in (1, (1, 1)) if others else (1,):
                yield (), {**dict.fromkeys(others, sensible), parameter.name: make()}


def complaint(error: BaseException, name: str = "Tensor") -> str | None:
    """Return what is wrong with an error of method `name`; None where it is a refusal in words."""
    if isinstance(error, WorkbenchError) and not isinstance(error, COMPILERS):
        if not (error.what and error.because):
            return "it gives no reason"
        if not error.hint:
            return f"it says nothing to try: {error}"
        named = error.what.partition(": ")[0]
        if named in METHODS and named != name:
            return f"it names {named}: {error.what}"
        return "it is too long" if len(error.what) > MOST_CHARACTERS else None
    if isinstance(error, TypeError) and "argument" in str(error):
        # Python's own, for a call that does not fit the signature
        if len(traceback.extract_tb(error.__traceback__)) <= 2:
            return None
    return "".join(traceback.format_exception(error))


def computed(results: Any) -> None:
    for each in results if isinstance(results, tuple | list) else (results,):
        if isinstance(each, Tensor) and each.numel() < 1000:
            each.numpy()


@pytest.mark.parametrize("name", METHODS, ids="t.{}".format)
def test_bad_arguments_are_refused_in_words_or_done(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    is_static = not inspect.isfunction(inspect.getattr_static(Tensor, name))
    bases = list(BASES.values())[: 1 if is_static else None]
    count = 0
    for place, base in enumerate(bases):
        method = getattr(base, name)
        for number, (args, named) in enumerate(calls(method)):
            # in a short run a call is one of the first tensor, and one of another
            if place and not LONG and place != 1 + number % (len(bases) - 1):
                continue
            try:
                with Context(DEV="PYTHON"):
                    result = method(*args, **named)
                    count += 1
                    if LONG or count % 16 == 1:
                        computed(result)
            except Exception as error:
                wrong = complaint(error, name)
                assert wrong is None, f"{base!r}.{name}(*{args}, **{named}): {wrong}"
    taken_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert taken_kib < 1 << 20


@pytest.mark.parametrize("parameter", ["data", "dtype", "device", "requires_grad"])
def test_bad_arguments_of_tensor_itself(parameter: str) -> None:
    for make in NASTY:
        try:
            computed(Tensor(**{"data": [1, 2], parameter: make()}))
        except Exception as error:
            wrong = complaint(error)
            assert wrong is None, f"{parameter}={make()!r}: {wrong}"
