"""The page's types are those of the schema, and of each panel's own rows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "scripts" / "page_types.py"


def test_the_types_of_the_page_are_those_of_the_schema() -> None:
    spec = importlib.util.spec_from_file_location("page_types", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = script.FILE.parent
    own = set(folder.rglob(script.SECTION)) | {script.FILE}
    known = {path: path.read_text(encoding="utf-8") for path in own}
    assert known == script.files(), "run python scripts/page_types.py"
