"""The record: what a page gets is whole, plain, the same every time, and small."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import starmap
from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.kernel.support import SPEEDS
from tests.support import ROOT, count
from tests.tools.compiler import needs_c
from tests.viz.record.support import broken, outline, patched, plain, timeless
from tests.viz.support import array, check_golden, matmul, softmax
from workbench.backends.device import Device
from workbench.backends.program.text import Source
from workbench.base.source import SourceLine
from workbench.cost.core_time import LoopWork
from workbench.cost.kernel_cost import Cost
from workbench.cost.predicted_cost import bottleneck_of, predicted_cost, published_speeds
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.default_opts import next_steps
from workbench.ir.opt.opt import Opt, OptOps
from workbench.measure.speeds import Speeds
from workbench.search.moves import in_turns
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore
from workbench.viz.model.words import LABEL, named_count
from workbench.viz.record import offers as offers_module
from workbench.viz.record import passes
from workbench.viz.record import variants as variants_module
from workbench.viz.record.about import expression_key
from workbench.viz.record.nodes import MOST_TEXT
from workbench.viz.record.record import Recorder, build
from workbench.viz.session.opt_text import parse_opts

PATHS = {k: os.environ[k] for k in ("PATH", "XDG_CACHE_HOME") if k in os.environ}
ALWAYS = {"matmul": matmul, "softmax": softmax}


@pytest.mark.parametrize("name", ALWAYS)
def test_what_a_page_opens_with(name: str) -> None:
    check_golden(f"record_{name}.txt", outline(plain(build(ALWAYS[name](), "first"))))


def test_decisions_have_the_names_people_know() -> None:
    decisions = plain(build(matmul(), "first"))["plan"]["decisions"]
    assert [d["name"] for d in decisions] == [
        "y = matmul+bias+relu 6x4", "add 6x4", "copy to LLVM 4", "sum of products 6x4x1",
        "mul 6x4x8", "copy to LLVM 8x4", "copy to LLVM 6x8",
    ]  # fmt: skip
    assert str(matmul().decisions[0]).startswith("store-asked max [6, 4]: it is a result")


def random_exploration(seed: int) -> Exploration:
    return explore(case(seed).run("LLVM")[0])


@pytest.mark.parametrize("seed", range(count(200)))
def test_random_records_are_whole(seed: int) -> None:
    exploration = random_exploration(seed)
    record = plain(build(exploration, "full" if seed % 5 == 0 else "first"))
    assert broken(record) == []
    columns = record["nodes"].values()
    assert len({len(column) for column in columns}) == 1
    assert plain(record) == record
    text = json.dumps(record)
    assert str(ROOT) not in text and "/tmp/" not in text and "/home/" not in text
    for row in record["passes"]:
        steps = row["rewrites"]
        if row["unit"] == "rewrite" and steps and not row["error"]:
            assert [steps[-1][3]] == row["after"], row["name"]
    again = plain(build(exploration, "full" if seed % 5 == 0 else "first"))
    assert timeless(again) == timeless(record)


@needs_c
@pytest.mark.parametrize("device", ["LLVM", "C"])
def test_the_c_of_a_variant_is_rendered_once(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(Device["C"])
    render, rendered = kind.render, []

    def counted(self: Any, block: UOp, linear: Any, tree: Any = None) -> Source:
        rendered.append(linear)
        return render(self, block, linear, tree)

    monkeypatch.setattr(kind, "render", counted)
    a = Tensor(np.ones((4, 6), np.float32), device=device)
    recorder = Recorder(explore((a * 2).sum(1)))
    recorder.first()
    list(recorder.rest())
    codes = [row["code"] for row in plain(recorder.record)["variants"]]
    assert len(rendered) == len(codes) and all(len(code) > 1 for code in codes)


@pytest.mark.parametrize("name", ALWAYS)
def test_two_steps_give_what_one_gives(name: str) -> None:
    exploration = ALWAYS[name]()
    recorder = Recorder(exploration)
    recorder.first()
    page = plain(recorder.record)
    for _ in recorder.rest():
        page = patched(page, plain(recorder.patch()))
    assert page == plain(recorder.record)
    assert timeless(page) == timeless(plain(build(exploration)))
    assert plain(recorder.patch()) == {"append": {}, "set": []}


COUNTED = re.compile(r"(elements per instruction|independent accumulators|loads per instruction): ")
PRODUCTS: dict[str, Callable[[], Tensor]] = {
    "matmul": lambda: array(32, 48) @ array(48, 40),
    "relu": lambda: (array(24, 16) @ array(16, 8)).relu(),
    "softmax": lambda: array(16, 24).softmax(),
    "sum": lambda: array(6, 64).sum(axis=1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_reason_that_counts_has_the_counts_of_the_kernel_after_the_opt(name: str) -> None:
    """Lanes of one vector are one accumulator, as in the bottleneck of the result."""
    kernel = explore(PRODUCTS[name](), device="LLVM").kernels[-1]
    offers = {offer.opt: offer for offer in offers_module.next_rows(kernel, SPEEDS)[0]}
    counted = 0
    for opt in kernel.legal_opts():
        why = offers[str(opt)].why
        assert "accumulator" not in why or offers[str(opt)].predicted is not None
        if not COUNTED.match(why):
            continue
        counted += 1
        after = predicted_cost(kernel.apply(opt).ast, kernel.target, SPEEDS)
        assert isinstance(after, Cost)
        then = why.split("-> ")[1].split(",")[0]
        what = why.split(":")[0]
        assert then in {_count(loop, what) for loop in _loops(after.work)}
        bound = str(bottleneck_of(after, kernel.target))
        stated = re.search(r"(\d+) independent accumulator", bound)
        if stated and what == "independent accumulators":
            assert stated[1] == then, bound
    assert counted


def _loops(loop: LoopWork) -> Iterator[LoopWork]:
    yield loop
    for inner in loop.inner:
        yield from _loops(inner)


def _count(loop: LoopWork, what: str) -> str:
    match what:
        case "elements per instruction":
            return str(loop.width)
        case "independent accumulators":
            return str(loop.sums)
    return f"{loop.loads / max(1, loop.arithmetic):.2g}"


def test_opts_that_gain_together_are_one_offer() -> None:
    """A step of the default opts: its single opts lead nowhere, or gain nothing."""
    x, w = array(1, 16, 32, 32), array(32, 16, 3, 3)
    for ex in (explore(array(512, 512) @ array(512, 512)), explore(x.conv2d(w, padding=1))):
        kernel = ex.kernels[-1].on("LLVM").kernel
        (first, *_), _ = offers_module.next_rows(kernel, SPEEDS)
        assert first.opt.count("UPCAST") > 1 and "auto's register-tile" in first.why
        tiled = kernel.apply(*parse_opts(first.opt))
        ratio = predicted_cost(kernel.ast, kernel.target, SPEEDS).predicted_s
        ratio /= predicted_cost(tiled.ast, tiled.target, SPEEDS).predicted_s
        assert first.predicted == pytest.approx(ratio)
        steps = {step.name: step.opts for step in next_steps(tiled.ast, tiled.target)}
        assert {OptOps.ORDER, OptOps.STAGE} <= {opt.op for opt in steps["pack-operand"]}


@pytest.mark.parametrize("device", ["CUDA:H100", "LLVM"])
def test_offers_are_in_one_order(device: str) -> None:
    """Those that are predicted to gain most, then as a search tries them."""
    kernel = matmul().kernels[0].on(device).kernel
    offers, _ = offers_module.next_rows(kernel, None)
    gains = [o.predicted or 0.0 for o in offers]
    assert gains == sorted(gains, reverse=True) and any(gains) == (device != "LLVM")
    turns = [str(opt) for opt in in_turns(kernel.legal_opts())]
    others = [o.opt for o in offers if o.predicted is None]
    assert others == [opt for opt in turns if opt in others]
    assert device != "LLVM" or others == turns


def test_offers_listed_before_the_machine_was_measured_are_predicted_after_it() -> None:
    kernel, lists = matmul().kernels[0], offers_module.OfferLists()

    def predicted(machine_speeds: Speeds | None) -> list[float | None]:
        return [offer.predicted for offer in lists.of(kernel, machine_speeds)[0]]

    target = Device["LLVM:Raspberry Pi 5"].target
    assert target.hardware is not None
    fast = published_speeds(target.hardware, target)
    assert not any(predicted(None))
    assert any(predicted(fast))
    assert predicted(replace(fast, fma_s=100 * fast.fma_s)) != predicted(fast)


def test_equal_kernels_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight equal layers there are a few kernels; what is measured of one stays its own."""
    x, w = Tensor(array(8, 8)), Tensor(array(8, 8))
    for _ in range(8):
        x = (x @ w).relu().contiguous()
    judged = []
    real = offers_module.next_rows
    monkeypatch.setattr(
        offers_module, "next_rows", lambda k, speeds: judged.append(k.ast) or real(k, speeds)
    )
    recorder = Recorder(explore(x))
    recorder.first()
    for _ in recorder.rest():
        pass
    kernels = [k.ast for k in recorder.exploration.kernels]
    assert len(kernels) == 8 > len(set(kernels))
    assert sorted(map(id, judged)) == sorted(map(id, set(kernels)))
    rows = plain(recorder.record)["variants"]
    assert rows[0]["offers"] and rows[0]["offers"] == rows[1]["offers"]
    recorder.put(("variants", 0, "offers", 0, "measured"), 0.5)
    assert rows[1]["offers"][0]["measured"] is None


