"""Rules as named rows, rule sets indexed by op, and the one rewrite driver.

    Rule("add-zero", x + 0, x)
    Rule("fold-max", op(Ops.MAX, x, c), pick, where=one_side_wins)

`rewrite` goes bottom-up to a fixed point: sources first, then the node until no rule fires, then
the nodes that rules added. For an observer, it records each match by reference; `replay` gives the
state after any match.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from types import NoneType
from typing import Any, NamedTuple

from workbench.base.errors import EndlessRewrite, WorkbenchError, require
from workbench.base.interrupts import once, scope
from workbench.base.situation import Situational, process_changes
from workbench.base.source import SourceLine
from workbench.base.trace import Match, PassStep, recording
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, mark_normal
from workbench.ir.rewriting.pattern_text import ARROW, parse_sides
from workbench.ir.rewriting.patterns import Matcher, Pat, compile_rule


class Rule:
    """One rewrite: where `match` fits (and `where` holds), the node becomes `becomes`.

    `name` is a stable kebab-case key. `becomes` is a pattern, or a function of the pattern's
    names that returns a node, or None if the rule does not apply. `doc` says why, where that is not
    plain. A rule may read the node and the nodes below it, and nothing else: a node at which no
    rule of a set fires is not tried with that set again.
    """

    def __init__(
        self,
        name: str,
        match: Pat,
        becomes: Pat | Callable[..., UOp | None],
        where: Callable[..., bool] | None = None,
        doc: str = "",
    ):
        require(name, str, "Rule: name", '"mul-one"')
        require(match, Pat, "Rule: match", 'var("x") * 1')
        require(becomes, (Pat, Callable), "Rule: becomes", 'var("x")')  # type: ignore[arg-type] # it is one for isinstance
        require(where, (Callable, NoneType), "Rule: where", "None")  # type: ignore[arg-type]
        require(doc, str, "Rule: doc", '""')
        self.name, self.match, self.becomes, self.where = name, match, becomes, where
        self.doc = doc or (inspect.getdoc(becomes) or "" if inspect.isfunction(becomes) else "")

    @once
    def matcher(self) -> Matcher:
        """The rule as a function from a node to its replacement; None where it does not fire."""
        return compile_rule(self.match, self.becomes, self.where)

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        right = repr(self.becomes) if isinstance(self.becomes, Pat) else self.becomes.__name__
        guard = "" if self.where is None else f"  where {self.where.__name__}"
        return f"{self.name}: {self.match!r} -> {right}{guard}"


Row = tuple["Rule", Matcher]


class Table(dict[Ops, tuple[Row, ...]]):
    """Compiled rules by op; a missing op is compiled when it is looked up."""

    def __init__(self, rules: RuleSet):
        super().__init__()
        self.rules = rules

    def __missing__(self, op: Ops) -> tuple[Row, ...]:
        fits = [r for r in self.rules.rules if r.match.ops is None or op in r.match.ops]
        self[op] = rows = tuple((r, self.rules.with_keep(r.matcher)) for r in fits)
        return rows


class RuleSet:
    """An ordered table of rules, indexed by op. Earlier rows are tried first."""

    def __init__(
        self, name: str, rules: Iterable[Rule], keep: Callable[[UOp, UOp], UOp] | None = None
    ):
        """`keep(before, after)` returns the node that replaces `before`: `after`, with a property
        of `before` restored (a shape), or `before` itself, which is then left alone."""
        require(name, str, "RuleSet: name", '"mine"')
        require(rules, (list, tuple), "RuleSet: rules", "[Rule(..)]")
        for rule in rules:
            require(rule, Rule, "RuleSet: rules", "Rule(..)")
        self.name, self.keep = name, keep
        self.rules = tuple(rules)
        self._less: dict[frozenset[str], RuleSet] = {}
        self._more: dict[tuple[RuleSet, ...], RuleSet] = {}
        twice = [n for n, count in Counter(r.name for r in self.rules).items() if count > 1]
        if twice:
            raise WorkbenchError(f"rule set {name} has rules of one name", ", ".join(twice))

    @once
    def by_op(self) -> Table:
        """The rows of each op, compiled when a node with that op is first rewritten."""
        return Table(self)

    def with_keep(self, matcher: Matcher) -> Matcher:
        """Return `matcher`, its results passed through `keep`."""
        keep = self.keep
        if keep is None:
            return matcher

        def match_and_keep(node: UOp) -> UOp | None:
            after = matcher(node)
            # The driver refuses a result that is no node.
            return keep(node, after) if isinstance(after, UOp) else after

        return match_and_keep

    def without(self, *names: str) -> RuleSet:
        """Return the set without the named rules. Errors: WorkbenchError for an unknown name."""
        unknown = set(names) - {r.name for r in self.rules}
        if unknown:
            raise WorkbenchError(
                f"rule set {self.name} has no rule {', '.join(sorted(unknown))}",
                "its rules are " + ", ".join(r.name for r in self.rules),
            )
        return RuleSet(self.name, [r for r in self.rules if r.name not in names], self.keep)

    def less(self, off: frozenset[str]) -> RuleSet:
        """Return the set without the rules named in `off`; memoised."""
        subset = self._less.get(off)
        if subset is None:
            names = [r.name for r in self.rules if r.name in off]
            subset = self._less[off] = self.without(*names) if names else self
        return subset

    def more(self, added: tuple[RuleSet, ...]) -> RuleSet:
        """Return the set with the rules of other sets before its own; memoised."""
        union = self._more.get(added)
        if union is None:
            rules = [rule for each in (*added, self) for rule in each.rules]
            union = self._more[added] = RuleSet(self.name, rules, self.keep)
        return union

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(f"{self.name}+{other.name}", self.rules + other.rules, self.keep)

    def __repr__(self) -> str:
        return f"RuleSet({self.name}, {len(self.rules)} rules)"


_OFF = Situational("rules off", frozenset[str]())
_TYPED = Situational[tuple[str, ...]]("rules typed", ())
TYPED_INTO = "decompose"
"""The pass whose rules a typed rule comes before: every kernel that a device runs goes through
it."""
TYPED = "typed-rules"
"""The name of the set of typed rules."""


def rules_off() -> frozenset[str]:
    """Return the names of the rules that are switched off in this context."""
    return _OFF.get()


def is_typed(name: str) -> bool:
    """Whether a name among switched rules is the text of a rule, which is on: `x * 2 -> x + x`."""
    return ARROW in name


@lru_cache(maxsize=256)
def typed_rule(text: str) -> Rule:
    """Return the rule of a text; its name is the text. Errors: ParseError, with the column."""
    return Rule(text, *parse_sides(text), doc="typed by a reader")


@lru_cache(maxsize=256)
def _typed_set(texts: tuple[str, ...]) -> RuleSet:
    return RuleSet(TYPED, [typed_rule(text) for text in texts])


@dataclass(frozen=True, slots=True, eq=False)
class AddedRules:
    """A registered rule set, the pass whose rules it comes before, and the line that registered
    it."""

    rules: RuleSet
    into: str
    where: SourceLine | None = None


_added: tuple[AddedRules, ...] = ()
"""The registered rule sets of all threads, so not a context variable; replaced, never changed."""


def added_rules() -> tuple[AddedRules, ...]:
    """Return the rule sets that were registered."""
    return _added


def add_rules(*sets: AddedRules) -> None:
    """Add rule sets to passes; a set replaces an added one of the same name."""
    global _added
    names = {each.rules.name for each in sets}
    process_changes.count += 1
    _added = (*(a for a in _added if a.rules.name not in names), *sets)


def remove_rules(name: str) -> None:
    """Remove the added rule set of this name, if there is one."""
    global _added
    process_changes.count += 1
    _added = tuple(a for a in _added if a.rules.name != name)


def with_added(rules: RuleSet, name: str) -> RuleSet:
    """Return `rules`, the set of the pass `name`, with its added rules before them."""
    added = tuple([a.rules for a in _added if a.into == name]) if _added else ()
    if name == TYPED_INTO and _TYPED.get():
        added = (_typed_set(_TYPED.get()), *added)
    return rules.more(added) if added else rules


class Stop(NamedTuple):
    """A rewrite that ends early: that of `root` by the pass `name`, after so many `matches`."""

    name: str
    root: UOp
    matches: int


_STOP = Situational["Stop | None"]("a rewrite that ends early", None)


@scope
def stopped(name: str, root: UOp, count: int) -> Generator[None, None, None]:
    """End the rewrite of `root` by a pass after `count` matches, in a `with` block: what follows
    works on that state."""
    token = _STOP.set(Stop(name, root, count))
    try:
        yield
    finally:
        _STOP.reset(token)


def is_complete() -> bool:
    """Whether every rule has been applied wherever it fires in this context: none is switched off,
    and no rewrite ends early."""
    return not _OFF.get() and _STOP.get() is None


def are_switched() -> bool:
    """Whether the rules in force are others than those of the package: some are switched off,
    typed or registered, or a rewrite ends early."""
    return bool(_TYPED.get() or _added) or not is_complete()


RulesInForce = tuple[frozenset[str], tuple[str, ...], tuple[AddedRules, ...], Stop | None]


def rules_in_force() -> RulesInForce:
    """Return the names of the rules that are switched off in this context, the texts of the typed
    rules, the added sets, and the rewrite that ends early: a key for caches of rewritten nodes."""
    return _OFF.get(), _TYPED.get(), _added, _STOP.get()


def advice() -> str:
    """Return what to try where a node is left that a rule should have replaced."""
    off = sorted(rules_off())
    if off:
        return f"switch {' and '.join(off)} on again"
    return "report it: a rule of lowering should have replaced it"


@scope
def without(names: Iterable[str]) -> Generator[None, None, None]:
    """Switch rules off, by name, in every rewrite of a `with` block; a name that is the text of a
    rule adds that rule instead."""
    listed = [*names]
    typed = (*_TYPED.get(), *(name for name in listed if is_typed(name)))
    tokens = (
        _OFF.set(rules_off().union(name for name in listed if not is_typed(name))),
        _TYPED.set(tuple(dict.fromkeys(typed))),
    )
    try:
        yield
    finally:
        _OFF.reset(tokens[0])
        _TYPED.reset(tokens[1])


def is_off(step: Rule | PassStep) -> bool:
    """Whether a rule or a step is switched off in this context."""
    return step.name in _OFF.get()


def require_on(what: str, steps: Iterable[Rule | PassStep]) -> None:
    """Errors: WorkbenchError where a rule or a step that `what` takes is switched off."""
    off = [name for name in dict.fromkeys(step.name for step in steps) if name in _OFF.get()]
    if off:
        names = " and ".join(off)
        hint = f"switch {names} on again"
        raise WorkbenchError(f"cannot {what}", f"it takes {names}, switched off here", hint)


CLOSE = 0.7
"""The similarity, of 0 to 1, from which on a name is taken for a misspelling of another."""


def unknown_rule(what: str, name: object, names: Collection[str]) -> WorkbenchError:
    """Return the error for a name that is none of `names`, with those that are close to it."""
    near = get_close_matches(str(name), names, 3, CLOSE)
    because = "no rule or step of these passes has that name"
    return WorkbenchError(what, because, " or ".join(near) or 'a name of explore(y, show="rules")')


FUSE = 1_000_000
"""Matches after which a rewrite counts as endless."""
MOST_PENDING = 50_000
"""Most nodes that wait at once for their replacements; with more, a rewrite counts as endless: a
rule makes ever new nodes."""


def rewrite(
    root: UOp, rules: RuleSet, *, name: str | None = None, doc: str = "", limit: int | None = None
) -> UOp:
    """Return `root` with `rules` applied everywhere until none fires.

    `limit` stops after that many matches (to step, or to bisect), and so does `stopped`. Rules that
    `without` switches off are left out.
    Errors: EndlessRewrite when the rules reach no fixed point.
    """
    name = name or rules.name
    rules = with_added(rules, name)
    off = _OFF.get()
    if off:
        rules = rules.less(off)
    stop = _STOP.get()
    if stop is not None and limit is None and stop.root is root and stop.name == name:
        limit = stop.matches
    with recording(name, doc, root) as record:
        record.after = after = _run(root, rules.by_op, record.matches, limit)
        return after


def applied(root: UOp, rules: RuleSet, name: str, matches: list[Match] | None) -> UOp:
    """Return `root` with `rules` applied everywhere until none fires, as a part of the pass `name`,
    which has a record of its own; the matches are added to `matches`."""
    rules = with_added(rules, name).less(_OFF.get())
    return _run(root, rules.by_op, matches, None)


def _run(root: UOp, by_op: Table, matches: list[Match] | None, limit: int | None) -> UOp:
    """Return `root` with the rules of `by_op` applied, sources first, until none matches.

    The walk has a stack of its own, since graphs are deeper than Python's. An entry of it is
    (node, stage, result):

        0  visit    the node comes back in stage 1, after its sources, which are above it
        1  match    its sources have their replacements: the node is rebuilt over them, and the
                    rules of its op are tried. If one matches, the right side is visited, and the
                    node waits for it below; else the node is its own replacement
        2  resolve  the replacement of `result`, the right side, becomes the node's, too

    Later rewrites by the same table skip a node that `mark_normal` marked: no rule of it matches
    there, nor at any node below. The mark stays true since nodes are immutable, a rule reads its
    node and the nodes below it and nothing else (`Rule`), and a table never changes: with rules
    added or switched off it is another object.
    """
    replacements: dict[UOp, UOp] = {}
    pending: dict[UOp, Rule] = {}  # nodes that wait for their right sides, each with the rule
    stack: list[tuple[UOp, int, UOp]] = [(root, 0, root)]
    fuse = FUSE if limit is None else limit
    while stack:
        node, stage, result = stack.pop()
        if node in replacements:
            continue
        if node._normal_by is by_op:  # a rewrite before this one marked it
            replacements[node] = node
            continue
        if stage == 0:  # visit
            stack.append((node, 1, node))
            stack.extend([(s, 0, s) for s in reversed(node.src) if s not in replacements])
            continue
        if stage == 2:  # resolve
            replacements[node] = replacements[result]
            pending.pop(node, None)
            continue
        # match
        rebuilt = node.rebuild(tuple([replacements[s] for s in node.src]))
        if rebuilt is not node and rebuilt in replacements:
            replacements[node] = replacements[rebuilt]
            continue
        for rule, matcher in by_op[rebuilt.op] if fuse > 0 else ():
            after = matcher(rebuilt)
            if after is not None and after is not rebuilt:
                _check_node(rule, rebuilt, after)
                fuse -= 1
                if limit is None:
                    _check_progress(pending, rebuilt, rule, fuse)
                    pending[rebuilt] = rule
                if matches is not None:
                    matches.append(Match(rule, rebuilt, after))
                stack += [(node, 2, after), (rebuilt, 2, after), (after, 0, after)]
                break
        else:
            replacements[node] = replacements[rebuilt] = rebuilt
            if fuse > 0:
                mark_normal(rebuilt, by_op)
    return replacements[root]


def _check_progress(pending: dict[UOp, Rule], node: UOp, rule: Rule, fuse: int) -> None:
    """Errors: EndlessRewrite where a rule fires at a node that waits for its replacement already,
    since it would wait for itself; with too many waiting nodes; and after too many matches."""
    if node in pending:
        waiting = list(pending)
        cycle = [pending[each] for each in waiting[waiting.index(node) :]]
        names = list(dict.fromkeys(str(each.name) for each in cycle))
        because = f"{' and '.join(names)} undo each other at {node.op.name}"
        if len(names) == 1:
            because = f"{names[0]} makes what it replaces again, at {node.op.name}"
        raise EndlessRewrite("a rewrite did not end", because, _switch(names))
    if len(pending) > MOST_PENDING or not fuse:
        last = list(pending.values())[-1000:]
        names = list(dict.fromkeys(str(each.name) for each in (*last, rule)))
        because = f"{' and '.join(names)} made ever new nodes, the last from {node.op.name}"
        raise EndlessRewrite("a rewrite did not end", because, _switch(names))


def _switch(names: Sequence[str]) -> str:
    if any(map(is_typed, names)):
        return "another right side for the rule that was typed, or the kernel without it"
    return f"explore(y, without=({names[-1]!r},)), or another right side of that rule"


def _check_node(rule: Rule, node: UOp, value: object) -> None:
    """Errors: WorkbenchError for a value that a rule returned and that is not a node."""
    if type(value) is UOp:
        return
    because = f"a rule makes a node of a node, and this is {value!r:.60} ({type(value).__name__})"
    hint = "a UOp, or None for a node that stays as it is"
    if isinstance(value, (int, float)):
        hint = f"UOp.const(node.dtype, {value!r}), or a pattern that has it"
    raise WorkbenchError(f"rule {rule} returned no node for {node.op.name}", because, hint)


Note = Callable[[UOp, UOp], None]
"""Called with a new node, and with the node that it replaces."""


def replay(
    before: Any, matches: Sequence[Match], count: int | None = None, note: Note | None = None
) -> Any:
    """Return the state after the first `count` matches (all: the pass's result).

    Each match is a substitution; they apply everywhere, again and again, because a rule may add a
    node that an earlier match has already replaced. Where matches form a cycle (those of an endless
    rewrite), a node that becomes itself again is left as it is. `note` is called with every new
    node: of a match, or of a node rebuilt over other sources.
    """
    return replacements(before, matches, count, note)[before]


def replacements(
    before: UOp, matches: Sequence[Match], count: int | None = None, note: Note | None = None
) -> dict[UOp, UOp]:
    """Return the replacement of each node of a graph by the first `count` matches (`replay`)."""
    changes = {m.before: m.after for m in matches[:count]}
    replaced: dict[UOp, UOp] = {}
    begun: set[UOp] = set()
    stack: list[tuple[UOp, int, UOp]] = [(before, 0, before)]
    while stack:
        node, stage, result = stack.pop()
        if node in replaced:
            continue
        if stage == 0:
            stack.append((node, 1, node))
            stack.extend([(s, 0, s) for s in node.src if s not in replaced])
        elif stage == 2:
            replaced[node] = replaced[result]
        else:
            rebuilt = node.rebuild(tuple([replaced[s] for s in node.src]))
            after = changes.get(rebuilt)
            if note is not None and rebuilt is not node:
                note(rebuilt, node)
            if note is not None and after is not None:
                note(after, rebuilt)
            if after is None or rebuilt in begun:
                replaced[node] = replaced.get(rebuilt, rebuilt)
            else:
                begun.add(rebuilt)
                stack.extend([(node, 2, after), (rebuilt, 2, after), (after, 0, after)])
    return replaced
