"""Kernels that a user wrote: read from text, and checked before anything runs them.

A kernel from text is verified, and none of its gates is believed. One in an expression (a CUSTOM)
is a value, too: it writes each element of its outputs, once, and reads none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from workbench.base.errors import ParseError, VerifyError
from workbench.ir.nest.estimates import Touched, touched
from workbench.ir.nest.loops import statements
from workbench.ir.node.exact_range import exact_range
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, closed, gated, leaves, split_gate
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.verify.bounds_check import bounds_checked
from workbench.ir.verify.kernel import KERNEL
from workbench.ir.verify.rows import require

MOST_STEPS = 1 << 46
"""Steps of a statement: at 10**9 in a second, they take most of a day."""
KEPT_KERNELS = 256
"""Kernels of texts that are memoised."""


def kernel_of(text: str) -> UOp:
    """Return the SINK that IR text describes. Errors: ParseError for a text that is not a
    kernel."""
    graph = parse(text)
    if not isinstance(graph, UOp) or graph.op is not Ops.SINK:
        raise ParseError("the text is not a kernel", "its last line must be a SINK")
    return graph


def verified(kernel: UOp) -> UOp:
    """Return a kernel with every gated index inside its buffer. Errors: VerifyError for one that
    breaks a rule, ParseError for one that stores nothing."""
    for node in kernel.toposort():
        require(node, KERNEL)
    if not kernel.src:
        raise ParseError("the text is not a kernel", "it stores nothing")
    return bounds_checked(kernel)


@lru_cache(maxsize=KEPT_KERNELS)
def custom_kernel(text: str) -> UOp:
    """Return the kernel of a CUSTOM.

    Errors: as `kernel_of` and `verified`; VerifyError for an output that is not written whole.
    """
    kernel = verified(kernel_of(text))
    if kernel.code is not None:  # its text is not analysed
        return kernel
    _refuse_endless(kernel)
    for slot in kernel.outputs:
        why = not_written(kernel, slot)
        if why:
            raise VerifyError(f"the kernel does not write slot {slot} whole", why)
    return kernel


def _refuse_endless(kernel: UOp) -> None:
    """Errors: VerifyError for a kernel whose loops are of no known length, or take days."""
    variable = next(leaves([kernel], Ops.VAR), None)
    if variable is not None:
        because = "a kernel of an expression is called without variables"
        raise VerifyError(f"the kernel has the variable {variable.name}", because)
    for statement in statements(kernel).values():
        steps = math.prod(axis.extent for axis in statement.nest)
        if steps > MOST_STEPS:
            because = f"it takes {steps:,} steps, and a run could not be stopped"
            raise VerifyError("a statement of the kernel would not end", because)


def with_foreign_code(root: UOp) -> UOp:
    """Return a graph from a file: source text in it is shown, and never run."""
    changes: dict[UOp, UOp] = {}
    for node in root.toposort():
        if node.op is Ops.CUSTOM:
            kernel = custom_kernel(node.kernel_text)
            foreign = marked(kernel, is_foreign=True)
            if foreign is not kernel:
                sources = tuple([s.substitute(changes) for s in node.src])
                arg = (*node.arg[:3], to_text(foreign))
                changes[node] = node.replace(src=sources, arg=arg)
    return root.substitute(changes)


def marked(kernel: UOp, is_foreign: bool) -> UOp:
    """Return a kernel whose source text, if it has any, `is_foreign`."""
    texts = [n for n in kernel.toposort() if n.op is Ops.EXTERN]
    return kernel.substitute(
        {n: n.replace(arg=n.arg._replace(is_foreign=is_foreign)) for n in texts}
    )


def not_written(kernel: UOp, slot: int) -> str:
    """Return why it cannot be shown that a kernel writes each element of a slot once; "" where it
    does."""
    ends = [end for end in kernel.src if end.store.place.param.slot == slot]
    length = ends[0].store.place.param.length
    covers = []
    for end in ends:
        axes, index = closed(end), end.store.place.flat_index
        if any(n.op is Ops.LOAD for n in index.toposort()):
            return "it writes where an element of memory says, and that may be anywhere"
        steps, cover = _steps(axes, index), touched([index], axes, length)
        if steps.exact and cover.exact and cover.elements < steps.elements:
            return "several steps write one element: a REDUCE combines steps"
        covers.append(cover._replace(exact=steps.exact and cover.exact))
    count = sum(cover.elements for cover in covers)
    if not all(cover.exact for cover in covers) or count > length:
        return f"it cannot be shown that each of its {length} elements is written once"
    if count < length:
        return f"{count} of its {length} elements are written"
    return "" if len(ends) == 1 or _are_apart(ends, length) else "some are written twice"


def _steps(axes: Sequence[UOp], index: UOp) -> Touched:
    """Return the number of steps of loops at which a gated index is valid."""
    number, count = UOp.index(0), 1
    for axis in axes:
        number, count = number + axis * count, count * axis.extent
    gate = split_gate(index)[1]
    step = number if gate is None else gated(number, gate)
    return touched([step], axes, count)


def _are_apart(ends: list[UOp], length: int) -> bool:
    """Whether several STOREs that write `length` elements together write different ones."""
    places = [split_gate(end.store.place.flat_index)[0] for end in ends]
    bounds = sorted(exact_range(place) for place in places)
    if all(a[1] < b[0] for a, b in zip(bounds, bounds[1:], strict=False)):
        return True
    axes = [axis for end in ends for axis in closed(end)]
    together = touched([e.store.place.flat_index for e in ends], axes, length)
    return together.exact and together.elements == length