class Forgetful(dict[Any, Any]):
    """What is kept for equal kernels, and never found again."""

    def __contains__(self, key: object) -> bool:
        return False

    def get(self, key: object, default: Any = None) -> Any:
        return default


def test_equal_kernels_share_what_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of one line are linked once; those of another line lead to their own."""
    x, w = Tensor(array(8, 8)), Tensor(array(8, 8))
    for _ in range(6):
        x = (x @ w).relu().contiguous()
    y = (x @ w).relu().contiguous()
    ex = explore((y @ w).relu().contiguous())
    codes = []
    real = variants_module.compiled_code
    monkeypatch.setattr(variants_module, "compiled_code", lambda *c: codes.append(c) or real(*c))

    def built(forgets: bool) -> dict[str, Any]:
        codes.clear()
        recorder = Recorder(ex)
        if forgets:
            recorder.code._linked = Forgetful()
            recorder._passes._equal, recorder._passes._texts_of = (Forgetful(), Forgetful())
        recorder.first()
        for _ in recorder.rest():
            pass
        return timeless(plain(recorder.record))

    shared = built(False)
    assert len(codes) <= len(shared["variants"]) // 2
    apart = built(True)
    assert len(codes) == len(apart["variants"])
    assert shared == apart


def test_a_variant_is_appended() -> None:
    recorder = Recorder(matmul())
    recorder.first()
    page = plain(recorder.record)
    kernel = recorder.kernels[0].apply(Opt(OptOps.UPCAST, "g1", 4))
    variant = recorder.add_variant(0, kernel, "mine 1", parent=0)
    recorder.add_compiled(variant)
    patch = plain(recorder.patch())
    assert len(patch["append"]["variants"]) == 1
    assert all(path[:2] == ["nodes", "causes"] for path, _ in patch["set"])
    page = patched(page, patch)
    assert broken(page) == []
    row = page["variants"][variant]
    assert (row["opts"], row["parent"]) == (['UPCAST("g1", 4)'], 0)
    assert row["counts"]["fmas"] > 0
    assert page["passes"][row["passes"][0]]["unit"] == "opt"
    assert row["python"].startswith("from workbench import Kernel")
    recorder.put(("variants", variant, "note"), "read me")
    assert plain(recorder.patch())["set"] == [[["variants", variant, "note"], "read me"]]


def test_all_is_there_in_full() -> None:
    record = plain(build(matmul()))
    languages = [code["language"] for code in record["variants"][0]["code"]]
    assert languages == ["C", "LLVM", "asm", "IR"]
    for row in record["variants"]:
        for code in row["code"]:
            assert len(code["links"]) == len(code["lines"])
    assert [v["name"] for v in record["variants"]] == ["plain", "auto"]
    auto = record["variants"][1]
    offers = {o["opt"]: o for o in record["variants"][0]["offers"]}
    assert offers['UPCAST("g1", 2)']["why"] in (
        OptOps.UPCAST.here,  # on some machines nothing changes
        "elements per instruction: 1 -> 2",
    )
    steps = matmul().kernels[0].optimized().steps
    reasons = [(s["name"], s["opts"], s["why"], s["counts"]) for s in auto["steps"]]
    assert reasons and reasons == [
        (s.name, [*map(str, s.opts)], s.why, ", ".join(starmap(named_count, s.counts_in_words)))
        for s in steps
    ]
    assert [opt for step in auto["steps"] for opt in step["opts"]] == auto["opts"]
    assert record["variants"][0]["steps"] == []
    ratios = [o["predicted"] for o in record["variants"][0]["offers"]]
    numbers = [ratio for ratio in ratios if ratio is not None]
    assert numbers and numbers == sorted(numbers, reverse=True) == ratios[: len(numbers)]
    assert record["variants"][0]["bound"]
    assert record["machine"]["peak"]["f32"] > 0 and record["machine"]["bandwidth"]
    assert all(o["does"] and o["on_gpu"] for o in offers.values())
    assert all(r["why"] for r in record["variants"][0]["refused"])
    assert {r["opt"] for r in record["variants"][0]["refused"]}.isdisjoint(offers)
    assert all(p["text_after"] is not None for p in record["passes"][:1])


def test_rules_say_where_they_stand() -> None:
    rules = {r["name"]: r for r in plain(build(softmax()))["rules"]}
    rule = rules["exp2-polynomial"]
    lines = (ROOT / rule["file"]).read_text(encoding="utf-8").split("\n")
    assert 'Rule("exp2-polynomial"' in lines[rule["line"] - 1]
    assert (rule["set"], rule["file"]) == ("decompose", "workbench/ir/lower/decompose.py")
    assert "->" in rule["text"] and "exp2-polynomial" not in rule["text"]


def test_every_use_has_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.viz.model import loops as module

    monkeypatch.setattr(module, "caches", lambda: (("L1", 64), ("L2", 150)))
    rows = plain(build(matmul(), "first"))["variants"][0]["loops"]["rows"]
    uses = [use for row in rows for use in row["uses"].values()]
    assert uses
    for use in uses:
        expected = "L1" if use["n"] <= 64 else "L2" if use["n"] <= 150 else "memory"
        assert use["level"] == expected
    assert {u["level"] for u in uses} == {"L1", "L2", "memory"}


def test_the_key_is_that_of_the_expression() -> None:
    first, second = matmul(), matmul()
    assert first.outputs != second.outputs, "the memory is another"
    assert expression_key(first.outputs) == expression_key(second.outputs)
    assert expression_key(first.outputs) != expression_key(softmax().outputs)


SCRIPT = """
import hashlib, json
from tests.viz.record.support import plain, timeless
from tests.viz.support import softmax
from workbench.viz.record.record import build
text = json.dumps(timeless(plain(build(softmax()))))
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_the_same_in_every_process() -> None:
    digests = set()
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT, env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), **PATHS},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        digests.add(run.stdout)
    here = json.dumps(timeless(plain(build(softmax()))))
    assert digests == {hashlib.sha256(here.encode()).hexdigest() + "\n"}


