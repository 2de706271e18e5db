"""The documents name what there is: paths, tests, and the headings that links lead to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import ROOT

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md")),
    *sorted((ROOT / "docs" / "why").glob("*.md")),
]
NAMES = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS]

FROM_THE_ROOT = ("workbench/", "notebooks/", "scripts/", "bench/", "tests/", "docs/")
"""How a path begins that is not below the package."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_a_path_is_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for path, test in re.findall(
        r"`([\w/.*]+(?:/|\.py|\.js|\.ipynb))(?:::(\w+))?`", text
    ):
        base = ROOT if path.startswith(FROM_THE_ROOT) else ROOT / "workbench"
        paths = list(base.glob(path.rstrip("/")))
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
            headings = re.findall(
                r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE
            )
            assert anchor in map(anchor_of, headings), (
                f"{document.name} links to {target}"
            )


def anchor_of(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_choice_is_in_the_index() -> None:
    why = ROOT / "docs" / "why"
    listed = re.findall(
        r"\]\((\w+\.md)\)", (why / "README.md").read_text(encoding="utf-8")
    )
    assert sorted(listed) == sorted(
        {path.name for path in why.glob("*.md")} - {"README.md"}
    )
