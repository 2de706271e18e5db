"""An exploration in a file: what comes back is what was saved, and nothing of a stranger's runs."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import count
from tests.tools.compiler import needs_c
from tests.viz.record.support import broken, plain, timeless
from tests.viz.schema.test_wire import spoiled_bytes
from tests.viz.session.support import Page, ask, done, session_of
from tests.viz.support import array, matmul, softmax
from workbench import Tensor, explore, load
from workbench.base.errors import WorkbenchError
from workbench.ir.node.ops import Ops
from workbench.ir.text.parser import parse
from workbench.viz import Exploration
from workbench.viz.compare import compare
from workbench.viz.page.panel import panes
from workbench.viz.record.record import build
from workbench.viz.session.session import Session

DATA = Path(__file__).parents[1] / "data"


def helper(x: Tensor) -> Tensor:
    return (x * 2).exp()


def lines_of_helpers() -> Exploration:
    return explore(helper(array(4, 6)) + helper(array(6)))


def forced() -> Exploration:
    x = array(16, 8)
    ex = explore((x.exp() @ array(8, 4)).relu())
    node = next(d.node for d in ex.decisions if d.node.op is Ops.EXP)
    return ex.replan({node: True})


def computed_before() -> Exploration:
    inner = array(8, 8) @ array(8, 8)
    outer = inner.relu()
    inner.realize()
    return explore(outer)


def two_devices() -> Exploration:
    other = Tensor(np.ones((3, 4), np.float32), device="PYTHON")
    return explore(array(6, 8).sum(1), other * 2)


def gradients() -> Exploration:
    x, w = array(8, 6), array(6, 6)
    loss = helper((x @ w).tanh() @ w).mean()
    return explore(loss, *loss.gradient(w))


EXPLORATIONS: dict[str, Callable[[], Exploration]] = {
    "matmul": matmul,
    "softmax": softmax,
    "lines of helpers": lines_of_helpers,
    "forced": forced,
    "computed before": computed_before,
    "two devices": two_devices,
    "rules off": lambda: explore((array(4, 6) * 2).sum(), without=("add-zero",)),
    "gradients": gradients,
    "one pane": lambda: explore(array(4, 6).exp(), show="loops"),
    "constants": lambda: explore(Tensor(2.0) + 1, Tensor.arange(6)),
    "odd numbers": lambda: explore(
        array(3) + Tensor([float("inf"), float("nan"), -0.0], device="LLVM")
    ),
}


def saved(ex: Exploration, folder: Path) -> Path:
    return ex.save(folder / "saved.json")


def compared(ex: Exploration) -> Any:
    """What of a record is the same wherever it is built."""
    record = timeless(plain(build(ex)))
    record.pop("origin", None)
    return record


@pytest.mark.parametrize("name", EXPLORATIONS)
def test_the_record_and_every_pane_come_back(name: str, tmp_path: Path) -> None:
    ex = EXPLORATIONS[name]()
    other = load(saved(ex, tmp_path))
    assert compared(other) == compared(ex)
    for pane, panel in panes().items():
        there, here = str(other.pane(pane)), str(ex.pane(pane))
        if panel.has_steps and name != "constants":
            # it runs kernels, and there are no data in a file
            not_run = "not run: the data of its tensors are not here"
            assert not_run in there and "reads p" not in there
            assert {*there.split("\n")} - {not_run} <= {*here.split("\n")}
        elif pane == "values" and name != "constants":
            assert "the data of its tensors are not here" in there
        else:
            assert there == here
    assert other.headline == ex.headline and other.show == ex.show
    assert [k.line for k in other.kernels] == [k.line for k in ex.kernels] or all(
        str(a.line) == str(b.line) for a, b in zip(other.kernels, ex.kernels, strict=True)
    )
    again = load(other.save(tmp_path / "again.json"))
    assert compared(again) == compared(ex), "it can be saved and loaded again"


@pytest.fixture
def variants_folder(nothing_saved: Path) -> Path:
    return nothing_saved / "workbench" / "variants"


def tried(session: Session) -> None:
    """Try what a person tries."""
    session.complete()
    first = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    second = done(session, "apply", variant=first, opt='UNROLL("r0", 2)')["variant"]
    done(session, "note", variant=second, text="the best so far")
    done(session, "pin", variant=first)
    done(session, "measure", variants=[first, second], cold=False)
    done(session, "check", variant=second)
    rule = done(session, "rule_off", kernel=0, rule="form-fma", on=False, of=second)
    assert rule["variant"] is not None
    done(session, "edit", variant=first, language="C", text=_c_of(session, first))


def _c_of(session: Session, variant: int) -> str:
    (code,) = [c for c in session.row(variant).code if c.language == "C"]
    return "\n".join(["// mine", *code.lines])


@needs_c
def test_what_was_tried_comes_back(variants_folder: Path, tmp_path: Path) -> None:
    ex = matmul()
    with session_of(ex) as session:
        ex.display.session = session
        tried(session)
        path, before = saved(ex, tmp_path), plain(session.record)
        results = str(ex.results)
    stored = sorted(p.read_text() for p in variants_folder.glob("*.json"))
    other = load(path)
    loaded: Session = other.display.session
    page = Page(loaded)
    names = ("kernel", "parent", "opts", "note", "check", "rules_off", "axes", "steps")
    rows = loaded.record.variants
    assert [{n: row[n] for n in names} for row in plain(loaded.record)["variants"]] == [
        {n: row[n] for n in names} for row in before["variants"]
    ]
    assert loaded.record.pinned == before["pinned"]
    for row, was in zip(rows, before["variants"], strict=True):
        assert row.edited == was["edited"]
        assert row.name == (f"edited: {was['name']}" if row.edited else was["name"])
        assert (row.timing is None) == (was["timing"] is None)
        if row.timing is not None:
            assert row.timing.earlier and row.timing.median_s == was["timing"]["median_s"]
    text = str(other.results).replace(", measured earlier", "")
    assert text.replace("edited: edited", "edited") == results
    loaded.complete()
    assert len(rows) == len(before["variants"]), "the default opts are there already"
    done(loaded, "apply", variant=0, opt='UPCAST("g0", 2)')
    done(loaded, "measure", variants=[0], cold=False)
    timing = loaded.row(0).timing
    assert timing is not None and timing.random_inputs and not timing.earlier
    refusal = ask(loaded, "check", variant=0)["error"]
    assert "not here" in refusal["because"]
    assert "saved.json" in loaded.record.origin and "random" in loaded.record.origin
    assert stored == sorted(p.read_text() for p in variants_folder.glob("*.json"))
    assert page.record == plain(loaded.record) and broken(page.record) == []
    html = other.to_html(tmp_path / "page.html").read_text()
    assert "workbench" in html


@needs_c
def test_edited_source_of_a_stranger_is_shown_and_never_run(
    variants_folder: Path, tmp_path: Path
) -> None:
    ex = matmul()
    with session_of(ex) as session:
        ex.display.session = session
        tried(session)
        path = saved(ex, tmp_path)
    data = json.loads(path.read_text())
    (edited,) = [v for v in data["variants"] if v["saved"]["edited"]]
    edited["saved"] |= {"name": "plain", "timings": {}}
    path.write_text(json.dumps(data))
    loaded: Session = load(path).display.session
    (place,) = [v for v, row in enumerate(loaded.record.variants) if row.edited]
    assert loaded.row(place).name == "edited: plain"
    assert loaded.row(place).code[0].lines[0] == "// mine"
    for request in (
        {"do": "measure", "variants": [0, place], "cold": False},
        {"do": "check", "variant": place},
    ):
        refusal = ask(loaded, **request)["error"]
        assert "edited elsewhere" in refusal["what"]
    text = _c_of(loaded, place)
    own = done(loaded, "edit", variant=0, language="C", text=text)["variant"]
    assert loaded.row(own).error is None and loaded.row(own).timing is not None


@needs_c
def test_times_of_another_machine_stand_apart(variants_folder: Path, tmp_path: Path) -> None:
    ex = matmul()
    with session_of(ex) as session:
        ex.display.session = session
        tried(session)
        path = saved(ex, tmp_path)
    path.write_text(path.read_text().replace('"cores": ', '"cores": 10'))
    other = load(path)
    loaded: Session = other.display.session
    timings = [row.timing for row in loaded.record.variants if row.timing]
    assert timings and all("cores" in timing.machine for timing in timings)
    loaded.complete()
    text = str(other.results)
    assert "of peak" not in text and "measured earlier, on " in text


def test_what_needs_data_is_refused_in_words(tmp_path: Path) -> None:
    other = load(saved(matmul(), tmp_path))
    kernel = other.kernels[0]
    needs: list[Callable[[], object]] = [
        kernel.check, kernel.run, kernel.bisect, other.bisect,
        lambda: kernel.values(kernel.ast.src[0]), lambda: other.values(other.outputs[0]),
        lambda: other.tensors[0].numpy(),
    ]  # fmt: skip
    for call in needs:
        with pytest.raises(WorkbenchError, match="not here"):
            call()
    tuned = kernel.apply(*kernel.legal_opts()[:1])
    assert tuned.compile("C").source and tuned.counts
    assert "on random inputs" in str(tuned.time(budget_s=0.01))
    assert "random" not in str(matmul().kernels[0].time(budget_s=0.01))


def test_an_expression_of_no_data_needs_none(tmp_path: Path) -> None:
    # a range of its own: one that another test has computed is read from its memory
    other = load(saved(explore(Tensor.arange(7, 4013, 1337) * 2), tmp_path))
    assert other.kernels[0].check().ok
    assert "random" not in other.origin.words


def test_a_file_names_no_folder_and_has_no_data(tmp_path: Path) -> None:
    x = Tensor(np.full((4, 4), 1234 + 0.5, np.float32), device="LLVM")
    text = saved(explore(x.exp() + 1), tmp_path).read_text()
    assert "1234.5" not in text and str(Path(__file__).parent) not in text
    assert len(text) < 3000


# files that are none


def spoil(path: Path, change: Callable[[Any], Any]) -> None:
    data = json.loads(path.read_text())
    path.write_text(json.dumps(change(data) or data))


def graph_of(text: str) -> Callable[[Any], None]:
    return lambda data: data.update(graph=text)


GRADIENT_OF_NONE = {
    "root": 0, "seed": 0, "gradients": [[0, 9999]], "shares": [], "seconds": 0.0,
}  # fmt: skip
WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another version": (lambda d: d.update(v=2), "of form 2, and this version reads 1"),
    "another kind": (lambda d: d.update(format="x"), "not an exploration"),
    "a list": (lambda d: [1], "not an exploration"),
    "a field that is not known": (lambda d: d.update(extra=1), "damaged.*extra"),
    "a field that is missing": (lambda d: d.pop("graph") and None, "damaged.*graph"),
    "a field of another type": (lambda d: d.update(devices=3), "damaged.*devices"),
    "no tensor": (lambda d: d.update(devices=[]), "damaged.*no tensor"),
    "no graph": (graph_of(""), "damaged"),
    "a graph without a root": (graph_of("v0 = IOTA.int32 {6}"), "damaged.*no root"),
    "an op of kernels": (graph_of('g0 = RANGE.index 4 {"g0", GLOBAL}\nSINK g0'), "damaged"),
    "shapes that do not fit": (
        graph_of("v0 = IOTA.int32 {6}\nv1 = RESHAPE.int32 v0 {7,}\nSINK v1"), "damaged"
    ),
    "an arg of no sense": (
        graph_of("v0 = IOTA.int32 {6}\nv1 = PERMUTE.int32 v0 {None}\nSINK v1"), "damaged"
    ),
    "Python": (graph_of('SINK {__import__("os")}'), "damaged"),
    "other roots": (lambda d: d.update(forced=[True]), "damaged"),
    "lines of other nodes": (lambda d: d["node_lines"].append([0]), "damaged"),
    "a line that is not there": (
        lambda d: d.update(node_lines=[[99] for _ in d["node_lines"]]), "damaged"
    ),
    "a line of a model that is not there": (lambda d: d.update(line=99), "damaged"),
    "a line below 0": (
        lambda d: d.update(node_lines=[[-1] for _ in d["node_lines"]]), "damaged"
    ),
    "a line of itself": (lambda d: d["lines"][0].update(inner=[0]), "damaged"),
    "names of other nodes": (
        lambda d: d["node_names"].append([]), r"it has names of \d+ nodes, and there are"
    ),
    "a phase that there is not": (
        lambda d: d.update(node_phases=["x" for _ in d["node_lines"]]), "phase of training"
    ),
    "a gradient of no node": (
        lambda d: d.update(gradients=[GRADIENT_OF_NONE]), "a node that is not there"
    ),
    "half of a character": (lambda d: d.update({"\ud800": 1}), "half of a character"),
    "a pane that there is not": (lambda d: d.update(show="x"), "pane 'x', and there are accesses"),
    "a rule that there is not": (lambda d: d.update(rules_off=["x"]), "no rule 'x'"),
    "a device that there is not": (lambda d: d.update(devices=["x"]), "no device 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_in_words(name: str, tmp_path: Path) -> None:
    path = saved(matmul(), tmp_path)
    change, words = WRONG[name]
    spoil(path, change)
    with pytest.raises(WorkbenchError, match=words) as refusal:
        load(path)
    assert refusal.value.what.startswith("cannot load") and refusal.value.hint


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
def test_a_file_that_is_cut_off(part: float, tmp_path: Path) -> None:
    path = saved(matmul(), tmp_path)
    text = path.read_text()
    path.write_text(text[: int(part * len(text))])
    because = "cut off or damaged" if part else "not JSON"
    with pytest.raises(WorkbenchError, match=because):
        load(path)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = saved(matmul(), tmp_path)
    path.write_text('{"graph": "", ' + path.read_text()[1:])
    with pytest.raises(WorkbenchError, match="it has 'graph' twice"):
        load(path)


NUMBERS = ["-1", "0", "1", "7", str(1 << 31), str(1 << 63), "9" * 400, "nan", "None", "()"]
NOT_OURS = re.compile(r"zip\(|out of range|has no attribute|codec|unhashable|supported")
"""Words of Python's own errors."""


