"""The tensor graph of pictures: families of ops, kernels that compute a node, labels, folding.

Sections: Families of ops; The tensor graph; The colour and pattern of each kind of axis, in
pictures and on the page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from workbench.backends.native.host_memory import HOST
from workbench.ir.node.ops import MOVEMENT, OPS, REDUCTIONS, AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.viz.model.lines import UserLines
from workbench.viz.schema.record import FamilyRow, KindRow

# --------------------------------------------------------------------------------------------------
# Families of ops: the shapes of boxes, and the letters of their colours.

# fmt: off
FAMILIES = {
    "M": FamilyRow("memory", "cut"),
    "V": FamilyRow("movement", "slant"),
    "R": FamilyRow("reduction", "six"),
    "L": FamilyRow("loops and order", "pill"),
    "C": FamilyRow("constant", "box"),
    "A": FamilyRow("arithmetic", "round"),
}
"""Families of ops that look alike in a graph, by the letter of their colours in the page's
`drawing.css`; their shapes are names in its `graph/paths.js`."""
_FAMILY_OF = {op: letter for letter, ops in {
    "M": {Ops.BUFFER, Ops.COPY, Ops.CONTIGUOUS, Ops.DETACH, Ops.PARAM, Ops.DEFINE, Ops.REG,
          Ops.INDEX, Ops.LOAD, Ops.STORE, Ops.STAGE, Ops.SET},
    "V": MOVEMENT,
    "R": {Ops.REDUCE, Ops.REDUCE_AXIS, Ops.ACCUMULATE, Ops.HREDUCE, Ops.WMMA, Ops.EXCHANGE,
          Ops.WARP_SHUFFLE},
    "L": {Ops.RANGE, Ops.VAR, Ops.LOOP, Ops.ENDLOOP, Ops.END, Ops.AFTER, Ops.BLOCK, Ops.SINK,
          Ops.BARRIER},
    "C": {Ops.CONST, Ops.INVALID, Ops.IOTA, Ops.LANES},
}.items() for op in ops}
# fmt: on


def family_of(op: Ops) -> str:
    """Return the letter of an op's family; "A" (arithmetic) for an op of no other family."""
    return _FAMILY_OF.get(op, "A")


# --------------------------------------------------------------------------------------------------
# The tensor graph: the kernels that compute a node, its label, and folded nodes.


def graph_nodes(outputs: Sequence[UOp]) -> list[UOp]:
    """Return the nodes under `outputs`, sources first: a node's position is its number."""
    return [n for n in UOp.sink(*outputs).toposort() if n.op is not Ops.SINK]


def computing_kernels(items: Sequence[ScheduleItem]) -> Mapping[UOp, list[int]]:
    """Return the kernels that compute each node: a kernel computes all nodes from its results down
    to stored values."""
    ends = {node for item in items for node in item.nodes}
    inside: defaultdict[UOp, list[int]] = defaultdict(list)
    for number, item in enumerate(_kernels(items)):
        for node in item.computed(ends):
            if node.op is not Ops.BUFFER:
                inside[node].append(number)
    return inside


def storing_kernels(items: Sequence[ScheduleItem]) -> Mapping[UOp, int]:
    """Return the kernel that stores each stored value."""
    return {node: i for i, item in enumerate(_kernels(items)) for node in item.nodes}


def _kernels(items: Sequence[ScheduleItem]) -> list[ScheduleItem]:
    return [item for item in items if item.kernel is not None]


def label_of(node: UOp, on: str = "") -> str:
    """Return the label of a node in a picture, a word or two; `on` is the device that kernels are
    for ("": the tensors')."""
    if node.op is Ops.CONST:
        return number_text(node)
    if node.op is Ops.BUFFER:
        return "array" if node.device == HOST else "computed before"
    if node.op is Ops.REDUCE_AXIS:
        over = ", ".join(map(str, node.reduced_axes))
        return f"{REDUCTIONS[node.combines].word} over axis {over}"
    if node.op in (Ops.CAST, Ops.BITCAST):
        return f"{node.op.name.lower()} to {node.dtype}"
    if node.op is Ops.COPY:
        return f"copy to {on or node.arg}"
    if node.op is Ops.CUSTOM:
        return f"kernel {node.name}"
    return OPS[node.op].label or node.op.name.lower()


def number_text(node: UOp) -> str:
    """Return a constant as text, with no more digits than its dtype has."""
    dtype = node.dtype
    return str(dtype.numpy.type(node.arg)) if dtype.is_float else repr(node.arg)


def arg_text(node: UOp) -> str:
    """Return the argument of a node of the tensor graph as text; "" if it has none."""
    if node.op is Ops.CUSTOM:
        return f"output {node.output}"
    return "" if node.arg is None else str(node.arg)


def role_of(node: UOp) -> str:
    """Return the role of a node in a picture: "input", "constant", "movement" or "value"."""
    if node.is_const:
        return "constant"
    if node.op in (Ops.BUFFER, Ops.COPY):
        return "input"
    return "movement" if node.op in MOVEMENT else "value"


# folding