def test_nothing_to_compute() -> None:
    record = plain(build(explore(Tensor(2.0))))
    assert (record["kernels"], record["variants"]) == ([], [])
    assert broken(record) == []


def test_devices_side_by_side() -> None:
    emulated = Tensor(np.arange(4.0, dtype=np.float32), device="PYTHON") * 2
    record = plain(build(explore(array(4) + 1, emulated)))
    assert broken(record) == []
    kernels = [p["kernel"] for p in record["passes"] if p["name"] == "simplify-kernel"]
    assert kernels[:2] == [0, 1]
    tensor_level = [p for p in record["passes"] if p["name"] == "simplify-tensor"]
    assert [p["kernel"] for p in tensor_level] == [None, None]
    emulators = [d["name"] for d in record["devices"] if d["emulator"]]
    assert "PYTHON" in emulators and not {"LLVM", "C"} & set(emulators)


def test_long_names_are_cut_and_say_so() -> None:
    long = "x" * 10_000
    ex = matmul()
    line = SourceLine(f"/secret/folder/{long}.py", 1, f"<b>{long}</b>")
    kernel = replace(ex.kernels[0], title=long, line=line)
    record = plain(build(replace(ex, kernels=(kernel,), line=line), "first"))
    assert record["expr"]["text"].endswith("(10,007 characters)")
    assert len(record["kernels"][0]["title"]) < MOST_TEXT + 40
    assert "secret" not in json.dumps(record)
    assert all(len(label) <= LABEL for label in record["nodes"]["label"])


