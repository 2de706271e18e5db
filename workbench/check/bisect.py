"""The first wrong rewrite of a compilation.

The states after the passes are checked in order. In the first pass with a wrong result the rewrites
are bisected: the state before the blamed rewrite is right, the state after it is wrong. Source of
the idea: git bisect; bugpoint (LLVM).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.terminal import Printed
from workbench.base.trace import PassRecord, PassStep
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import replay
from workbench.ir.text.program import to_expr

Oracle = Callable[[Any], "str | None"]
"""Returns what is wrong with a state: "" if it is right, None if that is unknown."""
SCHEDULING = "scheduling"
"""The stage of an error that the kernel has before its first pass."""


@dataclass(frozen=True, slots=True, repr=False)
class FirstWrongRewrite(Printed):
    """The first wrong rewrite: `stage` names the pass, `number` (from 1) the rewrite among its
    `rewrites`, by `rule`; `before` and `after` are the node and its replacement. Of a pass whose
    rewrites are unknown (a function, or one that failed) the numbers are 0, `rule` is None, and
    `before` and `after` are its states. `problem` says how the result is wrong. `unsure` names the
    passes and rewrites directly before it whose results cannot be computed: each of them may be
    the first wrong one instead."""

    stage: str
    number: int
    rewrites: int
    rule: Any
    before: Any
    after: Any
    problem: str
    unsure: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = self.stage if self.stage == SCHEDULING else f"pass {self.stage}"
        if self.number:
            what = f"rewrite {self.number} of {self.rewrites} in {what}"
        lines = [f"{what} changes the value: {self.problem}"]
        if self.unsure:
            lines[0] += f" (or it was {', '.join(self.unsure)})"
        if self.rule is not None:
            lines.append(f"  rule    {self.rule}")
            for word, node in (("before", self.before), ("after", self.after)):
                text = to_expr(node) if isinstance(node, UOp) else str(node)
                lines.append(f"  {word:7} {text.splitlines()[-1]}")
        return "\n".join(lines)


def first_wrong(records: Sequence[PassRecord], oracle: Oracle) -> FirstWrongRewrite | None:
    """Return the first wrong rewrite of passes in execution order, or None."""
    unsure: list[str] = []
    for record, inside in _outermost(records):
        failed = record.error is not None
        problem = f"it fails: {record.error}" if failed else oracle(record.after)
        if problem is None:
            unsure.append(f"pass {record.name}")
        elif not problem:
            unsure.clear()
        else:
            wrong_rewrite = first_wrong(_while_right(inside, oracle), oracle)
            return wrong_rewrite or _in_pass(record, problem, oracle, tuple(unsure))
    return None


def _outermost(records: Sequence[PassRecord]) -> list[tuple[PassRecord, list[PassRecord]]]:
    """Return the outermost passes, each with the passes that ran inside it."""
    groups: list[tuple[PassRecord, list[PassRecord]]] = []
    names = {r.name for r in records}
    for record in records:
        if groups and record.parent in names:
            groups[-1][1].append(record)
        else:
            groups.append((record, []))
    return groups


def _while_right(records: list[PassRecord], oracle: Oracle) -> list[PassRecord]:
    """Return the passes before the first one whose input is wrong."""
    for place, record in enumerate(records):
        if oracle(record.before):
            return records[:place]
    return records


def _in_pass(
    record: PassRecord, problem: str, oracle: Oracle, unsure: tuple[str, ...]
) -> FirstWrongRewrite:
    """Return the first wrong rewrite of a pass that turned a right state into a wrong one."""
    matches = record.matches
    changes = [m for m in matches if m.before is not m.after and not isinstance(m.rule, PassStep)]
    whole = not changes or record.dropped or not isinstance(record.before, UOp)
    if whole or record.error is not None:
        state = record.before
        return FirstWrongRewrite(record.name, 0, 0, None, state, record.after, problem, unsure)
    right, wrong = 0, len(matches)
    untried = list(range(1, wrong))
    while untried:
        middle = untried[len(untried) // 2]
        verdict = oracle(replay(record.before, matches, middle))
        if verdict is None:
            untried.remove(middle)
        elif verdict:
            wrong, problem = middle, verdict
            untried = [n for n in untried if n < wrong]
        else:
            right = middle
            untried = [n for n in untried if n > right]
    blamed = matches[wrong - 1]
    others = tuple(f"rewrite {n}" for n in range(right + 1, wrong))
    return FirstWrongRewrite(
        record.name, wrong, len(matches), blamed.rule, blamed.before, blamed.after,
        problem, (*(unsure if right == 0 else ()), *others),
    )  # fmt: skip
