"""Values of nodes for a page: of the right kernel, as tables that Python's arrays agree with."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.check.test_bisect import BAD, with_rule
from tests.viz.record.support import plain
from tests.viz.session.support import ask, done, session_of
from tests.viz.support import array
from workbench.check import node_values as module
from workbench.ir.node.ops import Ops
from workbench.ir.rules.movement import TENSOR_RULES
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.session.handlers.node_values import MOST_NUMBERS, MOST_ROWS
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")


def node_of(session: Session, op: str, place: int = 0) -> int:
    """Return the first node of a pass's end state with that op."""
    ops, sources = (plain(session.record)["nodes"]["op"], plain(session.record)["nodes"]["src"])
    stack = list(plain(session.record)["passes"][place]["after"])
    while stack:
        node = stack.pop()
        if ops[node] == op:
            return node
        stack.extend(sources[node])
    raise AssertionError(op)


def pass_of(session: Session, name: str) -> int:
    return [p["name"] for p in plain(session.record)["passes"]].index(name)


def test_values(session: Session) -> None:
    a = (np.arange(48, dtype=np.float32) % 7 - 3).reshape(6, 8)
    b = (np.arange(32, dtype=np.float32) % 7 - 3).reshape(8, 4)
    tensors = pass_of(session, "simplify-tensor")
    here = {"variant": None, "pass": tensors}
    node = node_of(session, "MAX", tensors)
    reply = done(session, "values", **here, node=node, at={})
    want = np.maximum(a @ b + b.reshape(-1)[:4], 0)
    assert reply["shape"] == [6, 4] and reply["value"] == want.reshape(-1)[:16].tolist()
    assert (reply["min"], reply["max"], reply["nan"]) == (want.min(), want.max(), 0)
    done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    done(session, "code", variant=1, language="LLVM")
    place = plain(session.row(1))["passes"][0]
    here = {"variant": 1, "pass": place}
    node = node_of(session, "REDUCE", place)
    for g0, u0 in ((0, 0), (5, 3)):
        at = {"g0": g0, "u0": u0, "r0": 3}  # r0 is closed here: the page sends it all the same
        reply = done(session, "values", **here, node=node, at=at)
        assert reply["value"] == (a @ b)[g0, u0] and reply["shape"] == []
        assert (reply["min"], reply["max"]) == ((a @ b).min(), (a @ b).max())
    error = ask(session, "values", **here, node=node, at={"g0": 6})["error"]
    assert error["what"] == "there is no position 6 along g0"
    sink = plain(session.record)["passes"][place]["after"][0]
    assert not ask(session, "values", **here, node=sink, at={})["ok"]


def test_values_of_an_index_before_there_is_a_kernel() -> None:
    with session_of(explore(array(6, 8).flip(0) * 2)) as session:
        place = pass_of(session, "simplify-index")
        here = {"variant": None, "pass": place}
        (node, *_) = plain(session.record)["passes"][place]["after"]
        (node, *_) = plain(session.record)["nodes"]["src"][node]
        reply = done(session, "values", **here, node=node, at={"_0_0": 1, "_0_1": 3})
        assert (reply["value"], reply["min"], reply["max"]) == ((5 - 1) * 8 + 3, 0, 47)


def three_kernels() -> Any:
    """Kernels of one shape, whose nodes are partly the same ones."""
    x = array(6, 6)
    h = (x @ x.transpose()).contiguous()
    return explore((h.softmax() + h.sum()).contiguous() * 2 + x)


def test_values_are_of_the_kernel_that_the_node_is_of() -> None:
    """The pass rangeify has the graphs of all kernels: argument 1 is another one in each."""
    ex = three_kernels()
    items = [item for item in ex.items if item.kernel is not None]
    with session_of(ex) as session:
        place = pass_of(session, "rangeify")
        for number, root in enumerate(session.record.passes[place].after):
            (store,) = (n for n in session.recorder.node(root).toposort() if n.op is Ops.STORE)
            names = range(len(session.record.nodes.op))
            node = next(n for n in names if session.recorder.node(n) is store.src[1])
            want = ex.values(items[number].nodes[0])
            reply = done(session, "values", variant=None, node=node, at={}, **{"pass": place})
            assert reply["max"] == pytest.approx(want.max)
            table = table_of(session, node=node, variant=None)
            assert table["kernel"] == number
            assert table["summary"]["max"] == pytest.approx(want.max)


def table_of(session: Session, **fields: Any) -> Any:
    every = {"variant": 0, "node": None, "rows": "", "columns": "", "at": {}, "first": [0, 0]}
    return done(session, "table", **every | fields)


