"""Rules of the tensor level, and checks of kernels that a user wrote.

A check returns why a node breaks its rule, "" where it does not.

Sections: Bounds checks of kernels from text; Kernels that a user wrote; Rules of the tensor
level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from workbench.base.errors import ParseError, VerifyError, WorkbenchError
from workbench.ir.meaning.evaluate import Array
from workbench.ir.nest.estimates import Touched, touched
from workbench.ir.nest.loops import statements
from workbench.ir.node.exact_range import exact_range, index_values
from workbench.ir.node.ops import ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp, closed, gated, leaves, split_gate
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.verify.kernel import KERNEL
from workbench.ir.verify.rows import Spec, are_opts, by_op, common, is_shape, reduces, require
from workbench.ir.verify.unwritten import MOST_POINTS, refuse_unwritten

# --------------------------------------------------------------------------------------------------
# Bounds checks of kernels from text: every gate is proved right, or tightened.
#
# Scheduling builds gates that are right by construction. A kernel that a user typed or changed may
# have a gate that lets an index leave its buffer, and native code would access it. It may also read
# elements that no statement has written: their values differ from device to device.


def bounds_checked(kernel: UOp) -> UOp:
    """Return `kernel` with every gated index of a PARAM inside its buffer: the bounds are added to
    a gate whose positions are too many to try each, or depend on memory.

    Errors: VerifyError for an index that is outside where its gate is open, and for elements of a
    STAGE that are read and never written.
    """
    refuse_unwritten(kernel)
    changes = {}
    for node in kernel.toposort():
        if node.op is not Ops.INDEX or node.src[0].op is not Ops.PARAM:
            continue
        index, gate = split_gate(node.src[1])
        size = node.memory.length
        if gate is None or (index.vmin >= 0 and index.vmax < size):
            continue
        inside = _always_inside(index, gate, size)
        if inside is False:
            raise VerifyError(
                f"an index of PARAM {node.memory.slot} leaves its {size} elements",
                "its condition is true at a position where the index is outside",
            )
        if inside is None:
            changes[node.src[1]] = gated(index, gate & (index >= 0) & (index < size))
    return kernel.substitute(changes) if changes else kernel


def _always_inside(index: UOp, gate: UOp, size: int) -> bool | None:
    """Return whether 0 <= `index` < `size` wherever `gate` is open; None if that is not known."""
    values = _values(index, gate)
    if values is None:
        return None
    at, is_open = values
    return not np.any(is_open & ((at < 0) | (at >= size)))


def _values(*indexes: UOp) -> list[Array] | None:
    """Return the values of index expressions at every step of their ranges, the same steps for all;
    None where there are too many, or they depend on memory."""
    axes = sorted(UOp.sink(*indexes).ranges, key=lambda r: r.axis_name)
    return index_values(indexes, axes, MOST_POINTS)


# --------------------------------------------------------------------------------------------------
# Kernels that a user wrote: read from text, and checked before anything runs them.
#
# A kernel from text is verified, and each of its gates is checked. A kernel in an expression (a
# CUSTOM) must also write each element of its outputs, once, and read none of them.

MOST_STEPS = 1 << 46
"""Most steps of a statement: at 10**9 a second, they take most of a day."""
KEPT_KERNELS = 256
"""Most kernels that are memoised by their texts."""


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
    refuse_endless(kernel)
    for slot in kernel.outputs:
        why = not_written(kernel, slot)
        if why:
            raise VerifyError(f"the kernel does not write slot {slot} whole", why)
    return kernel


def refuse_endless(kernel: UOp) -> None:
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


# --------------------------------------------------------------------------------------------------
# Rules of the tensor level.


def buffer(node: UOp) -> str:
    match node.arg:
        case (_, str(), tuple() as shape) if is_shape(shape):
            return ""
    return f"its arg is {node.arg!r}, not (uid, device, shape)"


def iota(node: UOp) -> str:
    if type(node.arg) is not int or node.arg < 0:
        return f"its arg is {node.arg!r}, not a size"
    return "" if node.dtype.is_int else f"it counts in {node.dtype}"


def operands(node: UOp) -> str:
    try:
        return "" if is_shape(node.shape) else "it has no shape"
    except VerifyError as error:
        return str(error.what)


def reshape(node: UOp) -> str:
    if not is_shape(node.arg):
        return f"{node.arg!r} is not a shape"
    size = math.prod(node.arg)
    return "" if size == node.src[0].size else f"{node.src[0].size} elements become {size}"


def permute(node: UOp) -> str:
    axes = list(range(len(node.src[0].shape)))
    fits = is_shape(node.arg) and sorted(node.arg) == axes
    return "" if fits else f"{node.arg!r} does not permute {axes}"


def expand(node: UOp) -> str:
    source, target = node.src[0].shape, node.arg
    if not is_shape(target) or len(target) < len(source):
        return f"{target!r} has fewer axes than {source}"
    tail = target[len(target) - len(source) :]
    fits = all(n in (1, m) for n, m in zip(source, tail, strict=True))
    return "" if fits else f"{source} does not expand to {target}"


def shrink(node: UOp) -> str:
    return _pairs(node, lambda n, lo, hi: lo <= hi <= n, "(lo, hi)")


def pad(node: UOp) -> str:
    return _pairs(node, lambda n, before, after: True, "(before, after)")


def flip(node: UOp) -> str:
    return _axes(node, node.arg)


def reduce_axis(node: UOp) -> str:
    match node.arg:
        case (Ops(), tuple() as axes):
            return reduces(node) or _axes(node, axes)
    return f"its arg is {node.arg!r}, not (op, axes)"


def copy(node: UOp) -> str:
    return "" if isinstance(node.arg, str) else f"its arg is {node.arg!r}, not a device"


def contiguous(node: UOp) -> str:
    is_fit = node.arg is None or are_opts(node.arg)
    return "" if is_fit else f"its arg is {node.arg!r:.80}, not opts as plain data"


def custom(node: UOp) -> str:
    match node.arg:
        case (str(), int(), tuple() as shapes, str()) if all(map(is_shape, shapes)):
            pass
        case _:
            return f"its arg is {node.arg!r:.80}, not (name, output, shapes, IR text)"
    if not 0 <= node.output < len(shapes):
        return f"output {node.output} is not one of {len(shapes)}"
    try:
        kernel = custom_kernel(node.kernel_text)
    except WorkbenchError as error:
        return f"{error.what}: {error.because}" if error.because else str(error.what)
    return _arguments(node, kernel)


def _arguments(node: UOp, kernel: UOp) -> str:
    """Return why the values of a CUSTOM do not fit the slots of its kernel; "" if they do."""
    params = {n.slot: n for n in kernel.toposort() if n.op is Ops.PARAM}
    count = len(node.output_shapes)
    if kernel.outputs != tuple(range(count)) or len(params) != count + len(node.src):
        return "its kernel has other outputs or inputs"
    sizes = [math.prod(shape) for shape in node.output_shapes]
    sizes += [source.size for source in node.src]
    for slot, size in enumerate(sizes):
        if slot not in params or params[slot].length != size:
            return f"slot {slot} of its kernel does not have {size} elements"
    dtypes = [params[node.output].dtype, *[params[s].dtype for s in range(count, len(params))]]
    values = [node.dtype, *[source.dtype for source in node.src]]
    return "" if dtypes == values else f"its kernel is of {dtypes}, and it of {values}"


def _axes(node: UOp, axes: object) -> str:
    rank = len(node.src[0].shape)
    if isinstance(axes, tuple) and is_shape(axes):
        if len(set(axes)) == len(axes) and all(a < rank for a in axes):
            return ""
    return f"{axes!r} are not axes of {node.src[0].shape}"


def _pairs(node: UOp, fits: Callable[[int, int, int], bool], what: str) -> str:
    shape, pairs = node.src[0].shape, node.arg
    if isinstance(pairs, tuple) and len(pairs) == len(shape):
        if all(is_shape(p) and len(p) == 2 for p in pairs):
            if all(fits(n, *p) for n, p in zip(shape, pairs, strict=True)):
                return ""
    return f"{pairs!r} is not {what} for each axis of {shape}"


# fmt: off
TENSOR = by_op((
    *common("t"),
    Spec("buffer",      (Ops.BUFFER,),      buffer,      "a buffer has id, device and shape"),
    Spec("iota",        (Ops.IOTA,),        iota,        "IOTA counts its elements"),
    Spec("operands",    ELEMENTWISE,        operands,    "operands have one shape"),
    Spec("reshape",     (Ops.RESHAPE,),     reshape,     "RESHAPE keeps the number of elements"),
    Spec("permute",     (Ops.PERMUTE,),     permute,     "PERMUTE names each axis once"),
    Spec("expand",      (Ops.EXPAND,),      expand,      "EXPAND repeats axes of size 1"),
    Spec("shrink",      (Ops.SHRINK,),      shrink,      "SHRINK stays within its source"),
    Spec("pad",         (Ops.PAD,),         pad,         "PAD adds, it does not remove"),
    Spec("flip",        (Ops.FLIP,),        flip,        "FLIP names axes of its source"),
    Spec("reduce-axis", (Ops.REDUCE_AXIS,), reduce_axis, "REDUCE_AXIS names axes of its source"),
    Spec("copy",        (Ops.COPY,),        copy,        "COPY names a device"),
    Spec("contiguous",  (Ops.CONTIGUOUS,),  contiguous,  "CONTIGUOUS has opts, or none"),
    Spec("custom",      (Ops.CUSTOM,),      custom,      "CUSTOM fits its kernel"),
))
# fmt: on
