"""What nobody means to hand in, and what a slip of the hand does: each is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import Context, Device, Opt, OptOps, SearchResult, Tensor, TinyJit, emulate, load
from workbench import explore as explore_
from workbench.base.errors import WorkbenchError

explore: Any = explore_  # as a notebook has it: unchecked
ARRAY = np.array([1, 2])


def product() -> Any:
    x = Tensor(np.ones((33, 17), np.float32))
    return (x @ x.permute(1, 0)).relu()


MISUSES: dict[str, Callable[[Any, Any], Any]] = {
    "a row named as the kernel's own": lambda ex, k: k.compare_times({"this": k}),
    "rows without names": lambda ex, k: k.compare_times({1: k}),
    "an array for a loop": lambda ex, k: k.apply(Opt(OptOps.STAGE, ARRAY, 2)),  # type: ignore[arg-type]
    "an opt that is text": lambda ex, k: k.apply("x" * 5000),
    "a pass that is a list": lambda ex, k: ex.why_not("add-zero", k.ast, []),
    "rules in a list": lambda ex, k: k.without(["form-fma"]),
    "panes in a list": lambda ex, k: explore(product(), show=[1]),
    "an array for a decision": lambda ex, k: ex.replan({ex.outputs[0]: ARRAY}),
    "no path to load from": lambda ex, k: SearchResult.load(None, k),
    "an exploration from a number": lambda ex, k: load(np.array(1)),  # type: ignore[arg-type]
    "no search at all": lambda ex, k: SearchResult.from_dict(np.array(1), k),  # type: ignore[arg-type]
    "an array for a device": lambda ex, k: Context(DEV=ARRAY),
    "a name for a number": lambda ex, k: Context(DEBUG="2"),
    "no function to capture": lambda ex, k: TinyJit(None),  # type: ignore[arg-type]
    "a device of a long name": lambda ex, k: Device["x" * 5000],
    "a number for a machine": lambda ex, k: explore(product(), target=5),
    "an exploration on the emulator": lambda ex, k: emulate(ex),
    "code that is a number": lambda ex, k: emulate(k, code=5),  # type: ignore[arg-type]
    "code in lines": lambda ex, k: emulate(k, code=["a"]),  # type: ignore[list-item]
    "the history of a number": lambda ex, k: emulate(k, history=1),  # type: ignore[arg-type]
    "the history of half a group": lambda ex, k: emulate(k, history=(0.5, 0)),  # type: ignore[arg-type]
    "the history of a name": lambda ex, k: emulate(k, history="x"),
    "half a step": lambda ex, k: emulate(k, history=True).step(1.5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MISUSES)
def test_it_is_refused_in_words(name: str) -> None:
    ex = explore(product())
    with pytest.raises(WorkbenchError) as caught:
        MISUSES[name](ex, ex.kernels[0])
    assert caught.value.because
    assert len(str(caught.value)) < 600, "what was wrong is cut, not repeated"


def test_a_file_of_brackets_is_no_search(tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    path.write_text("[" * 100_000)
    with pytest.raises(WorkbenchError, match="is not a saved search"):
        SearchResult.load(path, explore(product()).kernels[0])