def test_a_table_of_a_result_has_its_numbers() -> None:
    values = np.random.default_rng(0).standard_normal((5, 7, 9)).astype(np.float32)
    values[0, 0, 0], values[1, 2, 3], values[4, 6, 8] = np.nan, np.inf, -np.inf
    with session_of(explore(Tensor(values) * 2)) as session:
        table = table_of(session)
        json.dumps(table, allow_nan=False)
        assert [(a["name"], a["size"]) for a in table["axes"]] == [("0", 5), ("1", 7), ("2", 9)]
        assert (table["rows"], table["columns"], table["at"]) == ("1", "2", {"0": 0})
        numbers = np.array([float(v) for v in table["window"]["values"]])
        np.testing.assert_array_equal(numbers.reshape(7, 9), (values * 2)[0])
        summary = table["summary"]
        finite = (values * 2)[np.isfinite(values)]
        assert (summary["size"], summary["nan"], summary["infinite"]) == (315, 1, 2)
        assert (summary["min"], summary["max"]) == (finite.min(), finite.max())
        assert sum(summary["counts"]) == finite.size
        table = table_of(session, rows="2", columns="0", at={"1": 6})
        numbers = np.array([float(v) for v in table["window"]["values"]])
        np.testing.assert_array_equal(numbers.reshape(9, 5), (values * 2)[:, 6].T)
        assert table["picture"]["marks"][-1] & 4, "minus infinity"
        for wrong in ({"rows": "7"}, {"rows": "1", "columns": "1"}, {"at": {"0": 5}}):
            fields = {"variant": 0, "node": None, "rows": "", "columns": "", "at": {}} | wrong
            assert not ask(session, "table", first=[0, 0], **fields)["ok"], wrong


def test_a_large_table_is_sent_in_part() -> None:
    values = np.arange(300 * 500, dtype=np.float32).reshape(300, 500)
    with session_of(explore(Tensor(values) + 0.5)) as session:
        table = table_of(session, first=[290, 130])
        picture, window = table["picture"], table["window"]
        assert (picture["height"], picture["width"], picture["block"]) == (300, 500, [4, 6])
        means = np.array(picture["means"]).reshape(-1, picture["columns"])
        assert means[0, 0] == pytest.approx((values + 0.5)[:4, :6].mean())
        columns = window["columns"]
        assert len(window["values"]) <= MOST_NUMBERS
        assert window["first"] == [300 - MOST_ROWS, 130]
        part = np.array(window["values"]).reshape(-1, columns)
        np.testing.assert_array_equal(part, (values + 0.5)[-MOST_ROWS:, 130 : 130 + columns])


@pytest.mark.parametrize("shape", [(), (4,), (0, 3), (3, 0)])
def test_tables_of_few_axes_and_of_no_element(shape: tuple[int, ...]) -> None:
    with session_of(explore(Tensor(np.ones((4, 4), np.float32)).sum())) as session:
        node = session.recorder.exploration.outputs[0]
        assert table_of(session)["window"]["values"] == [16.0] and node.shape == ()
    empty = Tensor(np.ones(shape, np.float32))
    with session_of(explore(empty + 1, Tensor(np.ones(2, np.float32)) + 1)) as session:
        place = next(
            n for n in range(len(session.record.nodes.op))
            if session.recorder.node(n) is session.recorder.exploration.outputs[0]
        )  # fmt: skip
        table = table_of(session, node=place)
        assert table["summary"]["size"] == empty.numpy().size
        assert len(table["window"]["values"]) == empty.numpy().size


def test_axes_of_too_many_values_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = array(6, 8), array(8, 4)
    with session_of(explore(a @ b)) as session:
        monkeypatch.setattr(module, "MOST_STEPS", 100)
        place = pass_of(session, "simplify-kernel")
        node = node_of(session, "MUL", place)
        multiplied = {"node": node, "at": {"g0": 5}}
        table = table_of(session, **multiplied)
        assert table["part"] == ["g0"] and table["at"]["g0"] == 5
        numbers = np.array(table["window"]["values"]).reshape(4, 8)
        np.testing.assert_array_equal(numbers, a.numpy()[5] * b.numpy().T)
        assert [axis["name"] for axis in table["axes"]] == ["g0", "g1", "r0"]


def test_large_whole_numbers_are_not_rounded() -> None:
    values = np.array([[2**60 + 1, 3]], np.int64)
    with session_of(explore(Tensor(values) + 2)) as session:
        table = table_of(session)
        assert table["window"]["values"] == [str(2**60 + 3), 5]
        assert table["summary"]["max"] == str(2**60 + 3)


def test_the_first_value_that_differs_is_a_node_of_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = array(6, 8)
    with session_of(explore((a.relu() * 0.5).exp() + 1)) as session:
        reply = done(session, "check_nodes")
        assert reply["text"].startswith("all ") and reply["node"] is None
    with with_rule(TENSOR_RULES, BAD, monkeypatch):
        with session_of(explore((a.relu() * 0.5).exp() + 1)) as session:
            reply = done(session, "check_nodes")
            node = session.recorder.node(reply["node"])
    assert node.op is Ops.MUL and "instead of" in reply["text"]
    right = np.maximum(a.numpy(), 0)
    assert right[tuple(reply["at"])] == right.max()