def changed_graph(text: str, draw: random.Random) -> str:
    """Return the text of a graph in which a few words are others of it, or lines are elsewhere."""
    lines = text.split("\n")
    for _ in range(draw.choice([1, 1, 2, 3])):
        at = draw.randrange(len(lines))
        name, equals, rest = lines[at].rpartition(" = ")
        words = re.split(r"(\w+)", rest)
        place = draw.randrange(1, len(words), 2) if len(words) > 1 else 0
        ops = [op.name for op in Ops] if words[place].isupper() else []
        before = re.findall(r"^(\w+) =", "\n".join(lines[:at]), re.MULTILINE)
        others = NUMBERS if words[place].isdigit() else ops or before or ["float16"]
        match draw.randrange(8):
            case 0:
                del lines[at]
            case 1:
                lines.insert(draw.randrange(len(lines) + 1), lines[at])
            case 2:
                lines[at] += draw.choice([" {1}", ", v0", ".int8", "{" + "(" * 300])
            case _:
                words[place] = draw.choice(others)
                lines[at] = name + equals + "".join(words)
        lines = lines or [""]
    return "\n".join(lines)


def changed_file(text: str, draw: random.Random) -> bytes:
    """Return a file with another graph, whose columns fit the number of its nodes."""
    data = json.loads(text)
    data["graph"] = changed_graph(data["graph"], draw)
    with suppress(WorkbenchError, ValueError, TypeError, AttributeError, LookupError):
        graph: Any = parse(data["graph"])
        nodes = len(graph.toposort())
        for name in ("node_lines", "node_names", "node_modules"):
            data[name] = (data[name] + [[]] * nodes)[:nodes]
    return json.dumps(data).encode()


