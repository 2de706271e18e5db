"""Sweeps: each row is what an exploration of that size says, and nothing seen is lost."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.peers import peer
from tests.support import count
from workbench import Tensor, dtypes, explore
from workbench.base.errors import DTypeError, WorkbenchError
from workbench.measure.speeds import earlier_speeds
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.run import facts, sweep
from workbench.viz.run.run import RunTable
from workbench.viz.run.sizes import resized
from workbench.viz.run.sweep import Sweep, SweepRow


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict by speeds that were measured before: measuring them takes seconds."""
    monkeypatch.setattr(facts, "speeds", earlier_speeds)


def dense(x: Any, w: Any) -> Any:
    return np.maximum(x @ w, 0).sum(axis=1)


RANDOM = np.random.default_rng(0)
X, W = RANDOM.random((4, 24), np.float32), RANDOM.random((24, 16), np.float32)


def of_dense(**options: Any) -> Exploration:
    return explore(dense, X, W, **options)


def expected(ex: Exploration) -> tuple[int, int, int]:
    work = [kernel.estimates for kernel in ex.kernels]
    return len(ex.kernels), sum(w.flops for w in work), sum(w.bytes for w in work)


def figures(row: SweepRow) -> tuple[int, float, float]:
    return row.kernels, row.flops, row.bytes


@pytest.mark.parametrize("rows", [1, 3, 4, 65])
def test_a_row_is_the_exploration_of_its_size(rows: int) -> None:
    (row,) = of_dense().sweep(batch=[rows], repeat=3).rows
    assert figures(row) == expected(explore(dense, resized(X, (rows, 24)), W))
    assert 0 < row.low_s <= row.measured_s <= row.high_s and row.seconds == row.measured_s


def test_inputs_are_resized_together_by_name_and_by_batch() -> None:
    def masked(x: Any, mask: Any, w: Any) -> Any:
        return (x * mask) @ w

    ex = explore(masked, X, np.ones((4, 1), np.float32), W)
    own = ex.sweep(batch=[2, 8], repeat=0)
    assert "batch (axis 0 of x, mask)" in str(own)
    named = ex.sweep(x=[(2, 24), 8], mask=[2, (8, 1)], repeat=0)
    assert [*map(figures, named.rows)] == [*map(figures, own.rows)]
    assert [row.value for row in named.rows] == [((2, 24), 2), (8, (8, 1))]
    assert [row.measured_s for row in own.rows] == [None, None]


def test_values_are_repeated_and_stay_in_their_range() -> None:
    torch = peer("torch")
    for seed in range(count(100)):
        random = np.random.default_rng(seed)
        shape = tuple(map(int, random.integers(1, 5, random.integers(1, 4))))
        new = tuple(map(int, random.integers(1, 9, len(shape))))
        value = random.integers(-9, 9, shape)
        want = value[np.ix_(*[np.arange(n) % old for n, old in zip(new, shape, strict=True)])]
        for made in (value, torch.from_numpy(value), Tensor(value)):
            other = resized(made, new)
            assert type(other) is type(made) and other.dtype == made.dtype, seed
            np.testing.assert_array_equal(
                other.numpy() if not isinstance(other, np.ndarray) else other, want, str(seed)
            )
    half = resized(Tensor([1.5, 2.5], dtype=dtypes.bfloat16), (3,))
    assert half.dtype is dtypes.bfloat16 and half.tolist() == [1.5, 2.5, 1.5]


def test_arrays_inside_of_lists_and_dicts_are_inputs() -> None:
    def net(pair: Any, options: dict[str, Any], scale: float) -> Any:
        x, (w, _) = pair
        return (x @ w + options["bias"]).relu() * scale

    ex = explore(net, (X, [W, "a"]), {"bias": X[:, :1]}, 2.0)
    found = ex.sweep(repeat=0, batch=[4, 9])
    for row in found.rows:
        rows = resized(X, (row.value, 24))
        assert figures(row) == expected(explore(net, (rows, [W, "a"]), {"bias": rows[:, :1]}, 2.0))
    with pytest.raises(WorkbenchError, match="cannot sweep nothing") as refused:
        ex.sweep(repeat=0, nothing=[1])
    name = refused.value.because.partition("are ")[2].partition(",")[0]
    (row,) = ex.sweep(repeat=0, **{name: [(X.shape[0], 24)]}).rows
    assert not row.error


def test_the_time_of_each_item() -> None:
    assert SweepRow(4, measured_s=2.0, predicted_s=9.0).each_s == 0.5
    assert SweepRow(4, predicted_s=8.0).each_s == 2.0
    assert SweepRow((2, 3), measured_s=1.0).each_s is None and SweepRow(4).each_s is None


