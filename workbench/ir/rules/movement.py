"""Rules of the tensor level: movement ops without effect, and constants that need no memory.

A constant of any shape is EXPAND(CONST); beside a shaped operand the bare CONST will do. So
constants fold through movement, elementwise ops and reductions until nothing is left to run.
"""

from __future__ import annotations

import math

import numpy as np

from workbench.ir.node.construct import constant_of, full, identity
from workbench.ir.node.ops import ELEMENTWISE, MOVEMENT, OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat, op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.ir.rules.pieces import Box, same_in_pieces
from workbench.ir.rules.strides import LINEAR, same_elements
from workbench.ir.rules.values import VALUE_RULES

x = var("x")
filled = Pat(Ops.EXPAND, (Pat(Ops.CONST, None, name="c"),), name="x")
_SHUFFLES = (Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.SHRINK, Ops.FLIP)


def keep_shape(before: UOp, after: UOp) -> UOp:
    """Return a constant that replaces a tensor in the tensor's shape, any other node as it is."""
    return after if after.shape == before.shape else full(before.shape, after)


def moves_nothing(n: UOp, x: UOp) -> bool:
    """Whether a movement op leaves every element where it is."""
    if n.op is Ops.PERMUTE:
        return bool(n.arg == tuple(range(len(n.arg))))
    if n.op is Ops.FLIP:
        return all(x.shape[axis] == 1 for axis in n.arg)
    return n.op is not Ops.REDUCE_AXIS and n.shape == x.shape


def filled_shape(n: UOp, c: UOp) -> UOp:
    """A movement of a constant is the constant in the new shape."""
    return full(n.shape, c)


def combines_nothing(n: UOp, x: UOp) -> bool:
    """Whether every axis of a reduction has one element."""
    return all(x.shape[axis] == 1 for axis in n.reduced_axes)


def reshape_once(n: UOp, x: UOp) -> UOp:
    """Only the last of two RESHAPEs counts."""
    return n.replace(src=(x,))


def movement_undone(n: UOp) -> UOp | None:
    """Movement ops that bring all elements of a value below back in order are a RESHAPE of it."""
    value = same_elements(n)
    if value is None or value.is_const:
        return None
    if n.op is Ops.RESHAPE and value is n.src[0]:
        return None
    return UOp(Ops.RESHAPE, n.dtype, (value,), n.shape)


def pieces_undone(n: UOp) -> UOp | None:
    """Movement, padding, repetition and joins that take a value below to pieces and bring these
    back in order are a RESHAPE of it."""
    value = same_in_pieces(n)
    return None if value is None else UOp(Ops.RESHAPE, n.dtype, (value,), n.shape)


def bare_constants(n: UOp) -> UOp | None:
    """Use the bare CONST for an expanded one; where all are constant, expand the result."""
    if not any(s.op is Ops.EXPAND and s.src[0].op is Ops.CONST for s in n.src):
        return None
    constants = [constant_of(s) for s in n.src]
    bare = tuple(s if c is None else c for s, c in zip(n.src, constants, strict=True))
    node = n.rebuild(bare)
    return full(n.shape, node) if all(c is not None for c in constants) else node


def reduced_constant(n: UOp, c: UOp) -> UOp:
    """A reduction of n equal constants is n times the constant, its n-th power, or itself."""
    kind, axes = n.combines, n.reduced_axes
    count = math.prod(n.src[0].shape[a] for a in axes)
    if kind in (Ops.MAX, Ops.MIN):
        return full(n.shape, c)
    value = np.asarray(c.arg, c.dtype.numpy)
    times = np.asarray(c.dtype.const(count), c.dtype.numpy)
    meaning = OPS[Ops.MUL].python
    assert meaning is not None
    if kind is Ops.ADD:
        return full(n.shape, c if c.dtype.is_bool else c.like(meaning(value, times).item()))
    with np.errstate(all="ignore"):
        return full(n.shape, c.like(np.power(value, count).item()))


def empty(n: UOp) -> UOp | None:
    """A tensor without elements is a constant; so is a reduction over no elements."""
    if n.shape and n.size == 0 and constant_of(n) is None:
        return full(n.shape, n.like(0))
    if n.op is Ops.REDUCE_AXIS and n.src[0].size == 0:
        return full(n.shape, identity(n.combines, n.dtype))
    return None


