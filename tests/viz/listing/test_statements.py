"""Programs in two languages are of the same statements, each a line of the language that all
kernels are read in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.viz.support import matmul, softmax
from workbench.viz import Exploration
from workbench.viz.record.record import Recorder
from workbench.viz.schema.variant import CodeRow

PRODUCT = {"C": "acc0 = fma", "LLVM": "fmuladd", "asm": "fmadd", "IR": "acc0 +="}


def programs(ex: Exploration, variant: int = 0) -> dict[str, CodeRow]:
    recorder = Recorder(ex)
    recorder.first()
    recorder.add_compiled(variant)
    return {row.language: row for row in recorder.record.variants[variant].code}


def statements(row: CodeRow, text: str = "") -> set[int | None]:
    lines = zip(row.lines, row.links, strict=True)
    return {link.statement for line, link in lines if link and text in line}


def test_each_language_says_which_line_of_c_it_computes() -> None:
    code = programs(matmul())
    [product] = statements(code["C"], PRODUCT["C"])
    assert product and PRODUCT["C"] in code["C"].lines[product - 1]
    for language, row in code.items():
        if any(PRODUCT[language] in line for line in row.lines):
            assert statements(row, PRODUCT[language]) == {product}, language
    stored = next(n for n, line in enumerate(code["C"].lines, 1) if "p0[" in line)
    assert statements(code["LLVM"], "store float") == {stored}
    assert statements(code["IR"], "p0[") == {stored}


def test_the_end_of_a_loop_is_of_the_line_that_begins_it() -> None:
    code = programs(matmul())
    begins = [n for n, line in enumerate(code["C"].lines, 1) if "for (" in line]
    assert begins[0] in statements(code["asm"], "jl") | statements(code["asm"], "b.")
    assert [
        link.statement
        for line, link in zip(code["C"].lines, code["C"].links, strict=True)
        if link and line.strip() == "}"
    ] == begins[::-1]
    assert statements(code["IR"], "for ") == set(begins)


@pytest.mark.parametrize("example", [matmul, softmax])
def test_every_statement_is_a_line_of_c(example: Callable[[], Exploration]) -> None:
    ex = example()
    for kernel in range(len(ex.kernels)):
        code = programs(ex, kernel)
        own = statements(code["C"])
        assert own and None not in own
        for row in code.values():
            assert statements(row) - {None} <= own
