"""The tensor graph as plain data: every node, which kernels compute it, every edge.

`tensor_graph` has all nodes; `folded` returns the graph of a picture: constants are part of their
users' labels, a chain of movement is one node, and so is an array with its copy; arrays and values
have the user's names.

Sections: Families of ops; The tensor graph as plain data; The colour and pattern of each kind of
axis, in pictures and on the page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from workbench.backends.native.host_memory import HOST
from workbench.ir.node.ops import MOVEMENT, OPS, REDUCTIONS, AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.viz.model.lines import UserLines
from workbench.viz.model.words import shape_text
from workbench.viz.schema.record import FamilyRow, KindRow, Shape

# --------------------------------------------------------------------------------------------------
# Families of ops: the shape and colour of a graph's boxes, in still pictures and on the page, whose
# graph.css has the same colours.


class Family(NamedTuple):
    """Ops that look alike in a graph: `shape` is a name in the page's `graph/paths.js`, `light` and
    `dark` are its colours in the two themes."""

    letter: str
    name: str
    shape: Shape
    light: str
    dark: str
    ops: frozenset[Ops]


# fmt: off
MEMORY = Family("M", "memory", "cut", "#dcebfb", "#173253", frozenset({
    Ops.BUFFER, Ops.COPY, Ops.CONTIGUOUS, Ops.DETACH, Ops.PARAM, Ops.DEFINE, Ops.REG, Ops.INDEX,
    Ops.LOAD, Ops.STORE, Ops.STAGE, Ops.SET,
}))
MOVED = Family("V", "movement", "slant", "#f3e9fb", "#38264a", MOVEMENT)
REDUCTION = Family("R", "reduction", "six", "#fbe3d3", "#532c12", frozenset({
    Ops.REDUCE, Ops.REDUCE_AXIS, Ops.ACCUMULATE, Ops.HREDUCE, Ops.WMMA, Ops.EXCHANGE,
    Ops.WARP_SHUFFLE,
}))
ORDER = Family("L", "loops and order", "pill", "#eef0f2", "#2a3036", frozenset({
    Ops.RANGE, Ops.VAR, Ops.LOOP, Ops.ENDLOOP, Ops.END, Ops.AFTER, Ops.BLOCK, Ops.SINK,
    Ops.BARRIER,
}))
CONSTANT = Family("C", "constant", "box", "#fff", "#111418", frozenset({
    Ops.CONST, Ops.INVALID, Ops.IOTA, Ops.LANES,
}))
ARITHMETIC = Family("A", "arithmetic", "round", "#fdf3d4", "#43370f", frozenset())
# fmt: on
FAMILIES = (MEMORY, MOVED, REDUCTION, ORDER, CONSTANT, ARITHMETIC)
_FAMILY_OF = {op: family for family in FAMILIES for op in family.ops}


def family_of(op: Ops) -> Family:
    """Return the family of an op; the arithmetic family where no other has it."""
    return _FAMILY_OF.get(op, ARITHMETIC)


def family_rows() -> dict[str, FamilyRow]:
    """Return a row for every family, by its letter."""
    return {f.letter: FamilyRow(f.name, f.shape) for f in FAMILIES}


# --------------------------------------------------------------------------------------------------
# The tensor graph as plain data.


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A value. `label` names it in a word or two; `kernels` number the kernels that
    compute it, `stored_by` the one that stores it; `role` is "input", "constant", "movement"
    or "value"; `name` is the user's."""

    number: int
    op: str
    dtype: str
    shape: tuple[int, ...]
    label: str
    arg: str
    role: str
    kernels: tuple[int, ...] = ()
    stored_by: int | None = None
    size_bytes: int = 0
    line: str = ""
    is_requested: bool = False
    name: str = ""

    @property
    def family(self) -> Family:
        """What its box looks like."""
        return family_of(Ops[self.op])


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """`source` is source number `position` of `target`."""

    source: int
    target: int
    position: int