def piece_of_pad(n: UOp, x: UOp) -> UOp | None:
    """A piece of a padded value is a piece of the value where it has no padding, and 0 where it is
    padding alone."""
    pad = n.src[0]
    if _is_outside(pad, n.arg):
        return full(n.shape, n.like(0))
    inside = _in_source(pad, n.arg)
    if inside is None:
        return None
    return UOp(Ops.SHRINK, n.dtype, (x,), inside)


def piece_of_choice(n: UOp) -> UOp | None:
    """A piece of a WHERE over positions (`cat` builds them) is a piece of the branch that is chosen
    there."""
    condition, yes, no = n.src[0].src
    constant = _constant_in(condition, n.arg)
    if constant is None:
        return None
    branch = yes if constant.arg else no
    if not branch.shape:
        return full(n.shape, branch)
    return UOp(Ops.SHRINK, n.dtype, (branch,), n.arg)


def pieces_joined(n: UOp, condition: UOp) -> UOp | None:
    """Two neighbouring pieces of a value that `cat` joins in order are one piece of it."""
    first, second = n.src[1], n.src[2]
    axes = [a for a, (left, right) in enumerate(first.arg) if left or right]
    if len(axes) != 1:
        return None
    (axis,) = axes
    (left, right) = (p.src[0] for p in (first, second))
    size = left.shape[axis]
    nothing = [(0, 0)] * len(n.shape)
    after, before = [*nothing], [*nothing]
    after[axis], before[axis] = (0, n.shape[axis] - size), (size, 0)
    if first.arg != tuple(after) or second.arg != tuple(before):
        return None
    whole = [(0, length) for length in n.shape]
    low, high = [*whole], [*whole]
    low[axis], high[axis] = (0, size), (size, n.shape[axis])
    yes, no = _constant_in(condition, tuple(low)), _constant_in(condition, tuple(high))
    if yes is None or no is None or not yes.arg or no.arg:
        return None
    return _one_piece(left, right, axis)


def _one_piece(left: UOp, right: UOp, axis: int) -> UOp | None:
    """Return the piece that two neighbouring pieces along `axis` form; None for others."""
    if left.op is not right.op or left.op not in (Ops.SHRINK, Ops.PERMUTE, Ops.FLIP):
        return None
    if left.op is not Ops.SHRINK:
        if left.arg != right.arg:
            return None
        below, other = left.src[0], right.src[0]
        if left.op is Ops.PERMUTE:
            axis = left.arg[axis]
        elif axis in left.arg:
            below, other = other, below
        piece = _one_piece(below, other, axis)
        return None if piece is None else UOp(left.op, left.dtype, (piece,), left.arg)
    bounds = [*left.arg]
    bounds[axis] = left.arg[axis][0], right.arg[axis][1]
    expected = [*right.arg]
    expected[axis] = left.arg[axis][0], right.arg[axis][1]
    is_next = left.arg[axis][1] == right.arg[axis][0] and bounds == expected
    if left.src != right.src or not is_next:
        return None
    return UOp(Ops.SHRINK, left.dtype, left.src, tuple(bounds))


def _constant_in(node: UOp, piece: Box) -> UOp | None:
    """Return the CONST that a value has in all of a piece of it; None if that is not known."""
    while (constant := constant_of(node)) is None:
        if node.op is Ops.EXPAND:
            (node,) = node.src
            tail = piece[len(piece) - len(node.shape) :]
            sizes = zip(tail, node.shape, strict=True)
            piece = tuple((0, 1) if size == 1 else part for part, size in sizes)
        elif node.op is Ops.PAD:
            if _is_outside(node, piece):
                return node.like(0)
            inside = _in_source(node, piece)
            if inside is None:
                return None
            (node,), piece = node.src, inside
        else:
            return None
    return constant


def _in_source(pad: UOp, piece: Box) -> Box | None:
    """Return a piece of a PAD as a piece of its source; None where it has padding."""
    source_piece = tuple(
        (low - before, high - before)
        for (low, high), (before, _) in zip(piece, pad.arg, strict=True)
    )
    sizes = zip(source_piece, pad.src[0].shape, strict=True)
    return source_piece if all(low >= 0 and high <= n for (low, high), n in sizes) else None


