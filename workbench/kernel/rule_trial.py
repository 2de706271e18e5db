"""The trial of a typed rule on a kernel: tested on values, then compiled and checked.

    print(kernel.try_rule("x * 2 -> x + x"))

Sections: A rule tried on a kernel; The trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Any, Generic, TypeVar

from workbench.base.errors import CompileError, WorkbenchError, kind_of, plural
from workbench.base.terminal import Printed
from workbench.check.answer import CheckResult
from workbench.check.rule_values import RuleTest, compare_sides
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import typed_rule
from workbench.ir.text.program import to_expr
from workbench.kernel.runnable import RunnableKernel

# --------------------------------------------------------------------------------------------------
# A rule tried on a kernel.

K = TypeVar("K", bound=RunnableKernel)
MOST_SHOWN = 5
"""Most places in the text of a trial at which a rule fired."""
MOST_FIRED = 100
"""Most such places of which a trial has the text: of a rule that is used everywhere, it is long."""
MOST_VALUES = 3
"""Most values of such a place that have lines of their own there."""
MOST_DIFFERENT = 40
"""Most lines of a difference in the text of a trial."""
SILENT = (
    "it did not fire in this kernel, so nothing was compared (a rule of your own meets values"
    " alone, not the arithmetic of indexes)"
)


@dataclass(frozen=True)
class Firing:
    """A place at which a rule fired: the pass, the node before and after as text, and the lines of
    the values with a name in them."""

    pass_name: str
    before: str
    after: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.before}  ->  {self.after}", *self.lines])

    @property
    def lines(self) -> list[str]:
        """The values, the last and nearest ones first, as far as a reader follows them."""
        nearest = [f"  {line}" for line in self.values[::-1][:MOST_VALUES]]
        more = len(self.values) - MOST_VALUES
        return [*nearest, *([f"  and {plural(more, 'value')} before"] if more > 0 else [])]


@dataclass(frozen=True, slots=True, repr=False)
class RuleTrial(Printed, Generic[K]):
    """A rule tried on a kernel. `test` compares both sides on values; unless it has a
    counterexample, `kernel` is the kernel with the rule, `fired` the first of the `count` places at
    which the rule fired, `difference` the lines of the source that differ, and `check` compares the
    answer (None if it did not fire). `error` is that of compiling or running the kernel with the
    rule ("": there is none)."""

    rule: str
    test: RuleTest
    kernel: K | None = None
    fired: tuple[Firing, ...] = ()
    count: int = 0
    difference: tuple[str, ...] = ()
    check: CheckResult | None = None
    error: str = ""

    @property
    def holds(self) -> bool:
        """Whether both sides agree on all tested values, and the kernel with the rule is right."""
        return self.test.agrees and self.check is not None and bool(self.check.ok)

    @property
    def is_wrong(self) -> bool:
        """Whether the rule has a counterexample, or cannot be applied."""
        return bool(self.error) or self.test.counterexample is not None

    @property
    def words(self) -> list[str]:
        """Lines on the test, on where the rule fired, and on what that changed in the source."""
        lines = [outcome_text(self.test)]
        if self.error or not self.test.agrees:
            return [*lines, self.error or "it was not applied"]
        if not self.fired:
            return [SILENT, *lines]
        lines.append(f"it fired {plural(self.count, 'time')} in this kernel")
        for firing in self.fired[:MOST_SHOWN]:
            lines += [f"  {line}" for line in str(firing).split("\n")]
        if self.count > MOST_SHOWN:
            lines.append(f"  and {self.count - MOST_SHOWN} more")
        same = ["the source is the same"]
        lines += [f"  {line}" for line in self.difference[:MOST_DIFFERENT]] or same
        if len(self.difference) > MOST_DIFFERENT:
            lines.append(f"  and {len(self.difference) - MOST_DIFFERENT} more lines")
        return lines

    def __str__(self) -> str:
        answer = [] if self.check is None else [f"the answer: {self.check}"]
        return "\n".join([self.rule, *(f"  {line}" for line in [*answer, *self.words])])


def outcome_text(test: RuleTest) -> str:
    """Return the outcome of a test of a rule in words."""
    if test.counterexample is not None:
        return f"it is wrong for {test.counterexample}"
    if not test.dtypes:
        return "no dtype fits both of its sides: it was not tested"
    kinds = ", ".join(map(str, test.dtypes))
    zeros = ", but for the sign of zeros" if any(d.is_float for d in test.dtypes) else ""
    return f"both sides agree on {test.compared:,} values of {kinds}{zeros}"


# --------------------------------------------------------------------------------------------------
# The trial.


def tried(kernel: K, text: str, device: str) -> RuleTrial[K]:
    """Return the trial of a rule on a kernel for a device. Errors: as `tested`."""
    trial: RuleTrial[K] = tested(text)
    if not trial.test.agrees:
        return trial
    try:
        compiled = applied(trial, kernel, device)
        if not compiled.fired:
            return compiled
        assert compiled.kernel is not None
        return replace(compiled, check=compiled.kernel.check(device))
    except WorkbenchError as error:
        return replace(trial, error=f"{error.what}: {error.because}")


def tested(text: str) -> RuleTrial[Any]:
    """Return the trial of a rule as far as the test on values. Errors: ParseError, with the
    column."""
    if not isinstance(text, str):
        because = f"{kind_of(text)} is not a text"
        raise WorkbenchError("this is no rule", because, '"x * 2 -> x + x"')
    rule = typed_rule(text.strip())
    return RuleTrial(rule.name, compare_sides(rule))


def applied(
    trial: RuleTrial[K], kernel: K, device: str, languages: Sequence[tuple[str, str]] = ()
) -> RuleTrial[K]:
    """Return the trial of a tested rule on a kernel as far as the source for a device. The source
    is compared in the first of `languages` that it can be written in, each with a device that
    writes it, or else in the language that the device runs.

    Errors: CompileError for a rule that undoes another one, or that the device cannot follow.
    """
    rule, changed = typed_rule(trial.rule), kernel.without(trial.rule)
    # First for its own device: a rule without end has an error there, and as many matches as a
    # rewrite may have.
    difference = _changes(kernel, changed, device)
    for writer, language in languages:
        with suppress(CompileError):  # what is for one device alone cannot be written for others
            difference = _changes(kernel, changed, writer, language)
            break
    matches = [
        (record.name, match)
        for record in changed.observed(device)
        for match in record.matches
        if match.rule is rule
    ]
    fired = tuple(_firing(name, m.before, m.after) for name, m in matches[:MOST_FIRED])
    return replace(trial, kernel=changed, fired=fired, count=len(matches), difference=difference)


def _firing(pass_name: str, before: UOp, after: UOp) -> Firing:
    """Return a match as text. Long sides are written together, so that a value that both use has
    one name."""
    sides = to_expr(before), to_expr(after)
    if not any("\n" in side for side in sides):
        return Firing(pass_name, *sides)
    *values, first, second = to_expr(UOp.sink(before, after)).split("\n")
    return Firing(pass_name, first, second, tuple(values))


def _changes(before: K, after: K, device: str, language: str = "") -> tuple[str, ...]:
    """Return the lines in which the source of two kernels differs."""
    return differing_lines(before.code_for(device, language), after.code_for(device, language))


def differing_lines(before: str, after: str) -> tuple[str, ...]:
    """Return the lines of two texts that differ, with - and + before them."""
    lines: Sequence[str] = list(
        unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0)
    )
    return tuple(line for line in lines[2:] if not line.startswith("@@"))