def test_a_fault_of_a_variant_stands_with_the_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.kernel.kernel import Kernel

    def fails(kernel: Kernel, device: str | None = None) -> None:
        raise ZeroDivisionError("no such luck")

    monkeypatch.setattr(Kernel, "compile", fails)
    record = plain(build(matmul()))
    assert record["variants"][0]["error"] == {
        "what": "ZeroDivisionError", "because": "no such luck", "try": "",
    }  # fmt: skip
    assert record["variants"][0]["offers"]


def linked(record: dict[str, Any], language: str, words: str) -> dict[str, Any]:
    """Return the link of the one line of the plain variant's code that holds `words`."""
    codes = record["variants"][0]["code"]
    code = next(c for c in codes if c["language"] == language)
    pairs = zip(code["lines"], code["links"], strict=True)
    (link,) = [link for line, link in pairs if words in line]
    assert link is not None
    return link


def above(record: dict[str, Any], nodes: list[int]) -> set[int]:
    """Return nodes and all they came from, as the page follows them."""
    nodes_above, stack = set(nodes), list(nodes)
    while stack:
        for _, _, node in record["nodes"]["causes"][stack.pop()]:
            if node not in nodes_above:
                nodes_above.add(node)
                stack.append(node)
    return nodes_above


@pytest.mark.parametrize(("language", "words"), [("C", "acc0 = fma"), ("LLVM", "fmuladd.f32(")])
def test_a_line_of_code_leads_up_to_the_users_line(language: str, words: str) -> None:
    record = plain(build(matmul()))
    link = linked(record, language, words)
    assert link["axes"] == ["g0", "g1", "r0"]
    texts = [record["lines"][n]["text"] for n in link["lines"]]
    assert any("(array(6, 8) @ array(8, 4)" in text for text in texts)
    sources = above(record, link["nodes"])
    ops = {record["nodes"]["op"][n] for n in sources}
    assert ops >= {"REDUCE", "REDUCE_AXIS"}, "kernel and tensor nodes"
    rows = record["variants"][0]["loops"]["rows"]
    lit = [r["text"] for r in rows if r["kind"] == "statement" and sources & {*r["nodes"]}]
    assert "acc0 += p1[g0*8 + r0] * p2[r0*4 + g1]" in lit
    assert all(r["lines"] for r in rows), "loops have the lines of what is in them"