def padded_narrow(n: UOp, x: UOp) -> UOp | None:
    """Pad a value before it is cast to a wider dtype, with the movement between the two: 0 is 0 in
    every dtype, and a kernel that stores the padded value, such as the image of a convolution,
    stores fewer bytes."""
    moves = [n]
    while x.op in MOVEMENT:
        moves.append(x)
        (x,) = x.src
    if x.op is not Ops.CAST or not _widens(x):
        return None
    (value,) = x.src
    for move in reversed(moves):
        value = UOp(move.op, value.dtype, (value,), move.arg)
    return value.cast(n.dtype)


def _widens(cast: UOp) -> bool:
    """Whether a number is cast to a wider dtype."""
    (source,) = cast.src
    return not source.dtype.is_bool and source.dtype.bits < cast.dtype.bits


def _is_outside(pad: UOp, piece: Box) -> bool:
    """Whether a piece of a PAD is padding alone."""
    axes = zip(piece, pad.arg, pad.src[0].shape, strict=True)
    return any(high <= before or low >= before + n for (low, high), (before, _), n in axes)


def asks_for_no_opts(n: UOp) -> bool:
    """Whether contiguous() asks for no opts of the kernel that stores its value."""
    return n.arg is None


_EMPTIES = (
    *sorted(MOVEMENT | ELEMENTWISE, key=lambda o: o.value),
    Ops.REDUCE_AXIS,
    Ops.IOTA,
    Ops.BUFFER,
    Ops.COPY,
    Ops.CUSTOM,
    Ops.CONTIGUOUS,
)

_ELEMENTWISE = tuple(sorted(ELEMENTWISE, key=lambda o: o.value))
_choice = Pat(Ops.WHERE, None)
_LINEAR = tuple(sorted(LINEAR, key=lambda o: o.value))
_joined = Pat(Ops.WHERE, (var("condition"), Pat(Ops.PAD, None), Pat(Ops.PAD, None)), name="n")
_stored = Pat((Ops.BUFFER, Ops.CONTIGUOUS, Ops.COPY, Ops.CUSTOM), None, name="x")

# fmt: off
MOVEMENT_RULES = RuleSet("movement", [
    Rule("empty-is-constant",   Pat(_EMPTIES, None, name="n"), empty),
    Rule("moves-nothing",       Pat((*_SHUFFLES, Ops.PAD), (x,), name="n"), x, where=moves_nothing,
         doc="a movement that leaves every element where it is needs no node"),
    Rule("reshape-reshape",     Pat(Ops.RESHAPE, (op(Ops.RESHAPE, x),), name="n"), reshape_once),
    Rule("movement-undone",     Pat(_LINEAR, None, name="n"), movement_undone),
    Rule("move-constant",       Pat(_SHUFFLES, (filled,), name="n"), filled_shape),
    Rule("bare-constants",      Pat(_ELEMENTWISE, None, name="n"), bare_constants),
    Rule("reduce-constant",     Pat(Ops.REDUCE_AXIS, (filled,), name="n"), reduced_constant),
    Rule("contiguous-buffer",   Pat(Ops.CONTIGUOUS, (_stored,), name="n"), x,
         where=asks_for_no_opts, doc="what has memory of its own is contiguous"),
    Rule("piece-of-pad",        Pat(Ops.SHRINK, (op(Ops.PAD, x),), name="n"), piece_of_pad),
    Rule("pad-of-cast",         Pat(Ops.PAD, (x,), name="n"), padded_narrow),
    Rule("piece-of-choice",     Pat(Ops.SHRINK, (_choice,), name="n"), piece_of_choice),
    Rule("pieces-joined",       _joined, pieces_joined),
    Rule("pieces-undone",       Pat((*_LINEAR, Ops.WHERE), None, name="n"), pieces_undone),
    Rule("reduce-nothing",      Pat(Ops.REDUCE_AXIS, (x,), name="n"), x, where=combines_nothing,
         doc="a reduction over axes of one element is the element"),
])
# fmt: on

TENSOR_RULES = RuleSet("simplify-tensor", MOVEMENT_RULES.rules + VALUE_RULES.rules, keep_shape)
"""The rules that run on the tensor graph before scheduling decides anything."""
