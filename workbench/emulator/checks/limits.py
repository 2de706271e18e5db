"""The limits of a device, checked before an edited program runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.backends.program.launch import LaunchShape, launch_shape
from workbench.base.errors import DeviceError
from workbench.base.target import Target
from workbench.base.words import plural
from workbench.emulator.checks.code import params_of
from workbench.emulator.checks.duration import emulation_s
from workbench.ir.nest.accesses import size_of
from workbench.ir.nest.launch_dims import group_excess
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

MOST_S = 120.0
"""Seconds of a run on request."""
SMALLER = "smaller tensors, of which the kernel has the same loops"
"""What to try where a kernel is too large to be emulated."""
MOST_ELEMENTS = 1 << 26
"""Elements of global memory: who wrote and who read each takes some 80 bytes."""


def require_elements(linear: Sequence[UOp], target: Target) -> None:
    """Errors: DeviceError for a program whose arguments have more elements than can be watched,
    asked before memory is made for them."""
    elements = sum(length for _, length in params_of(linear, target))
    if elements > MOST_ELEMENTS:
        what = f"the kernel {linear[0].arg.name} is too large to be emulated"
        most = f"at most {MOST_ELEMENTS:,} are watched"
        because = f"its arguments have {elements:,} elements, and {most}"
        raise DeviceError(what, because, SMALLER)


def require_fit(linear: Sequence[UOp], target: Target) -> None:
    """Errors: DeviceError, with the numbers, for a program that the target has no room for. One of
    a processor is a single work-item, and always fits."""
    if not target.has_groups:
        return
    problem = next(_problems(linear, launch_shape(linear), target), None)
    if problem is not None:
        name = linear[0].arg.name
        what = f"the kernel {name} is too large for {target.device}"
        raise DeviceError(what, *problem)


def require_time(
    linear: Sequence[UOp], target: Target, most_s: float = MOST_S, groups: int | None = None
) -> None:
    """Errors: DeviceError for a program that the emulator would run for more than `most_s`
    seconds, all of its work-groups or a number of them."""
    seconds = emulation_s(linear, groups)
    if seconds > most_s:
        name = linear[0].arg.name
        what = f"the kernel {name} is too large to be emulated for {target.device}"
        took = plural(round(seconds), "second")
        because = f"it would take about {took}, and at most {most_s:g} are allowed"
        raise DeviceError(what, because, SMALLER)


def _problems(
    linear: Sequence[UOp], launch: LaunchShape, target: Target
) -> Iterator[tuple[str, str]]:
    """Yield reasons, and what to try."""
    because = group_excess([*reversed(launch.group)], target)
    if because:
        yield because, "smaller LOCAL and GROUP axes"
    sizes = [*reversed(launch.grid)]
    limits = target.grid_limits
    if len(sizes) > len(limits):
        because = f"its grid has {len(sizes)} dimensions, and there are {len(limits)}"
        yield because, "fewer dimensions"
    for dimension, size, limit in zip("xyz", sizes, limits, strict=False):
        if size > limit:
            because = f"its grid has {size:,} groups along {dimension}, and {limit:,} fit"
            yield because, "larger groups, or fewer"
    spaces = (
        ("shared", "a group", target.shared_bytes),
        ("scratch", "a work-item", target.scratch_bytes),
    )
    for space, owner, limit in spaces:
        arrays = [n for n in linear if n.op is Ops.DEFINE and n.space == space]
        nbytes = sum(size_of(a) * a.dtype.itemsize for a in arrays)
        if nbytes > limit:
            because = f"the arrays of {owner} have {nbytes:,} bytes, and {limit:,} fit"
            yield because, "smaller tiles"
