"""Checks of the values of an expression: the first one that differs from numpy's.

Each value is scheduled and compiled as if it alone were the result, in the order of the expression,
and compared with the reference interpreter: the first wrong one is computed from right ones. Values
that are only moved are checked if a value that reads them is wrong. `bisect` names the rewrite that
made the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from workbench.backends.device import Device
from workbench.base.context import Context
from workbench.base.errors import plural
from workbench.base.source import SourceLine
from workbench.base.terminal import Printed
from workbench.base.trace import observe, unobserved
from workbench.check.answer import CheckResult
from workbench.check.meanings import Meanings, whole_reference
from workbench.execution import realize
from workbench.ir.meaning import closeness
from workbench.ir.meaning.sampled import TooManyPositions
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.ir.schedule.by_hand import NOTHING_BY_HAND
from workbench.ir.text.program import to_expr
from workbench.kernel.run import ScheduleRun
from workbench.search.realization import tuned
from workbench.viz.exploration.planned import Expression, compile_rules
from workbench.viz.model.lines import UserLines
from workbench.viz.model.words import error_text, short

BUDGET_S = 60.0
"""Seconds after which no further value is computed."""
GIVEN = frozenset({Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.DETACH, Ops.SINK, Ops.COPY})
"""Ops that compute nothing that could be wrong."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, repr=False)
class WrongValue(Printed):
    """A value that differs from numpy's, the first one in the order of the expression: `node`, the
    user's `name` and `line` of it; its `verdict`, and the place `at` of its greatest error, with
    both values there. `problem` is an error without a value: it cannot be compiled or run."""

    node: UOp
    name: str
    line: SourceLine | None
    verdict: CheckResult | None
    at: tuple[int, ...] = ()
    actual: float | int | bool = 0
    expected: float | int | bool = 0
    problem: str = ""

    def named(self, lines: UserLines) -> WrongValue:
        """Return it with the user's name and line of the value."""
        return replace(self, name=lines.name(self.node), line=lines.nearest(self.node))

    @property
    def text(self) -> str:
        """The value as an expression."""
        return short(to_expr(self.node).rpartition("\n")[2])

    @property
    def difference(self) -> str:
        """How it differs, in words."""
        if self.verdict is None:
            return f"it fails: {self.problem}"
        place = f"at [{', '.join(map(str, self.at))}] " if self.at else ""
        words = f"{place}{self.actual:.7g} instead of {self.expected:.7g}"
        return f"{self.verdict.summary}; {words}"

    def __str__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        lines = [f"{name}{self.text}"]
        chain = () if self.line is None else (*self.line.inner[::-1], self.line)
        for number, one in enumerate(chain):
            word = "called" if number else "line"
            lines.append(f"  {word:7} {one.text.strip()}   ({one})")
        return "\n".join([*lines, f"  differs {self.difference}"])


@dataclass(frozen=True, slots=True, repr=False)
class NodeChecks(Printed):
    """The comparison of the values of an expression with numpy's: `compared` of `total` were, all
    right but `wrong`, the first wrong one (None: there is none). Of the values in `untold`,
    roundings decide too much. It is true if all were compared, and none is wrong."""

    compared: int
    total: int
    wrong: WrongValue | None
    untold: tuple[UOp, ...] = ()
    against: str = ""

    def __bool__(self) -> bool:
        return self.wrong is None and self.compared == self.total and not self.untold

    @property
    def summary(self) -> str:
        """The outcome in a sentence."""
        if self.wrong is not None:
            return f"value {self.compared} of {self.total:,} is the first that differs from numpy's"
        count = "all" if self.compared == self.total else f"{self.compared} of"
        words = f"{count} {plural(self.total, 'value')} agree with numpy"
        if self.untold:
            words += f", but roundings decide too much of {len(self.untold)}"
        return words

    def __str__(self) -> str:
        parts = [self.summary]
        if self.wrong is not None:
            parts.append(str(self.wrong))
        if self.against:
            parts.append(f"compared with {self.against}, in numpy")
        return "\n".join(parts)


