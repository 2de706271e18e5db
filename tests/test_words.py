"""The words of the project: names are nouns of the field, sentences need one reading.

A name is what the table of the field's terms says, never the coined word beside it. A participle
says how a value came about, not what it is. A class name stands once, a constant has a line.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support import ROOT

TERMS = {
    "a kernel with some opts: candidate, variant, kernel": "form forms trial trials",
    "statement placement, insertion point": "homes",
    "in-register transpose": "turned turned_block turned_fill",
    "argument reduction": "quarter quarters quarter_turns",
    "program analysis, inlining plan, SSA construction": "survey lay_out follow",
    "loop-carried values": "carried",
    "exact range": "reach",
    "memoised per node": "remembered",
    "bounds check": "fence fenced",
    "non-temporal stores": "streams streamed stream_bytes past_caches",
    "oracle, first wrong rewrite": "judge judged culprit",
    "predicted speed-up, bottleneck": "outlook outlooks",
    "reduction lanes": "own_lanes dot_lanes",
    "cold-cache": "emptied",
    "benchmark, worker server, protocol": "race raced desk wire",
    "sandboxed, connection": "lend lends",
    "tentative, merged, provenance edge": "became aside in_pieces",
    "prefetch, inspection, LRU cache": "ahead looking",
    "persistence, search results, rule toggles": "searched switching",
    "low-precision types": "small_float small_floats is_small_float",
    "chunked launch loop": "sliced_loop",
    "counts, estimates, measurements": "figures",
}
"""Coined words that are not names, by the field's terms for them."""

PARTICIPLES = frozenset(
    "asked became brought chosen done drawn found given gone got held kept known lent made"
    " meant met said seen sent shown spent taken told wanted".split()
)

STAY = {
    "workbench/backends/llvm_ir/loops.py: loop_carried": "the field's term",
    "workbench/backends/llvm_ir/ssa.py: loop_carried": "the field's term",
    "workbench/backends/llvm_ir/ssa.py: _loop_carried": "the field's term",
    "workbench/ir/verify/kernel.py: no_race": "the field's term: a data race",
    "workbench/emulator/finding_list.py: race": "the field's term: a data race",
    "workbench/search/result.py: given": "SearchResult.given is public",
    "workbench/check/node_values.py: chosen": "NodeValues.chosen is public",
    "workbench/viz/schema/messages.py: done": "how much of a total is done",
    "workbench/bench/report.py: figures": "a key of a report",
}
"""Names that stay, by where they stand, with the reason."""

_PART = re.compile(r"[a-z0-9]+")
"""A part of a name, between underscores."""

HEADLESS = re.compile(
    r"\b(?<!there )(?:is|are|was|were) no (?!longer\b|more\b|less\b|worse\b)"
)
"""A sentence says what a value must be, or is not."""


RIDDLES = {
    "so many, so much": "a number with its unit, or the name of a parameter",
    "held against": "compared with",
    "held to be": "counted as",
    "whoever": "the caller, the user",
    "turned round": "opposite, reversed",
    "how it got here": "passes",
    "looking still works": "browsing still works",
    "possible opts": "legal opts",
    "nobody knows": "unknown",
    "emptied caches": "cold caches",
    "sums in flight": "independent accumulators",
    "past the caches": "non-temporal",
    "quarter turn, quarter turns": "quadrants",
    "small floats": "low-precision types",
    "own lanes, dot-lanes": "reduction lanes",
    "goes round, go round": "loop-carried, a cycle",
}
"""Phrases of prose and labels that need a second reading, with what to say instead."""


@pytest.fixture(scope="module", autouse=True)
def _no_tree_outlives_the_tests() -> Iterator[None]:
    yield
    modules.cache_clear()
    names.cache_clear()


def test_no_name_is_a_coined_word() -> None:
    coined = {word: term for term, words in TERMS.items() for word in words.split()}
    wrong = {
        f"{place}: {name}": coined[part]
        for place, name in names()
        for part in (name.strip("_").lower(), *_PART.findall(name.lower()))
        if part in coined
    }
    assert {name: term for name, term in wrong.items() if name not in STAY} == {}


def test_no_name_is_a_participle() -> None:
    wrong = {
        f"{place}: {name}"
        for place, name in names()
        if name.strip("_").lower() in PARTICIPLES
    }
    assert wrong <= STAY.keys(), (
        "a name says what a value is; STAY lists those that stay"
    )


def test_what_stays_is_there() -> None:
    assert STAY.keys() <= {f"{place}: {name}" for place, name in names()}


def test_a_class_name_stands_once() -> None:
    places = defaultdict(list)
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    assert {n: p for n, p in places.items() if len(p) > 1} == {}


def test_a_constant_has_a_line() -> None:
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in modules()
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Tuple) for target in node.targets)
        and all(name.isupper() for name in _stored(node) if not name.startswith("_"))
        and not isinstance(node.value, ast.Call)
    ]
    assert not wrong


def test_a_message_says_what_must_be() -> None:
    wrong = [
        f"{path}:{node.lineno}: {node.value[:60]}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if HEADLESS.search(node.value)
    ]
    assert not wrong


def test_a_phrase_needs_one_reading() -> None:
    phrases = [phrase for row in RIDDLES for phrase in row.split(", ")]
    pattern = re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)
    texts = [
        ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
    ]
    texts += sorted((ROOT / "docs" / "why").glob("*.md"))
    for folder, kind in (
        ("workbench", "py"),
        ("workbench", "js"),
        ("notebooks", "ipynb"),
    ):
        texts += sorted((ROOT / folder).rglob(f"*.{kind}"))
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        for match in pattern.finditer(line)
    ]
    assert wrong == [], "RIDDLES has what to say instead"


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """Return the path and the tree of each module of the package, the benchmarks, the scripts."""
    folders = ("workbench", "bench", "scripts")
    paths = [
        path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    return [
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for path in paths
    ]


@cache
def names() -> list[tuple[str, str]]:
    """Return where each name is defined, and the name: of files, classes, functions, parameters,
    attributes and variables."""
    return list(_names())


def _names() -> Iterator[tuple[str, str]]:
    for path, tree in modules():
        yield path, Path(path).stem
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield path, node.name
                case ast.arg():
                    yield path, node.arg
                case ast.Name(ctx=ast.Store()):
                    yield path, node.id
                case ast.Attribute(ctx=ast.Store()):
                    yield path, node.attr


def _stored(node: ast.Assign) -> list[str]:
    nodes = [n for target in node.targets for n in ast.walk(target)]
    return [n.id for n in nodes if isinstance(n, ast.Name)]
