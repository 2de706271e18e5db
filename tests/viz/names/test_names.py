"""The user's names of arrays and values: in the plan, the loops, the decisions and the record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import to_builtins

from workbench import Tensor, explore
from workbench.viz import Exploration
from workbench.viz.record.record import build


def array(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def arguments(ex: Exploration) -> list[tuple[str, ...]]:
    return [kernel.names for kernel in ex.kernels]


def labels(ex: Exploration) -> list[str]:
    """The labels of the plan's arrays and values, as a page draws them."""
    return [n["label"] for n in to_builtins(build(ex, "first"))["plan"]["nodes"]]


def test_arrays_are_called_what_the_user_calls_them() -> None:
    a, b, c = array(64, 32), array(32, 48), array(48)
    y = (a @ b + c).relu()
    ex = explore(y)
    assert arguments(ex) == [("y", "a", "b", "c")]
    assert {"a", "b", "c", "y = max(\u00b7, 0.0)"} <= set(labels(ex))
    assert "array" not in labels(ex)
    record = to_builtins(build(ex, "first"))
    buffers = record["variants"][0]["loops"]["buffers"]
    assert [(b["name"], b["user"]) for b in buffers] == [
        ("p0", "y"), ("p1", "a"), ("p2", "b"), ("p3", "c"),
    ]  # fmt: skip
    assert "y p0 out" in str(ex.loops) and "b p2 in" in str(ex.loops)
    names = [row["name"] for row in record["plan"]["decisions"]]
    assert "y = matmul+bias+relu 64x48" in names and "a = copy to LLVM 64x32" in names
    nodes = record["nodes"]
    both = zip(nodes["op"], nodes["label"], strict=True)
    assert {label for op, label in both if op == "BUFFER"} == {"a", "b", "c", "y"}
    tuned = ex.kernels[0].optimized()
    assert tuned.applied_opts and tuned.names == ex.kernels[0].names


def test_names_do_not_depend_on_what_was_computed_before() -> None:
    a, b = array(16, 32), array(16, 32)
    (a + 1).realize()  # now memory of a copy of `a` is known
    b.realize()
    assert arguments(explore(a * b)) == [("", "a", "b")]
    hidden = a * b
    y = hidden.exp().sum(1) + hidden.sum(1)
    assert "hidden = " in " ".join(labels(explore(y)))
    a.realize()
    assert arguments(explore(y))[-1] == ("y", "a", "b")
    assert "hidden = " in " ".join(labels(explore(y)))


def test_a_value_of_several_names_has_all() -> None:
    embedding = head = array(16, 32)
    ex = explore(embedding * 2)
    assert arguments(ex) == [("", "embedding")]
    assert ex.lines.names(head.uop) == ("embedding", "head")
    one = embedding.exp()
    other = embedding.exp()  # the same value
    assert explore(one + 1).lines.names(other.uop) == ("one", "other")


def test_a_simplified_value_keeps_its_name() -> None:
    x = array(16, 128)
    mean = x.mean(1, keepdim=True)  # the division becomes a product
    ex = explore((x - mean).exp().sum(1), mean)
    named = {ex.lines.name(n) for o in ex.outputs for n in o.toposort()}
    assert {"x", "mean"} <= named
    assert any(label.startswith("mean = ") for label in labels(ex))


class Net:
    def __init__(self) -> None:
        self.weight = array(32, 32)

    def __call__(self, x: Tensor) -> Tensor:
        hidden = x @ self.weight
        return hidden.relu()

    def show(self, x: Tensor) -> Exploration:
        return explore(self(x))


def test_parts_of_objects_and_lists() -> None:
    net, x = Net(), array(16, 32)
    layers = {"first": array(32, 8)}
    ex = explore(net(x) @ layers["first"])
    assert {n for names in arguments(ex) for n in names} - {""} == {
        "x", "net.weight", "layers['first']",
    }  # fmt: skip
    assert arguments(net.show(x)) == [("", "x", "self.weight")]


def test_names_are_those_where_explore_is_called() -> None:
    x, w = array(16, 32), array(32, 8)

    def product(a: Tensor, b: Tensor) -> Exploration:
        return explore(a @ b)

    def show(t: Tensor) -> Exploration:
        return explore(t.exp())

    assert arguments(product(x, w)) == [("", "a", "b")]
    assert arguments(show(x @ w))[-1][0] == "" and "w" in arguments(show(x @ w))[0]
    assert explore(array(8) * 2).kernels[0].names == ("", ""), "it has no name"


def test_what_is_hidden_has_no_name() -> None:
    x = array(16)
    y = x * 2

    def shadows(x: float, t: Any) -> Exploration:
        return explore(t)

    assert arguments(shadows(1.0, y)) == [("t", "")], "here `x` is something else"


def test_planning_again_keeps_the_names() -> None:
    x = array(16, 128)
    y = (x.mean(1, keepdim=True) - x).exp().sum(1)
    ex = explore(y)
    stored = next(d.node for d in ex.decisions if not d.stored)
    again = ex.replan({stored: True})
    assert again.kernels[-1].names[0] == "y"
    assert {"x"} <= {n for names in arguments(again) for n in names}
    assert explore(y, without=("div-power-of-two",)).kernels[-1].names[0] == "y"


def test_arrays_of_one_shape_have_their_own_labels() -> None:
    """Nodes that read alike share a row of the record, but for the names of arrays."""
    left, right = array(8, 8), array(8, 8)
    product = left * right
    record = to_builtins(build(explore(product), "first"))
    nodes = record["nodes"]
    buffers = [n for n, op in enumerate(nodes["op"]) if op == "BUFFER"]
    parts = [record["readings"][nodes["reading"][n]]["parts"] for n in buffers]
    assert {tuple(names) for names in parts} == {("left",), ("right",), ("product",)}
    assert parts.count(["left"]) == 2, "where the user made it, and on the device"


CELLS = """import numpy as np
from workbench import Tensor, explore
a = Tensor(np.ones((4, 8), np.float32)); b = Tensor(np.ones((8,), np.float32))
---
a * b
---
ex = explore(_ + b)
---
a = a + 1
ex = explore(a * b)
"""
SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in sys.stdin.read().split("\\n---\\n"):
    shell.run_cell(cell, store_history=True).raise_error()
    if "ex" in shell.user_ns:
        print("!" + json.dumps(shell.user_ns["ex"].kernels[0].names))
"""


def test_names_in_cells(tmp_path: Path) -> None:
    """IPython's own variables (`_`, `_2`, `Out`) are nobody's names; `a` is what it is now."""
    env = os.environ | {"IPYTHONDIR": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, "-c", SHELL], input=CELLS, text=True, env=env,
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-2000:]
    rows = [json.loads(r[1:]) for r in process.stdout.splitlines() if r[:1] == "!"]
    assert rows == [["", "a", "b"], ["", "", "b"]]


@pytest.mark.parametrize("wide", [3, 300])
def test_names_are_looked_up_once_for_each_exploration(wide: int) -> None:
    """Objects that refer to each other, and many of them, end."""
    table: dict[str, Any] = {str(i): array(2) for i in range(wide)}
    table["self"] = table
    x = array(4)
    assert arguments(explore(x + 1)) == [("", "x")]
