"""The steps of the gradient pass, as rewrites: the rule, the gradient and the result.

The graph that the pass begins with has a GRADIENT node for each source of each node on the way to a
target: of the source, in the node, given the gradient of that. From the root down, each is replaced
by what the rule of the node's op says. It is written when a page or a test reads it: the pass
itself makes no such node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.base.trace import Match, PassStep
from workbench.ir.gradient.occurrences import flows_on, merged
from workbench.ir.gradient.reductions import REDUCTIONS
from workbench.ir.gradient.table import GRADIENTS
from workbench.ir.gradient.windows import source_gradient
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rules_off


class Share(NamedTuple):
    """What a rule hands on: of `g`, the gradient of `node`, the share `value` is its `source`'s;
    `total` is the gradient of the source with that."""

    node: UOp
    g: UOp
    source: UOp
    value: UOp
    total: UOp


@dataclass(frozen=True, slots=True, repr=False)
class GradientRow(PassStep):
    """The rule of a step: a row of the table of gradients, with its `function`."""

    function: Callable[..., object] | None = None


class GradientSteps(NamedTuple):
    """The gradient pass as rewrites: they lead from `before` to `after`, whose sources are the root
    and the gradients of the targets."""

    before: UOp
    after: UOp
    matches: tuple[Match, ...]


def gradient_steps(
    root: UOp, seed: UOp, gradients: Sequence[tuple[UOp, UOp]], shares: Iterable[Share]
) -> GradientSteps:
    """Return the steps of a pass over `root`, whose own gradient is `seed`: `gradients` has the
    targets, each with its gradient, `shares` are in the order of the pass. Of tensors only
    targets are nodes of their own."""
    shares = list(shares)
    written = [node for pair in gradients for node in pair]
    written += [node for share in shares for node in share]
    now = merged([root, seed, *written], [target for target, _ in gradients])
    root, seed = now[root], now[seed]
    gradients = [(now[target], now[gradient]) for target, gradient in gradients]
    shares = [Share(*[now[node] for node in share]) for share in shares]
    due = {root: seed}
    matches = []
    for (node, g, source, value, _), place in _with_places(shares):
        rest = _due(source, node, due.get(node, g), place)
        before = due.get(source)
        due[source] = rest if before is None else before + rest
        row = _row(_made_as(node, source), source, place)
        matches.append(Match(row, _due(source, node, g, place), value))
    targets = [due.get(target, gradient) for target, gradient in gradients]
    return GradientSteps(
        UOp.sink(root, *targets),
        UOp.sink(root, *[gradient for _, gradient in gradients]),
        tuple(matches),
    )


def _with_places(shares: Iterable[Share]) -> Iterator[tuple[Share, int | None]]:
    """Yield shares, each with which source of its node has it, from 1: a node may have one twice.
    None where it is none of them: the rule of windows reaches further down."""
    node, last = None, 0
    for share in shares:
        last = last if share.node is node else 0
        node = share.node
        made_as = _made_as(node, share.source)
        sources = enumerate(made_as.src[last:], last + 1)
        place = next((at for at, source in sources if source is share.source), None)
        last = place or last
        yield share, place


def _made_as(node: UOp, source: UOp) -> UOp:
    """Return the node whose rule handed on a share: that of an occurrence may be its source's."""
    while flows_on(node) and source is not node.src[0]:
        (node,) = node.src
    return node


def _due(source: UOp, node: UOp, g: UOp, place: int | None) -> UOp:
    """Return the gradient of a source of `node` before a rule says what it is."""
    return UOp(Ops.GRADIENT, source.dtype, (source, node, g), place)


def _row(node: UOp, source: UOp, place: int | None) -> GradientRow:
    """Return the rule that handed on what `source` has of the gradient of `node`."""
    name, meaning, rule = _rule(node, place is None)
    why = f"What the sources of {name} have of g, the gradient of the node n: {meaning}."
    to = f"{_words(source)} below it" if place is None else f"source {place}"
    about = f"{_words(node)}, to {to}"
    return GradientRow(_name(name), why, about, function=rule)


def _name(rule: str) -> str:
    return f"gradient-{rule.lower()}"


def is_on(node: UOp, is_window: bool = False) -> bool:
    """Whether the rule that hands on the gradient of `node` is switched on; `is_window`: that of
    the rows of a window, which reaches further down. Without that one the rules of ops do it."""
    off = rules_off()
    return not off or _name(_rule(node, is_window)[0]) not in off


def _rule(node: UOp, is_window: bool) -> tuple[str, str, Callable[..., object] | None]:
    """Return what the rule for `node` is called, what the node is, and the rule."""
    if is_window:
        return "WINDOWS", "rows of a sliding window", source_gradient
    if node.op is Ops.REDUCE_AXIS:
        how = node.combines
        name = f"REDUCE-{how.name}"
        return name, "the elements of axes, combined", REDUCTIONS.get(how)
    rule = GRADIENTS.get(node.op)
    if node.op is Ops.DETACH:
        if flows_on(node):
            return "OCCURRENCE", "a value that is told from its equals", rule
        name = str(node.arg[0]) if isinstance(node.arg, tuple) else "DETACH"
        return name, "a value whose author gave its gradient", rule
    return node.op.name, OPS[node.op].doc, rule


def _words(node: UOp) -> str:
    return f"{node.op.name.lower()} {list(node.shape)}"
