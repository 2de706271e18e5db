"""Program analysis: the facts of a linear program that every renderer needs before its first line.

They are its arguments, its arrays with their offsets in scratch memory, and the loops of which a
launch runs a part. The frame around a kernel, what a launch hands in and how, is the language's:
`backends/native/program.py` has that of this machine's processor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.backends.program.launch import LaunchShape, launch_shape
from workbench.backends.program.source import Source, signature
from workbench.base.dtypes import DType
from workbench.base.target import Target
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.affine import divisor
from workbench.ir.node.exact_range import exact_range
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate


@dataclass(frozen=True, slots=True)
class ProgramAnalysis:
    """The facts of a linear program.

    `params` are in order of their slots, `scratch` (arrays, with their offset in scratch memory) in
    order of appearance; `on_stack` says that the kernel's scratch memory is on its stack; `launch`
    has the loops of which a launch runs a part. `padded` are arrays of `scratch` that a work-item
    has for itself, whose end no step writes: PADTO made them longer than what fills them. Their end
    is read, and nothing uses what is read, but a compiler may do as it likes with a branch on a
    unwritten value: languages set it to 0.

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
            continue  # perhaps no step meets the condition at the end
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
    """Return the comment above a function: its title and its arguments."""
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
    """Return the Source of a kernel from its lines: those before the body, the body's with the
    positions in the program of the nodes whose code they are, and those after it."""
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
