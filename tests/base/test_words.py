"""Words that every layer writes alike."""

from __future__ import annotations

import pytest

from workbench.base.errors import cut


@pytest.mark.parametrize("text", ["", "four", "exact", "a longer one"])
def test_what_is_cut_has_the_length_that_it_may_have(text: str) -> None:
    label = cut(text, 5)
    assert label == text or (len(label) == 5 and label.endswith("\u2026"))
    assert label.rstrip("\u2026") == text[: len(label.rstrip("\u2026"))]
    assert cut(text, len(text)) == text
