"""Program analysis: the facts of a linear program that every renderer needs before the first line.

They are its arguments, its arrays with their offsets in scratch memory, and the loops of which a
launch runs a part. C and LLVM have the same frame around a kernel:

    name(args, lo, hi, thread)

`args` holds a pointer per argument and then, if it is large, one to scratch memory; `lo` and `hi`
are the steps of the chunked loop that this launch runs, `thread` is its step of the loop over
threads, where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.backends.program.source import Source, signature
from workbench.base.dtypes import DType
from workbench.base.target import Target
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.affine import divisor
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

ALIGNMENT_BYTES = 64
"""Alignment of arrays in scratch memory."""


@dataclass(frozen=True, slots=True)
class ProgramAnalysis:
    """The facts of a linear program.

    `params` are in order of their slots, `scratch` (arrays, with their offset in scratch memory) in
    order of appearance; `on_stack` says that the kernel's scratch memory is on its stack; `chunked`
    is the axis of the loop of which a launch may run a part.

    Units: scratch_bytes.
    """

    params: tuple[UOp, ...]
    scratch: dict[UOp, int]
    scratch_bytes: int
    on_stack: bool
    chunked: UOp | None
    threads: int

    @property
    def slots(self) -> int:
        """The number of arguments of a launch; the pointer to scratch memory follows them."""
        return len(signature(self.params))


def analyse(linear: tuple[UOp, ...], target: Target) -> ProgramAnalysis:
    """Walk a linear program once and return its analysis."""
    scratch, scratch_bytes = _scratch(linear)
    chunked = [n.src[0] for n in linear if n.op is Ops.LOOP and n.role == "chunked"]
    return ProgramAnalysis(
        params=_params(linear),
        scratch=scratch,
        scratch_bytes=scratch_bytes,
        on_stack=scratch_bytes <= target.stack_bytes,
        chunked=chunked[0] if chunked else None,
        threads=threads_of(linear),
    )


def threads_of(linear: Sequence[UOp]) -> int:
    """Return how many threads a launch of a program takes: the steps of its thread loop."""
    loops = (n for n in linear if n.op is Ops.LOOP and n.role == "thread")
    return next((loop.src[0].extent for loop in loops), 1)


def _params(linear: tuple[UOp, ...]) -> tuple[UOp, ...]:
    memories = {n.param for n in linear if n.op is Ops.INDEX}
    params = (n for n in memories if n.op is Ops.PARAM)
    return tuple(sorted(params, key=lambda param: param.slot))


def _scratch(linear: tuple[UOp, ...]) -> tuple[dict[UOp, int], int]:
    offsets: dict[UOp, int] = {}
    total = 0
    for node in linear:
        if node.op is Ops.DEFINE and node not in offsets:
            offsets[node] = total
            nbytes = size_of(node) * node.dtype.itemsize
            total += -(-nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return offsets, total


def element_type(node: UOp) -> DType:
    """Return the dtype of one element of the memory an address points into."""
    return node.param.dtype.scalar


def alignment(address: UOp) -> int:
    """Return the largest number of bytes, at most ALIGNMENT_BYTES, that divides the distance of an
    address from the beginning of its memory."""
    step = divisor(address.src[1]) * element_type(address).itemsize
    return math.gcd(ALIGNMENT_BYTES, step)


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
        extent=None if plan.chunked is None else plan.chunked.extent,
        threads=plan.threads,
        aligned=tuple(aligned),
        lines=((),) * len(head) + tuple(positions) + ((),) * len(foot),
    )
