"""Registration of additions to the workbench by a notebook cell or another package.

    register(OptKind("HALVE", here="two halves", on_a_gpu="the same", why_not=.., apply=..))
    register(RuleSet("mine", [Rule("double", x + x, x * 2)]), into="simplify-tensor")
    register(MyDevice())
    register(Renderer("SHADER", Language(..), target, render))

From then on they are used everywhere: opts in `OptOps`, in menus and refusals, in searches and in
parsed text; rules in their pass, in Rewrites with their names and docs, and in the list of rules
that can be switched off; a device in the menu, with its language; the text of a renderer beside
that of the devices. The package need not be changed. The parts of these are public, too: `var`,
`Rule`, `Refusal`, `DeviceInfo`, `Target`, `Language`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import TypeVar

from workbench.backends.device import Device, DeviceInfo
from workbench.base.errors import RegisterError, WorkbenchError, require
from workbench.base.source import user_line
from workbench.ir.opt.opt import OptKind, OptOps
from workbench.ir.rewriting.patterns import Pat
from workbench.ir.rewriting.rewrite import (
    AddedRules,
    Rule,
    RuleSet,
    add_rules,
    added_rules,
    remove_rules,
)
from workbench.pipeline import COMPILE_PASSES, COMPILING, SCHEDULE_PASSES, SCHEDULING

Thing = TypeVar("Thing", OptKind, RuleSet, DeviceInfo)
_PASSES = {**SCHEDULE_PASSES, **COMPILE_PASSES}
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def register(thing: Thing, into: str | None = None) -> Thing:
    """Add an opt, a device or a rule set, and return it; a rule set goes `into` a pass, before the
    rules of the pass. It replaces a registered one of the same name, so that a cell can run again.
    Compiled kernels are unchanged, and are compiled again on request.

    A rule must preserve the value, and must not undo another rule; `kernel.check()` says whether
    the result of a kernel is right. A worker process runs a kernel as it was compiled here.

    Errors: RegisterError (DeviceError for a device), for example if its name is taken, if the right
    side of a rule has a name that its left side lacks, or if an amount of an opt is not a whole
    number.
    """
    if isinstance(thing, RuleSet):
        _check_rules(thing, into)
        add_rules(AddedRules(thing, str(into), user_line()))
        return thing
    if into is not None:
        because = f"{type(thing).__name__} goes into no pass"
        raise RegisterError(f"cannot register it into {into!r:.40}", because, "no `into`")
    if isinstance(thing, OptKind):
        OptOps.register(thing)
    elif isinstance(thing, DeviceInfo):
        Device.register(thing)
    else:
        because = f"{type(thing).__name__} is not an OptKind, a RuleSet or a DeviceInfo"
        raise RegisterError(f"cannot register {thing!r:.60}", because, "one of these")
    return thing


def unregister(thing: OptKind | RuleSet | DeviceInfo | str) -> None:
    """Remove a registered opt, device or rule set; `thing` may also be its name.

    Errors: RegisterError if nothing of that name is registered.
    """
    require(thing, (str, OptKind, RuleSet, DeviceInfo), "unregister: thing", '"MINE"')
    name = thing if isinstance(thing, str) else thing.name
    if name in (kind.name for kind in OptOps.registered):
        OptOps.unregister(name)
    elif name in (added.rules.name for added in added_rules()):
        remove_rules(name)
    elif name in Device.names():
        Device.unregister(name)
    else:
        because = "it is not registered"
        raise RegisterError(f"cannot remove {name!r:.40}", because, "the name that was registered")


def _check_rules(rules: RuleSet, into: str | None) -> None:
    """Check that a rule set can be added to a pass. Errors: RegisterError if it cannot."""
    what = f"cannot register the rule set {rules.name!s:.40}"
    passes = ", ".join(_PASSES)
    if into not in _PASSES:
        problem = "no pass is named" if into is None else f"there is no pass {into!r:.40}"
        raise RegisterError(what, problem, f"register(.., into=one of: {passes})")
    if not rules.rules:
        raise RegisterError(what, "it has no rules", 'RuleSet("mine", [Rule(..)])')
    names = dict(_names(rules.name))
    if rules.name in names.values():
        because = f"the package has rules of the name {rules.name}"
        raise RegisterError(what, because, "another name")
    for rule in rules.rules:
        if rule.name in names:
            because = f"{names[rule.name]} has a rule or a step of that name"
            raise RegisterError(f"cannot register the rule {rule.name}", because, "another name")
        _check_rule(rule)


def _names(but: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each rule with the name of its set, and of each step with that of its pass,
    without the registered set `but`, which is to be replaced."""
    for rules in _PASSES.values():
        yield from ((rule.name, rules.name) for rule in rules.rules)
    for each in (*SCHEDULING, *COMPILING):
        yield from ((step.name, f"the pass {each.name}") for step in each.steps)
    for added in added_rules():
        if added.rules.name != but:
            yield from ((rule.name, added.rules.name) for rule in added.rules.rules)


def _check_rule(rule: Rule) -> None:
    """Check a rule: its name, the names on its sides, and that it compiles. Errors: RegisterError
    if it fails."""
    what = f"cannot register the rule {rule.name!s:.60}"
    if not isinstance(rule.name, str) or not _NAME.fullmatch(rule.name):
        because = f"{rule.name!r:.40} is not in lower case with hyphens"
        raise RegisterError(what, because, 'a name such as "add-zero"')
    variables = set(_variables(rule.match))
    sides = [side for side in (rule.becomes, rule.where) if side is not None]
    for side in sides:
        parameters = (
            _variables(side) if isinstance(side, Pat) else inspect.signature(side).parameters
        )
        missing = [name for name in dict.fromkeys(parameters) if name not in variables]
        if missing:
            named = ", ".join(sorted(variables)) or "nothing"
            because = f"its left side has no {' and no '.join(missing)}: it names {named}"
            raise RegisterError(what, because, "only names of its left side")
    try:
        rule.matcher  # noqa: B018  # compiles the rule
    except (WorkbenchError, TypeError, AssertionError) as error:
        raise RegisterError(what, f"it cannot be compiled: {error}", "a simpler rule") from error


def _variables(pattern: Pat) -> Iterator[str]:
    """Yield the names in a pattern."""
    if pattern.name is not None:
        yield pattern.name
    for part in pattern.src or ():
        yield from _variables(part)
