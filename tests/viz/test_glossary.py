"""The glossary: every word that the page asks for is there, once, in a sentence."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from tests.viz.support import array, matmul
from workbench.base.errors import WorkbenchError
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.opt.heuristic import default_opts
from workbench.ir.opt.opt import OptOps
from workbench.viz import explore
from workbench.viz.glossary import OP_GROUP, TERMS, glossary, glossary_rows
from workbench.viz.page import document as page

ASKED = (
    r'"data-term": (?:[^",\n]+\? )?"([^"]+)"',  # an element, also one with a condition
    r'"data-term": [^",\n]+\? "[^"]+" : "([^"]+)"',
    r'\bheadingOf\(\s*"([^"]+)"',
    r'\bmeaningOf\(app\.record, (?:[^",\n]+\? )?"([^"]+)"',
    r'\bmeaningOf\(app\.record, [^",\n]+\? "[^"]+" : "([^"]+)"',
)
"""How a script of the page names a word of the glossary."""
HEADING = r'\bheading\(\s*"([^"]+)"'
"""A heading of a pane is a word in capitals."""


def words() -> dict[str, str]:
    return {t.word: t.meaning for group in glossary_rows() for t in group.terms}


def test_the_glossary_has_every_word_that_the_page_asks_for() -> None:
    scripts = "\n".join(m.path.read_text(encoding="utf-8") for m in page.modules())
    asked = {word for pattern in ASKED for word in re.findall(pattern, scripts)}
    asked |= {word.lower() for word in re.findall(HEADING, scripts)}
    assert len(asked) > 40, "the patterns find the words that are asked for"
    assert asked - words().keys() == set()


def test_a_word_stands_once_and_is_explained_in_sentences() -> None:
    counts = Counter(t.word for group in glossary_rows() for t in group.terms)
    assert [word for word, n in counts.items() if n > 1] == []
    for group in TERMS.values():
        for word, meaning in group.items():
            assert re.fullmatch(r"[^a-z].*[.?]", meaning), word
            assert len(meaning) < 330, f"{word}: two or three short sentences"


def test_it_has_what_stands_in_programs_and_pictures_without_a_word_of_its_own() -> None:
    """Each sign that a newcomer asked about is a word of the glossary."""
    seen = "chunked LLVM NULL row0 r0_first copies ~ * lanes warm SINK IOTA EXTRACT CMOD".split()
    seen += "common GPU/selected: plain/by LLVM/names of axes/few runs/1 vec/pinned".split("/")
    seen += (
        "1 run/passes over the banks/before the first/more just as near/compiler's passes".split(
            "/"
        )
    )
    seen += "apart/beside the first/equal rows too/stored only/busy/use".split("/")
    seen += "the time was over/fma(a, b, -0.0)/blue bar at the left".split("/")
    seen += "nsz/fmuladd/poison/too few rounds/equal kernels/{1, 1536}/r_32_40_48".split("/")
    seen += "scheduling/fold loops/cache line, page/args, lo, hi/copies".split("/")
    seen += "unexplained/group0/%%kernel, %timekernel".split("/")
    seen += [kind.badge for kind in AxisType] + ["forward"]
    listed = {word: meaning for group in glossary().values() for word, meaning in group.items()}
    assert [word for word in seen if not listed.get(word)] == []
    for word, said in (
        ("warm", "cold"),
        ("pinned", "◆"),
        ("names of axes", "a_l0_a_u0"),
        ("stride", "varies"),
    ):
        assert said in listed[word]


@pytest.mark.parametrize("device", ["LLVM", "CUDA:H100"])
def test_each_word_of_a_text_of_the_ir_is_explained(device: str) -> None:
    """An op, a dtype, a kind of axis, a name with a number, or a word of the glossary."""
    ex = explore((array(64, 48) @ array(48, 32)).relu())
    kernel = ex.kernels[-1].on(device).kernel.optimized()
    known = " ".join([*words(), *words().values()])
    plain_words = {kind.name for kind in AxisType} | {op.name for op in Ops}
    for level in ("tree", "linear"):
        text = re.sub(r"(?<=\.)[a-z]+\d*(x\d+)?", "", kernel.compile().text(level))  # a dtype
        assert "KernelInfo" in text, "the scan reads something"
        found = set(re.findall(r"[A-Za-z]{2,}(?![\w\d])", text)) - plain_words
        assert [w for w in found if not re.search(rf"\b{w}\b", known)] == []


def test_it_prints_every_word_in_a_notebook_too() -> None:
    words = glossary()
    text, html = str(words), words._repr_html_()
    assert text == repr(words) and "  ±: How much the samples" in text
    assert html.count("<details>") == len(words) == html.count("<summary>")
    assert html.count("<dt>") == sum(map(len, words.values())) > 100


def test_what_has_a_table_of_its_own_is_in_the_glossary_from_there() -> None:
    ex = matmul()
    compiled = ex.kernels[0].compile()
    listed = glossary([*ex.passes, *compiled.passes])
    own = {word for group in TERMS.values() for word in group}
    for kind in AxisType:
        assert kind.caption in listed["loops"][kind.badge] and kind.badge not in own
    for opt in OptOps:
        assert opt.here in listed["opts"][opt.name] and opt.name not in own
    for record in ex.passes:
        assert listed["passes"][record.name] == record.doc
    assert listed[OP_GROUP].keys() == {op.name for op in Ops}


def test_a_word_is_looked_up() -> None:
    of_warps = glossary("Warp")
    assert of_warps and all("warp" in word.lower() for words in of_warps.values() for word in words)
    everywhere = glossary()
    for group, words in of_warps.items():
        assert words.items() <= everywhere[group].items()
    assert "take each step together" in of_warps["gpu"]["warp"]
    by_meaning = glossary("waits")
    assert by_meaning and all(
        "waits" in text for words in by_meaning.values() for text in words.values()
    )


@pytest.mark.parametrize(
    ("shown", "word"),
    [("r_80_80_96", "r_32_40_48"), ("acc1", "acc0"), ("1 copy", "copies"), ("cache line",) * 2,
     ("lo, hi",) * 2, ("evaluations",) * 2, ("fold loops",) * 2],
)  # fmt: skip
def test_a_word_is_found_as_it_stands_on_the_page(shown: str, word: str) -> None:
    found = [name for words in glossary(shown).values() for name in words]
    assert any(word in name for name in found), found


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("barier", 'try      glossary("barrier"), or glossary() for all words'),
        (" ", "there is no word ' '"),
        (3, "because  int is neither a word nor a pass"),
        ([3], "because  int is neither a word nor a pass"),
    ],
)
def test_what_no_glossary_has_is_refused(about: Any, words: str) -> None:
    with pytest.raises(WorkbenchError) as error:
        glossary(about)
    assert words in str(error.value)


def test_the_steps_of_the_default_opts_on_a_processor_are_words() -> None:
    table = (default_opts.__doc__ or "").split("These are for a processor")[0]
    steps = re.findall(r"^    ([a-z]+(?:-[a-z]+)+)(?=  |\n)", table, re.MULTILINE)
    assert len(steps) > 8 and set(steps) <= words().keys()