@pytest.mark.parametrize("name", ["softmax", "gradients", "forced", "odd numbers"])
def test_whatever_a_file_says_is_a_value_or_an_error_in_words(name: str, tmp_path: Path) -> None:
    path = saved(EXPLORATIONS[name](), tmp_path)
    whole, draw = path.read_text(), random.Random(f"saved explorations: {name}")
    refusals, tries = 0, count(400)
    for _ in range(tries):
        change = draw.choice([spoiled_bytes, changed_file])
        content = change(whole, draw)
        path.write_bytes(content)
        try:
            str(load(path))
        except WorkbenchError as error:
            assert error.what and error.because and len(str(error)) < 1000
            assert not NOT_OURS.search(error.because), error.because
            refusals += 1
        assert path.read_bytes() == content, "looking changes nothing"
    assert refusals > tries / 3


def test_no_file_at_all(tmp_path: Path) -> None:
    anything: Any = load
    for path in (tmp_path / "none.json", tmp_path, "\0", None, 4.5):
        with pytest.raises(WorkbenchError, match="cannot load"):
            anything(path)
    page = matmul().to_html(tmp_path / "page.html")
    with pytest.raises(WorkbenchError, match="a browser opens"):
        load(page)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(WorkbenchError, match="not text"):
        load(tmp_path / "picture.png")


