"""The memory of BUFFER nodes, which lives as long as the node.

Sections: The memory of BUFFER nodes; Pieces of memory.
"""

from __future__ import annotations

from itertools import count
from threading import local
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from workbench.backends.memory import Buffer, Lease
from workbench.backends.native.host_memory import HOST
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import JitError, WorkbenchError
from workbench.base.interrupts import Uninterrupted
from workbench.base.situation import process_changes
from workbench.execution.capture import is_capturing, present_capture
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape

Array = np.ndarray[Any, Any]

# --------------------------------------------------------------------------------------------------
# The memory of BUFFER nodes, which lives as long as the node.

_memory: WeakKeyDictionary[UOp, Buffer] = WeakKeyDictionary()
_shared: WeakKeyDictionary[Lease, WeakSet[UOp]] = WeakKeyDictionary()
"""The BUFFERs on one memory, or on parts of it, if there are several."""
_overwritten: WeakSet[UOp] = WeakSet()
"""BUFFERs of old versions: a newer one is in their memory."""


class _Overwritings(local):
    """The number of times that old versions were overwritten, or got memory of their own instead:
    by all threads (`total`), and by this one (`own`)."""

    total = 0
    own = 0

    def add(self) -> None:
        process_changes.count += 1
        _Overwritings.total += 1
        self.own += 1


_overwritings = _Overwritings()
_lost: WeakKeyDictionary[UOp, str] = WeakKeyDictionary()
"""For overwritten BUFFERs whose newer version was not computed completely: the failure."""
_absent: WeakSet[UOp] = WeakSet()
"""BUFFERs without data: their expression was loaded without the data."""
_unset: WeakSet[UOp] = WeakSet()
"""BUFFERs that were computed of what empty memory held, or are names of such memory."""
_uids = count()


def memory_of(node: UOp) -> Buffer:
    """Return the memory of a BUFFER, allocated on first use. Errors: WorkbenchError if it was
    overwritten by a newer version, or has no data."""
    buffer = _memory.get(node)
    if buffer is None or node in _overwritten:
        if node in _overwritten:
            raise overwritten(node)
        if node in _absent:
            raise no_data("cannot compute this")
        buffer = _memory[node] = Buffer(node.device, node.dtype, node.size)
    return buffer


def memory_under(node: UOp) -> Buffer:
    """Return the memory of a BUFFER, even if a newer version is in it."""
    return _memory[node] if node in _overwritten else memory_of(node)


def host_buffer(array: Array) -> UOp:
    """Return a BUFFER on the host with a private, contiguous copy of `array`."""
    dtype = dtypes.from_numpy(array.dtype.newbyteorder("="))
    memory = Buffer(HOST, dtype, array.size)
    np.copyto(memory.array.reshape(array.shape), array)
    return buffer_on(memory, array.shape)


def buffer_on(memory: Buffer, shape: Shape) -> UOp:
    """Return a new BUFFER of `shape` on existing memory."""
    uid = f"memory{next(_uids)}"
    node = construct.buffer(memory.dtype, uid, memory.device, shape)
    _memory[node] = memory
    return node


def without_memory(node: UOp) -> UOp:
    """Return a new BUFFER of the dtype and shape of `node`, which is never computed or read."""
    return construct.buffer(node.dtype, f"forgotten{next(_uids)}", HOST, node.shape)


def read(buffer: UOp) -> Array:
    """Return a flat copy of the contents of a BUFFER. Errors: JitError while a function is
    captured."""
    if is_capturing():
        raise JitError(
            "cannot read values while a function is captured",
            "each replay would use the same values",
            "return the tensor, and read it outside of the function",
        )
    return memory_of(buffer).to_numpy()


def allocated(node: UOp) -> Buffer | None:
    """Return the memory of a BUFFER, even if overwritten; None before its first use."""
    return _memory.get(node)


def set_memory(node: UOp, memory: Buffer) -> None:
    """Make `memory` the memory of a BUFFER."""
    _memory[node] = memory


def copied(node: UOp) -> UOp:
    """Return a new BUFFER on a copy of the memory of `node`."""
    memory = memory_of(node)
    own = Buffer(memory.device, memory.dtype, memory.size)
    own.copy_from(memory)
    other = buffer_on(own, node.shape)
    if is_unset(node):
        mark_unset(other)
    return other


def free(node: UOp) -> None:
    """Release the memory of a BUFFER that is not read any more."""
    del _memory[node]


def is_overwritten(node: UOp) -> bool:
    """Whether a newer version is in the memory of a BUFFER."""
    return node in _overwritten


def window(node: UOp, start: int, piece: UOp) -> UOp:
    """Return a new BUFFER with the shape and dtype of `piece`, on the memory of `node` from element
    `start` on."""
    other = construct.buffer(piece.dtype, f"window{next(_uids)}", node.device, piece.shape)
    _memory[other] = _memory[node].window(start, piece.size)
    share(node, other)
    return other


def another(node: UOp, shape: Shape) -> UOp:
    """Return a new BUFFER on the memory of `node`; no computed value depends on it."""
    other = buffer_on(memory_of(node), shape)
    share(node, other)
    return other