def test_a_loop_leads_to_the_lines_of_what_is_computed_in_it() -> None:
    """As in a notebook: a product in one line, what is done with it in another."""
    x, y = array(64, 64), array(64, 96)
    likeness = x @ y
    nearest = likeness.argmax(axis=1)
    record = plain(build(explore(nearest)))
    texts = [line["text"] for line in record["lines"]]
    product = next(i for i, text in enumerate(texts) if "x @ y" in text)
    assert [kernel["title"] for kernel in record["kernels"]][0] == "matmul"
    for variant in record["variants"]:
        rows = variant["loops"]["rows"]
        loops = [r for r in rows if r["kind"] != "statement"]
        assert loops and all(r["lines"] for r in loops)
        if variant["kernel"] == 0:
            assert any(product in r["lines"] for r in loops)
            assert all("argmax" not in texts[n] for r in loops for n in r["lines"])
        (code,) = [c for c in variant["code"] if c["language"] == "C"]
        heads = [
            link for line, link in zip(code["lines"], code["links"], strict=True)
            if line.lstrip().startswith("for (long")
        ]  # fmt: skip
        assert heads and all(link["lines"] for link in heads)


def test_instructions_lead_to_lines_of_source() -> None:
    codes = {c["language"]: c for c in plain(build(matmul()))["variants"][0]["code"]}
    sources = [link["source"] for link in codes["asm"]["links"] if link]
    lines = [codes["LLVM"]["lines"][n - 1] for numbers in sources for n in numbers]
    assert any("fmuladd" in line for line in lines)
    assert all(line.strip() for line in lines)


def test_what_is_left_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MOST_REWRITES", 4)
    monkeypatch.setattr(passes, "MOST_STATE_NODES", 3)
    record = plain(build(softmax()))
    assert broken(record) == []
    long = max(record["passes"], key=lambda p: p["matches"])
    assert len(long["rewrites"]) == 4 < long["matches"]
    roots = [root for *_, root, _ in long["rewrites"]]
    assert roots[0] != -1 and roots[-1] == -1
    assert long["after"] != [-1]


def test_memory_says_what_is_in_it() -> None:
    """As the user calls it, or by the kernel that computes it; of earlier results nobody knows."""
    a, earlier = array(64, 64), (array(64, 64) + 1).realize()
    result = (a @ a).softmax(-1) @ (earlier + a)
    nodes = plain(build(explore(result)))["nodes"]
    columns = zip(nodes["op"], nodes["label"], strict=True)
    labels = {label for op, label in columns if op == "BUFFER"}
    assert {"a", "earlier", "result of kernel 1"} <= labels
    assert not any("memory" in label for label in labels)
