"""Explanations of a rule that does not fire at a node: the part of the rule that failed first, and
the reason.

    less-than: (i:index < c) -> less_than
                            ^
    does not fire: the op is LOAD, and a CONST is needed

The parts are tried in the order in which the compiled matcher tries them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.base.errors import cut
from workbench.base.terminal import Printed
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat, Way, fits_kind, op_names
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.ir.text.program import to_expr

MOST_TEXT = 60
"""Most characters of a value in a sentence."""


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Printed):
    """Whether a rule fires at a node. `text` is the rule; `start` and `end` are where the first
    part that failed stands in it (all of it, where the rule fires); `because` is a sentence.
    `bound` has the node of each name of the pattern, as far as it matched; `after` is the
    replacement of the node."""

    rule: Rule
    node: UOp
    fires: bool
    text: str
    start: int
    end: int
    because: str
    bound: dict[str, UOp] = field(default_factory=dict)
    after: UOp | None = None

    def __str__(self) -> str:
        verdict = "fires" if self.fires else "does not fire"
        caret = " " * self.start + "^" * (self.end - self.start)
        return f"{self.text}\n{caret}\n{verdict}: {self.because}"


def explain(rule: Rule, node: UOp, rules: RuleSet | None = None) -> Explanation:
    """Return why `rule` fires, or does not fire, at `node`. `rules` is a set that has it as a row:
    an earlier row of the set may fire first, and the set may refuse the result."""
    reader, text = _FailureReader(rule), str(rule)
    problem = reader.problem(node)
    if problem is None:
        problem = _earlier(rule, node, rules) or reader.refusal(node, rules)
    if problem is not None:
        (start, end), because = problem
        return Explanation(rule, node, False, text, start, end, because, reader.bound)
    because = f"{_short(node)} becomes {_short(reader.after)}"
    return Explanation(rule, node, True, text, 0, len(text), because, reader.bound, reader.after)


Span = tuple[int, int]
Problem = tuple[Span, str]


class _FailureReader:
    """Compares a rule with a node, part by part. The spans are positions in `str(rule)`."""

    def __init__(self, rule: Rule):
        self.rule = rule
        self.bound: dict[str, UOp] = {}
        self.after: UOp | None = None
        match, spans = rule.match.written()
        text, at = str(rule), len(f"{rule.name}: ")
        self.spans = {way: (a + at, b + at) for way, (a, b) in spans.items()}
        guard = "" if rule.where is None else rule.where.__name__
        self.where = len(text) - len(guard), len(text)
        end = len(text) - (len(f"  where {guard}") if guard else 0)
        self.becomes = at + len(match) + len(" -> "), end

    def problem(self, node: UOp) -> Problem | None:
        """Return where the pattern or its condition fails, and why."""
        for way, pat, part in _parts((), self.rule.match, node):
            because = self._mismatch(pat, part)
            if because is not None:
                return self.spans[way], because
        where = self.rule.where
        if where is None:
            return None
        answer, error = self._call(where)
        if answer and error is None:
            return None
        return self.where, self._sentence(where, error or f"is {answer}")

    def refusal(self, node: UOp, rules: RuleSet | None) -> Problem | None:
        """Return why the node stays as it is though the pattern fits; None if it is replaced."""
        becomes = self.rule.becomes
        replacement: UOp | None
        if isinstance(becomes, Pat):
            replacement, error = self.rule.matcher(node), None
        else:
            replacement, error = self._call(becomes)
            if error is not None or replacement is None:
                return self.becomes, self._sentence(becomes, error or "gives None")
        assert replacement is not None
        if rules is not None and rules.keep is not None:
            choice = rules.keep(node, replacement)
            if choice is node and replacement is not node:
                because = f"the set {rules.name} leaves this node alone"
                return self.becomes, f"{because} ({_doc(rules.keep)})"
            replacement = choice
        if replacement is node:
            return self.becomes, "what it makes of the node is the node itself"
        self.after = replacement
        return None

    def _mismatch(self, pat: Pat, node: UOp) -> str | None:
        """Return why `pat`, without its sources, does not fit `node`; if it fits, bind its name."""
        if pat.ops is not None and node.op not in pat.ops:
            names = op_names(pat.ops).replace("|", " or ")
            return f"the op is {node.op.name}, and {names} is needed"
        if pat.kind is not None and not fits_kind(pat.kind, node.dtype):
            return f"the dtype is {node.dtype}, and {pat.kind} is needed"
        if pat.value is not None and node.arg != pat.value:
            return f"the constant is {node.arg}, and {pat.value!r} is needed"
        if pat.arg is not None and node.arg != pat.arg:
            arg, needed = (cut(str(a), MOST_TEXT) for a in (node.arg, pat.arg))
            return f"its arg is {arg}, and {needed} is needed"
        if pat.name is not None:
            binding = self.bound.setdefault(pat.name, node)
            if binding is not node:
                same = f"{pat.name} is {_short(binding)} already"
                return f"{same}, and here stands {_short(node)}"
        if pat.src is not None:
            count, least = len(node.src), len(pat.src)
            if count < least or (count > least and not pat.more):
                return f"it has {count} sources, and {least} are needed"
        return None

    def _call(self, function: Callable[..., Any]) -> tuple[Any, str | None]:
        """Return the result of a function of the rule, or the error that it raises."""
        names = inspect.signature(function).parameters
        try:
            return function(**{n: self.bound[n] for n in names}), None
        except Exception as error:  # a node of another level, perhaps
            return None, f"fails: {type(error).__name__}: {error}"

    def _sentence(self, function: Callable[..., Any], outcome: str) -> str:
        names = inspect.signature(function).parameters
        values = ", ".join(f"{n} = {_short(self.bound[n])}" for n in names)
        sentence = f"{function.__name__} {outcome} with {values}"
        doc = _doc(function)
        return f"{sentence} ({doc})" if doc else sentence


def _parts(way: Way, pat: Pat, node: UOp) -> Iterator[tuple[Way, Pat, UOp]]:
    """Yield every part of a pattern beside its node, in the order of matching."""
    yield way, pat, node
    for place, part in enumerate(pat.src or ()):
        yield from _parts((*way, place), part, node.src[place])


def _earlier(rule: Rule, node: UOp, rules: RuleSet | None) -> Problem | None:
    """Return a problem if an earlier row of the set fires at the node."""
    for row, matcher in () if rules is None else rules.by_op[node.op]:
        if row.name == rule.name:
            return None
        replacement = matcher(node)
        if replacement is not None and replacement is not node:
            return (0, len(rule.name)), f"{row.name}, an earlier rule, fires here first"
    return None


def _doc(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")


def _short(node: UOp | None) -> str:
    text = "nothing" if node is None else to_expr(node).rpartition("\n")[2]
    return cut(text, MOST_TEXT)
