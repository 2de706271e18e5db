"""What is memoised of a node: asked for once, and gone with the node."""

from __future__ import annotations

import gc
import weakref

from tests.ir.samples import axis
from workbench.ir.node.uop import UOp, memoised


class Sources(list[UOp]):
    """A list that can be watched."""


def test_it_is_derived_once_per_node_and_goes_with_it() -> None:
    calls = []

    @memoised
    def sources(node: UOp) -> Sources:
        calls.append(node.arg)
        return Sources(node.src)

    g, h = UOp.sink(axis("g0", 4)), UOp.sink(axis("g1", 5))
    assert sources(g) is sources(g) == [axis("g0", 4)]
    assert sources(h) == [axis("g1", 5)] and len(calls) == 2
    reference = weakref.ref(sources(g))
    del g
    gc.collect()
    assert reference() is None and sources(h) == [axis("g1", 5)]
