"""Program analysis: the facts of a linear program that every renderer needs before its first line.

They are its arguments, its arrays with their offsets in scratch memory, and the loops of which a
launch runs a part. The frame around a kernel, and how a launch passes the arguments, depend on the
language: see `backends/native/program.py` for this machine's processor.

Sections: Program analysis; Facts of a value that are known before it is computed; 64-bit indexes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.backends.program.launch import LaunchShape, launch_shape
from workbench.backends.program.text import Source, signature
from workbench.base.dtypes import DType, dtypes
from workbench.base.target import Target
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.bounds import unwrapped_bounds
from workbench.ir.node.exact_range import divisor, exact_range
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate

# --------------------------------------------------------------------------------------------------
# Program analysis.


@dataclass(frozen=True, slots=True)
class ProgramAnalysis:
    """The facts of a linear program.

    `params` are in order of their slots, `scratch` (arrays, with their offset in scratch memory) in
    order of appearance; `on_stack` says that the kernel's scratch memory is on its stack; `launch`
    has the loops of which a launch runs a part. `padded` are arrays of one work-item whose end no
    step writes, since PADTO made them longer. Their end is read, though the value is never used;
    but a branch on an unwritten value is undefined behaviour, so renderers set them to 0.

    Units: scratch_bytes; arrays in scratch memory begin at a multiple of alignment_bytes.
    """

    params: tuple[UOp, ...]
    scratch: dict[UOp, int]
    scratch_bytes: int
    on_stack: bool
    alignment_bytes: int
    launch: LaunchShape
    padded: frozenset[UOp]

    @property
    def slots(self) -> int:
        """The number of arguments of a launch; the pointer to scratch memory follows them."""
        return len(signature(self.params))


def analyse(linear: tuple[UOp, ...], target: Target) -> ProgramAnalysis:
    """Walk a linear program once and return its analysis."""
    scratch, scratch_bytes = _scratch(linear, target.alignment_bytes)
    return ProgramAnalysis(
        params=_params(linear),
        scratch=scratch,
        scratch_bytes=scratch_bytes,
        on_stack=scratch_bytes <= target.stack_bytes,
        alignment_bytes=target.alignment_bytes,
        launch=launch_shape(linear),
        padded=_padded(linear),
    )


def _params(linear: tuple[UOp, ...]) -> tuple[UOp, ...]:
    memories = {n.param for n in linear if n.op is Ops.INDEX}
    params = (n for n in memories if n.op is Ops.PARAM)
    return tuple(sorted(params, key=lambda param: param.slot))


def _scratch(linear: tuple[UOp, ...], alignment_bytes: int) -> tuple[dict[UOp, int], int]:
    offsets: dict[UOp, int] = {}
    total = 0
    for node in linear:
        if node.op is Ops.DEFINE and node not in offsets:
            offsets[node] = total
            nbytes = size_of(node) * node.dtype.itemsize
            total += -(-nbytes // alignment_bytes) * alignment_bytes
    return offsets, total


def _padded(linear: tuple[UOp, ...]) -> frozenset[UOp]:
    arrays = {n for n in linear if n.op is Ops.DEFINE and n.space != "shared"}
    conditions = 0
    for node in linear:
        conditions += (node.op is Ops.IF) - (node.op is Ops.ENDIF)
        if node.op is not Ops.STORE or node.place.param not in arrays:
            continue
        index, gate = split_gate(node.place.src[1])
        if conditions or gate is not None or len(node.src) > 2:
            continue  # the condition may fail at the end of the array
        if exact_range(index)[1] + node.src[1].dtype.count >= size_of(node.place.param):
            arrays.discard(node.place.param)
    return frozenset(arrays)


def element_type(node: UOp) -> DType:
    """Return the dtype of one element of the memory an address points into."""
    return node.param.dtype.scalar


def alignment(address: UOp, most_bytes: int) -> int:
    """Return the largest number of bytes, at most `most_bytes`, that divides the distance of an
    address from the beginning of its memory."""
    step = divisor(address.src[1]) * element_type(address).itemsize
    return math.gcd(most_bytes, step)


def about(title: str, plan: ProgramAnalysis) -> list[str]:
    """Return the lines of the comment above a function: its title and its arguments."""
    lines = [" ".join(title.split())]
    for param in plan.params:
        lines.append(f"  p{param.slot}  {param.dtype.scalar.name}[{param.length}]")
    return lines


def finished(
    name: str,
    language: str,
    plan: ProgramAnalysis,
    head: Sequence[str],
    body: tuple[Sequence[str], Sequence[tuple[int, ...]]],
    foot: Sequence[str],
    aligned: Sequence[int] = (),
) -> Source:
    """Return the Source of a kernel from the lines before its body (`head`), the body's lines with
    the positions of their nodes in the program, and the lines after it (`foot`)."""
    lines, positions = body
    return Source(
        name=name,
        language=language,
        text="\n".join([*head, *lines, *foot]),
        params=signature(plan.params),
        scratch_bytes=0 if plan.on_stack else plan.scratch_bytes,
        launch=plan.launch,
        aligned=tuple(aligned),
        lines=((),) * len(head) + tuple(positions) + ((),) * len(foot),
    )


# --------------------------------------------------------------------------------------------------
# Facts of a value that are known before it is computed.

QUOTIENT_SCALE = {dtypes.float32: 2.0**100, dtypes.float64: 2.0**1000}
"""Factor by which a divisor is scaled where the quotient overflows; scaled twice, no quotient
overflows."""


def is_number(node: UOp) -> bool:
    """Whether `node` is a constant without NaN."""
    if node.op is Ops.BROADCAST:
        return is_number(node.src[0])
    values = node.arg if node.op is Ops.LANES else (node.arg,)
    return node.op in (Ops.CONST, Ops.LANES) and all(v == v for v in values)


def may_overflow(node: UOp) -> bool:
    """Whether a signed division might be INT_MIN / -1, on which a machine may trap."""
    a, b = node.src
    if node.dtype.kind == "uint":
        return False
    return int(a.vmin) == int(a.dtype.min) and int(b.vmin) <= -1 <= int(b.vmax)


def wrapping_dtype(node: UOp) -> DType | None:
    """Return the unsigned dtype in which a sum, product, shift or negation must be written in C;
    None if it can be written as it is. C computes narrow integers as int. A result that leaves a
    signed type is undefined, and compilers assume that none does: that x + x has the sign of x."""
    dtype = node.dtype.scalar
    if not dtype.is_int or node.op not in (Ops.ADD, Ops.MUL, Ops.SHL, Ops.NEG):
        return None
    if dtype.kind == "index" or dtype.kind == "uint" and dtype.bits >= 32:
        return None
    is_long = dtype.bits > 32
    least, greatest = unwrapped_bounds(node)
    type_in_c = dtypes.int64 if is_long else dtypes.int32
    if type_in_c.min <= least and greatest <= type_in_c.max:
        return None
    return dtypes.uint64 if is_long else dtypes.uint32


# --------------------------------------------------------------------------------------------------
# 64-bit indexes: the test for the few kernels that need them; a GPU is faster with 32 bits.

_INT32 = 1 << 31
_SUMS = frozenset({Ops.ADD, Ops.MUL, Ops.NEG})


def needs_wide(linear: Sequence[UOp]) -> bool:
    """Return whether an index of a program must have 64 bits.

    A sum or product that only leads to an address may wrap at 32 bits: if the memory is small
    enough, the address is right wherever its element is accessed. (An index from memory times the
    length of a row has huge bounds, but a condition guards its access.)
    """
    indexes = [n for n in linear if n.op is Ops.INDEX]
    if any(size_of(n.param) >= _INT32 for n in indexes):
        return True
    sums = _sums([n.src[1] for n in indexes])
    users = [n for n in linear if n.op is not Ops.INDEX]
    used = {s for n in users if n not in sums for s in n.src}
    parts = {s for n in sums for s in n.src} - sums
    checked = used | parts | {n.src[1] for n in indexes if n.src[1] not in sums}
    return any(_is_wide(n) for n in checked if n.dtype.scalar is dtypes.index)


def _sums(addresses: Sequence[UOp]) -> set[UOp]:
    """Return the sums and products that only lead to an address."""
    sums: set[UOp] = set()
    pending = list(addresses)
    while pending:
        node = pending.pop()
        if node.op in _SUMS and node not in sums:
            sums.add(node)
            pending += node.src
    return sums


def _is_wide(node: UOp) -> bool:
    return not (-_INT32 <= int(node.vmin) and int(node.vmax) < _INT32)