@needs_c
def test_a_file_of_an_older_version_opens_and_is_compared(nothing_saved: Path) -> None:
    ex = load(DATA / "older-exploration.json")
    assert [(v.name, len(v.kernel.applied_opts)) for v in ex.variants] == [
        ("plain", 0), ("auto", 1), ("UNROLL r0 4", 1),
    ]  # fmt: skip
    assert all("measured earlier" in v.time for v in ex.variants)
    session = ex.display.session
    assert session is not None and "from older-exploration.json" in ex.origin.words.lower()
    rows = session.record.variants
    assert rows[1].note == "from an older version" and session.record.pinned == 1
    check = rows[2].check
    assert check is not None and check.ok
    today = explore((Tensor(np.ones((6, 8), np.float32)) * 2).exp().sum(1))
    rows_of = compare({"older": ex, "today": today})
    assert rows_of.names == ("older", "today") and not rows_of["decisions"].different


def test_a_variant_that_cannot_be_here_is_left_out(variants_folder: Path, tmp_path: Path) -> None:
    ex = matmul()
    with session_of(ex) as session:
        ex.display.session = session
        tried(session)
        path = saved(ex, tmp_path)
    data = json.loads(path.read_text())
    for variant in data["variants"]:
        if variant["saved"]["opts"]:
            variant["saved"]["opts"] = ['NOSUCH("g0", 4)']
    data["variants"][0]["saved"]["kernel"] = 77
    data["device"] = "NOSUCH"
    path.write_text(json.dumps(data))
    loaded: Session = load(path).display.session
    assert [row.name for row in loaded.record.variants if not row.edited] == ["plain"]
    assert broken(plain(loaded.record)) == []


def test_a_machine_that_this_version_does_not_know_is_said(tmp_path: Path) -> None:
    path = saved(explore(matmul().tensors[0], device="CUDA:H100"), tmp_path)
    assert load(path).device == "CUDA:H100" and "were for" not in load(path).origin.words
    spoil(path, lambda data: data.update(device="CUDA:B300"))
    there = load(path)
    assert f"for CUDA:B300, which is not here: they are for {there.device}." in (there.origin.words)


def test_a_device_that_only_compiles_is_loaded(tmp_path: Path) -> None:
    path = saved(explore(matmul().tensors[0], device="NULL:CUDA:H100"), tmp_path)
    assert load(path).device == "NULL:CUDA:H100"


def test_another_plan_is_said(tmp_path: Path) -> None:
    path = saved(matmul(), tmp_path)
    spoil(path, lambda data: data.update(plan="another"))
    assert "scheduled otherwise" in load(path).origin.words
