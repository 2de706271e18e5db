"""Every exercise of the course, answered in its own cells: as a reader does who is right, runs the
cell once more, and then opens the solution."""

from __future__ import annotations

import ast
import builtins
import sys
from types import ModuleType
from typing import Any

import nbformat
import pytest
from course.ask import Verdict

from tests.support import ROOT

EXERCISES = {
    "02_rewrites": 2, "03_scheduling": 3, "04_opts_by_hand": 2, "05_matmul_to_the_peak": 2,
    "06_train_digits": 1, "07_gpu_in_slow_motion": 4,
}  # fmt: skip
UNTRAINED = ("EPOCHS, BATCH = 12, 64", "EPOCHS, BATCH = 0, 64")
Scope = dict[str, Any]


@pytest.mark.parametrize("name", EXERCISES)
def test_a_right_answer_is_right_again_and_so_is_the_solution(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / "notebooks")
    notebook = nbformat.read(f"{name}.ipynb", as_version=4)
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    sources = [cell.source.replace(*UNTRAINED) for cell in cells]
    answers = [n for n, c in enumerate(cells) if "solution" in c.metadata.get("tags", [])]
    assert len(answers) == EXERCISES[name]
    chapter = ModuleType("chapter")
    chapter.__file__ = str(ROOT / "notebooks" / "chapter.py")
    monkeypatch.setitem(sys.modules, "chapter", chapter)  # names of layers are looked up in it
    scope = vars(chapter)
    ran: set[int] = set()
    for answer in answers:
        for number in _needed(sources, answer):
            if number not in ran:
                _run(sources[number], scope)
                ran.add(number)
        for _ in range(3):
            verdict = _run(sources[answer], scope)
            assert isinstance(verdict, Verdict) and verdict.ok, str(verdict)


def _needed(sources: list[str], place: int) -> list[int]:
    """Return the cells, in order, that define what a cell uses, and what these use."""
    cells: set[int] = set()
    waiting = [place]
    while waiting:
        cell = waiting.pop()
        for name in _used(sources[cell]):
            makers = [n for n in range(cell) if name in _made(sources[n])]
            if makers and makers[-1] not in cells:
                cells.add(makers[-1])
                waiting.append(makers[-1])
    return sorted(cells)


def _made(source: str) -> set[str]:
    """Return the names that a cell defines."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name)
    return names


def _used(source: str) -> set[str]:
    tree = ast.walk(ast.parse(source))
    loads = {n.id for n in tree if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return loads - set(dir(builtins))


def _run(source: str, scope: Scope) -> Any:
    """Run a cell, and return what its last line is worth."""
    *before, last = ast.parse(source).body
    exec(compile(ast.Module(before, []), "<cell>", "exec"), scope)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), "<cell>", "exec"), scope)
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), scope)