def checks_of_nodes(
    expression: Expression,
    lines: UserLines,
    rules_off: tuple[str, ...],
    on: str,
    budget_s: float,
    progress: Progress = lambda done, total: None,
) -> NodeChecks:
    """Return the comparison of the values of an expression, with rules off and on a device as
    `explore` has them. `progress(done, total)` is called before each value; it may raise."""
    check = _Check(expression, rules_off, on)
    computed = [n for n in check.nodes if n.op not in MOVEMENT or n in expression.nodes]
    untold: list[UOp] = []
    right: set[UOp] = set()
    end_s = time.monotonic() + budget_s

    def checks(number: int, wrong: WrongValue | None = None) -> NodeChecks:
        return NodeChecks(number, len(computed), wrong, tuple(untold), check.against)

    for number, node in enumerate(computed):
        progress(number, len(computed))
        if time.monotonic() > end_s:
            return checks(number)
        outcome = check(node)
        if isinstance(outcome, WrongValue):
            moved = (n for n in check.nodes if n in node.toposort() and n not in {*right, node})
            first = next((w for n in moved if isinstance(w := check(n), WrongValue)), outcome)
            return checks(number + 1, first.named(lines))
        right.update(node.toposort())
        untold += [] if outcome else [node]
    return checks(len(computed))


class _Check:
    """Checks the values of an expression, one at a time. `nodes` are those that are computed, in
    order; `against` says what they were compared with."""

    def __init__(self, expression: Expression, rules_off: tuple[str, ...], on: str) -> None:
        self.expression, self.rules_off, self.on = expression, rules_off, on
        self.device = expression.devices[0] or Device.DEFAULT
        self.against = ""
        root = UOp.sink(*expression.nodes)
        graph = root.toposort(lambda n: n not in expression.computed)
        known = {*expression.computed}
        self.nodes = [n for n in graph if n.op not in GIVEN and n not in known and n.size]

    def __call__(self, node: UOp) -> WrongValue | bool:
        """Return how a value differs; True if it agrees, False if that cannot be told."""
        try:
            with unobserved():
                run = self._run(node)
                if not run.items:  # it is in memory, or moved there
                    return True
                verdict = run.check(self.on or run.device)
                self.against = verdict.against
                return verdict.is_told and (verdict.ok or self._wrong(node, run, verdict))
        except TooManyPositions:
            return False
        except Exception as error:  # any error: the values below it had none
            return WrongValue(node, "", None, None, problem=error_text(error).splitlines()[0])

    def _run(self, node: UOp) -> ScheduleRun:
        """Return the run of a schedule for one value."""
        with Context(DEV=self.device), without(self.rules_off), observe() as watching:
            schedule, outputs = realize.planned([node], NOTHING_BY_HAND, self.expression.computed)
            device = realize.device_of([node])
        meanings = Meanings(watching.records, outputs)
        off = compile_rules(self.rules_off)
        return ScheduleRun(schedule.items, meanings, tuned, device, rules_off=off)

    def _wrong(self, node: UOp, run: ScheduleRun, verdict: CheckResult) -> WrongValue:
        device = self.on or run.device
        reference = whole_reference(
            run.meanings, run.meanings.roots, lambda buffer: run.leaf(buffer, device)
        )
        (part,) = reference.parts()
        ((_, place),) = part.places
        (expected,), (actual,) = part.values(widen=True), run.results(device)
        errors = closeness.errors(actual[place], expected)
        worst = int(np.argmax(errors))
        at = np.arange(node.size)[place][worst]
        values = actual[place][worst].item(), expected[worst].item()
        index = tuple(int(i) for i in np.unravel_index(at, node.shape))
        return WrongValue(node, "", None, verdict, index, *values)
