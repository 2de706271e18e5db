"""The page's words of a state are Python's, and it knows no op, opt or kind of axis by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from check_page import OFFLINE, deno

from tests.agreement.expressions import case
from tests.support import ROOT
from tests.viz.record.support import plain
from tests.viz.support import array, matmul, softmax
from workbench import explore
from workbench.backends.device import Device
from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.opt.opt import OptOps
from workbench.ir.text.program import to_expr
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.page import document as page
from workbench.viz.record.about import language_rows
from workbench.viz.record.record import Recorder

MOST_STATES = 500


def convolution() -> Exploration:
    image, weights = array(1, 2, 9, 9), array(3, 2, 3, 3)
    return explore(image.conv2d(weights).relu())


def signs() -> Exploration:
    x = array(8, 9)
    return explore(-x - 3 - (x < 0.5).where(x, -x) % 2, x.argmax(axis=1))


def random() -> Exploration:
    return explore(*[Tensor(case(seed).run("LLVM")[0]) for seed in range(8)])


@pytest.mark.parametrize("make", [matmul, softmax, convolution, signs, random])
def test_words_in_the_page_are_those_of_python(
    make: Callable[[], Exploration], tmp_path: Path
) -> None:
    recorder = Recorder(make())
    recorder.first()
    for _ in recorder.rest():
        pass
    record = plain(recorder.record)
    roots = {
        root: None
        for row in record["passes"]
        for states in (row["before"], row["after"], [step[3] for step in row["rewrites"]])
        for root in states
        if root >= 0 and len(row["before"]) == 1
    }
    states = [[n, to_expr(recorder.node(n))] for n in list(roots)[:MOST_STATES]]
    assert len(states) > 20
    data = tmp_path / "states.json"
    parts = {name: record[name] for name in ("nodes", "readings")}
    data.write_text(json.dumps(parts | {"states": states}), encoding="utf-8")
    script = "tests/viz/page/agreement.js"
    allowed = (*OFFLINE, "--no-check", f"--allow-read={data}")
    assert deno("run", "--quiet", *allowed, script, data) == 0


def test_the_page_knows_no_op_by_name() -> None:
    """What a node is, the record says. A name in capitals may still be a heading."""
    known = {*Ops.__members__, *AxisType.__members__, *(str(op) for op in OptOps)}
    quoted = re.compile(r"""(["'`])([A-Z][A-Z0-9_]*|[a-z])\1""")
    keys = re.compile(r"\b([A-Z][A-Z0-9_]{2,}):")
    found = []
    for path in page.FOLDER.rglob("*.js"):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text("utf-8"), flags=re.S)
        words = {m[2] for m in quoted.finditer(text)} | set(keys.findall(text))
        found += [(path.relative_to(ROOT).as_posix(), w) for w in words & known]
    assert found == []


def test_the_page_names_no_device_dtype_or_language() -> None:
    types = {d.name for d in vars(dtypes).values() if isinstance(d, DType)}
    languages = {row.name for row in language_rows()}
    known = {*types, *Device.names(), *languages} - {"index"}
    assert {"float32", "LLVM", "asm"} <= known
    found = [
        (path.relative_to(ROOT).as_posix(), quoted)
        for path in page.FOLDER.rglob("*.js")
        for quoted in re.findall(r"""["'`]([\w.-]+)["'`]""", path.read_text("utf-8"))
        if quoted in known
    ]
    assert found == []


def test_the_page_writes_no_python() -> None:
    """What it copies, the record has (tests/viz/record/test_recipe.py)."""
    python = re.compile(r"""\bex[.=]|\bex = |print\(|explore\(|\blambda\b|without=\(""")
    comments = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
    found = [
        (path.relative_to(ROOT).as_posix(), match[0])
        for path in page.FOLDER.rglob("*.js")
        for match in python.finditer(comments.sub("", path.read_text("utf-8")))
    ]
    assert found == []
