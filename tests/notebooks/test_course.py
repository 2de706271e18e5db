"""What the chapters use: predictions, checks of exercises, pictures."""

from __future__ import annotations

import sys
from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from course import bars, cache_sets, curve, inner_loop, predict, race, roofline, spills, table
from course.ask import Prediction, Verdict, tuned
from course.gpu import (
    check_conflicts,
    check_loads,
    check_race,
    check_sectors,
    fragment,
    products,
    tensor_core,
)
from course.opts import check_best_tile, check_columns, check_conv, check_tile, lanes, registers
from course.rewriting import check_double, check_factor, counterexample, divided, element
from course.scheduling import check_evaluations, check_index, check_two_kernels
from IPython.core.formatters import DisplayFormatter
from nbformat.v4 import new_code_cell, new_notebook, new_output

from workbench import Device, Kernel, Opt, OptOps, Tensor, dtypes, emulate, explore
from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.emulator.steps import Trace
from workbench.ir.meaning.tiles import lane_map
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import var
from workbench.ir.rewriting.rewrite import Rule
from workbench.measure.peak import run_peak
from workbench.measure.timing import Samples


def kernel(*shape: int) -> Kernel:
    """Return the kernel of a product (three sizes), or of column sums (two)."""
    rng = np.random.default_rng(0)
    a = Tensor(rng.random(shape[:2], dtype=np.float32)).realize()
    if len(shape) == 2:
        return explore(a.sum(axis=0)).kernels[0]
    b = Tensor(rng.random(shape[1:], dtype=np.float32)).realize()
    return explore(a @ b).kernels[0]


def test_a_prediction_is_folded_until_somebody_guesses() -> None:
    nobody, wrong, right = (Prediction(guess, 3, "Because <so>.") for guess in (None, 4, 3))
    assert "3" not in str(nobody) and "<details>" in nobody._repr_html_()
    assert str(wrong) == "You said 4: 3. Because <so>." and not wrong.is_right
    assert str(right) == "Right: 3. Because <so>." and right.is_right
    assert all("&lt;so&gt;" in p._repr_html_() for p in (nobody, wrong, right))
    assert predict("4-order", " More ", *_counts()).is_right


def _counts() -> tuple[object, object]:
    plain = kernel(48, 64)
    return plain.counts, plain.apply(Opt(OptOps.ORDER, "r0", "g0")).counts


