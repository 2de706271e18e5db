"""PADTO: an axis rounded up so that other opts divide it; steps beyond its end are masked.

PADTO("g0", 6):

    for g0 in 8 (global, chunked) { -> for g0 in 12 (global, chunked) {
      acc0 = 0.0                         acc0 = 0.0
      for r0 in 12 (reduce) {            for r0 in 12 (reduce) {
        acc0 += p1[r0*8 + g0]              acc0 += p1[r0*8 + g0 where g0 < 8]
      }                                  }
      p0[g0] = acc0                      p0[g0 where g0 < 8] = acc0
    }                                  }

PADTO("r0", 8):

    for g0 in 8 (global, chunked) { -> for g0 in 8 (global, chunked) {
      acc0 = 0.0                         acc0 = 0.0
      for r0 in 12 (reduce) {            for r0 in 16 (reduce) {
        acc0 += p1[r0*8 + g0]              acc0 += where(r0 < 12, p1[min(r0, 11)*8 + g0], 0.0)
      }                                  }
      p0[g0] = acc0                      p0[g0] = acc0
    }                                  }
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.base.trace import derived_from
from workbench.ir.node import construct
from workbench.ir.node.construct import identity
from workbench.ir.node.exact_range import exact_range, terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated, split_gate
from workbench.ir.opt.divide import simplified
from workbench.ir.opt.opt import OUTPUT_KINDS, REDUCE_KINDS, Opt, OptKind, Refusal, ranges

PADDED_KINDS = OUTPUT_KINDS | REDUCE_KINDS
MAX_GROWTH = 4
"""An axis must grow to less than this many times its extent."""


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    axis = ranges(kernel).get(str(opt.axis))
    candidates = [r.axis_name for r in ranges(kernel).values() if r.axis_kind in PADDED_KINDS]
    names = "one of: " + (", ".join(candidates) or "none")
    if axis is None:
        return Refusal(f"the kernel has no axis {opt.axis}", names)
    if axis.axis_kind not in PADDED_KINDS:
        return Refusal(f"{opt.axis} is {axis.axis_kind.name}, and only loops are padded", names)
    if type(opt.arg) is not int or opt.arg < 2:
        return Refusal(f"an axis cannot be rounded up to {opt.arg!r}", "a whole number from 2")
    if axis.extent % opt.arg == 0:
        because = f"axis {opt.axis} has {axis.extent} elements, a multiple of {opt.arg} already"
        return Refusal(because, "the opt that needs it, without padding")
    if axis.extent * MAX_GROWTH <= opt.arg:
        n = axis.extent
        because = f"axis {opt.axis} of {n} would grow {MAX_GROWTH} times or more"
        return Refusal(because, f"an amount below {axis.extent * MAX_GROWTH}")
    tile = _stage_of_several_axes(kernel, axis)
    if tile is not None:
        because = f"beyond its end, {tile.name} has elements of another axis"
        return Refusal(because, "PADTO before the axis is split")
    return None


def _stage_of_several_axes(kernel: UOp, axis: UOp) -> UOp | None:
    """Return a STAGE in which a longer `axis` would overwrite elements of another axis: both
    number its elements together, and the other has the larger stride."""
    for stage in (n for n in kernel.toposort() if n.op is Ops.STAGE):
        for index in stage.src[1:]:
            strides = terms(index)[0]
            own = strides.get(axis)
            if own is not None and any(abs(s) > abs(own) for s in strides.values()):
                return stage
    return None


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with an axis rounded up to a multiple of `arg`.

    Shapes:   axis of N elements becomes the next multiple of the amount.
    Rewrite:  for g0 in 17: C[g0] = A[g0]   ->   for g0 in 20: C[g0 where g0 < 17] = A[g0 where
              g0 < 17];  a reduction combines its identity beyond the end; a stage gets more
              elements, which are never used
    Also known as: pad (TVM), masked or predicated tails.
    """
    old = ranges(kernel)[str(opt.axis)]
    amount = int(opt.arg or 0)
    extent = -(-old.extent // amount) * amount
    axis = UOp.range(extent, old.axis_name, old.axis_kind)
    replacements: dict[UOp, UOp] = {old: axis}
    shapes = _longer_shapes(kernel, old, axis)
    for node in kernel.toposort():
        if node in replacements:
            continue
        with derived_from(node):
            replacement = node.rebuild(tuple([replacements[s] for s in node.src]))
            if node in shapes:
                value, *fills = replacement.src
                replacement = construct.stage(value, fills, node.name, shapes[node])
            if axis in replacement.ranges or axis in replacement.src:
                replacement = _masked(replacement, axis, old.extent)
        replacements[node] = replacement
    return simplified(replacements[kernel])


def _longer_shapes(kernel: UOp, old: UOp, axis: UOp) -> dict[UOp, tuple[int, ...]]:
    """Return the new shapes of STAGEs whose indexes exceed their shape when the longer `axis`
    replaces `old`."""
    shapes: dict[UOp, tuple[int, ...]] = {}
    for node in kernel.toposort():
        stage = node.src[0] if node.op is Ops.INDEX else node
        if stage.op is not Ops.STAGE:
            continue
        shape = list(shapes.get(stage, stage.memory_shape))
        for place, index in enumerate(node.src[1:]):
            if old in index.ranges:
                low, last = exact_range(split_gate(index)[0].substitute({old: axis}))
                if low >= 0:  # `_masked` clamps an index that may be negative
                    shape[place] = max(shape[place], last + 1)
        if tuple(shape) != stage.memory_shape:
            shapes[stage] = tuple(shape)
    return shapes


def _masked(node: UOp, axis: UOp, end: int) -> UOp:
    """Return a LOAD, STORE or REDUCE that has no effect where `axis` is at least `end`; other nodes
    unchanged."""
    inside = axis < end
    last = axis.min(UOp.index(end - 1))
    if node.op is Ops.REDUCE and axis in node.src[1:]:
        value = inside.where(node.src[0], identity(node.combines, node.dtype))
        return node.rebuild((value, *node.src[1:]))
    if node.op not in (Ops.LOAD, Ops.STORE) or axis not in node.src[0].ranges:
        return node
    place = node.src[0]
    if place.src[0].op is Ops.STAGE:
        if all(exact_range(split_gate(i)[0])[0] >= 0 for i in place.src[1:]):
            return node
        clamped = [i.substitute({axis: last}) for i in place.src[1:]]
        return node.rebuild((place.rebuild((place.src[0], *clamped)),))
    index, gate = split_gate(place.src[1])
    condition = inside if gate is None else gate & inside
    is_read = node.op is Ops.LOAD and terms(index)[0].get(axis) != 1
    if is_read and not any(n.op is Ops.REDUCE for n in place.src[1].toposort()):
        # Without unit stride a load can read the last element again, which needs no mask. Not if
        # the index has a reduction: its value would be that of the last element.
        place = place.rebuild((place.src[0], place.src[1].substitute({axis: last})))
    else:
        place = place.rebuild((place.src[0], gated(index, condition)))
    return node.rebuild((place, *node.src[1:]))


PADTO = OptKind(
    "PADTO",
    here="odd sizes get whole vectors and tiles; the lanes beyond the end are masked",
    on_a_gpu="odd sizes get whole work-groups; the work-items beyond the end do nothing",
    why_not=why_not,
    apply=apply,
    applies_to=PADDED_KINDS,
    amounts=(4, 6, 8, 16, 32),
    promise=80,
    less_memory=lambda over: "a smaller amount",
)
