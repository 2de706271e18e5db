"""Titles of kernels: "matmul+bias+relu", "sum", "elementwise exp2+add".

A title is read from the kernel's graph: reductions and well-known functions come first; plain
arithmetic is named only if there is nothing else.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import groupby

from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import CASTS, MOVEMENT, OPS, REDUCTIONS, Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.opt import ranges
from workbench.viz.model.graph import label_of
from workbench.viz.model.lines import UserLines
from workbench.viz.model.words import shape_text

LONGEST = 4
"""Most words of a title, and most outputs; "..." stands for further ones."""
SQUARES = "sum of squares"
ELEMENTWISE = "elementwise "


def decoded(kernel: UOp) -> str:
    """Return the meaning of an un-optimised kernel's name: for r_64_48_32 "r: it reduces; 64 g0, 48
    g1, 32 r0"; "" for a name that the scheduler did not choose."""
    axes, (first, *sizes) = ranges(kernel), kernel.arg.name.split("_")
    loops = [axes[name] for name in kernel.arg.order]
    kinds = {"r": "it reduces", "e": "element by element"}
    if first not in kinds or sizes != [str(loop.extent) for loop in loops]:
        return ""
    each = ", ".join(f"{loop.extent} {loop.axis_name}" for loop in loops)
    return f"{first}: {kinds[first]}" + (f"; {each}" if each else "")


def title_of(kernel: UOp) -> str:
    """Return the title of a kernel (a SINK): the steps of each output in order, joined by "+"; "in"
    and the language for a kernel with code of its own."""
    if kernel.code is not None:
        return f"in {kernel.code.language}"
    if len(kernel.src) < 2:
        return _title(kernel)
    ends = sorted(kernel.src, key=lambda end: end.store.place.param.slot)
    titles = [_title(kernel.replace(src=(end,))) for end in ends]
    everywhere = ELEMENTWISE if all(t.startswith(ELEMENTWISE) for t in titles) else ""
    times = Counter([title.removeprefix(everywhere) for title in titles])
    parts = [t if n == 1 else f"{t} ({n} times)" for t, n in times.items()]
    more = ["..."] if len(parts) > LONGEST else []
    return everywhere + ", ".join(parts[:LONGEST] + more)


def _title(kernel: UOp) -> str:
    """Return the title of a kernel of one output."""
    nodes = [n for n in kernel.toposort() if n.dtype.kind not in ("index", "void")]
    readers: dict[UOp, list[UOp]] = {n: [] for n in nodes}
    for node in nodes:
        for source in node.src:
            if source in readers:
                readers[source].append(node)
    output = frozenset().union(*[store.ranges for store in kernel.stores])
    strong = {n: _strong(n, readers, output) for n in nodes}
    reduces = any(n.op is Ops.REDUCE for n in nodes)
    words = [w for w in strong.values() if w]
    if not reduces:
        words = [w for w in [s or _weak(n) for n, s in strong.items()] if w]
    return _joined(words, nodes, reduces)


def value_name(node: UOp, on: str = "") -> str:
    """Return the name of a value of the tensor graph: "exp", "relu", "add", "sum of products"; for
    an op without such a word its label in a picture (see `label_of`)."""
    if node.op is Ops.MAX and _has_const(node, 0.0):
        return "relu"
    if node.op is Ops.REDUCE_AXIS:
        product = _uncast(node.src[0])
        is_product = node.combines is Ops.ADD and product.op is Ops.MUL
        if is_product and not any(map(_is_uniform, product.src)):
            return SQUARES if product.src[0] is product.src[1] else "sum of products"
        return REDUCTIONS[node.combines].word
    if node.op in CASTS or node.op is Ops.CUSTOM:
        return label_of(node)
    return OPS[node.op].word or label_of(node, on)


