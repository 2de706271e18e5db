"""Pieces of memory: values whose elements are neighbours in a BUFFER, which need no kernel."""

from __future__ import annotations

from workbench.backends.native.host_memory import HOST
from workbench.execution.buffers import allocated, window
from workbench.execution.capture import present_capture
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def in_place(node: UOp) -> UOp:
    """Return a piece of a BUFFER as a BUFFER on the same memory, without a kernel or a copy."""
    stretch = _stretch(node)
    if stretch is None:
        return node
    buffer, start = stretch
    memory = allocated(buffer)
    if memory is None or memory.device == HOST or not memory.has_window(start):
        return node
    piece = window(buffer, start, node)
    capture = present_capture()
    if capture is not None:
        capture.pieces[piece] = buffer, start
    return piece


def neighbours(node: UOp) -> tuple[UOp, int] | None:
    """Return the BUFFER and the offset of a `node` whose elements lie there in order; None if they
    are not neighbours in one."""
    whole = node
    while whole.op is Ops.RESHAPE:
        (whole,) = whole.src
    return (whole, 0) if whole.op is Ops.BUFFER else _stretch(node)


def piece_of(whole: UOp, piece: tuple[int, int] | None) -> UOp:
    """Return the piece (first element, size) of a BUFFER, flat; all of it, if that is None."""
    if piece is None:
        return whole
    start, size = piece
    flat = UOp(Ops.RESHAPE, whole.dtype, (whole,), (whole.size,))
    return UOp(Ops.SHRINK, whole.dtype, (flat,), ((start, start + size),))


def _stretch(node: UOp) -> tuple[UOp, int] | None:
    """Return the BUFFER and the offset of a shrunken `node` whose elements lie there in order; None
    if they are not neighbours, or there are none."""
    start, is_piece = 0, False
    while node.op in (Ops.RESHAPE, Ops.SHRINK) and node.size:
        source = node.src[0]
        if node.op is Ops.SHRINK:
            is_piece = True
            first = next((i for i, n in enumerate(node.shape) if n != 1), len(node.shape))
            if node.shape[first + 1 :] != source.shape[first + 1 :]:
                return None
            offset = 0
            for (low, _), size in zip(node.arg, source.shape, strict=True):
                offset = offset * size + low
            start += offset
        node = source
    return (node, start) if is_piece and node.op is Ops.BUFFER else None
