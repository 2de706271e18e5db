"""IR as a person would write it: infix, indexes in brackets, trees of loops indented.

    s3 = REDUCE(add, p1[g0*512 + r0] * p2[r0*512 + g1], r0)
    STORE(p0[g0*512 + g1], max(s3, 0.0))  END g0 g1

Shared values and long ones get a name and a line of their own, so the text grows with the
graph and not with the expression it stands for. It is for reading and for diffs; `text.py`
has the form that parses back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from workbench.base.dtypes import Const, dtypes
from workbench.base.errors import WorkbenchError
from workbench.ir.nest.loops import tree_statements
from workbench.ir.node.ops import MOVEMENT, OPS, REDUCTIONS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import NodeNames, to_text

_SHORT = 24
"""Characters of an index that is repeated where it is used, at most."""
_LONG = 90
"""Characters of an expression from which on it gets a line of its own."""
# how tightly words bind
_ATOM = 9
_UNARY = 8
_LOOSE = -1
_SUM = OPS[Ops.ADD].precedence
# fmt: off
_LEAVES = frozenset({Ops.RANGE, Ops.PARAM, Ops.DEFINE, Ops.REG, Ops.VAR, Ops.BUFFER})
_OWN_LINE = MOVEMENT | {Ops.REDUCE, Ops.STAGE, Ops.REDUCE_AXIS, Ops.CONTIGUOUS, Ops.COPY}
_NEVER_NAMED = _LEAVES | {Ops.CONST, Ops.INVALID, Ops.INDEX}
_TENSOR = MOVEMENT | {Ops.BUFFER, Ops.IOTA, Ops.REDUCE_AXIS, Ops.CONTIGUOUS, Ops.COPY}
# fmt: on
Text = tuple[str, int]
"""Words and how tightly they bind."""


def to_expr(ir: UOp | Sequence[UOp]) -> str:
    """Return the human form of a graph of any level (a linear program: its `to_text`)."""
    if not isinstance(ir, UOp):
        return to_text(ir)
    if ir.op is Ops.BLOCK:
        return "\n".join(_tree(ir))
    nodes = ir.toposort()
    shapes = any(n.op in _TENSOR for n in nodes)
    writer = _TreeWriter(NodeNames(), shapes)
    lines = _header(ir, list(nodes), writer)
    roots = ir.src if ir.op is Ops.SINK else (ir,)
    writer.count(nodes)
    for root in roots:
        lines += [*writer.lines_before(root), _root_line(root, writer)]
    return "\n".join(lines)


def _header(ir: UOp, nodes: list[UOp], writer: _TreeWriter) -> list[str]:
    """Return a line per buffer and per axis of a whole kernel, and its loop order."""
    lines = []
    whole = ir.arg is not None and ir.op in (Ops.SINK, Ops.BLOCK)
    if whole:
        lines.append(f"kernel {ir.arg.name}")
    leaves = [n for n in nodes if n.op in _LEAVES]
    place = {name: i for i, name in enumerate(ir.arg.order)} if whole else {}
    leaves.sort(key=lambda n: (n.op is Ops.RANGE, _rank(n, place)))
    for node in leaves:
        name = writer.names.give(node)
        if node.op is Ops.BUFFER:
            lines.append(f"{name} = BUFFER {node.device} {_typed(node)}")
        elif whole and node.op is Ops.PARAM:
            lines.append(f"{name} = PARAM {node.slot} {node.dtype}[{node.length}]")
        elif (
            whole
            and node.op is Ops.RANGE
            and (ir.op is Ops.SINK or node.axis_kind.is_lane)
        ):
            lines.append(f"{name} = RANGE {node.extent} {_kind(node)}")
        elif whole and node.op is Ops.DEFINE:
            sizes = "".join(f"[{n}]" for n in node.memory_shape)
            lines.append(f"{name} = DEFINE {node.space} {node.dtype}{sizes}")
    if whole and place:
        lines.append("order " + " ".join(place))
    if whole and not ir.arg.work_groups:
        lines.append("no work-groups")
    return lines


def _rank(node: UOp, place: dict[str, int]) -> int:
    if node.op is Ops.PARAM:
        return node.slot
    return place.get(node.axis_name, len(place)) if node.op is Ops.RANGE else 0


def _root_line(root: UOp, writer: _TreeWriter) -> str:
    words = writer.words(root)
    if root.op is Ops.END and root.src[0].op is Ops.STORE:
        ranges = "".join(f" {writer.words(r)}" for r in root.src[1:])
        return f"{writer.words(root.src[0])}  END{ranges}"
    if (
        writer.shapes
        and root.dtype is not dtypes.void
        and root not in writer.names.by_node
    ):
        return f"{_typed(root)} = {words}"
    return words


def _tree(block: UOp) -> list[str]:
    """Return the lines of a statement tree; each statement names its own shared values."""
    writer = _TreeWriter(NodeNames(), shapes=False)
    lines = _header(block, list(block.toposort()), writer)
    stack: list[tuple[UOp | None, int]] = [(s, 0) for s in reversed(block.src)]
    while stack:
        node, depth = stack.pop()
        pad = "  " * depth
        if node is None:
            lines.append(f"{pad}}}")
        elif node.op is Ops.LOOP:
            axis = node.src[0]
            note = _kind(axis) + (f", {node.arg}" if node.arg else "")
            lines.append(f"{pad}for {writer.words(axis)} in {axis.extent} ({note}) {{")
            stack.append((None, depth))
            stack.extend([(s, depth + 1) for s in reversed(node.src[1:])])
        else:
            writer.count(node.toposort())
            before = writer.lines_before(node)
            lines += [pad + line for line in [*before, _statement(node, writer)]]
    return lines


def statement_lines(block: UOp) -> dict[UOp, tuple[str, ...]]:
    """Return the lines of each STORE and ACCUMULATE of a statement tree, as `to_expr` has them."""
    writer = _TreeWriter(NodeNames(), shapes=False)
    _header(block, list(block.toposort()), writer)
    lines_by_node: dict[UOp, tuple[str, ...]] = {}
    for node in tree_statements(block):
        writer.count(node.toposort())
        before = writer.lines_before(node)
        target = writer.words(node.src[0])
        sign = "=" if node.op is Ops.STORE else REDUCTIONS[node.combines].update
        lines_by_node[node] = (*before, f"{target} {sign} {writer.words(node.src[1])}")
    return lines_by_node


def _statement(node: UOp, writer: _TreeWriter) -> str:
    if node.op not in (Ops.STORE, Ops.ACCUMULATE):
        return writer.words(node)
    sign, lanes = "=", node.vector
    if node.op is Ops.ACCUMULATE:
        sign = REDUCTIONS[node.combines].update
    target, value = writer.words(node.src[0]), writer.words(node.src[1])
    return f"{target} {sign} {value}" + (f"  (lanes {lanes})" if lanes else "")


def _kind(axis: UOp) -> str:
    return axis.axis_kind.words


def _typed(node: UOp) -> str:
    try:
        return f"{node.dtype}[{', '.join(map(str, node.shape))}]"
    except (
        WorkbenchError,
        TypeError,
        ValueError,
    ):  # a broken graph is shown in its error
        return f"{node.dtype}[?]"


class _TreeWriter:
    """Makes the words of nodes, sources first, and says which get lines of their own."""

    def __init__(self, names: NodeNames, shapes: bool):
        self.names, self.shapes = names, shapes
        self._texts: dict[UOp, Text] = {}
        self._uses: Counter[UOp] = Counter()

    def count(self, graph: dict[UOp, None]) -> None:
        """Start on a graph: what it uses twice will be named."""
        self._texts = {}
        self._uses = Counter(s for node in graph for s in node.src)

    def words(self, node: UOp, tight: int = _LOOSE) -> str:
        """Return a node's words, in parentheses if they bind less than `tight`."""
        words, binds = self._texts.get(node) or (self.names.give(node), _ATOM)
        return words if binds >= tight else f"({words})"

    def lines_before(self, root: UOp) -> list[str]:
        """Return the lines that name what `root` uses; afterwards `words(root)` stands alone."""
        lines = []
        for node in root.toposort(lambda n: n not in self._texts):
            if node in self._texts:
                continue
            text = _text(node, self)
            if self._has_line(node, text[0]) and (node is not root or self._uses[node]):
                name = self.names.give(node)
                of = f": {_typed(node)}" if self.shapes else ""
                lines.append(f"{name}{of} = {text[0]}")
                text = (name, _ATOM)
            self._texts[node] = text
        return lines

    def _has_line(self, node: UOp, words: str) -> bool:
        if node.op in _NEVER_NAMED or node.dtype is dtypes.void:
            return False
        if node.op in _OWN_LINE or len(words) > _LONG:
            return True
        simple = node.dtype in (dtypes.index, dtypes.bool) or node.op is Ops.LOAD
        return self._uses[node] > 1 and not (simple and len(words) <= _SHORT)