def test_modules_and_files_of_onnx_are_sources() -> None:
    torch, onnx = peer("torch"), peer("onnx")
    ids = torch.tensor([[1, 5, 2]])
    module = torch.nn.Sequential(torch.nn.Embedding(6, 8), torch.nn.Linear(8, 3))
    rows = explore(module, ids).sweep(batch=[1, 4, 2], repeat=2).rows
    ours = [expected(explore(module, resized(ids, (n, 3)))) for n in (1, 4, 2)]
    assert [*map(figures, rows)] == ours and all(row.measured_s for row in rows)
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[n, 3] x) => (float[n, 3] y)'
    model = onnx.parser.parse_model(f"{head} {{ y = Softmax<axis=1>(x) }}")
    x = np.ones((2, 3), np.float32)
    (row,) = explore(model, x).sweep(x=[(7, 3)], repeat=1).rows
    assert figures(row) == expected(explore(model, np.ones((7, 3), np.float32)))


def test_a_size_that_fails_says_why_and_the_others_stay() -> None:
    found = of_dense().sweep(x=[(4, 24), (4, 23), (1 << 40, 24), (2, 24)], repeat=1)
    assert [bool(row.error) for row in found.rows] == [False, True, True, False]
    assert "23 elements" in found.rows[1].error
    text = str(found)
    assert "cannot multiply" in text and "2 x 24" in text


def test_an_exception_of_a_function_leaves_the_other_sizes() -> None:
    def of_few(x: Any) -> Any:
        if x.shape[0] > 2:
            raise ValueError("too many rows")
        return x * 2

    found = explore(of_few, X[:2]).sweep(batch=[1, 4, 2], repeat=0)
    assert [row.error for row in found.rows] == ["", "ValueError: too many rows", ""]


def test_ctrl_c_keeps_the_rows_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = sweep._measured, list[Any]()

    def pressed(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(sweep, "_measured", pressed)
    found = of_dense().sweep(batch=[1, 2, 3, 4], repeat=1)
    assert [row.value for row in found.rows] == [1, 2] and "ended by KeyboardInterrupt" in str(
        found
    )


def test_times_of_a_machine_that_is_not_here_are_predicted() -> None:
    found = of_dense(device="CUDA:H100").sweep(batch=[1, 4096])
    small, large = found.rows
    assert found.ceilings is not None and "H100" in str(found)
    assert small.measured_s is None and small.predicted_s == small.seconds
    assert small.roof == "memory" and small.share == pytest.approx(small.memory_s / small.seconds)
    assert large.memory_s == pytest.approx(large.bytes / found.ceilings[1])


def test_a_size_above_its_roof_names_that_roof() -> None:
    below = SweepRow(1, measured_s=2.0, peak_s=1.0, memory_s=1.5)
    above = {"memory": below._replace(memory_s=3.0), "peak": below._replace(peak_s=3.0)}
    for roof, row in above.items():
        text = str(Sweep("x", "x", "here", RunTable([below, row])))
        assert f"150% ({roof})" in text and text.count("above 100%") == 1
        assert f"above 100% ({roof}): this roof is all" in text
    assert "above 100%" not in str(Sweep("x", "x", "here", RunTable([below])))


BAD = {
    "no sizes are given": {},
    "1 to 100 sizes": {"batch": []},
    "list of 1": {"batch": 3},
    "from 1 on": {"batch": [0]},
    "whole number": {"x": [(1.5, 24)]},
    "no number of rows": {"batch": ["4"]},
    "its inputs are x, w": {"y": [1]},
    "2 axes, and this 1": {"x": [(4,)]},
    "2 for x and 1 for w": {"x": [1, 2], "w": [24]},
}


@pytest.mark.parametrize(("words", "sizes"), BAD.items(), ids=[*BAD])
def test_what_is_no_size_is_refused(words: str, sizes: dict[str, Any]) -> None:
    with pytest.raises(WorkbenchError, match=words):
        of_dense().sweep(**sizes)


def test_what_cannot_be_explored_again_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="of Tensors"):
        explore(Tensor(X) + 1).sweep(batch=[1])
    ex = of_dense()
    planned = ex.replan({ex.decisions[0].node: True})
    with pytest.raises(WorkbenchError, match="by hand"):
        planned.sweep(batch=[1])
    for repeat in (-1, True, 1.5):
        with pytest.raises(DTypeError, match="repeat"):
            ex.sweep(batch=[1], repeat=repeat)  # type: ignore[arg-type]


def drawn(found: Sweep) -> ElementTree.Element:
    shown = found._repr_mimebundle_()
    assert shown is not None and shown["text/plain"] == str(found)
    (data,) = re.findall(r"base64,([^\"]+)", shown["text/html"])
    return ElementTree.fromstring(b64decode(data).decode())


def test_the_picture_has_a_dot_for_each_size_within_its_plots() -> None:
    found = of_dense(device="CUDA:H100").sweep(batch=[1, 8, 64, 4096])
    picture = drawn(found)
    dots = [e for e in picture.iter() if e.tag.endswith("circle")]
    words = ["".join(e.itertext()) for e in picture.iter() if e.tag.endswith("text")]
    assert len(dots) == 4 and {"4,096", "operations per byte", "predicted"} <= {*words}
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for dot in dots:
        assert 0 < float(dot.attrib["cx"]) < width and 0 < float(dot.attrib["cy"]) < height


def test_a_sweep_without_figures_is_drawn_in_words() -> None:
    assert "no size has a time" in "".join(drawn(of_dense().sweep(x=[(4, 23)])).itertext())
