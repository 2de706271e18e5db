"""Text fitted to a terminal: nothing is lost, nothing is wider than the window."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.base import terminal
from workbench.base.terminal import Displayed
from workbench.measure.kernel_time import seconds_text

LINES = st.text(st.sampled_from("ab. |"), max_size=300)


@given(st.lists(LINES, max_size=4), st.integers(1, 90))
def test_a_fold_loses_nothing(lines: list[str], width: int) -> None:
    text = "\n".join(lines)
    folded = terminal.fold(text, width)
    assert folded.replace(" ", "").replace("\n", "") == text.replace(" ", "").replace("\n", "")
    assert all(len(line) <= max(width, terminal.LEAST_WIDTH) for line in folded.split("\n"))


def test_the_rest_of_a_line_stands_further_in() -> None:
    text = "  loop g0 of 64 steps, and then some\nshort"
    assert terminal.fold(text, 24) == ("  loop g0 of 64 steps,\n      and then some\nshort")
    assert terminal.fold("x" * 50, 20) == f"{'x' * 20}\n    {'x' * 16}\n    {'x' * 14}"


class Value(Displayed):
    def __str__(self) -> str:
        return "[bold]x[/bold] " * 10


def test_where_no_prompt_is_the_text_is_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Value()._repr_mimebundle_() == {"text/plain": str(Value())}
    shell = SimpleNamespace(kernel=None)
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    monkeypatch.setenv("COLUMNS", "30")
    text = Value()._repr_mimebundle_()["text/plain"]
    assert max(map(len, text.split("\n"))) <= 30 and "\x1b" not in text
    monkeypatch.delenv("COLUMNS")
    assert Value()._repr_mimebundle_() == {"text/plain": str(Value())}
    shell.kernel = object()
    assert not terminal.is_prompt(), "a notebook"


@pytest.mark.parametrize("seconds", [3.4e-9, 3.4e-6, 3.4e-3, 3.4])
def test_a_time_of_any_unit_has_its_colour(seconds: float) -> None:
    text = seconds_text(seconds)
    (style,) = [name for pattern, name in terminal.STYLES if re.search(pattern, text)]
    assert style == "cyan"


def test_rich_prints_the_text() -> None:
    rich = pytest.importorskip("rich.console", reason="rich is not installed")
    with rich.Console(width=40).capture() as capture:
        rich.Console(width=40, file=sys.stdout).print(Value())
    console = rich.Console(width=40, color_system=None)
    with console.capture() as capture:
        console.print(Value())
    assert capture.get().split() == str(Value()).split(), "it is no markup"