def _text(node: UOp, writer: _TreeWriter) -> Text:
    if node.op in _LEAVES:
        return writer.names.give(node), _ATOM
    if OPS[node.op].symbol and len(node.src) == 2:
        return _infix(node, writer)
    special = _SPECIAL.get(node.op)
    return special(node, writer) if special else (_called(node, writer), _ATOM)


def _infix(node: UOp, writer: _TreeWriter) -> Text:
    row, (left, right) = OPS[node.op], node.src
    sign, binds = row.symbol, row.precedence
    if node.op is Ops.ADD:
        sign, words = _term(right, writer)
    else:
        words = writer.words(right, binds + 1)
    first = writer.words(left, binds + (binds == 1))
    space = "" if node.op is Ops.MUL and node.dtype is dtypes.index else " "
    return f"{first}{space}{sign}{space}{words}", binds


def _term(node: UOp, writer: _TreeWriter) -> tuple[str, str]:
    """Return the sign and words of the right side of a sum: `a + -b` reads `a - b`."""
    if node.is_const and not node.dtype.is_bool and node.arg < 0:
        return "-", _number(-node.arg, node)
    if node.op is Ops.NEG and node not in writer.names.by_node:
        return "-", writer.words(node.src[0], _SUM + 1)
    return "+", writer.words(node, _SUM + 1)


