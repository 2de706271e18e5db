"""Kernels as code to paste and as text: read again they are the same, and all else is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernel.samples import TILE, matmul, text_kernel
from tests.tools.kernels import EXAMPLES
from workbench import Kernel
from workbench.base.errors import ParseError, VerifyError
from workbench.ir.node.uop import KernelInfo
from workbench.ir.text.printer import to_text


@pytest.mark.parametrize("name", EXAMPLES)
def test_to_python_binds_the_same_kernel(name: str) -> None:
    plain = text_kernel(name)
    for opts in ((), plain.legal_opts()[:1], plain.legal_opts()[-1:]):
        kernel = plain.apply(*opts)
        scope: dict[str, Any] = {}
        exec(kernel.to_python(), scope)
        copy = scope["kernel"]
        assert copy.ast is kernel.ast and copy.original is kernel.original
        assert copy.applied_opts == kernel.applied_opts
        assert np.array_equal(copy.run("PYTHON")[0], scope["kernel"].run("PYTHON")[0])
        assert copy.check("LLVM").ok


def test_to_python_of_an_expressions_kernel_runs_on_seeded_data() -> None:
    kernel = matmul().apply(*TILE)
    scope: dict[str, Any] = {}
    exec(kernel.to_python(), scope)
    assert scope["kernel"].ast is kernel.ast and scope["kernel"].check().ok


@pytest.mark.parametrize("name", ["it's", "'''", "''''", '"""', "\\", "\n", "''' + 1/0 + '''", "é"])
def test_to_python_is_safe_whatever_the_name(name: str) -> None:
    graph = EXAMPLES["transpose"].graph
    graph = graph.replace(arg=KernelInfo(name, graph.arg.order))
    scope: dict[str, Any] = {}
    exec(Kernel.from_text(to_text(graph)).to_python(), scope)
    assert scope["kernel"].ast is graph


def test_the_seed_is_the_data() -> None:
    one, two = text_kernel("transpose", 1), text_kernel("transpose", 2)
    assert not np.array_equal(one.run()[0], two.run()[0])
    assert np.array_equal(one.run("LLVM")[0], one.run("PYTHON")[0])


@pytest.mark.parametrize(
    "text, error, message",
    [
        ("", ParseError, "no node"),
        ("nonsense", ParseError, "line 1"),
        ("g0 = RANGE.index 4", ParseError, "line 1"),
        ('g0 = RANGE.index 4 {"g0", GLOBAL}', ParseError, "not a kernel"),
        ("LINEAR\nBLOCK {KernelInfo(\"k\", ())}", ParseError, "not a kernel"),
        ('v0 = ADD.index q, 1\nSINK v0 {KernelInfo("k", ())}', ParseError, "no value q"),
        ("SINK", VerifyError, "sink"),
        ('SINK {KernelInfo("k", ())}', ParseError, "stores nothing"),
        ("__import__('os').getcwd()", ParseError, "line 1"),
    ],
)  # fmt: skip
def test_text_that_is_no_kernel(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Kernel.from_text(text)


def test_text_that_breaks_a_rule() -> None:
    good = to_text(EXAMPLES["transpose"].graph)
    for old, new, message in (
        ("576}", "575}", "in-bounds"),
        ('("g0", "g1")', '("g0",)', "loop-order"),
        ('("g0", "g1")', '("g0", "g0", "g1")', "loop-order"),
    ):
        with pytest.raises(VerifyError, match=message):
            Kernel.from_text(good.replace(old, new))
