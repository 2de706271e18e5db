"""The same facts in all three: the record that the page shows, the text, and the still picture."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import unescape
from typing import Any

import pytest

from tests.viz.conftest import Spoil
from tests.viz.record.support import Record, plain
from tests.viz.support import array, matmul, softmax
from workbench.base.context import Context
from workbench.base.terminal import bundle
from workbench.kernel.kernel import Kernel
from workbench.pipeline import COMPILE_PASSES
from workbench.viz import Exploration, explore
from workbench.viz.model.words import bytes_text, figure_text, plural
from workbench.viz.record.record import build
from workbench.viz.session.opt_text import parse_opts

Facts = dict[str, list[tuple[str, ...]]]
"""Rows of words, by what they are about."""
EXPLORATIONS: dict[str, Callable[[], Exploration]] = {
    "matmul": matmul,
    "softmax": softmax,
    "two kernels": lambda: explore(array(8, 16).exp2().sum(1), array(12) * 3),
    "conv": lambda: explore(array(1, 3, 10, 10).conv2d(array(4, 3, 3, 3))),
}
USE = re.compile(r"(\S+) \| ((?:<= )?\S+ \S+)")
AXIS = re.compile(r"(\w+) (\w+) x(\d+)(?: \((vector)\))? +(.*)")


@pytest.fixture(scope="module", params=EXPLORATIONS)
def explored(request: pytest.FixtureRequest) -> tuple[Exploration, Record]:
    ex = EXPLORATIONS[request.param]()
    return ex, plain(build(ex))


def test_an_exploration(explored: tuple[Exploration, Record]) -> None:
    ex, record = explored
    facts = of_recorded_exploration(record)
    assert_same(facts, of_printed_exploration(str(ex)), of_drawn_exploration(html(ex)))


def test_kernels_with_and_without_opts(explored: tuple[Exploration, Record]) -> None:
    ex, record = explored
    names = set()
    for row in record["variants"]:
        kernel = ex.kernels[row["kernel"]]
        kernel = kernel if row["name"] == "plain" else kernel.optimized()
        facts = of_recorded_variant(record, row)
        assert_same(facts, of_printed_kernel(ex, kernel), of_drawn_kernel(html(kernel)))
        names.add(row["name"])
    assert names == {"plain", "auto"}, "kernels with opts and without"


def test_what_can_be_done_next(explored: tuple[Exploration, Record]) -> None:
    ex, record = explored
    for row, kernel in zip(record["variants"], ex.kernels, strict=False):
        lists = [parse_opts(offer["opt"]) for offer in row["offers"]]
        offers = {str(opts[0]) for opts in lists if len(opts) == 1}
        assert offers == {str(opt) for opt in kernel.legal_opts()} != set()
        for several in [opts for opts in lists if len(opts) > 1]:  # a step of the default opts
            assert kernel.apply(*several).applied_opts[-len(several) :] == several
        chips = re.findall(r'<div class="opts">(.*?)</div>', html(kernel))
        assert {opt for chip in chips for opt in codes(chip)} == offers


def test_every_fact_matters() -> None:
    """A record that differs in any one of them is not what is printed."""
    ex = matmul()
    record = plain(build(ex))
    row = record["variants"][0]
    facts = of_recorded_variant(record, row) | of_recorded_exploration(record)
    nest, use = (row["loops"]["rows"][0], next(iter(row["loops"]["rows"][0]["uses"].values())))
    compiling = record["passes"][row["passes"][-1]]
    program = next(code for code in row["code"] if code["language"] == "LLVM")
    decision = record["plan"]["decisions"][0]
    changes: list[tuple[Record, str, Any]] = [
        (nest, "axis", "g9"), (nest, "axis_kind", "REDUCE"), (nest, "size", 77),
        (nest, "vector", True), (use, "stride", "77"), (use, "bytes", "77 B"),
        (compiling, "name", "other"), (compiling, "error", "an error"),
        (program, "lines", ["define"]), (row, "opts", ['UPCAST("g0", 2)']),
        (decision, "value", "other"), (decision, "stored", False),
        (decision, "reason", "other"), (decision, "kernel", 7),
        (record["kernels"][0], "title", "other"), (record["kernels"][0], "flops", 7),
        (record["passes"][0], "changed", not record["passes"][0]["changed"]),
        (record["passes"][0], "error", "an error"),
    ]  # fmt: skip
    for at, name, value in changes:
        same_facts, at[name] = at[name], value
        changed = of_recorded_variant(record, row) | of_recorded_exploration(record)
        assert changed != facts, name
        at[name] = same_facts
    assert of_recorded_variant(record, row) | of_recorded_exploration(record) == facts


def test_a_rule_that_raises(spoil: Spoil) -> None:
    ex = explore(array(8, 24) @ array(24, 8) + 1.0)
    error = ZeroDivisionError("no <such> luck")
    spoil([*COMPILE_PASSES.values()], "form-fma", error)
    record, text = plain(build(ex)), "ZeroDivisionError: no <such> luck"
    row, (kernel,) = record["variants"][0], ex.kernels
    assert row["error"]["what"] == "cannot compile: stage decompose failed"
    assert row["error"]["because"] == text and row["code"] == []
    for part in (row["error"]["what"], text):
        assert part in str(ex.code()) and part in words(html(kernel))
    printed, drawn = of_printed_nest(str(ex.loops)), of_drawn_kernel(html(kernel))
    assert of_recorded_nest(record, row) == printed == drawn["loops"] != []
    passes = recorded_passes([record["passes"][place] for place in row["passes"]])
    assert passes == drawn["passes"] and passes[-1][1] == f"failed: {text}"
    assert ": ".join(passes[-1]) in str(ex.rewrites())


def assert_same(record: Facts, text: Facts, still: Facts) -> None:
    for about, rows in record.items():
        assert rows == text[about] == still[about], about
    assert record.keys() == text.keys() == still.keys()


# of the record


def of_recorded_exploration(record: Record) -> Facts:
    kernels, passes = record["kernels"], record["passes"]
    work = [
        (k["title"], f"{figure_text(k['flops'])} operations", bytes_text(k["bytes"]))
        for k in kernels
    ]
    decisions = [
        (
            d["value"],
            "stored" if d["stored"] else "fused",
            d["reason"],
            ", ".join(
                f"{name} {figure_text(value)}" + " operations" * name.startswith("cost to ")
                for name, value in d["estimates"]
            ),
        )
        for number in range(len(kernels))
        for d in record["plan"]["decisions"]
        if d["kernel"] == number
    ]
    scheduling = [row for row in passes if row["variant"] is None]
    return {
        "kernels": work,
        "decisions": sorted(decisions),
        "scheduling": recorded_passes(scheduling),
    }


def of_recorded_variant(record: Record, row: Record) -> Facts:
    (program,) = (code for code in row["code"] if code["language"] == "LLVM")
    return {
        "loops": of_recorded_nest(record, row),
        "opts": [tuple(row["opts"])],
        "steps": [(s["name"], ", ".join(s["opts"]), s["why"]) for s in row["steps"]],
        "passes": recorded_passes([record["passes"][p] for p in row["passes"]]),
        "code": [tuple(program["lines"])],
    }


def of_recorded_nest(record: Record, row: Record) -> list[tuple[str, ...]]:
    rows = []
    for loop in row["loops"]["rows"]:
        if loop["kind"] == "statement":
            rows.append((squeezed(loop["text"]),))
            continue
        letter = record["kinds"][loop["axis_kind"]]["letter"]
        uses = (loop["uses"].get(b["name"]) for b in row["loops"]["buffers"])
        cells = [cell for use in uses if use for cell in (use["stride"], use["bytes"])]
        vector = "vector" if loop["vector"] else ""
        rows.append((letter, loop["axis"], str(loop["size"]), vector, *cells))
    return statements_joined(rows)


def recorded_passes(rows: list[Record]) -> list[tuple[str, ...]]:
    return [(row["name"], outcome_of(row)) for row in rows]


def outcome_of(row: Record) -> str:
    if row["error"]:
        return f"failed: {row['error']}"
    if row["matches"]:
        return plural(row["matches"], row["unit"])
    return "done" if row["changed"] else "changed nothing"


# of text


def of_printed_exploration(text: str) -> Facts:
    heads = re.findall(r"^kernel \d+: (.*?)  .*\((.*?), (.*?)\)$", text, re.MULTILINE)
    listed = text.partition("\ndecisions\n")[2].partition("\n\n")[0]
    cells = [re.split(r" {2,}", line.strip()) for line in listed.split("\n")]
    decisions = [tuple([*row, ""][:4]) for row in cells if row[0][:5] != "copy "]
    return {
        "kernels": heads,
        "decisions": sorted(decisions),
        "scheduling": of_printed_passes(text.partition("\npasses\n")[2]),
    }


def of_printed_kernel(ex: Exploration, kernel: Kernel) -> Facts:
    mime_bundle = bundle(kernel)
    assert mime_bundle is not None
    nest, _, steps = mime_bundle["text/plain"].partition("\nthe default opts:\n")
    compiled = bundle(kernel.compile())
    assert compiled is not None
    program, _, passes = compiled["text/plain"].rpartition("\n\n")
    return {
        "loops": of_printed_nest(nest),
        "opts": [tuple(str(opt) for opt in kernel.applied_opts)],
        "steps": re.findall(r"^\d+\. (\S+): (.*)\n    (.*)$", steps, re.MULTILINE),
        "passes": of_printed_passes(passes),
        "code": [tuple(program.rstrip().split("\n"))],
    }


def of_printed_nest(text: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for line in text.split("\n")[2:]:
        axis = AXIS.fullmatch(line.strip())
        if axis is None:
            rows.append((squeezed(line),))
        else:
            *about, uses = axis.groups(default="")
            cells = [cell for use in USE.findall(uses) for cell in use]
            rows.append((*about, *cells))
    return statements_joined(rows)


def of_printed_passes(text: str) -> list[tuple[str, ...]]:
    lines = [re.split(r" {2,}", line.strip()) for line in text.strip("\n").split("\n")]
    return [(line[0], line[-1]) for line in lines]


# of the still picture


@cache
def html(value: object) -> str:
    with Context(LIVE=0):  # a picture that is to be read later has the time
        mime_bundle = bundle(value)
    assert mime_bundle is not None
    page: str = mime_bundle["text/html"]
    return page


def of_drawn_exploration(page: str) -> Facts:
    cards = page.split('<div class="card"')[1:]
    kernels, decisions = [], []
    for card in cards:
        about = words(card.partition("</b>")[2].partition("</div>")[0])
        work = re.search(r"([\d,]+ operations), (.*?): ", about)
        title = re.search(r"<b>(.*?)</b>", card)
        assert work is not None and title is not None
        kernels.append((unescape(title[1]), *work.groups()))
        decisions += table(card, "<summary>Why this kernel")
    return {
        "kernels": kernels,
        "decisions": sorted(decisions),
        "scheduling": drawn_passes(page, "Scheduling"),
    }


def of_drawn_kernel(page: str) -> Facts:
    applied = re.search(r"Applied: <code>(.*?)</code>", page)
    source = page.partition("<summary>Source")[2].partition("</pre>")[0]
    program = unescape(source.partition('<pre class="src">')[2])
    return {
        "loops": statements_joined([drawn_loop(row) for row in table(page, "<th>loop</th>")]),
        "opts": [tuple(opts_in(unescape(applied[1])) if applied else ())],
        "steps": [row[:3] for row in table(page, "<summary>Why these opts")],
        "passes": drawn_passes(page, "Compiling"),
        "code": [tuple(program.rstrip().split("\n"))],
    }


def drawn_loop(row: tuple[str, ...]) -> tuple[str, ...]:
    if len(row) == 1:
        return (squeezed(row[0]),)
    letter, axis, *about = row[0].split()
    vector = "vector" if about[-1] == "vector" else ""
    size = row[1].replace(",", "")
    return (letter, axis, size, vector, *(cell for cell in row[2:] if cell))


def drawn_passes(page: str, what: str) -> list[tuple[str, ...]]:
    rows = table(page, f"<summary>{what}")
    return [(row[0].strip("\xa0"), row[1]) for row in rows]


def table(page: str, head: str) -> list[tuple[str, ...]]:
    """Return the first table at or behind what it is known by."""
    body = page.partition(head)[2].partition("</table>")[0]
    return [cells(row) for row in body.partition("<tbody>")[2].split("</tr>")[:-1]]


def cells(row: str) -> tuple[str, ...]:
    return tuple(map(words, re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)))


def words(page: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page))


def codes(page: str) -> list[str]:
    return [unescape(words) for words in re.findall(r"<code>(.*?)</code>", page)]


def opts_in(text: str) -> list[str]:
    return re.findall(r"[A-Z]+\([^)]*\)", text)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def statements_joined(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return rows, statements that follow each other as one: text does not say where one ends."""
    joined: list[tuple[str, ...]] = []
    for row in rows:
        if len(row) == 1 and joined and len(joined[-1]) == 1:
            row = (f"{joined.pop()[0]} {row[0]}",)
        joined.append(row)
    return joined
