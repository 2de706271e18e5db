"""The modules of the package, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

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
        for node in _statements(source):
            for target in _targets(node, modules):
                if target != module:
                    yield Import(module, target, node.lineno)


@cache
def _statements(source: str) -> list[ast.Import | ast.ImportFrom]:
    """Return each import of a file, also of those that only a type checker reads."""
    tree = ast.walk(ast.parse(source))
    return [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom)]


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
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