x, y, z = var("x"), var("y"), var("z")
i = var("x", "integer")


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (lambda: check_double(Rule("r", x + y, x * 2)), "two different values"),
        (lambda: check_double(Rule("r", x * 2, x + x)), "does not fire"),
        (lambda: check_double(Rule("r", x + x, x * 3)), "should become"),
        (lambda: check_factor(Rule("r", x * y + x * z, x * (y + z))), "not exact"),
        (lambda: check_factor(Rule("r", x * y, y * x)), "product less"),
        (lambda: check_factor(Rule("r", i * y + i * z, i * (y + y))), "changes integers"),
        (lambda: check_index(lambda i, j: 6 * j + i), "[0, 0] reads element 5"),
        (lambda: check_two_kernels(*(2 * [_divided()])), "1 kernel"),
        (lambda: check_two_kernels(_divided().permute(1, 0), _divided()), "shape"),
        (lambda: check_columns(kernel(64, 64), [Opt(OptOps.UPCAST, "g0", 7)]), "7 does not"),
        (lambda: check_columns(kernel(64, 64), []), "whole vectors would take"),
        (lambda: check_tile(kernel(64, 64, 64), []), "multiply-adds"),
        (lambda: check_double(Rule("r", x + x, y * 2)), "the right side of a rule has y"),
        (lambda: check_double(Rule("r", x + x, _raises)), "ZeroDivisionError"),
        (lambda: check_double(Rule("r", i + i, i * 2)), "p0[i] + p0[i], of floats"),
        (lambda: check_index(lambda i, j: i // 0), "at [0, 0] it fails"),
        (lambda: check_two_kernels(_divided(realize=True), _divided()), "realize()"),
        (lambda: check_evaluations(50_000, explore(_products())), "a loop of 64 is missing"),
        (
            lambda: check_columns(kernel(64, 64), Opt(OptOps.ORDER, "r0", "g0")),
            "the sums go through memory at every step",
        ),
        (
            lambda: check_columns(kernel(64, 64), Opt(OptOps.GROUP, "r0", 4)),
            "17,408 bytes, and the input has 16,384: each group's sums are read",
        ),
        (
            lambda: check_columns(kernel(64, 64), [Opt(OptOps.STAGE, "g0", 1)]),
            ": a copy of the input is read back from scratch",
        ),
        (lambda: check_tile(kernel(64, 64, 64), Opt(OptOps.UPCAST, "g1", lanes())), "loads"),
        (lambda: check_sectors(_transpose(), []), "32,768 are wanted: a warp has too few"),
        (lambda: check_sectors(_transpose(), Opt(OptOps.LOCAL, "g9", 4)), "g9"),
        (lambda: check_conflicts(_transpose(), _TILE[:1]), "work-item"),
        (lambda: check_conflicts(_transpose(), _TILE), "passes are for conflicts"),
        (lambda: check_conflicts(_twice(), Opt(OptOps.LOCAL, "g0", 32)), "no shared"),
        (lambda: check_race(_raced(), ("STORE", "LOAD")), "the other one comes first"),
        (lambda: check_race(_raced(), ("LOAD", "LOAD")), "one of the two must write"),
        (lambda: check_race(_raced(), ["store", "load"]), "the other one comes first"),
        (lambda: check_race(_raced(), ("STORE", "STORE")), "both write"),
        (lambda: check_race(_raced(), "LOAD"), "two words"),
        (lambda: check_race(_raced(), None), "two words"),
        (lambda: check_loads(_tile(), []), "12,288 bytes are loaded, and the operands"),
        (lambda: check_loads(_tile(), Opt(OptOps.UPCAST, "g0", 2)), "10,240 bytes are"),
        (lambda: check_loads(_tile(), Opt(OptOps.UPCAST, "g9", 2)), "g9"),
        (lambda: check_loads(kernel(32, 32, 32), []), "no tensor core"),
        (lambda: check_index(lambda i, j: (j, 5 - i)), "yours says (0, 5)"),
        (lambda: check_index(lambda i, j: np.array([i, j])), "yours says [0 0]"),
        (lambda: check_best_tile(5.2, 4.9), "two whole numbers"),
        (lambda: check_best_tile(float("nan"), 5), "two whole numbers"),
        (lambda: check_best_tile(None, "a"), "two whole numbers"),
        (lambda: check_best_tile(0, 0), "computes nothing"),
        (lambda: check_best_tile(-1, 5), "computes nothing"),
        (lambda: check_best_tile(registers(), 1), "registers, and there are"),
        (lambda: check_best_tile(1, 1), "another one that fits"),
    ],
)
def test_a_check_says_what_is_wrong(verdict: object, message: str) -> None:
    outcome = verdict()  # type: ignore[operator]
    assert isinstance(outcome, Verdict) and not outcome.ok
    assert message in outcome.text and str(outcome).startswith("not yet: ")


def test_a_right_answer_stays_right_however_often_it_is_tried() -> None:
    rows = Tensor(np.arange(1, 25, dtype=np.float32).reshape(4, 6)).realize()

    def sums() -> Tensor:
        return rows.sum(axis=1, keepdim=True)

    spellings: list[Callable[[], Tensor]] = [
        lambda: rows / sums().contiguous(),
        lambda: rows * (1 / sums().contiguous()),
        lambda: rows.div(sums().contiguous()),
    ]
    for spelling in [*spellings, *spellings]:
        y = spelling()
        for _ in range(2):
            assert check_two_kernels(y, rows / sums()).text.startswith("two kernels")
    assert "changed" in check_two_kernels(rows / (sums() + 1).contiguous(), y).text
    assert "computed already" in check_two_kernels(y.realize(), rows / sums()).text


@pytest.mark.parametrize(
    ("guess", "answer", "is_right"),
    [
        ("1", 1, True),
        ("3,200", 3200, True),
        (" 3200 ", 3200, True),
        (3.0, 3, True),
        ([1, 2], (1, 2), True),
        ("1, 2", (1, 2), True),
        ("(1, 2)", (1, 2), True),
        ("p0[i]+p1[i] * 0", "p0[i] + p1[i] * 0.0", True),
        ("More", "more", True),
        ("2", 1, False),
        ("one", 1, False),
        (np.int64(3), 3, True),
        (np.array([1, 2]), (1, 2), True),
        (Tensor([1, 2]), (1, 2), True),
        (range(1, 3), (1, 2), True),
        (np.array([1, 2]), 3, False),
        (np.array([]), 3, False),
        (Tensor([1, 2]), 3, False),
        ([2, 1], (1, 2), False),
        ("p0[i]", "p0[i] + p1[i] * 0.0", False),
        (1, "more", False),
    ],
)
def test_a_guess_is_what_its_reader_means(guess: object, answer: object, is_right: bool) -> None:
    assert Prediction(guess, answer, "").is_right == is_right