def _constant(node: UOp, writer: _TreeWriter) -> Text:
    words = _number(node.arg, node)
    return words, _UNARY if words.startswith("-") else _ATOM


def _number(value: Const, node: UOp) -> str:
    """Return the shortest words for `value` that name it among the values of its dtype."""
    if not node.dtype.is_float:
        return repr(value)
    words = str(node.dtype.numpy.type(value))
    whole = words.lstrip("-").isdigit()  # a bfloat16 prints as 3
    return f"{words}.0" if whole else words


def _negative(node: UOp, writer: _TreeWriter) -> Text:
    sign = "-" if node.op is Ops.NEG else "~"
    return sign + writer.words(node.src[0], _UNARY + 1), _UNARY


def _cast(node: UOp, writer: _TreeWriter) -> Text:
    value = writer.words(node.src[0])
    if node.op is Ops.CAST:
        return f"{node.dtype}({value})", _ATOM
    return f"bitcast({value}, {node.dtype})", _ATOM


def _indexed(node: UOp, writer: _TreeWriter) -> Text:
    if len(node.src) == 1:  # storage of one element
        return writer.words(node.src[0], _ATOM), _ATOM
    indexes = ", ".join([writer.words(i) for i in node.src[1:]])
    return f"{writer.words(node.src[0], _ATOM)}[{indexes}]", _ATOM


def _loaded(node: UOp, writer: _TreeWriter) -> Text:
    words = writer.words(node.src[0])
    if len(node.src) > 1:
        words = f"LOAD({words} where {writer.words(node.src[1])})"
    return words, _ATOM


def _where(node: UOp, writer: _TreeWriter) -> Text:
    condition, yes, no = node.src
    if no.op is Ops.INVALID:
        return f"{writer.words(yes)} where {writer.words(condition)}", _LOOSE
    return f"where({', '.join([writer.words(s) for s in node.src])})", _ATOM


def _closing(node: UOp, writer: _TreeWriter) -> Text:
    parts = [writer.words(s) for s in node.src]
    if node.op is Ops.REDUCE:
        parts.insert(0, _lower(node.arg))
    return f"{node.op.name}({', '.join(parts)})", _ATOM


def _called(node: UOp, writer: _TreeWriter) -> str:
    """Return `name(sources, arg)`; computing ops in lower case, the others as they are."""
    parts = [writer.words(s) for s in node.src]
    match node.arg:
        case (Ops() as how, axes) if node.op is Ops.REDUCE_AXIS:
            return f"REDUCE_AXIS({_lower(how)}, {parts[0]}, axes={axes})"
    if node.arg is not None:
        parts.append(str(node.arg))
    name = node.op.name.lower() if node.is_elementwise else node.op.name
    return f"{name}({', '.join(parts)})"


def _lower(op: object) -> str:
    return op.name.lower() if isinstance(op, Ops) else str(op)


_SPECIAL: dict[Ops, Callable[[UOp, _TreeWriter], Text]] = {
    Ops.CONST: _constant,
    Ops.NEG: _negative,
    Ops.NOT: _negative,
    Ops.CAST: _cast,
    Ops.BITCAST: _cast,
    Ops.INDEX: _indexed,
    Ops.LOAD: _loaded,
    Ops.WHERE: _where,
    Ops.REDUCE: _closing,
    Ops.STAGE: _closing,
}
