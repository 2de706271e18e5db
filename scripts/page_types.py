"""Write the types of the page's data from the schema to `record.d.ts`, and those of a panel's own
rows from its `panel.py` to `section.d.ts` in its folder: `python scripts/page_types.py`.

The page's modules import them in comments. A test compares the files with the schema.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec
from msgspec import inspect as types

from workbench.viz.page.panel import modules
from workbench.viz.schema import gpu, messages, plan, record, requests, run, variant

FILE = Path(__file__).parents[1] / "workbench/viz/page/record.d.ts"
SECTION = "section.d.ts"
SUBJECTS = (gpu, variant, plan, record, messages, requests, run)
HEAD = """\
// The types of messages between Python and the page. scripts/page_types.py writes this file from
// workbench/viz/schema; change them in that folder.
"""
SECTION_HEAD = """\
// The types of this panel's section. scripts/page_types.py writes this file from panel.py; change
// them in that file.
"""
_PLAIN: dict[type, str] = {
    types.IntType: "number",
    types.FloatType: "number",
    types.BoolType: "boolean",
    types.StrType: "string",
    types.NoneType: "null",
    types.AnyType: "unknown",
}


def files() -> dict[Path, str]:
    """Return the text of each file, by its path."""
    rows = {module: list(_structs(module)) for module in modules().values()}
    sections = {_path(module): _section(own) for module, own in rows.items() if own}
    return {FILE: _record()} | sections


def _path(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__).with_name(SECTION)


def _record() -> str:
    parts = [HEAD]
    for subject in SUBJECTS:
        parts += [_declared(struct) for struct in _structs(subject)]
    parts.append(_union("AnyRequest", "A request of a page.", _structs(requests)))
    parts.append(_union("Message", "A message of Python.", get_args(messages.Message)))
    parts.append(_results())
    return "\n\n".join(parts) + "\n"


def _section(own: Sequence[type[msgspec.Struct]]) -> str:
    """Return the types of a panel's own rows, which may contain rows of the record."""
    declared = "\n\n".join(_declared(struct) for struct in own)
    words = set(re.findall(r"\w+", declared))
    names = sorted(
        struct.__name__
        for subject in SUBJECTS
        for struct in _structs(subject)
        if struct.__name__ in words
    )
    listed = f'import type {{ {", ".join(names)} }} from "../../record.d.ts";'
    return "\n".join([SECTION_HEAD, *([listed, ""] if names else []), declared, ""])


def _union(name: str, doc: str, structs: Iterable[type[msgspec.Struct]]) -> str:
    parts = "".join(f"\n  | {struct.__name__}" for struct in structs)
    return f"/** {doc} */\nexport type {name} ={parts};"


def _results() -> str:
    """Return the interface of the results, by the names of the requests."""
    kinds = [kind for kind in _structs(requests) if issubclass(kind, requests.Request)]
    lines = [f"  {kind.__struct_config__.tag}: {kind.reply.__name__};" for kind in kinds]
    head = "/** The result of a request, by its name. */"
    return "\n".join([head, "export interface Results {", *lines, "}"])


def _structs(subject: Any) -> Iterator[type[msgspec.Struct]]:
    for value in vars(subject).values():
        is_struct = isinstance(value, type) and issubclass(value, msgspec.Struct)
        if not is_struct or value.__module__ != subject.__name__:
            continue
        if not value.__subclasses__():  # a base of others is never sent itself
            yield value


def _declared(struct: type[msgspec.Struct]) -> str:
    info = types.type_info(struct)
    assert isinstance(info, types.StructType)
    words = textwrap.wrap(inspect.getdoc(struct) or "", 90)
    doc = "\n".join(["/**", *(f" * {line}" for line in words), " */"])
    if info.array_like:
        fields = ", ".join(f"{f.name}: {_type(f.type)}" for f in info.fields)
        return f"{doc}\nexport type {struct.__name__} = [{fields}];"
    lines = [] if info.tag is None else [f'  {info.tag_field}: "{info.tag}";']
    for field in info.fields:
        mark = "" if field.required else "?"
        lines.append(f"  {field.encode_name}{mark}: {_type(field.type)};")
    return "\n".join([doc, f"export interface {struct.__name__} {{", *lines, "}"])


def _type(info: types.Type) -> str:
    if type(info) in _PLAIN:
        return _PLAIN[type(info)]
    if isinstance(info, types.Metadata):
        return _type(info.type)
    if isinstance(info, types.LiteralType):
        return " | ".join(f'"{value}"' for value in info.values)
    if isinstance(info, types.UnionType):
        return " | ".join(dict.fromkeys(_type(part) for part in info.types))
    if isinstance(info, types.ListType):
        return f"Array<{_type(info.item_type)}>"
    if isinstance(info, types.TupleType):
        return f"[{', '.join(map(_type, info.item_types))}]"
    if isinstance(info, types.DictType):
        return f"Record<string, {_type(info.value_type)}>"
    assert isinstance(info, types.StructType), f"no type of the page for {info}"
    return info.cls.__name__


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
