"""Pairs of two graphs: each node once, nothing differs from itself, and swapping swaps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.viz.support import array, matmul, softmax
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, OptOps
from workbench.kernel.kernel import Kernel
from workbench.pipeline import stages
from workbench.viz import explore
from workbench.viz.model.node_pairs import NodePairs, node_pairs


def graphs() -> dict[str, tuple[UOp, ...]]:
    """Graphs of several levels: kernels with and without opts, for two devices, and tensors."""
    plain = matmul().kernels[0]
    tiled = plain.apply(Opt(OptOps.UPCAST, "g1", 2), Opt(OptOps.UNROLL, "r0", 4))
    listed: dict[str, Kernel] = {
        "plain": plain,
        "split": plain.apply(Opt(OptOps.UPCAST, "g1", 2)),
        "tiled": tiled,
        "softmax": softmax().kernels[0],
        "softmax, auto": softmax().kernels[0].optimized(),
    }
    found: dict[str, tuple[UOp, ...]] = {name: (k.ast,) for name, k in listed.items()}
    for name in ("plain", "tiled"):
        lowered = stages(listed[name].ast, "LLVM:Raspberry Pi 5", upto="linear")
        found[f"{name}, tree"] = (lowered.tree,)
    found["tensors"] = matmul().outputs
    found["other tensors"] = explore((array(6, 8) @ array(8, 4)).relu()).outputs
    found["none"] = ()
    return found


def nodes(roots: Sequence[UOp]) -> set[UOp]:
    return {node for root in roots for node in root.toposort()}


def swapped(pairs: NodePairs) -> tuple[dict[UOp, UOp], dict[UOp, UOp], set[UOp], set[UOp]]:
    same = {b: a for a, b in pairs.same.items()}
    changed = {b: a for a, b in pairs.changed.items()}
    return same, changed, set(pairs.added), set(pairs.removed)


def test_each_node_stands_in_one_place_and_swapping_swaps() -> None:
    listed = graphs()
    for one in listed.values():
        for other in listed.values():
            pairs = node_pairs(one, other)
            parts = [pairs.same, pairs.changed, pairs.removed]
            assert sum(map(len, parts)) == len(nodes(one))
            assert {n for part in parts for n in part} == nodes(one)
            others = [*pairs.same.values(), *pairs.changed.values(), *pairs.added]
            assert len(others) == len(set(others)) and set(others) == nodes(other)
            assert all(a.op is b.op for a, b in {**pairs.same, **pairs.changed}.items())
            back = node_pairs(other, one)
            assert swapped(pairs) == (
                dict(back.same), dict(back.changed), set(back.removed), set(back.added)
            )  # fmt: skip


@pytest.mark.parametrize("name", graphs())
def test_nothing_differs_from_itself(name: str) -> None:
    roots, again = graphs()[name], graphs()[name]
    for other in (roots, again):  # the second has other memory
        pairs = node_pairs(roots, other)
        assert set(pairs.same) == nodes(roots)
        assert not pairs.changed and not pairs.removed and not pairs.added


def test_what_an_opt_made_of_a_kernel() -> None:
    listed = graphs()
    pairs = node_pairs(listed["plain"], listed["split"])
    partner = {**pairs.same, **pairs.changed}
    ranges = {n.axis_name: n for n in nodes(listed["plain"]) if n.op is Ops.RANGE}
    assert ranges["g1"] in pairs.changed, "it has fewer steps"
    assert ranges["r0"] in pairs.same
    added = [n for n in pairs.added if n.op is Ops.RANGE]
    assert [n.axis_name for n in added] == ["u0"]
    assert all(n in partner for n in nodes(listed["plain"]) if n.op in (Ops.REDUCE, Ops.PARAM))
    assert not [n for n in pairs.removed if n.op is not Ops.CONST]
