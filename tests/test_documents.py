"""The documents name what there is: paths, tests, and the headings that links lead to. The examples
of ARCHITECTURE.md are printed by its code, and the map has a line for every module."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from code_map import code_map, sentence

from tests.support import ROOT
from workbench import Opt, OptOps, Tensor, explore
from workbench.ir.text.program import to_expr, to_text
from workbench.pipeline import stages

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    ROOT / "tests" / "README.md",
    *sorted((ROOT / "docs" / "why").glob("*.md")),
]
NAMES = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS]

FROM_THE_ROOT = ("workbench/", "notebooks/", "scripts/", "bench/", "tests/", "docs/")
"""How a path begins that is not below the package."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_a_path_is_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for path, test in re.findall(r"`([\w/.*]+(?:/|\.py|\.js|\.ipynb))(?:::(\w+))?`", text):
        base = ROOT if path.startswith(FROM_THE_ROOT) else ROOT / "workbench"
        pattern = path.rstrip("/")
        paths = list(base.glob(pattern if "/" in path else f"**/{pattern}"))
        assert paths, f"{document.name} names {path}, which is not there"
        assert not test or f"def {test}(" in paths[0].read_text(encoding="utf-8"), test


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_a_link_leads_to_a_heading(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = document.parent / path if path else document
        assert linked.exists(), f"{document.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(anchor_of, headings), f"{document.name} links to {target}"


def anchor_of(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_lines_beside_an_addition_are_there() -> None:
    """A diff of CONTRIBUTING names files, lines that they have, and lines to add after these."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    diffs = re.findall(r"```diff\n(.*?)```", text, re.DOTALL)
    assert len(diffs) == 2
    for part in re.split(r"^\+\+\+ ", "".join(diffs), flags=re.MULTILINE)[1:]:
        name, *lines = part.splitlines()
        source = (ROOT / name).read_text(encoding="utf-8").splitlines()
        context = [line[1:] for line in lines if line.startswith(" ")]
        assert context and [line for line in context if line not in source] == [], name


def test_every_choice_is_in_the_index() -> None:
    why = ROOT / "docs" / "why"
    listed = re.findall(r"\]\((\w+\.md)\)", (why / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted({path.name for path in why.glob("*.md")} - {"README.md"})


def test_the_examples_of_the_levels_are_printed() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, _, section = text.partition("## The levels of the IR")
    section, _, _ = section.partition("\n## ")
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names = {"Tensor": Tensor, "explore": explore, "Opt": Opt, "OptOps": OptOps}
    names |= {"stages": stages, "to_expr": to_expr, "to_text": to_text}
    exec(*code, names)
    examples = re.findall(r"`(to_\w+\([^`]+\))`:\n\n```\n(.*?)\n```", section, re.DOTALL)
    assert len(examples) == 4
    for call, printed in examples:
        assert eval(call, names) == printed, call


def test_every_module_has_a_line_on_the_map() -> None:
    modules = [*(ROOT / "workbench").rglob("*.py"), *(ROOT / "workbench").rglob("*.js")]
    named = [path for path in modules if path.name != "__init__.py"]
    assert [path for path in named if not sentence(path)] == []
    lines = code_map().splitlines()
    assert len([line for line in lines if line.startswith("  ")]) == len(named)


def test_every_room_has_a_line_on_the_map() -> None:
    """But for devices and panels, whose own modules say what they are."""
    package = ROOT / "workbench"
    folders = {path.parent for path in package.rglob("*.py") if path.name != "__init__.py"}
    devices = {path.parent for path in package.glob("backends/*/*_device.py")}
    panels = {path.parent for path in package.glob("viz/page/panels/*/panel.js")}
    rooms = folders - devices - panels
    assert [room for room in sorted(rooms) if not sentence(room / "__init__.py")] == []


def test_the_map_goes_up(tmp_path: Path) -> None:
    (tmp_path / "viz" / "page").mkdir(parents=True)
    (tmp_path / "ir").mkdir()
    (tmp_path / "ir" / "__init__.py").write_text('"""The IR. More."""')
    (tmp_path / "ir" / "node.py").write_text('"""Nodes, e.g. x: of\nall kinds. More."""\n')
    (tmp_path / "viz" / "page" / "main.js").write_text("// Panels.\n// More.\n\nmain();\n")
    name = tmp_path.name
    assert code_map(package=tmp_path) == (
        f"{name}/ir/  (layer 1)  The IR.\n  node.py  Nodes, e.g. x: of all kinds.\n\n"
        f"{name}/viz/page/  (layer 12)\n  main.js  Panels."
    )
    assert code_map("ir", tmp_path) == code_map(package=tmp_path).split("\n\n")[0]
    assert code_map("nowhere", tmp_path) == ""
