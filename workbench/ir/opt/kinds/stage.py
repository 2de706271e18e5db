"""STAGE: a tile of an operand copied to local memory before its use.

STAGE("g0", 1):

    for g0 in 8 (global, chunked) { -> for g0 in 8 (global, chunked) {
      acc0 = 0.0                         acc1 = 0.0
      for r0 in 12 (reduce) {            for a_r0 in 12 (fill) {
        acc0 += p1[r0*8 + g0]              As[a_r0] = p1[a_r0*8 + g0]
      }                                  }
      p0[g0] = acc0                      for r0 in 12 (reduce) {
    }                                      acc1 += As[r0]
                                         }
                                         p0[g0] = acc1
                                       }
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from workbench.base.target import Target
from workbench.base.trace import derived_from
from workbench.ir.node import construct
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, memoised, split_gate
from workbench.ir.opt.divide import simplified
from workbench.ir.opt.opt import Opt, OptKind, Refusal, ranges, store_strides

LETTERS = 26


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    order = kernel.arg.order
    if not isinstance(opt.axis, str) or opt.axis not in order:
        loops = "one of the loops: " + " ".join(order)
        return Refusal(f"the kernel has no loop {opt.axis} to stage inside of", loops)
    loads, is_slot = _loads(kernel), type(opt.arg) is int
    if not is_slot or opt.arg not in loads:
        slots = ", ".join(map(str, inputs(kernel))) or "none"
        staged = [n.name for n in _stages(kernel) if is_slot and _slot(n) == opt.arg]
        because = f"the kernel does not load input {opt.arg!r}"
        if staged:
            because = f"input {opt.arg} is staged already, as {staged[0]}"
        return Refusal(because, f"one of these inputs: {slots}")
    load = load_to_copy(kernel, int(opt.arg or 0), opt.axis)
    if load is None:
        count = len(loads[opt.arg])
        because = (
            f"input {opt.arg} is read at {count} different indexes, and not exactly one of them"
            f" changes with {opt.axis}"
        )
        return Refusal(because, "another input, or another loop")
    if not _tile_axes(kernel, load, opt.axis):
        because = f"input {opt.arg} does not change inside of {opt.axis}: the tile is one element"
        return Refusal(because, "a loop further out")
    return None


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with input `arg` read from a copy of its tile: the elements that the loops
    inside of `axis` read. The copy has its own fill axes (b_r0 for input 2 and axis r0), which
    other opts can name. Of several loads of the input, the one that depends on `axis` is copied:
    in A @ A.T, inside g1, a tile of the second A.

    Rewrite:  LOAD(B[r0*512 + g1*16 + u0])   ->   Bs = STAGE(LOAD(B[b_r0*512 + g1*16 + b_u0]),
              b_r0, b_u0) and LOAD(Bs[r0, u0]);   order g1 g0 r0 -> g1 b_r0 g0 r0
    Also known as: compute_at, cache_read (TVM); stage_mem (Exo); packing (Goto and van de Geijn).
    """
    slot = int(opt.arg or 0)
    load = load_to_copy(kernel, slot, str(opt.axis))
    assert load is not None  # checked by `why_not`
    inner = _tile_axes(kernel, load, str(opt.axis))
    dimensions = _dimensions(kernel, load, inner)
    fills = [_fill(axes, _unused_fill(kernel, slot, axes[0]), load) for axes in dimensions]
    shape = tuple(fill.extent for fill in fills)
    name = unused_stage(kernel, f"{_letter(slot).upper()}s")
    parts: dict[UOp, UOp] = {}
    for axes, fill in zip(dimensions, fills, strict=True):
        parts |= _parts(axes, fill)
    with derived_from(load):
        stage = construct.stage(load.substitute(parts), fills, name, shape)
        position = [_flat_position(axes) for axes in dimensions]
        read = construct.load(construct.index(stage, *position))
    order = list(kernel.arg.order)
    after = order.index(str(opt.axis)) + 1
    last = {fill: axes[-1] for axes, fill in zip(dimensions, fills, strict=True)}
    order[after:after] = _fill_loops(kernel, load, last)
    return simplified(construct.in_order(kernel.substitute({load: read}), order))


def fill_name(slot: int, axis: UOp) -> str:
    """Return the name of the axis that fills the copy of input `slot` along `axis`."""
    return f"{_letter(slot)}_{axis.axis_name}"


