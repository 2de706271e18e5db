"""The kernels of a plan: their repeats, what they read of each other, and how they print."""

from __future__ import annotations

import pytest

from tests.viz.names import strangers
from tests.viz.record import models
from tests.viz.record.support import broken, plain
from workbench import explore
from workbench.tensor.tensor import Tensor
from workbench.viz.model.words import bytes_text
from workbench.viz.record.kernels import repeat_title
from workbench.viz.record.record import build
from workbench.viz.schema.plan import PlanPicture


def plan(*tensors: Tensor) -> PlanPicture:
    record = build(explore(*tensors), "first")
    assert broken(plain(record)) == []
    assert len(record.plan.runs) == len(record.kernels)
    return record.plan


def repeats(of: PlanPicture) -> list[tuple[int, int, int]]:
    return [(r.first, r.size, r.times) for r in of.repeats if r.times > 1]


def test_equal_layers_are_one_layer_that_repeats() -> None:
    of = plan(models.perceptron(12))
    assert repeats(of) == [(0, 1, 12)]
    assert of.repeats[0].title == "matmul+bias+relu"
    assert {run.like for run in of.runs} == {0}
    chain = [(place, place + 1, 32 * 64 * 4) for place in range(11)]
    assert [(r.source, r.reader, r.bytes) for r in of.reads] == chain


def test_kernels_that_differ_in_a_constant_repeat_but_are_timed_apart() -> None:
    x = models.weights(8, 8)
    for step in range(6):
        x = (x * float(step + 2)).contiguous()
    of = plan(x[1:5].contiguous(), x[2:5].contiguous())
    assert repeats(of) == [(0, 1, 6)]
    assert of.repeats[0].title == "elementwise mul"
    assert [run.like for run in of.runs] == list(range(8))


def test_a_block_repeats_and_so_does_a_part_of_it() -> None:
    """Ten kernels: of the three products for a head two stand side by side."""
    of = plan(models.transformer(12))
    outer, *inner = [r for r in of.repeats if r.times > 1]
    assert (outer.first, outer.size, outer.times) == (0, 10, 12)
    assert outer.title == "mean+sqrt+reciprocal, matmul+bias and 3 more"
    assert [(r.first, r.size, r.times) for r in inner] == [
        (block * 10 + 1, 1, 2) for block in range(12)
    ]
    assert len(of.runs) == 121 and len({run.like for run in of.runs}) == 7


def test_what_repeats_begins_where_modules_do() -> None:
    """Kernel 0 is like the last one of a block, and of none."""
    net = strangers.Pairs(5)
    of = plan(net(strangers.weight(8, 8)))
    assert repeats(of) == [(1, 2, 5)]
    (repeat,) = [row for row in of.repeats if row.times > 1]
    assert repeat.module == "net.blocks"


def test_every_decision_of_a_block_with_a_shortcut_has_words() -> None:
    decisions = plan(models.strided_block()).decisions
    beside = [d for d in decisions if "in one kernel would keep no tile" in d.reason]
    assert beside and all("tile of results" in d.costs for d in beside)


def test_layers_of_different_sizes_do_not_repeat() -> None:
    of = plan(models.convolutions())
    assert repeats(of) == [] and len(of.runs) > 4


def test_a_padded_input_that_is_stored_has_words() -> None:
    """The decision has costs of its own, which once had none."""
    wide = models.weights(1, 3, 40, 40).conv2d(models.weights(32, 3, 7, 7), padding=3)
    of = plan(wide)
    stored = [d.costs for d in of.decisions if "padding" in d.reason]
    assert stored and all("would be tested for the padding" in text for text in stored)


def test_kernels_that_have_nothing_to_do_with_each_other() -> None:
    x = models.weights(8, 8)
    of = plan(x.exp(), x.sum(1), x @ x)
    assert repeats(of) == [] and of.reads == []
    assert [run.like for run in of.runs] == [0, 1, 2]


def test_one_kernel_and_none() -> None:
    one = plan(models.weights(4).exp())
    assert (repeats(one), one.reads, len(one.runs)) == ([], [], 1)
    none = plan(Tensor([1.0, 2.0]))
    assert (repeats(none), none.reads, none.runs) == ([], [], [])


def test_a_value_that_is_read_twice_by_one_kernel_is_one_read() -> None:
    stored = (models.weights(8, 8) + 1).contiguous()
    of = plan(stored @ stored, stored.sum())
    assert [(r.source, r.reader, r.bytes) for r in of.reads] == [(0, 1, 256), (0, 2, 256)]


@pytest.mark.parametrize("whole", [False, True], ids=["pane", "exploration"])
def test_many_kernels_print_as_a_table(whole: bool) -> None:
    ex = explore(models.transformer(3))
    text = str(ex) if whole else str(ex.plan)
    lines = [line.split() for line in text.split("\n")]
    assert ["1-30", "3", "x", "mean+sqrt+reciprocal,"] in [line[:4] for line in lines]
    assert ["2-3", "2", "x", "matmul+bias"] in [line[:4] for line in lines]
    numbers = [line[0] for line in lines if line[1:2] == ["matmul+bias"]]
    assert numbers == ["2", "5", "7", "10"], "those of the first time"
    (total,) = [line for line in lines if line[:1] == ["total"]]
    size = sum(kernel.estimates.bytes for kernel in ex.kernels)
    assert total == ["total", *bytes_text(int(size)).split()]


def test_a_sequence_is_named_by_its_first_titles() -> None:
    assert repeat_title(["norm", "linear", "linear"]) == "norm, linear"
    assert repeat_title(["norm", "linear", "max", "sum"]) == "norm, linear and 2 more"