def folded(
    outputs: Sequence[UOp], stored: Collection[UOp], lines: UserLines
) -> tuple[dict[UOp, str], list[tuple[UOp, UOp]]]:
    """Return the nodes of a picture with their labels, sources first, and its edges (source,
    target); the edges into one node are in the order of its operands.

    A constant is text in the labels of its readers. An array that is only copied to a device is one
    box with its copy. A movement that is not `stored` is one box with the movement that is its only
    reader.
    """
    results = set(outputs)
    nodes = [n for n in graph_nodes(outputs) if not n.is_const or n in results]
    sources = {n: [s for s in n.src if not s.is_const or s in results] for n in nodes}
    readers: defaultdict[UOp, list[UOp]] = defaultdict(list)
    for node in nodes:
        for source in sources[node]:
            readers[source].append(node)
    copied = {n for n in nodes if _is_only_copied(n, readers[n])} - results
    moving = {n for n in nodes if role_of(n) == "movement"} - {*stored, *results}
    chained = {n for n in moving if len(readers[n]) == 1 and readers[n][0] in moving}
    own = {n: "array" if copied.intersection(n.src) else _call_text(n, lines.on) for n in nodes}
    labels = {}
    for node in nodes:
        if node not in copied and node not in chained:
            words, below = [own[node]], sources[node]
            while below and below[0] in chained:
                words.insert(0, own[below[0]])
                below = sources[below[0]]
            labels[node] = _named(node, _chain_text(words), lines.name(node))
    edges = []
    for node in labels:
        for source in sources[node]:
            while source in chained and sources[source]:
                source = sources[source][0]
            if source in labels:  # a chain over a constant has no source
                edges.append((source, node))
    return labels, edges


def _is_only_copied(node: UOp, readers: Sequence[UOp]) -> bool:
    is_read = node.op is Ops.BUFFER and bool(readers)
    return is_read and all(reader.op is Ops.COPY for reader in readers)


def _call_text(node: UOp, on: str) -> str:
    """Return the label of a node with its constant operands: "max(\u00b7, 0.0)", "\u00b7 + 1.0"."""
    label = label_of(node, on)
    if not any(source.is_const for source in node.src):
        return label
    words = [number_text(source) if source.is_const else "\u00b7" for source in node.src]
    if len(words) == 2 and not label.isidentifier():
        return f"{words[0]} {label} {words[1]}"
    return f"{label}({', '.join(words)})"


def _chain_text(words: Sequence[str]) -> str:
    if len(words) > 3:  # the sliding windows of a convolution move its input ten times
        words = [words[0], f"{len(words) - 2} more", words[-1]]
    return " \u00b7 ".join(words)


def _named(node: UOp, label: str, name: str) -> str:
    """Return a label with the user's name of an array or a value: "a", "y = max(\u00b7, 0.0)"."""
    role = role_of(node)
    if not name or role not in ("input", "value"):
        return label
    return name if role == "input" else f"{name} = {label}"


# --------------------------------------------------------------------------------------------------
# The colour and pattern of each kind of axis, in pictures and on the page.
#
# The colours are Okabe and Ito's, which people with any colour vision can distinguish; each kind
# also has a pattern of its own, seen on the bars beside a loop's body.

# fmt: off
PATTERNS = {
    "plain":   "linear-gradient({full},{full})",
    "rails":   "linear-gradient(90deg,{full} 1.3px,transparent 1.3px 2.7px,{full} 2.7px)",
    "dotted":  "repeating-linear-gradient({full} 0 4px,{pale} 4px 6px)",
    "dashed":  "repeating-linear-gradient({full} 0 12px,{pale} 12px 16px)",
    "ruled":   "repeating-linear-gradient({full} 0 2px,{pale} 2px 3px)",
    "hatched": "repeating-linear-gradient(135deg,{full} 0 3px,{pale} 3px 5px)",
    "half":    "linear-gradient(90deg,{full} 2px,{pale} 2px)",
    "morse":   "repeating-linear-gradient({full} 0 6px,{pale} 6px 8px,{full} 8px 10px,{pale} 10px"
               " 12px)",
    "slanted": "repeating-linear-gradient(45deg,{full} 0 3px,{pale} 3px 5px)",
    "fine":    "repeating-linear-gradient({pale} 0 3px,{full} 3px 5px)",
}
# fmt: on
"""CSS images by name; {full} and {pale} stand for the colour of a kind and its pale one."""
PALE = "59"
"""Opacity of the pale colour in CSS, hexadecimal: a third."""


def pattern(kind: AxisType) -> str:
    """Return the pattern of a kind in its colour, as a CSS image."""
    return PATTERNS[kind.pattern].format(full=kind.colour, pale=kind.colour + PALE)


def ink(kind: AxisType) -> str:
    """Return the colour of letters on the colour of a kind: the one that has more contrast."""
    light = _luminance(kind.colour) + 0.05
    return "#ffffff" if 1.05 / light > light / 0.05 else "#000000"


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


KINDS: Mapping[str, AxisType] = AxisType.__members__
"""The kinds of axes by the names that rows of loops have."""


def style_rules() -> str:
    """Return the style of every kind for the page: a letter's colours, and the pattern of bars."""
    rules = [
        f".wb-k-{kind.name} {{ --kind: {kind.colour}; --ink: {ink(kind)}; }}\n"
        f".wb-k.wb-k-{kind.name} {{ background: {pattern(kind)}; }}"
        for kind in AxisType
    ]
    return "\n".join(rules)


def kind_rows() -> dict[str, KindRow]:
    """Return a row for every kind, by name."""
    return {
        kind.name: KindRow(
            kind.badge, kind.words, f"{kind.caption}; named {kind.letter}0, {kind.letter}1"
        )
        for kind in AxisType
    }