@pytest.mark.parametrize(
    ("count", "message"),
    [
        ("3,200,000", "right: "),
        (3.2e6, "right: "),
        (np.prod((50, 64, 1000)), "right: "),
        (np.float32(3.2e6), "right: "),
        (True, "it should be a number"),
        (float("nan"), "it should be a number"),
        (1_600_000, "would compute it once"),
        (50_000, "; a loop of 64 is missing"),
        (0, "it should be a number"),
        (-1, "it should be a number"),
        (None, "it should be a number"),
        ("many", "it should be a number"),
    ],
)
def test_evaluations_may_be_written_in_any_way(count: Any, message: str) -> None:
    said = str(check_evaluations(count, explore(_products())))
    assert message in said
    assert ("missing" in said) == ("missing" in message)


def _divided(realize: bool = False) -> Tensor:
    rows = Tensor(np.arange(1, 25, dtype=np.float32).reshape(4, 6)).realize()
    sums = rows.sum(axis=1, keepdim=True)
    return rows / (sums.realize() if realize else sums)


def _products() -> Tensor:
    x, y = Tensor.ones(64, 1000).contiguous(), Tensor.ones(50, 1, 1000).contiguous()
    return (x.realize().exp2().reshape(1, 64, 1000) * y.realize()).sum(axis=2)


_TILE = [Opt(OptOps.LOCAL, "g0", 16), Opt(OptOps.LOCAL, "g1", 16), Opt(OptOps.STAGE, "g1", 1)]
_TILES = [
    *_TILE[:2],
    Opt(OptOps.SPLIT, "r0", 16),
    Opt(OptOps.ORDER, "r0", "l0"),
    Opt(OptOps.STAGE, "r0", 1),
]


def _transpose() -> Kernel:
    square = Tensor(np.ones((64, 64), np.float32)).realize()
    return explore(square.T.contiguous()).kernels[-1]


def _twice() -> Kernel:
    return explore(Tensor(np.ones(4096, np.float32)).realize() * 2).kernels[-1]


def _raced() -> Trace:
    """A product whose tile is filled again while somebody reads it."""
    tiled = tuned(kernel(32, 32, 32), _TILES)
    first, second = emulate(tiled).code.split("BARRIER\n", 1)
    return emulate(tiled, code=first + "BARRIER\n" + second.replace("BARRIER\n", ""))


def _tile() -> Kernel:
    """A product of halves in tiles of a tensor core."""
    a, b = (Tensor(np.eye(32, dtype=np.float16)).realize() for _ in range(2))
    product = explore(a.float() @ b.float(), device="CUDA:H100").kernels[-1]
    return tuned(product, Opt(OptOps.TC, "g0 g1 r0", "16x8x16"))


def test_what_a_tensor_core_does_is_counted_and_shown() -> None:
    trace = emulate(_tile(), history=True)
    assert products(trace) == (32 // 16) * (32 // 8) * (32 // 16)
    lanes = lane_map(tensor_core(trace), "a")
    for lane in range(32):
        diagonal = lanes.rows[lane] == lanes.columns[lane]
        assert (fragment(trace, lane) == diagonal).all()
    opts = [Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UPCAST, "g0", 2)]
    assert check_loads(_tile(), opts).ok