def name_of_shared(memory: Buffer, shape: Shape) -> UOp:
    """Return a new BUFFER on memory that is shared with another library."""
    node = buffer_on(memory, shape)
    _shared.setdefault(memory.owner, WeakSet()).add(node)
    return node


def share(node: UOp, other: UOp) -> None:
    """Note that `other` is a BUFFER on memory of `node`, or on a part of it."""
    _shared.setdefault(_memory[node].owner, WeakSet((node,))).add(other)
    if is_unset(node):
        mark_unset(other)


def sharing(node: UOp) -> set[UOp]:
    """Return the BUFFERs on the memory of `node`, itself among them."""
    return {node, *_shared.get(_memory[node].owner, ())}


def mark_overwritten(node: UOp) -> None:
    """Note that a newer version is in the memory of `node`: all BUFFERs on it are overwritten."""
    _overwritings.add()
    _overwritten.update(sharing(node))
    _shared.pop(_memory[node].owner, None)


def have_others_overwritten() -> bool:
    """Return whether another thread has overwritten an old version. This thread's own overwritings
    need no check: it overwrites no version that it still reads (`execution/realize.py`)."""
    return _overwritings.own != _overwritings.total


def overwriting_count() -> int:
    """Return the number of times that old versions were overwritten, or got memory of their own
    instead, by all threads. While it is the same, a living BUFFER has the same memory."""
    return _overwritings.total


def mark_lost(node: UOp, failure: BaseException) -> None:
    """Note that the memory of `node` was overwritten in a computation that failed."""
    what = f"{type(failure).__name__}: {getattr(failure, 'what', failure)}"
    _lost.update(dict.fromkeys(sharing(node), what[:200]))
    mark_overwritten(node)


def separate_memory(node: UOp) -> None:
    """Copy the present contents of each BUFFER on the memory of `node` to new memory of its own."""
    own: dict[UOp, Buffer] = {}
    for other in sharing(node):
        memory = _memory[other]
        own[other] = Buffer(memory.device, memory.dtype, memory.size)
        own[other].copy_from(memory)
    with Uninterrupted():
        _overwritings.add()
        _shared.pop(_memory[node].owner, None)
        _memory.update(own)


def absent_buffer(dtype: DType, device: str, shape: Shape) -> UOp:
    """Return a new BUFFER without data, which cannot be read."""
    node = construct.buffer(dtype, f"memory{next(_uids)}", device, shape)
    _absent.add(node)
    return node


def is_absent(node: UOp) -> bool:
    """Whether a BUFFER has no data."""
    return node in _absent


def is_unset(node: UOp) -> bool:
    """Whether the values of a BUFFER are what empty memory happened to hold, or computed of it."""
    return construct.is_empty(node) or node in _unset


def mark_unset(node: UOp) -> None:
    """Note that the values of a BUFFER are computed of what empty memory happened to hold."""
    _unset.add(node)


def no_data(what: str) -> WorkbenchError:
    """Return the error of a request that needs missing data; `what` says what failed."""
    return WorkbenchError(
        what,
        "the data of its tensors are not here: it was loaded from a file without them",
        "explore the same expression of your own tensors; .time() needs no data",
    )


def overwritten(node: UOp) -> WorkbenchError:
    """Return the error of reading a version that was overwritten, wholly or in part."""
    failure = _lost.get(node)
    if failure is not None:
        return WorkbenchError(
            "cannot read a tensor",
            "its value was lost: it was written over in place, and the computation of the new one"
            f" failed half way ({failure})",
            ".assign(value) or .replace(tensor), with a value that does not depend on the lost one",
        )
    return WorkbenchError(
        "cannot read an old value of a tensor",
        "a newer one was written over it, by assign or an operator like +=",
        ".clone() of the tensor before, or explore it again",
    )


# --------------------------------------------------------------------------------------------------
# Pieces of memory: values that are contiguous in a BUFFER, which need no kernel.


def in_place(node: UOp) -> UOp:
    """Return a piece of a BUFFER as a BUFFER on the same memory, without a kernel or a copy; the
    node itself if that is not possible."""
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
    """Return the BUFFER in which the elements of `node` are contiguous, and their offset; None if
    there is none."""
    whole = node
    while whole.op is Ops.RESHAPE:
        (whole,) = whole.src
    return (whole, 0) if whole.op is Ops.BUFFER else _stretch(node)


def piece_of(whole: UOp, piece: tuple[int, int] | None) -> UOp:
    """Return the `piece` (first element, size) of a BUFFER as a flat value; None: the BUFFER."""
    if piece is None:
        return whole
    start, size = piece
    flat = UOp(Ops.RESHAPE, whole.dtype, (whole,), (whole.size,))
    return UOp(Ops.SHRINK, whole.dtype, (flat,), ((start, start + size),))


def _stretch(node: UOp) -> tuple[UOp, int] | None:
    """Return the BUFFER and the offset of a shrunken `node` whose elements are contiguous there;
    None if they are not, and for an empty node."""
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
