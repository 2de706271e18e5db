"""ES modules joined into one script: each becomes a function, in the order of imports.

Modules use a part of the language that can be joined without a parser: an import is
`import { a, b as c } from "./other.js";`, an export stands before a function, a class or a
constant. A name without export is local to its module.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function\*?|class|const) (\w+)\b)", re.MULTILINE)
_OTHERS = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """One file: `body` has neither imports nor exports; `imports` are [names, path]."""

    path: Path
    imports: tuple[tuple[str, Path], ...]
    exports: tuple[str, ...]
    body: str


def modules_of(entries: Sequence[Path]) -> list[Module]:
    """Return `entries` and the modules that they import, each after those that it imports.

    Errors: ValueError for a cycle of imports, and for an import that is written in another way.
    """
    listed: dict[Path, Module] = {}

    def visit(path: Path, readers: tuple[Path, ...]) -> None:
        if path in readers:
            circle = [*readers[readers.index(path) :], path]
            raise ValueError(" -> ".join(p.name for p in circle) + " is a cycle")
        if path not in listed:
            module = _read(path)
            for _, target in module.imports:
                visit(target, (*readers, path))
            listed[path] = module

    for entry in entries:
        visit(entry.resolve(), ())
    return list(listed.values())


def joined(modules: Sequence[Module]) -> str:
    """Return the modules as one script; `variable(path)` has the exports of a module.

    Errors: ValueError for two modules of one name.
    """
    names = Counter(variable(module.path) for module in modules)
    if double := [name for name, number in names.items() if number > 1]:
        raise ValueError(f"two modules are {' and '.join(double)}")
    return "\n".join(_as_function(module) for module in modules)


def variable(path: Path) -> str:
    """Return the name under which a joined script has the exports of a module: with its two
    folders, since each panel may have a `node/node.js`."""
    return "$" + "$".join([*path.parts[-3:-1], path.stem])


def _read(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    imports = [(names, (path.parent / target).resolve()) for names, target in _IMPORT.findall(text)]
    exports = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    if rest := _OTHERS.search(body):
        raise ValueError(f"{path.name}: cannot join {rest[0]!r}")
    return Module(path, tuple(imports), tuple(exports), body)


def _as_function(module: Module) -> str:
    head = "".join(
        f"const {{{names.replace(' as ', ': ')}}} = {variable(target)};\n"
        for names, target in module.imports
    )
    return (
        f"const {variable(module.path)} = (() => {{\n{head}{module.body}"
        f"return {{ {', '.join(module.exports)} }};\n}})();\n"
    )
