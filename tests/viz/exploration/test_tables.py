"""Tables of an exploration, and selections: what is not there is said in words."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import Tensor, WorkbenchError, explore


@pytest.mark.parametrize("name", ["kernels", "passes", "decisions", "variants"])
@pytest.mark.parametrize("place", [999, -999, "nothing", 1.5, None])
def test_a_row_that_is_not_there_is_said(name: str, place: Any) -> None:
    """It is what a tuple raises, and what a dict raises, too."""
    table = getattr(explore(Tensor([1.0, 2.0]) + 1), name)
    kinds = (WorkbenchError, IndexError, KeyError, TypeError)
    for kind in kinds:
        with pytest.raises(kind) as refusal:
            table[place]
    what, because, hint = str(refusal.value).splitlines()
    assert what == f"there is no {name}[{place!r}]"
    assert because.startswith("  because  they are numbered 0")
    expression = hint.removeprefix("  try      ex.")
    is_named = name == "variants" and place == "nothing"
    assert ("named(" in expression) is is_named
    assert eval(expression, {name: table}) in table
    assert table[0] == [*table][0] and table[-1:] == (table[-1],)


def test_an_empty_table_has_no_example() -> None:
    ex = explore(Tensor([1.0, 2.0]).realize())
    with pytest.raises(IndexError, match="because  there are none"):
        ex.kernels[0]
    assert "try" not in str(pytest.raises(IndexError, lambda: ex.kernels[0]).value)


@pytest.mark.parametrize(
    ("value", "hint"),
    [("x", 'mode="board"'), ("plan", "mode='plan'"), (0, "kernel=0"), (None, "mode=")],
)
def test_what_is_selected_needs_its_name(value: Any, hint: str) -> None:
    ex = explore(Tensor([1.0, 2.0]) + 1)
    for kind in (WorkbenchError, TypeError, KeyError):
        with pytest.raises(kind) as refusal:
            ex.select(value)
    text = str(refusal.value)
    assert text.startswith(f"cannot select {value!r}\n  because  a value needs its name: mode,")
    assert f"try      ex.select({hint}" in text
