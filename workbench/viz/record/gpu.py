"""A trace of the emulator as rows of a record."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from workbench.base.dtypes import DType
from workbench.base.tensor_cores import TensorCore
from workbench.emulator.findings import Finding, Inefficiency, along, among_all
from workbench.emulator.history import GroupHistory, StepAccess, ValueHistory, space_of, tiles_of
from workbench.emulator.steps import Trace
from workbench.ir.meaning.tiles import lane_map
from workbench.ir.nest.accesses import name_of
from workbench.ir.nest.transactions import BANK_BYTES, BANKS, SECTOR_BYTES
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import ProgramLine, line_at
from workbench.viz.record.nodes import Nodes
from workbench.viz.schema.gpu import (
    AccessCosts,
    AccessStep,
    GpuFinding,
    GpuLine,
    GpuMemory,
    GpuTrace,
    NumberArray,
    RegisterRow,
    TensorCoreRow,
    TensorTile,
    TileProduct,
)

Array = Any  # numpy arrays of any dtype
Kind = Literal["f4", "f8", "i4"]


def gpu_trace(trace: Trace, nodes: Nodes, names: Sequence[str], without: int | None) -> GpuTrace:
    """Return the rows of a trace with a history; `names` has the user's names of the arguments, by
    slot; `without` is the number of a barrier that was removed from the program (None: none)."""
    history, target = trace.history, trace.target
    assert history is not None and target is not None
    memories = _memories(trace.linear)
    places = {node: place for place, node in enumerate(memories)}
    shuffles = history.shuffles
    cores = [*dict.fromkeys(n.arg for n in trace.linear if n.op is Ops.WMMA)]
    grid, items = ([*reversed(s)] or [1] for s in (trace.launch.grid, trace.launch.group))
    return GpuTrace(
        device=target.device,
        grid=grid,
        items=items,
        group=[*along(history.group, trace.launch.grid)][: len(grid)],
        warp_lanes=target.warp_lanes,
        sector_bytes=SECTOR_BYTES,
        banks=BANKS,
        bank_bytes=BANK_BYTES,
        lines=[
            _line(trace, line, places, nodes, cores, shuffles.get(number))
            for number, line in enumerate(history.lines)
        ],
        memories=[_memory(node, names, history.floats) for node in memories],
        line=[history.line_of[int(p)] for p in history.positions],
        rounds={a.axis_name: r.tolist() for a, r in history.rounds.items()},
        masks=[_bits(mask) for mask in history.masks],
        mask=history.mask_of.tolist(),
        accesses=[
            _access(step, access, places[access.memory])
            for step, access in history.accesses.items()
        ],
        registers=[
            _register(history.names[node], node, values) for node, values in history.values.items()
        ],
        cores=[_core(core) for core in cores],
        findings=[
            *(_finding(finding, history, memories) for finding in trace.findings),
            *(_inefficiency(each, history, memories) for each in trace.inefficiencies),
        ],
        is_whole=trace.is_whole,
        without=without,
        cut=history.cut,
    )


def _memories(linear: Sequence[UOp]) -> list[UOp]:
    """Return the memories of a program: the arguments by slot, then its own arrays."""
    listed = {n.place.param for n in linear if n.op in (Ops.LOAD, Ops.STORE)}
    params = sorted((n for n in listed if n.op is Ops.PARAM), key=lambda n: n.slot)
    return [*params, *(n for n in linear if n.op is Ops.DEFINE and n in listed)]


def _memory(node: UOp, names: Sequence[str], floats: Mapping[UOp, DType]) -> GpuMemory:
    is_param = node.op is Ops.PARAM
    user = names[node.slot] if is_param and node.slot < len(names) else ""
    dtype = floats.get(node, node.dtype.scalar)
    return GpuMemory(
        name_of(node), user, space_of(node), str(dtype), list(node.memory_shape), dtype.itemsize
    )


def _line(
    trace: Trace,
    line: ProgramLine,
    places: Mapping[UOp, int],
    nodes: Nodes,
    cores: Sequence[TensorCore],
    shuffle: int | None,
) -> GpuLine:
    positions = line.positions
    program = [trace.linear[p] for p in positions]
    costs = []
    for position, node in zip(positions, program, strict=True):
        count = trace.accesses.get(position)
        if count is not None:
            costs.append(
                AccessCosts(
                    nodes.add(node),
                    places[node.place.param],
                    count.is_store,
                    count.transactions,
                    count.conflicts,
                    count.bytes_wanted,
                    count.bytes_moved,
                )
            )
    node_places = nodes.add_all(program)
    lines = {chain[0]: None for node in node_places for chain in nodes.columns.lines[node]}
    before = sum(node.op is Ops.BARRIER for node in trace.linear[: positions[-1]])
    return GpuLine(
        text=line.text,
        number=line.number or None,
        barrier=before if program[-1].op is Ops.BARRIER else None,
        depth=line.depth,
        nodes=node_places,
        lines=list(lines),
        accesses=costs,
        executed=trace.executed.get(positions[-1], 0),
        divergent=trace.divergent.get(positions[-1], 0),
        barriers=trace.barriers.get(positions[-1], 0),
        shuffles=0 if shuffle is None else trace.shuffles.get(shuffle, 0),
        distance=0 if shuffle is None else trace.linear[shuffle].arg,
        product=_product(trace, program[-1], cores),
    )


def _product(trace: Trace, node: UOp, cores: Sequence[TensorCore]) -> TileProduct | None:
    """Return the product that a line computes with a tensor core; None for other lines."""
    if node.op is not Ops.WMMA or trace.history is None:
        return None
    names = trace.history.names
    if node not in names:  # a text that does not use the product
        return None
    registers = [names[value] for value in (*tiles_of(node), node)]
    return TileProduct(cores.index(node.arg), registers)


def _core(core: TensorCore) -> TensorCoreRow:
    tiles = []
    for name in core.fragments:
        where = lane_map(core, name)
        rows, columns = where.holders.shape[:2]
        places = _numbers(where.rows * columns + where.columns)
        each = where.rows.shape[1]
        tiles.append(TensorTile(name.upper(), rows, columns, each, places))
    return TensorCoreRow(str(core), core.lanes, tiles)


def _access(step: int, access: StepAccess, memory: int) -> AccessStep:
    return AccessStep(
        step,
        memory,
        access.is_store,
        access.takes_part.shape[1],
        _numbers(access.first),
        _bits(access.takes_part),
        _numbers(access.values),
        access.transactions,
        access.conflicts,
        access.bytes_wanted,
        access.bytes_moved,
    )


def _register(name: str, node: UOp, of_node: ValueHistory) -> RegisterRow:
    unwritten = {
        step: _bits(np.broadcast_to(mask, value.shape))
        for step, value, mask in zip(of_node.steps, of_node.values, of_node.undefined, strict=True)
        if mask is not None and np.any(mask)
    }
    values = [_numbers(value) for value in of_node.values]
    lanes = 1 if node.op is Ops.SPECIAL else node.dtype.count
    return RegisterRow(name, lanes, of_node.steps, values, unwritten)


def _finding(finding: Finding, history: GroupHistory, memories: Sequence[UOp]) -> GpuFinding:
    places = [line_at(history.lines, position) for position in finding.positions]
    lines = [place for place in places if place is not None]
    group = [*finding.items[0].group] if finding.items else []
    steps = list(history.steps_of(finding))
    items = [among_all(i.item, history.launch.group) for i in finding.items]
    memory = _place(finding.memory, memories)
    return GpuFinding(
        finding.kind, True, finding.words, lines, group, steps, items, memory, finding.element
    )


def _place(name: str, memories: Sequence[UOp]) -> int | None:
    return next((i for i, node in enumerate(memories) if name_of(node) == name), None)


def _inefficiency(each: Inefficiency, history: GroupHistory, memories: Sequence[UOp]) -> GpuFinding:
    group = [*each.items[0].group]
    is_in_group = each.items[0].group == along(history.group, history.launch.grid)
    steps = np.flatnonzero(history.positions == each.position)[:1].tolist()
    line = history.line_of[each.position]
    items = [among_all(i.item, history.launch.group) for i in each.items]
    return GpuFinding(
        each.kind,
        False,
        each.words,
        [line],
        group,
        steps if is_in_group else [],
        items[:1],
        _place(each.memory, memories),
        each.elements[0] if each.elements else 0,
    )


def _numbers(array: Array) -> NumberArray:
    """Return an array as base64, with the kind of its numbers; integers beyond 32 bits become the
    nearest float64s."""
    kind: Kind = "i4"
    if array.dtype.kind == "V":  # a low-precision float, which numpy itself does not have
        array = array.astype(np.float32)
    if array.dtype.kind == "f":
        kind = "f8" if array.dtype.itemsize > 4 else "f4"
    elif array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        kind = "f8"
    data = np.ascontiguousarray(array, f"<{kind}").tobytes()
    return NumberArray(kind, b64encode(data).decode())


def _bits(mask: Array) -> str:
    """Return truth values as base64, the first one in the lowest bit of the first byte."""
    return b64encode(np.packbits(mask.ravel(), bitorder="little").tobytes()).decode()