def value_title(node: UOp, lines: UserLines) -> str:
    """Return the user's name of a value, or else its own, with its shape: "scores 8x8"."""
    return f"{lines.name(node) or value_name(node, lines.on)} {shape_text(node.shape)}"


def _joined(words: list[str], nodes: list[UOp], reduces: bool) -> str:
    words = [word for word, _ in groupby(words)]
    if not words:
        return "copy" if any(n.op is Ops.LOAD for n in nodes) else "fill"
    more = ["..."] if len(words) > LONGEST else []
    title = "+".join(words[:LONGEST] + more)
    return title if reduces else ELEMENTWISE + title


def _strong(node: UOp, readers: dict[UOp, list[UOp]], output: frozenset[UOp]) -> str | None:
    if node.op is Ops.REDUCE:
        return _reduce(node, readers[node], output)
    if node.op is Ops.MAX and _has_const(node, 0.0):
        return "relu"
    if node.op is Ops.ADD and any(_is_bias(s, output) for s in node.src):
        return "bias" if any(_holds_reduce(s) for s in node.src) else None
    if node.op is Ops.FDIV and node.src[1].is_const:
        return None
    row = OPS[node.op]
    return row.word if row.is_function else None


def _weak(node: UOp) -> str | None:
    if node.op is Ops.CAST and node.src[0].dtype.kind == "index":
        return "arange"
    return OPS[node.op].word or None


def _reduce(node: UOp, readers: list[UOp], output: frozenset[UOp]) -> str:
    steps = math.prod(r.extent for r in node.src[1:])
    if node.arg is not Ops.ADD:
        return REDUCTIONS[node.arg].word
    if any(_has_const(r, 1 / steps) or _divides(r, steps) for r in readers):
        return "mean"
    product = _uncast(node.src[0])
    if product.op is Ops.MUL and all(_loads_of(s) for s in product.src):
        return _product(product, output)
    return "sum"


def _product(product: UOp, output: frozenset[UOp]) -> str:
    """Name a sum of products by the output axes that its two factors depend on."""
    if product.src[0] is product.src[1]:
        return SQUARES
    left, right = [s.ranges & output for s in product.src]
    if not left and not right:
        return "dot"
    if left == right:
        return "sum of products"
    windows = any(_is_window(load, output) for s in product.src for load in _loads_of(s))
    return "conv" if windows else "matmul"


def _is_window(load: UOp, output: frozenset[UOp]) -> bool:
    """Whether a load is of a sliding window: steps of an output axis and of a reduced axis can lead
    to the same element, whatever their strides are."""
    steps, _ = terms(split_gate(load.place.flat_index)[0])
    axes = [(axis, abs(step)) for axis, step in steps.items() if axis.op is Ops.RANGE]
    outer = [each for each in axes if each[0] in output]
    reduced = [each for each in axes if each[0] not in output]
    return any(
        (shared := math.lcm(one, other)) // one < axis.extent and shared // other < along.extent
        for axis, one in outer
        for along, other in reduced
    )


def _loads_of(node: UOp) -> list[UOp]:
    return [n for n in node.toposort() if n.op is Ops.LOAD]


def _is_bias(node: UOp, output: frozenset[UOp]) -> bool:
    return node.op is Ops.LOAD and len(node.ranges) < len(output)


def _holds_reduce(node: UOp) -> bool:
    return any(n.op is Ops.REDUCE for n in node.toposort())


def _divides(node: UOp, value: float) -> bool:
    return node.op is Ops.FDIV and node.src[1].is_const and node.src[1].arg == value


def _has_const(node: UOp, value: float) -> bool:
    return any(s.is_const and math.isclose(s.arg, value, rel_tol=1e-5) for s in node.src)


def _is_uniform(node: UOp) -> bool:
    while node.op in CASTS or node.op in MOVEMENT:
        node = node.src[0]
    return node.is_const


def _uncast(node: UOp) -> UOp:
    while node.op in CASTS:
        node = node.src[0]
    return node