def load_to_copy(kernel: UOp, slot: int, axis: str) -> UOp | None:
    """Return the LOAD of input `slot` that STAGE inside of loop `axis` copies: the only one, or the
    only one that depends on the loop; None if there is no such LOAD."""
    loads = _loads(kernel)[slot]
    changing = [n for n in loads if ranges(kernel)[axis] in n.ranges]
    only = loads if len(loads) == 1 else changing
    return only[0] if len(only) == 1 else None


def inputs(kernel: UOp) -> tuple[int, ...]:
    """Return the slots of the inputs that could be staged."""
    return tuple(n for n in _loads(kernel) if isinstance(n, int))


def _letter(slot: int) -> str:
    """Return the letter of input `slot` in names: "a" for 1 to "z" for 26, then "in27" and on."""
    return chr(ord("a") + slot - 1) if slot <= LETTERS else f"in{slot}"


def _unused_fill(kernel: UOp, slot: int, axis: UOp) -> str:
    """Return the name of a fill axis, with a number if another copy of the input has it."""
    name = free = fill_name(slot, axis)
    number = 1
    while free in ranges(kernel):
        number, free = number + 1, f"{name}_{number + 1}"
    return free


@memoised
def _loads(kernel: UOp) -> Mapping[object, Sequence[UOp]]:
    """Return the LOADs of each input by slot, without those whose value is a stage already."""
    staged = {n.src[0] for n in _stages(kernel)}
    by_slot: dict[object, list[UOp]] = {}
    for node in kernel.toposort():
        if node.op is Ops.LOAD and node.place.memory.op is Ops.PARAM and node not in staged:
            by_slot.setdefault(node.place.memory.slot, []).append(node)
    return by_slot


@memoised
def _stages(kernel: UOp) -> Sequence[UOp]:
    return [n for n in kernel.toposort() if n.op is Ops.STAGE]


def _slot(stage: UOp) -> object:
    """Return the slot of the input that a stage copies; None if it stores another value."""
    value = stage.src[0]
    is_copy = value.op is Ops.LOAD and value.place.memory.op is Ops.PARAM
    return value.place.memory.slot if is_copy else None


def _tile_axes(kernel: UOp, load: UOp, axis: str) -> list[UOp]:
    """Return the ranges inside of `axis` that the load depends on, in the order of the tile: loops
    first, then lanes. The last one has unit stride in the result or in the load, for vectors. But
    the axis of the innermost work-items, if the load depends on it, comes after all others, except
    for a vector of the result. A tile of a warp has the order of memory: whole rows are copied."""
    order = kernel.arg.order
    inside = set(order[order.index(axis) + 1 :])
    strides = _strides(load)
    stored = store_strides(kernel)
    axes = [r for r in ranges(kernel).values() if r in load.ranges]
    axes = [r for r in axes if r.axis_kind.is_lane or r.axis_name in inside]
    if _is_of_warp(axes):
        length, moves = load.place.memory.length, _axis_strides(load_index(load))
        steps = _reduction_axes(kernel) if load.dtype.itemsize == 1 else set()
        return sorted(axes, key=lambda r: (r in steps, -abs(moves.get(r, length))))
    position = {name: i for i, name in enumerate(order)}
    together = _innermost_item_axis(kernel)
    of_items = together in [r.axis_name for r in axes]
    return sorted(
        axes,
        key=lambda r: (
            of_items and r.axis_kind.is_lane and stored.get(r) == 1,
            of_items and r.axis_name == together,
            r.axis_kind.is_lane,
            r.axis_kind is AxisType.UPCAST,
            strides.get(r) == 1,
            stored.get(r) == 1,
            position.get(r.axis_name, 0),
        ),
    )


def _strides(load: UOp) -> Mapping[UOp, int]:
    return terms(load_index(load))[0]


def load_index(load: UOp) -> UOp:
    """Return the index of a LOAD, without its gate."""
    return split_gate(load.place.flat_index)[0]


def _axis_strides(index: UOp) -> dict[UOp, int]:
    """Return the stride of each axis in an index, also of axes within a minimum with a constant."""
    moves: dict[UOp, int] = {}
    for atom, factor in terms(index)[0].items():
        parts = {atom: 1}
        if atom.op is Ops.MIN and atom.src[1].is_const:
            parts = _axis_strides(atom.src[0])
        for part, steps in parts.items():
            moves[part] = moves.get(part, 0) + factor * steps
    return moves


