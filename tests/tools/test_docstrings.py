"""The examples in docstrings run, and give what they say. `Tensor` is there without an import."""

from __future__ import annotations

import doctest
import importlib
from doctest import DocTest

import pytest

import workbench
from tests.support import ROOT


def examples() -> list[DocTest]:
    """Return the examples of every module that has any."""
    tests: list[DocTest] = []
    names = {"Tensor": workbench.Tensor}
    finder = doctest.DocTestFinder(exclude_empty=True)
    for path in sorted((ROOT / "workbench").rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            tests += [
                t
                for t in finder.find(importlib.import_module(name), extraglobs=names)
                if t.examples
            ]
    return tests


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.name for e in EXAMPLES])
def test_the_example_gives_what_it_says(example: DocTest) -> None:
    lines: list[str] = []
    result = doctest.DocTestRunner().run(example, out=lines.append)
    assert result.attempted and not result.failed, "".join(lines)
