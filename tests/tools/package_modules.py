"""The modules of the package, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tests.support import ROOT

Modules = dict[str, str]
"""Module name -> source."""


@dataclass(frozen=True)
class Import:
    """`module` imports `target` on `line`."""

    module: str
    target: str
    line: int


def package_modules() -> Modules:
    """Every module of the package as it lies in the checkout."""
    modules = {}
    for path in sorted((ROOT / "workbench").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = path.read_text(encoding="utf-8")
    return modules


def imports(modules: Modules) -> Iterator[Import]:
    """Yield each import of one of `modules` by another, wherever in its file it stands."""
    for module, source in modules.items():
        for node in outline(source).imports:
            for target in _targets(node, modules):
                if target != module:
                    yield Import(module, target, node.lineno)


class Outline(NamedTuple):
    """What a file has: its tree, which is large, is not kept."""

    imports: list[ast.Import | ast.ImportFrom]
    """Those too that only a type checker reads."""
    classes: list[str]
    functions: list[tuple[str, int]]
    """Name, and lines without the docstring."""
    attributes: set[str]


@cache
def outline(source: str) -> Outline:
    result = Outline([], [], [], set())
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            result.imports.append(node)
        elif isinstance(node, ast.ClassDef):
            result.classes.append(node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            result.functions.append((node.name, _lines(node) - _lines(_docstring(node))))
        elif isinstance(node, ast.Attribute):
            result.attributes.add(node.attr)
    return result


def _lines(node: ast.stmt | None) -> int:
    return 0 if node is None else (node.end_lineno or 0) - node.lineno + 1


def _docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt | None:
    has_one = ast.get_docstring(function, clean=False) is not None
    return function.body[0] if has_one else None


def _targets(node: ast.AST, modules: Modules) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""  # ruff refuses relative imports
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            if inner in modules:
                yield inner
            elif base in modules:
                yield base


def imported_names(source: str) -> Iterator[str]:
    for node in outline(source).imports:
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from (alias.name for alias in node.names)
