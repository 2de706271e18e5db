"""The page as text: complete, self-contained, and safe to inline."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.viz.record.support import exported, plain
from tests.viz.support import matmul
from workbench.bench.graphs import blurred, digits
from workbench.ir.node.ops import AxisType
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz import javascript as layout
from workbench.viz.model.graph import ink, pattern
from workbench.viz.page import document as page
from workbench.viz.page.document import joined, modules_of, variable
from workbench.viz.record.record import build
from workbench.viz.still.cards import bars, chip

LARGEST_PAGE_BYTES = 515_000
"""Of an exported file: what is sent around with the record of the tour's kernels. A thousand say
what each part of a pane is, time a variant in every layout, and paint canvases for paper. Six
hundred explain the steps of the default opts and the sets of a cache. Nineteen thousand are the
pane Run, with its timeline, tables and words. The limit has a margin, since the texts of a record
depend a little on the machine."""
LARGEST_BYTES = 388_000
"""Of the code and style of the page, which travel once to a notebook. Nineteen thousand are the
pane Run: a timeline on a canvas, memory, tables, two runs compared. One thousand fold the kernels
of modules within each other, with their sums. Eight hundred hold an edit
against its own text by the same compiler, and show verdicts on a part. Six hundred show
times of plans on a busy machine, mark times that are not certain in each list, and
what limits one of many kernels. Eight hundred find names
as they are spelled, fold again what a search unfolded, and name folds at their edge.
Fifteen hundred bring the selected variant into sight, keep choices and times in the header whole,
and sort rules by use.
Four thousand unfold the code of a rule, draw passes by their time, search folds, and
colour kernels by a figure. One thousand
count saved variants, say once why times are uncertain, and fold a wrong answer. Two thousand list
the reader's own rules, and share a column's height by its contents. Two thousand replay
a pass by what each step changes (the last of 2000 took 7.5 s of script, now a fifteenth), and light
what a picked box reads and what reads it. One draws of a dragged graph only what comes into sight
(a frame of 5,000 boxes took 32 ms, now 3). A thousand are hints: on each part of the sheet of
export, of a rule, of a question and of an error. Three thousand are a camera that leaves no room
empty, what stays chosen in another plan, and lists that group what is alike. Five thousand tell the
phases of training apart, list what is stored for the backward, and keep the words of a graph free.
Twenty-six thousand are the pane GPU, with its cells on canvases, six run kernels in the browser.
Three thousand compile and run edited code in the reader's browser, with loops that end, and as many
run WebAssembly. Two thousand keep what is edited and lead from its error to the edit, compare
integers of 64 bits, and say why a pass, a section or the line of an instruction is not there. One
thousand find script and style in a saved notebook, and say what it lacks. One thousand edit IR
text, and have only the lines in sight of a long text as elements: a key in 500 kB took 3.3 s and
takes 0.3. Three hundred bring what is new into sight where a step's change has no room. Six
thousand group equal kernels, fold the times of other devices, and enlarge the memory over time,
with what lives when. Five thousand are the board: its tree, layouts, cells, borders, and what is
stored of them. Eight thousand draw the accesses of a loop, step by step, and compare variants in
columns. Thirteen thousand draw the values of a node, the accesses of a warp and those of two
variants. Four thousand are what a newcomer tries first, and the tour of the panes. Seven thousand
show two variants, devices, plans or sets of rules pane by pane, with what differs. Three thousand
fit the page into VS Code, Colab and marimo and onto paper, and say why Python does not answer and
what another page replaces. Four thousand are choices by hand with their predictions, and the
rewrites in the film of the plan. A thousand show the state of a step as text in place of a source.
Four thousand let the record beside answer, mark what plans, memory and opts lack there, show the
program that is made of a state, light the loops of expanded nodes, and keep long lists short. Six
hundred draw decisions in the graph, light what a line made, and lead to its kernel. A thousand
redraw only the panes that show what changed. A thousand compare a new plan with the one before,
name each choice there, tell kernels with one title apart, wrap the layouts, and say which axes
values have. Four hundred keep buttons, tables and maps of small panes in sight, and mark names that
are cut. Seven hundred compare with a variant of another exploration, and with a file. Five hundred
give an editor the room of the board until its edit ends, and fold the helpers of two programs
alike. A thousand draw two graphs at one scale that move together, list many kernels in one walk,
and name both sides of a comparison. Two thousand time baselines beside the variants
and open an expression in its last layout (700), list each search of a kernel (400), and offer plans
by hand again and say what is not saved (300)."""


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return plain(build(matmul()))


def test_every_file_is_in_the_page_or_asked_for_by_python() -> None:
    modules = page.modules()
    all_modules = {m.path for m in (*modules, *modules_of([layout.LAYOUT, layout.STILL]))}
    assert sorted(all_modules) == sorted(page.FOLDER.rglob("*.js"))
    assert len({m.path for m in modules}) == len(modules)
    for sheet in page.FOLDER.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        bare = re.sub(r"^/\*.*?\*/\n+|[ \t]*/\*.*?\*/", "", text, flags=re.M | re.S)
        assert bare and page.css().count(bare) == 1


def test_the_page_shows_nothing_but_itself() -> None:
    """Outside of its modules it has the names of these, and the one that is exported."""
    modules = page.modules()
    code = page.scripts()
    named = [f'{{ name: "{m.path.parent.name}",' for m in modules if "panel" == m.path.stem]
    for module in modules:
        code = code.replace(module.body, "")
    names = re.findall(r"^(?:async )?(?:function\*?|const|let|class) (\S+)", code, re.M)
    inner = [name for name in names if name.startswith("{")]
    outer = [name for name in names if name not in inner]
    assert sorted(outer) == sorted(variable(m.path) for m in modules)
    (export,) = re.findall(r"^export .*", code, re.M)
    main = variable(page.FOLDER / "main.js")
    assert export.startswith(f"export default {main}.page([")
    assert [name for name in named if export.count(name) != 1] == []


def test_modules_of_two_panels_may_have_one_name(tmp_path: Path) -> None:
    paths = [tmp_path / panel / "node" / "node.js" for panel in ("plan", "tune")]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text(f"export const name = '{path.parent.parent.name}';\n")
    modules = modules_of(paths)
    assert joined(modules).count("const $plan$node$node = ") == 1
    with pytest.raises(ValueError, match="two modules are"):
        joined([*modules, modules[0]])


def test_an_import_in_a_circle_is_refused(tmp_path: Path) -> None:
    a, b = tmp_path / "a.js", tmp_path / "b.js"
    a.write_text('import { g } from "./b.js";\nexport function f() {}\n')
    b.write_text('import { f } from "./a.js";\nexport function g() {}\n')
    with pytest.raises(ValueError, match="a.js -> b.js -> a.js is a cycle"):
        modules_of([a])


@pytest.mark.parametrize(
    "line", ['import * as b from "./b.js";', "export default f;", 'import b from "./b.js";']
)
def test_what_cannot_be_joined_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.js").write_text(f"{line}\n")
    with pytest.raises(ValueError, match="cannot join"):
        modules_of([tmp_path / "a.js"])


def test_the_page_needs_nothing_from_elsewhere() -> None:
    code = page.scripts().replace("http://www.w3.org/2000/svg", "")
    for way_out in ("http:", "https:", "fetch(", "XMLHttpRequest", "WebSocket", "import("):
        assert way_out not in code
    assert not re.search(r"url\((?!#)|@import|https?:", page.css())


def test_text_is_never_taken_for_markup() -> None:
    for way_in in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way_in not in page.scripts()


def test_what_travels_unpacks_to_the_source_without_comments_and_indentation() -> None:
    packed = re.findall(r'"([\w+/=]{1000,})"', page.esm())
    assert len(packed) == 1
    lines = page.scripts().split("\n")
    marks = ("//", "/**", "* ", "*/")
    bare = [
        re.sub(r"/\*\* @[^*]*\*/ ", "", line).lstrip(" ")
        for line in lines
        if "//#" in line or not line.strip().startswith(marks)
    ]
    unpacked = zlib.decompress(b64decode(packed[0])).decode().split("\n")
    assert len(lines) - 100 > len(unpacked) and unpacked == bare
    # the one import is of what was unpacked
    assert re.findall(r"import\W+\w+", page.esm()) == ["import(url"]
    assert page.export_html(build(matmul(), "first")).count(packed[0]) == 1


def test_nothing_moves_by_itself() -> None:
    moving = r"transition|animation|@keyframes|scroll-behavior|behavior:\s*\"smooth"
    assert not re.search(moving, page.css() + page.scripts())


def test_kinds_differ_without_colour(record: dict[str, Any]) -> None:
    kinds = re.findall(r"^\.wb-k-(\w+) \{ --kind", page.css(), re.MULTILINE)
    assert kinds == [kind.name for kind in AxisType] == list(record["kinds"])
    pattern = r"^\.wb-k\.wb-k-(\w+) \{ background: (.*); \}$"
    patterns = dict(re.findall(pattern, page.css(), re.MULTILINE))
    assert set(patterns) == set(kinds)
    bare = {re.sub(r"#\w{8}", "pale", text) for text in patterns.values()}
    assert len({re.sub(r"#\w{6}", "full", text) for text in bare}) == len(kinds)
    letters = [row["letter"] for row in record["kinds"].values()]
    assert len(set(letters)) == len(letters)


def test_a_kind_looks_the_same_in_a_still_picture_and_in_the_page() -> None:
    for kind in AxisType:
        rules = re.findall(rf"^\.wb-k-{kind.name} {{ (.*) }}$", page.css(), re.MULTILINE)
        assert rules == [f"--kind: {kind.colour}; --ink: {ink(kind)};"]
        assert f"background-color:{kind.colour}" in chip(kind.name)
        assert ink(kind) in chip(kind.name)
        assert f".wb-k-{kind.name} {{ background: {pattern(kind)}; }}" in page.css()
        assert pattern(kind) in bars([kind.name])


def test_code_can_stand_inside_a_page() -> None:
    assert not re.search(r"</script|<!--", page.scripts(), re.IGNORECASE)
    assert not re.search(r"</style", page.css(), re.IGNORECASE)


def test_size() -> None:
    assert len(page.esm()) + len(page.css()) < LARGEST_BYTES


@pytest.mark.parametrize("make", [digits, blurred])
def test_size_of_a_file_of_the_tour(make: Callable[[], Tensor]) -> None:
    html = page.export_html(build(explore(make())))
    assert len(page.esm()) < len(html.encode()) < LARGEST_PAGE_BYTES


def test_a_record_survives_packing(record: dict[str, Any]) -> None:
    assert json.loads(zlib.decompress(b64decode(page.packed(record)))) == json.loads(
        json.dumps(record)
    )


def test_a_number_that_is_not_finite_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="JSON"):
        page.packed(record | {"headline": float("nan")})


def test_words_of_the_user_do_not_end_the_script(record: dict[str, Any]) -> None:
    words = "</title></script><script>alert(1)</script>"
    html = exported(record | {"expr": record["expr"] | {"text": words, "line": None}})
    assert words not in html and html.count("<script") == 2