@dataclass(frozen=True, slots=True)
class TensorGraph:
    """Nodes, sources first; node numbers are keys, not places. `titles` are the kernels'."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    titles: tuple[str, ...]


def tensor_graph(
    outputs: Sequence[UOp], items: Sequence[ScheduleItem], titles: Sequence[str], lines: UserLines
) -> TensorGraph:
    """Return the graph under `outputs`; `titles` are those of the items that are kernels."""
    kernels = [item for item in items if item.kernel is not None]
    stored = {node: i for i, item in enumerate(kernels) for node in item.nodes}
    inside = _membership(kernels, {node for item in items for node in item.nodes})
    numbers = {node: i for i, node in enumerate(graph_nodes(outputs))}
    nodes = [
        _node(n, i, tuple(inside[n]), stored.get(n), n in outputs, lines)
        for n, i in numbers.items()
    ]
    edges = [
        GraphEdge(numbers[source], i, place)
        for node, i in numbers.items()
        for place, source in enumerate(node.src)
    ]
    return TensorGraph(tuple(nodes), tuple(edges), tuple(titles))


def graph_nodes(outputs: Sequence[UOp]) -> list[UOp]:
    """Return the nodes under `outputs`, sources first: a node's place is its number."""
    return [n for n in UOp.sink(*outputs).toposort() if n.op is not Ops.SINK]


def is_cut(source: GraphNode, target: GraphNode) -> bool:
    """Whether `target` reads a value from memory."""
    return source.stored_by is not None and source.stored_by not in target.kernels


def _membership(kernels: Sequence[ScheduleItem], ends: set[UOp]) -> Mapping[UOp, list[int]]:
    """Return per node the kernels that compute it: from each result down to stored values."""
    inside: defaultdict[UOp, list[int]] = defaultdict(list)
    for number, item in enumerate(kernels):
        for node in item.computed(ends):
            if node.op is not Ops.BUFFER:
                inside[node].append(number)
    return inside


def _node(
    node: UOp,
    number: int,
    kernels: tuple[int, ...],
    stored: int | None,
    output: bool,
    lines: UserLines,
) -> GraphNode:
    line = lines.first(node)
    return GraphNode(
        number, node.op.name, str(node.dtype), node.shape, label_of(node, lines.on),
        _arg_text(node), _role(node), kernels, stored, node.size * node.dtype.itemsize,
        "" if line is None else str(line), output, lines.name(node),
    )  # fmt: skip


def label_of(node: UOp, on: str = "") -> str:
    """Return the label of a node in a picture, a word or two; `on` is the device that kernels are
    for, where that is another than the tensors'."""
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
    """Return a constant in the shortest words its dtype allows."""
    dtype = node.dtype
    return str(dtype.numpy.type(node.arg)) if dtype.is_float else repr(node.arg)


def _role(node: UOp) -> str:
    if node.is_const:
        return "constant"
    if node.op in (Ops.BUFFER, Ops.COPY):
        return "input"
    return "movement" if node.op in MOVEMENT else "value"


def _arg_text(node: UOp) -> str:
    if node.op is Ops.CUSTOM:
        return f"output {node.output}"
    return "" if node.arg is None else str(node.arg)


# folding


@lru_cache(maxsize=8)
def folded(graph: TensorGraph) -> TensorGraph:
    """Return the graph as a picture shows it; several pictures share one."""
    return _with_names(_without_chains(_without_copies(_without_constants(graph))))


def _without_constants(graph: TensorGraph) -> TensorGraph:
    constants = {n.number: n.label for n in graph.nodes if n.role == "constant"}
    sources = _sources(graph.edges)
    nodes = []
    for node in graph.nodes:
        below = sources[node.number]
        if node.number in constants and not node.is_requested:
            continue
        words = [constants.get(e.source, "\u00b7") for e in below]
        if any(e.source in constants for e in below):
            node = replace(node, label=_call_text(node.label, words))
        nodes.append(node)
    numbers = {n.number for n in nodes}
    edges = [e for e in graph.edges if e.source in numbers and e.target in numbers]
    return TensorGraph(tuple(nodes), tuple(edges), graph.titles)


def _call_text(label: str, words: Sequence[str]) -> str:
    if len(words) == 2 and not label.isidentifier():
        return f"{words[0]} {label} {words[1]}"
    return f"{label}({', '.join(words)})"


def _without_copies(graph: TensorGraph) -> TensorGraph:
    """Fold an array that is only copied to a device into the copy."""
    by_number = {n.number: n for n in graph.nodes}
    readers, sources = _readers(graph.edges), _sources(graph.edges)
    folded_numbers: set[int] = set()
    nodes = []
    for node in graph.nodes:
        if node.op == "BUFFER" and not node.is_requested:
            copies = [by_number[e.target].op == "COPY" for e in readers[node.number]]
            if copies and all(copies):
                folded_numbers.add(node.number)
                continue
        if node.op == "COPY" and any(e.source in folded_numbers for e in sources[node.number]):
            node = replace(node, label="array")
        nodes.append(node)
    edges = [e for e in graph.edges if e.source not in folded_numbers]
    return TensorGraph(tuple(nodes), tuple(edges), graph.titles)


