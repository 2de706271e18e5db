"""Kernels that only draw random numbers are counted, with what would draw them before."""

from __future__ import annotations

from tests.viz.support import array
from workbench import Tensor, explore, nn
from workbench.ir.node.ops import Ops
from workbench.viz.model.decisions import draws_numbers, random_hint
from workbench.viz.page.panels.plan.panel import plan_text
from workbench.viz.record.record import MOST_KERNELS, build


def test_lazy_weights_are_counted_and_realized_ones_are_not() -> None:
    model = [nn.Linear(8, 16), nn.Linear(16, 4)]

    def answer() -> Tensor:
        return model[1](model[0](array(2, 8)).relu())

    lazy = explore(answer())
    hint = random_hint(lazy.kernels)
    assert hint.startswith("4 of 5 kernels only draw random numbers.")
    assert hint in plan_text(lazy, [(0, lazy.kernels[0])])
    assert build(lazy).plan.hint == hint
    Tensor.realize(*nn.state.get_parameters(model))  # as it says
    drawn = explore(answer())
    assert len(drawn.kernels) == 1 and build(drawn).plan.hint == ""


def test_what_is_computed_of_random_numbers_alone_is_not_counted() -> None:
    """A Monte Carlo estimate is the computation, and no weights."""
    x, y = Tensor.rand(1000), Tensor.rand(1000)
    (inside,) = explore((x * x + y * y < 1).mean()).kernels[-1:]
    assert not draws_numbers(inside.ast)
    ways = [Tensor.randn, Tensor.rand, Tensor.uniform, Tensor.kaiming_uniform]
    ways += [Tensor.glorot_uniform, Tensor.kaiming_normal, Tensor.normal]
    for way in ways:
        (kernel,) = explore(way(4, 6)).kernels
        assert draws_numbers(kernel.ast), way


def test_a_repeat_is_named_by_what_it_computes() -> None:
    x = array(8, 64)
    for layer in [nn.Linear(64, 64) for _ in range(5)]:
        x = layer(x).relu()
    (repeat,) = [row for row in build(explore(x)).plan.repeats if row.times > 1]
    assert (repeat.size, repeat.title) == (3, "matmul+bias+relu")


def test_a_record_has_the_kernels_of_the_computation_in_detail() -> None:
    x = array(8, 64)
    for layer in [nn.Linear(64, 64) for _ in range(13)]:
        x = layer(x)
    record = build(explore(x))
    detailed = {row.kernel for row in record.variants if row.offers}
    computing = [k for k, row in enumerate(record.kernels) if not row.draws_numbers]
    assert detailed == set(computing[:MOST_KERNELS]) and len(computing) == 13


def test_a_kernel_that_reads_more_than_a_key_is_not_counted() -> None:
    ex = explore(Tensor.rand(8, 8) * 2)
    kernel = ex.kernels[0].ast
    assert draws_numbers(kernel) and not random_hint(ex.kernels[:1])
    keys = [n for n in kernel.toposort() if n.op is Ops.PARAM and n.arg[1] == 2]
    longer = {key: key.replace(arg=(key.arg[0], 3)) for key in keys}
    assert keys and not draws_numbers(kernel.substitute(longer))
