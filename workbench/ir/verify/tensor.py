"""Rules of the tensor level: the shapes of sources must fit.

A check returns why a node breaks its rule, "" where it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from workbench.base.errors import VerifyError, WorkbenchError
from workbench.ir.node.ops import ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.verify.custom import custom_kernel
from workbench.ir.verify.rows import Spec, are_opts, by_op, common, is_shape, reduces


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
    """Return why the values of a CUSTOM are not those of its kernel's slots."""
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
