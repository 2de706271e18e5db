"""Graphs as rows: the nodes of the rows of nodes are these nodes."""

from __future__ import annotations

import pickle

from tests.agreement.expressions import case
from tests.support import count
from workbench.base.dtypes import dtypes
from workbench.execution.realize import planned
from workbench.ir.node import construct
from workbench.ir.node.rows import nodes_of, numbered, rows_of
from workbench.search.realization import tuned


def test_graphs_and_kernels_are_the_same_after_pickling() -> None:
    for seed in range(count(200)):
        tensor, _ = case(seed).run("LLVM")
        schedule, _ = planned([tensor.uop])
        kernels = [item.kernel for item in schedule.items if item.kernel is not None]
        roots = [tensor.uop, *kernels, *[tuned(kernel, "LLVM") for kernel in kernels]]
        numbers = numbered(roots)
        nodes = nodes_of(pickle.loads(pickle.dumps(rows_of(numbers))))
        assert all(nodes[number] is node for node, number in numbers.items()), f"seed {seed}"


def test_buffers_get_names_of_this_process() -> None:
    theirs, ours = (construct.buffer(dtypes.float32, n, "LLVM", (4,)) for n in ("a", "b"))
    *_, total = nodes_of(rows_of(numbered([theirs + theirs])), lambda buffer: ours)
    assert total is ours + ours
