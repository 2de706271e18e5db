"""The accesses of a loop's steps are those of the statement tree, walked one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from workbench import Kernel, Opt, OptOps, Tensor, WorkbenchError, explore
from workbench.backends.device import Device
from workbench.ir.nest.access_order import axes_of
from workbench.ir.nest.accesses import accesses, lanes_of, name_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.pipeline import stages

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(np.float32))


def value(node: UOp, at: Mapping[UOp, int]) -> Any:
    """Compute an index expression of integers at one position."""
    if node.op is Ops.RANGE:
        return at[node]
    if node.op is Ops.CONST:
        return node.arg
    a, *others = (value(source, at) for source in node.src)
    b = others[0] if others else None
    match node.op.name:
        case "ADD":
            return a + b
        case "MUL":
            return a * b
        case "IDIV" | "FLOORDIV" | "CDIV":
            return a // b
        case "MOD" | "FLOORMOD" | "CMOD":
            return a % b
        case "CMPLT":
            return a < b
        case "CMPNE":
            return a != b
        case "AND":
            return a & b
        case "MAX":
            return max(a, b)
        case "WHERE":
            return others[0] if a else others[1]
    raise NotImplementedError(node.op)


Access = tuple[str, int, bool, dict[UOp, int]]


def walked(nodes: tuple[UOp, ...], at: dict[UOp, int], fixed: dict[str, int]) -> Iterator[Access]:
    """Yield the accesses of statements one after the other; axes of `fixed` have one position."""
    for node in nodes:
        if node.op is Ops.LOOP:
            for i in positions(node.axis, fixed):
                yield from walked(node.body, {**at, node.axis: i}, fixed)
        elif node.op is Ops.IF:
            if value(node.src[0], at):
                yield from walked(node.body, at, fixed)
        elif node.op in (Ops.STORE, Ops.ACCUMULATE):
            for access in accesses(node):
                used = access.flat.toposort()
                own = [lane for lane in lanes_of(node) if lane in used]
                for place in lane_positions(own, at, fixed):
                    index, gate = split_gate(access.flat)
                    if gate is None or value(gate, place):
                        yield name_of(access.buffer), value(index, place), access.writes, place


def positions(axis: UOp, fixed: Mapping[str, int]) -> range | list[int]:
    return [fixed[axis.axis_name]] if axis.axis_name in fixed else range(axis.extent)


def lane_positions(
    lanes: list[UOp], at: dict[UOp, int], fixed: Mapping[str, int]
) -> Iterator[dict[UOp, int]]:
    if not lanes:
        yield at
        return
    for i in positions(lanes[0], fixed):
        yield from lane_positions(lanes[1:], {**at, lanes[0]: i}, fixed)


def around(
    nodes: tuple[UOp, ...], name: str, outer: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield the loops around each place with the axis `name`; for a lane all loops."""
    for node in nodes:
        if node.op is Ops.LOOP and node.axis.axis_name == name:
            yield outer
        elif node.op in (Ops.LOOP, Ops.IF):
            inner = (*outer, node.axis.axis_name) if node.op is Ops.LOOP else outer
            yield from around(node.body, name, inner)
        elif node.op in (Ops.STORE, Ops.ACCUMULATE) and name in {
            lane.axis_name for lane in lanes_of(node)
        }:
            yield outer


def opt(op: str, axis: str, arg: Any = None) -> Opt:
    return Opt(OptOps[op], axis, arg)


def product() -> Kernel:
    return explore(numbers(6, 20) @ numbers(20, 8)).kernels[0]


def square(machine: str) -> Kernel:
    return explore(numbers(8, 8) @ numbers(8, 8)).kernels[0].on(machine).kernel.optimized()


def kernel_of(value: Tensor) -> Kernel:
    return explore(value).kernels[0]