def _without_chains(graph: TensorGraph) -> TensorGraph:
    """Fold movement into the movement that alone reads it."""
    by_number = {n.number: n for n in graph.nodes}
    readers = _readers(graph.edges)
    sources = _sources(graph.edges)
    folded_numbers: set[int] = set()
    feeds: dict[int, int] = {}
    nodes = []
    for node in graph.nodes:
        above = readers[node.number]
        if _folds(node) and len(above) == 1 and _folds(by_number[above[0].target]):
            folded_numbers.add(node.number)
            feeds[above[0].target] = node.number
            continue
        words, place = [node.label], node.number
        while place in feeds:
            place = feeds[place]
            words.insert(0, by_number[place].label)
        is_alone = len(words) == 1
        nodes.append(node if is_alone else replace(node, label=_chain_text(words)))
    edges = []
    for edge in graph.edges:
        if edge.target in folded_numbers:
            continue
        source = edge.source
        while source in folded_numbers and sources[source]:
            source = sources[source][0].source
        if source not in folded_numbers:  # it moves a constant, which is a word in its label
            moved = source != edge.source
            edges.append(replace(edge, source=source) if moved else edge)
    return TensorGraph(tuple(nodes), tuple(edges), graph.titles)


def _with_names(graph: TensorGraph) -> TensorGraph:
    """Label arrays and values as the user's code does: "a", "y = max(·, 0.0)"."""
    nodes = []
    for node in graph.nodes:
        if node.name and node.role == "input":
            node = replace(node, label=node.name)
        elif node.name and node.role == "value":
            node = replace(node, label=f"{node.name} = {node.label}")
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _chain_text(words: Sequence[str]) -> str:
    if len(words) > 3:  # the sliding windows of a convolution move its input ten times
        words = [words[0], f"{len(words) - 2} more", words[-1]]
    return " \u00b7 ".join(words)


def _folds(node: GraphNode) -> bool:
    return node.role == "movement" and node.stored_by is None and not node.is_requested


def _sources(edges: Sequence[GraphEdge]) -> Mapping[int, list[GraphEdge]]:
    by_target: defaultdict[int, list[GraphEdge]] = defaultdict(list)
    for edge in edges:
        by_target[edge.target].append(edge)
    return by_target


def _readers(edges: Sequence[GraphEdge]) -> Mapping[int, list[GraphEdge]]:
    by_source: defaultdict[int, list[GraphEdge]] = defaultdict(list)
    for edge in edges:
        by_source[edge.source].append(edge)
    return by_source


def size_text(node: GraphNode) -> str:
    """Return a node's shape and dtype: "64x48 float32"."""
    return f"{shape_text(node.shape)} {node.dtype}"


# --------------------------------------------------------------------------------------------------
# The colour and pattern of each kind of axis, in pictures and on the page.
#
# The colours are Okabe and Ito's, which people with any colour vision tell apart; each kind has a
# pattern of its own, too, seen on the bars beside a loop's body.

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
"""CSS images by name, with the full colour and a pale one to fill in."""
PALE = "59"
"""Opacity of the pale colour in CSS: a third."""


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


class KindLook(NamedTuple):
    """How text and pictures show a kind of axis: its letter, in `ink` on its colour or pattern,
    its name, and what it is for."""

    letter: str
    name: str
    caption: str
    colour: str
    ink: str
    pattern: str


KIND_LOOKS = {
    k.name: KindLook(k.badge, k.words, k.caption, k.colour, ink(k), pattern(k)) for k in AxisType
}
"""The looks by the name of the kind."""


def style_rules() -> str:
    """Return the style of every kind for the page: a letter's colours, and the pattern of bars."""
    rules = [
        f".wb-k-{name} {{ --kind: {look.colour}; --ink: {look.ink}; }}\n"
        f".wb-k.wb-k-{name} {{ background: {look.pattern}; }}"
        for name, look in KIND_LOOKS.items()
    ]
    return "\n".join(rules)


def kind_rows() -> dict[str, KindRow]:
    """Return a row for every kind, by name."""
    return {
        name: KindRow(look.letter, look.name, look.caption) for name, look in KIND_LOOKS.items()
    }