def _raises(x: UOp) -> UOp:
    return x * (1 // 0)


@pytest.mark.parametrize("opts", [None, 3, "UPCAST", OptOps.UPCAST, [["UPCAST"]]])
def test_what_is_no_opt_is_named(opts: Any) -> None:
    for check, tried in (
        (check_columns, kernel(64, 64)),
        (check_tile, kernel(32, 32, 32)),
        (check_conv, kernel(32, 32, 32)),
        (check_sectors, _transpose()),
        (check_conflicts, _transpose()),
        (check_loads, _transpose()),
    ):
        verdict = check(tried, opts)
        assert not verdict.ok and "is not an opt" in verdict.text


def test_what_is_natural_to_write_is_accepted() -> None:
    free = (Opt(OptOps.LOCAL, "g0", 8), Opt(OptOps.LOCAL, "g1", 32), _TILE[2])
    assert check_conflicts(_transpose(), (opt for opt in free)).ok  # type: ignore[arg-type]
    view = Tensor(np.arange(24).reshape(4, 6)).permute(1, 0).flip(0)
    assert check_index(lambda i, j: view[i, j]).ok  # type: ignore[arg-type, return-value]
    needed = {(r, v): r * v + v + 1 for r in range(1, 33) for v in range(1, 33)}
    fit = [tile for tile, count in needed.items() if count <= registers()]
    rows, vectors = max(fit, key=lambda tile: tile[0] * tile[1] / sum(tile))
    assert check_best_tile(np.int64(rows), f"{vectors}").ok
    assert check_double(Rule("r", x + x, 2 * x)).ok
    whole = var("a", "integer")
    assert check_factor(Rule("r", whole * y + whole * z, whole * (y + z))).ok
    wide = Opt(OptOps.UPCAST, "g0", lanes())
    assert check_columns(kernel(64, 64), wide).ok
    with pytest.raises(WorkbenchError, match="the kinds of values are bool"):
        var("a", "int")


def test_a_tile_that_spills_is_refused() -> None:
    rows = registers() // 2
    opts = [Opt(OptOps.UPCAST, "g1", 2 * lanes()), Opt(OptOps.UPCAST, "g0", rows)]
    product = kernel(64, 64, 64)
    spilling = product.apply(*opts)
    assert spills(spilling) > 4
    assert "stack" in check_tile(product, opts).text
    told = table({"plain": product, "large": spilling}).splitlines()[3:]
    assert len(told) == 1 and told[0].startswith("not counted: spills, ")
    assert told[0].endswith(" in the inner loop of large")


@pytest.mark.parametrize("amounts", [(16, 8), (8, 16)])
def test_a_convolution_that_spills_is_refused(amounts: tuple[int, int]) -> None:
    """Its counts are good: they do not see what goes to the stack."""
    images = Tensor(np.ones((64, 16, 4, 4), np.float32)).realize()
    weights = Tensor(np.ones((32, 16, 3, 3), np.float32)).realize()
    conv = explore(images.conv2d(weights, padding=1)).kernels[-1]
    vectors, few = Opt(OptOps.UPCAST, "g3", 4), Opt(OptOps.UPCAST, "g1", 4)
    for images in (2, 4) if registers() > 16 else (2,):
        assert check_conv(conv, [vectors, Opt(OptOps.UPCAST, "g0", images), few]).ok
    many = [Opt(OptOps.UPCAST, f"g{n}", amounts[n]) for n in (0, 1)]
    assert "go to the stack" in check_conv(conv, [vectors, *many]).text


def test_counterexamples() -> None:
    p, q = element(0), element(1)
    assert counterexample(divided(p, 4.0), p * 0.25, 1) is None
    text = counterexample(p * 0, p.like(0.0), 1)
    assert text is not None and text.startswith("with p0[i] = inf it was nan")
    assert counterexample((p + q) - q, p, 2) is not None
    n, m = element(0, dtypes.int32), element(1, dtypes.int32)
    assert counterexample((n + m) - m, n, 2) is None  # sums wrap, both ways


def test_the_inner_loop_is_where_the_products_are() -> None:
    text = inner_loop(kernel(32, 32, 32))
    assert 2 < len(text.splitlines()) < 20 and "define" not in text
    rows = table({"plain": kernel(32, 32, 32)}).splitlines()
    assert rows[1].split()[:4] == ["plain", "65,536", "1,024", "32,768"]


def test_cache_sets_are_those_of_the_machine() -> None:
    for ways, expected in ((16, 32), (8, 64)):
        machine = Target("LLVM", caches=(("L2", 1 << 20),), ways=(("L2", ways),))
        sets = machine.cache_sets("L2")
        assert cache_sets(range(0, 4096, 64), sets=sets) == 64
        assert cache_sets(range(0, 1 << 20, 2048), sets=sets) == expected
    here = Device["LLVM"].target.cache_sets("L2")
    assert cache_sets(range(0, 64 * (here + 5), 64)) == here


def test_pictures_are_well_formed_whatever_they_are_called() -> None:
    for picture in (
        bars([("a < b & c", 1.5, "150%"), ("d", 0.0, "")], "title <", full=1.0),
        roofline([("<p>", 0.5, 0.0), ("q", 9.0, 1.2), ("r", 9.0, 1.2)], "share"),
        curve([0.0, 1.0], [("y & z", [2.0, 2.0])], "flat"),
    ):
        root = ElementTree.fromstring(picture.svg)
        assert root.tag.endswith("svg") and "<p>" not in picture.svg
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        for node in root.iter():
            assert 0 <= float(node.get("x", 0)) <= width
            assert 0 <= float(node.get("y", 0)) <= height
        assert picture.size == (width, height)


def test_a_dot_stands_where_its_point_is() -> None:
    """Points of one tile stand one above the other, however close; their numbers stay apart."""
    points = [("a", 1.0, 0.8), ("b", 1.0, 0.98), ("c", 1.0, 1.0), ("d", 4.0, 1.0)]
    root = ElementTree.fromstring(roofline(points, "share").svg)
    circles = [n for n in root.iter() if n.tag.endswith("circle")]
    dots = [float(n.get("cx", 0)) for n in circles if n.get("r") == "4"]
    assert dots[0] == dots[1] == dots[2] < dots[3]
    places = [complex(*(float(n.get(c, 0)) for c in ("cx", "cy"))) for n in circles]
    numbers = [p for p, n in zip(places, circles, strict=True) if n.get("r") == "9"]
    assert len(numbers) == 4
    assert all(abs(p - q) >= 18 for p in numbers for q in numbers if p is not q)


def test_a_line_says_what_it_is() -> None:
    picture = bars([("a", 20.0, ""), ("b", 30.0, "")], "bits", full=25, mark="the aim")
    assert ">the aim<" in picture.svg and picture.words.endswith("the line is the aim")
    assert "the aim" not in bars([("a", 2.0, "")], "bits", full=25, mark="the aim").svg


def test_an_exported_page_says_in_words_what_a_picture_shows() -> None:
    """A course's pictures, as nbconvert and screen readers have them."""
    descriptions = {
        "share <of> the peak: plain 2% of \"it\", tile 40%": bars(
            [("plain", 0.02, '2%  of "it"'), ("tile", 0.4, "40%")], "share <of> the peak"
        ),
        "roof: a 50% at 0.25 multiply-adds per load": roofline([("a", 0.25, 0.5)], "roof"),
        "error: exp2 from -0.5 to 2": curve([0.0, 1.0, 2.0], [("exp2", [1, 2, -0.5])], "error"),
    }  # fmt: skip
    from nbconvert import HTMLExporter  # it takes long, and one test needs it

    exporter = HTMLExporter()
    cells = []
    for picture in descriptions.values():
        formats, _ = DisplayFormatter().format(picture)
        cells.append(new_code_cell("1", outputs=[new_output("display_data", data=formats)]))
    page = exporter.from_notebook_node(new_notebook(cells=cells))[0]
    parser = Images()
    parser.feed(page)
    assert [image["alt"] for image in parser.images] == list(descriptions)
    for image, (words, picture) in zip(parser.images, descriptions.items(), strict=True):
        svg = b64decode(image["src"].partition("base64,")[2]).decode()
        assert svg == picture.svg and repr(picture) == words
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img" and root[0].tag.endswith("title")
        assert root[0].text == words, "where the SVG stands by itself"
        assert (image["width"], image["height"]) == (root.get("width"), root.get("height"))


class Images(HTMLParser):
    """The attributes of each <img> of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.images: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.images.append({name: value or "" for name, value in attrs})


def test_a_race_takes_kernels_and_functions() -> None:
    contestants = {"kernel": kernel(32, 32, 32), "nothing": lambda: None}
    result = race(contestants, flops=2 * 32**3, budget_s=0.1)
    assert list(result.seconds) == list(result.share) == ["kernel", "nothing"]
    assert "kernel: " in repr(result) and '<img src="data:image/svg+xml' in result._repr_html_()
    assert race(contestants, budget_s=0.1).share == {}


def test_a_race_tells_the_least_time_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of our own: the loop at the peak does its operations in a second."""
    ran: list[str] = []
    durations = {"slow": (4.0, 2.0, 3.0), "quick": (1.0,), "peak": (1.0,)}

    def interleave(runs: dict[str, Callable[[], object]], *asked: float) -> Any:
        for name in ("slow", "quick"):
            runs[name]()
        return {name: Samples(durations[name]) for name in runs}

    monkeypatch.setattr(sys.modules[race.__module__], "interleave", interleave)
    contestants = {name: lambda name=name: ran.append(name) for name in ("slow", "quick")}
    flops = run_peak().flops
    result = race(contestants, flops=flops)
    assert ran == ["slow", "quick"]
    assert result.seconds == {"slow": 2.0, "quick": 1.0}
    assert result.ratio("slow", "quick") == 2.0
    assert result.share == {"slow": pytest.approx(0.5), "quick": pytest.approx(1.0)}