def _is_of_warp(axes: Sequence[UOp]) -> bool:
    return any(r.axis_kind is AxisType.WARP for r in axes)


def _dimensions(kernel: UOp, load: UOp, axes: Sequence[UOp]) -> list[list[UOp]]:
    """Return the axes of each dimension of a tile: one each. In the tile of a warp, parts of one
    axis are one dimension, a row, if all or none of them are axes of a sum."""
    if not _is_of_warp(axes):
        return [[r] for r in axes]
    strides, dimensions = _axis_strides(load_index(load)), list[list[UOp]]()
    steps = _reduction_axes(kernel)
    for axis in axes:
        last = dimensions[-1][-1] if dimensions else axis
        inside = strides.get(axis, 0) * axis.extent
        alike = (last in steps) is (axis in steps)
        if dimensions and alike and inside and strides.get(last) == inside:
            dimensions[-1].append(axis)
        else:
            dimensions.append([axis])
    return dimensions


def _reduction_axes(kernel: UOp) -> set[UOp]:
    reductions = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    return {r for n in reductions for r in n.src[1:]}


def _flat_position(axes: Sequence[UOp]) -> UOp:
    """Return the position along a dimension of several axes, outermost first."""
    position = axes[0]
    for axis in axes[1:]:
        position = position * axis.extent + axis
    return position


def _parts(axes: Sequence[UOp], fill: UOp) -> dict[UOp, UOp]:
    """Return an expression of `fill` for each of the axes that it replaces."""
    parts, left = {}, fill.extent
    for axis in axes:
        left //= axis.extent
        part = fill // left if left > 1 else fill
        parts[axis] = part if axis is axes[0] else part % axis.extent
    return parts


def _innermost_item_axis(kernel: UOp) -> str | None:
    """Return the innermost work-item axis, whose work-items are neighbours; None without one."""
    axes = ranges(kernel)
    items = [n for n in kernel.arg.order if axes[n].axis_kind.is_work_item]
    return items[-1] if items else None


def _fill_loops(kernel: UOp, load: UOp, last: Mapping[UOp, UOp]) -> list[str]:
    """Return the loops of a fill in the order of the tile, or of memory if work-items fill it.
    `last` maps each fill axis to the innermost axis that it replaces."""
    strides = _axis_strides(load_index(load))
    loops = [fill for fill in last if not fill.axis_kind.is_lane]
    if _innermost_item_axis(kernel) is not None:
        length = load.place.memory.length
        loops.sort(key=lambda fill: -abs(strides.get(last[fill], length)))
    return [fill.axis_name for fill in loops]


def _fill(axes: Sequence[UOp], name: str, load: UOp) -> UOp:
    """Return the axis that fills a dimension: lanes with unit stride in memory stay lanes. Axes of
    a warp become FILL, which its work-items share."""
    axis, extent = axes[-1], math.prod(r.extent for r in axes)
    of_item = axis.axis_kind.is_lane and axis.axis_kind is not AxisType.WARP
    wide = of_item and len(axes) == 1 and _strides(load).get(axis) == 1
    return UOp.range(extent, name, AxisType.UPCAST if wide else AxisType.FILL)


def unused_stage(kernel: UOp, name: str) -> str:
    """Return a name for a stage that no other stage of the kernel has."""
    names = {n.name for n in _stages(kernel)}
    number, free = 1, name
    while free in names:
        number, free = number + 1, f"{name}{number + 1}"
    return free


def _every_input_in_every_loop(kernel: UOp) -> Iterator[tuple[str, int]]:
    for slot in inputs(kernel):
        yield from ((axis, slot) for axis in kernel.arg.order)


STAGE = OptKind(
    "STAGE",
    here="the tile is packed into scratch: unit stride, no masks, no conflicts when it is reused",
    on_a_gpu="the work-group loads the tile into shared memory together, then a barrier",
    why_not=why_not,
    apply=apply,
    argument="input",
    choices=_every_input_in_every_loop,
    makes=AxisType.FILL,
    promise=30,
    less_memory=lambda over: "a loop further in, or SPLIT first",
)