FORMS: list[Callable[[], Kernel]] = [
    product,
    lambda: product().apply(opt("UPCAST", "g1", 4), opt("UNROLL", "r0", 2)),
    lambda: product().optimized(),
    lambda: kernel_of(numbers(6, 20).pad(((1, 2), (0, 3))).relu()),
    lambda: kernel_of(numbers(6, 20).pad(((1, 0), (0, 0))).sum(axis=0)).optimized(),
    lambda: kernel_of(numbers(6, 20).transpose().flip(0) + 1),
    lambda: kernel_of(numbers(1, 2, 6, 6).conv2d(numbers(3, 2, 3, 3), padding=1)),
    lambda: kernel_of(numbers(7, 5).softmax()),
    lambda: square("CUDA:H100"),
    lambda: square("HIP:MI300X"),
]


def shared(machine: str) -> Kernel:
    """A transpose through a tile in shared memory."""
    kernel = kernel_of(numbers(64, 64).transpose().contiguous()).on(machine).kernel
    return kernel.apply(opt("LOCAL", "g0", 16), opt("LOCAL", "g1", 4), opt("UPCAST", "g1", 4))


IN_WARPS: list[Callable[[], Kernel]] = [
    *FORMS[:8],
    lambda: square("CUDA:H100"),
    lambda: explore(numbers(64, 64) @ numbers(64, 64)).kernels[0].on("CUDA:H100").kernel.apply(
        opt("LOCAL", "g0", 16), opt("LOCAL", "g1", 16)
    ),
    lambda: shared("CUDA:H100"),
    lambda: shared("HIP:MI300X"),
    lambda: kernel_of(numbers(50, 37).pad(((1, 2), (0, 3))).relu()).on("METAL:M3").kernel.apply(
        opt("LOCAL", "g1", 8)
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_accesses_are_those_of_a_walk(number: int) -> None:
    kernel = FORMS[number]()
    block = stages(kernel.ast, Device[kernel.device].target, upto="tree").tree
    axes, compared = axes_of(block), 0
    for name, axis in axes.items():
        places = {*around(block.src, name)}
        if len(places) > 1:
            continue  # loops of one name, each with other loops around it
        still = {n: axes[n].extent // 2 for n in next(iter(places))}
        steps = range(axis.extent // 2, min(axis.extent, axis.extent // 2 + 2))
        found = kernel.accesses(name, at=still, first=steps.start, steps=len(steps))
        expected: dict[str, list[tuple[int, int, bool]]] = {}
        for step in steps:
            for buffer, element, writes, at in walked(block.src, {}, still | {name: step}):
                if axis in at:
                    expected.setdefault(buffer, []).append((step, element, writes))
        listed = {
            b.name: [*zip(b.steps.tolist(), b.elements.tolist(), b.writes.tolist(), strict=True)]
            for b in found.buffers
        }
        assert {k: v for k, v in listed.items() if v} == expected, name
        compared += sum(map(len, listed.values()))
    assert compared > 10


@pytest.mark.parametrize("number", range(len(IN_WARPS)))
def test_lanes_of_a_warp_access_what_a_walk_of_their_work_items_does(number: int) -> None:
    """Loops and grid stand still; each lane is a work-item, whose number the loops over work-items
    give, the last of them fastest."""
    kernel = IN_WARPS[number]()
    block = stages(kernel.ast, Device[kernel.device].target, upto="tree").tree
    axes = axes_of(block)
    items = [a for a in axes.values() if a.axis_kind.is_work_item]
    still = {
        n: a.extent // 2 for n, a in axes.items()
        if a not in items and not a.axis_kind.is_lane
    }  # fmt: skip
    sizes = [a.extent for a in items]
    warps = [kernel.warp(0, still)]
    warps += [kernel.warp(n, still) for n in range(1, warps[0].warps)]
    compared, width = 0, warps[0].lanes
    for item, at in enumerate(np.ndindex(*sizes)):
        own = dict(zip([a.axis_name for a in items], map(int, at), strict=True))
        walk = {
            (buffer, element, writes)
            for buffer, element, writes, _ in walked(block.src, {}, still | own)
        }
        warp, lane = warps[item // width], item % width
        lanes = {
            (name_of(i.buffer), int(element), i.is_store)
            for i in warp.instructions if i.elements is not None
            for element in i.elements[lane] if element >= 0
        }  # fmt: skip
        assert lanes == walk, (own, kernel)
        compared += len(walk)
    assert compared and all(i.elements is not None for w in warps for i in w.instructions)


def test_a_warp_that_reads_a_column_takes_a_sector_for_each_lane() -> None:
    kernel = kernel_of(numbers(64, 64).transpose().contiguous()).on("CUDA:H100").kernel
    found = kernel.apply(opt("LOCAL", "g1", 32)).warp(at={"g0": 3})
    load, store = found.instructions
    assert load.elements is not None and load.elements[:, 0].tolist() == [
        3 + 64 * n for n in range(32)
    ]
    assert (load.transactions, load.least) == (32, 4) and "32 sectors, 4 would do" in str(found)
    assert (store.transactions, store.least) == (4, 4)
    assert load.banks is not None and len({*load.banks.reshape(-1).tolist()}) == 1


@pytest.mark.parametrize(
    ("warp", "at", "because"),
    [
        (1, {}, "no warp 1"),
        (-1, {}, "no warp"),
        (0, {"zz": 0}, "no axis"),
        (0, {"g0": 99}, "stand at"),
    ],
)
def test_a_warp_that_there_is_not_is_refused(warp: int, at: Any, because: str) -> None:
    with pytest.raises(WorkbenchError, match=because):
        product().warp(warp, at)


def test_steps_are_counted_in_elements_lines_and_pages() -> None:
    kernel = explore(numbers(64, 96) @ numbers(96, 64)).kernels[0]
    found = kernel.accesses("g1", steps=3)
    rows = [(r.elements, r.lines, r.new_lines, r.pages) for r in found["p2"].counts]
    assert rows == [(96, 96, 96, 6), (96, 96, 0, 6), (96, 96, 0, 6)]
    assert found["p2"].shape == (96, 64) and found["p0"].shape == (64, 64)
    assert [r.elements for r in found["p0"].counts] == [1, 1, 1]
    assert found["p0"].writes.all() and not found["p1"].writes.any()
    picture = found["p2"].picture.split("\n")
    assert picture[0] == "012" + 61 * "." and picture[1] == "and 15 more such rows"
    assert found["p1"].picture.startswith(64 * "*")
    assert "p1" in str(found) and "new lines" in str(found)


def test_an_index_from_memory_is_said_to_be_unknown() -> None:
    index = Tensor(np.array([3, 1, 9], np.int32))
    kernel = kernel_of(numbers(10, 4)[index])
    found = kernel.accesses("g0")
    assert sum(b.unknown for b in found.buffers) == 1
    assert "and 1 place whose index depends on memory" in str(found)
    assert found["p0"].elements.tolist() == [*range(12)]


@pytest.mark.parametrize(
    ("words", "because"),
    [
        ({"axis": "zz"}, "its axes are g0, g1, r0"),
        ({"axis": 3}, "accesses: axis"),
        ({"axis": "r0", "at": {"g0": 99}}, "it goes from 0 to 5"),
        ({"axis": "r0", "at": {"q": 0}}, "it is no axis"),
        ({"axis": "r0", "at": 3}, "accesses: at"),
        ({"axis": "r0", "first": 20}, "from 0 to 19"),
        ({"axis": "r0", "steps": 0}, "from 1 to"),
    ],
)
def test_bad_input_is_refused(words: Any, because: str) -> None:
    kernel = explore(numbers(6, 20) @ numbers(20, 8)).kernels[0]
    with pytest.raises(WorkbenchError, match=because):
        kernel.accesses(**words)
    many = explore(Tensor.empty(1 << 12, 1 << 12) + 1).kernels[0]
    with pytest.raises(WorkbenchError, match="too many to list"):
        many.accesses("g0", steps=1 << 20)
    assert many.accesses("g0", first=1 << 20, steps=2)["p0"].elements.tolist() == [
        1 << 20,
        (1 << 20) + 1,
    ]
