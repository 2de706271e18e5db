"""Parts of an exploration as Python: a variant, a pass, a step of one, a decision. They follow the
lines that bind `ex` (record/recipe.py); the page joins them, and copies the whole."""

from __future__ import annotations

import json
from collections.abc import Sequence

from workbench.base.trace import Match, PassRecord
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.schedule.item import Decision
from workbench.kernel.kernel import Kernel
from workbench.kernel.pasted import device_call
from workbench.viz.schema.recipe import PassRecipe

REQUESTED = "store-asked"
"""The decision about what the user asked for: it has no other way."""


def kernel_recipe(number: int, kernel: Kernel) -> str:
    """Return code that binds `kernel` to a variant of kernel `number`, where `ex` is bound."""
    off = ", ".join(map(json.dumps, kernel.rules_off))
    call = f"kernel = ex.kernels[{number}]{device_call(kernel)}"
    call += f".without({off})" if off else ""
    if not kernel.applied_opts:
        return f"{call}\n"
    opts = "".join(f"    {opt!r},\n" for opt in kernel.applied_opts)
    return f"from workbench import Opt, OptOps\n\n{call}.apply(\n{opts})\n"


def compiled_passes(device: str, failed: bool = False) -> str:
    """Return an expression for the passes of compiling `kernel`, which may not end."""
    name = json.dumps(device)
    return f"kernel.observed({name})" if failed else f"kernel.compile({name}).passes"


def pass_recipe(passes: str, place: int, record: PassRecord) -> PassRecipe:
    """Return the code for a pass, `place` of the expression `passes`, and at its matches."""
    binding = f"found = {passes}[{place}]  # {record.name}\n"
    outcome = "after" if record.error is None else "error"
    return PassRecipe(
        outcome=f"{binding}print(found.{outcome})\n",
        match=[f"{binding}match = found.matches[", f"]\n{_match(record.matches)}"],
    )


def _match(matches: Sequence[Match]) -> str:
    """Return code that prints `match`, one of some; of a rule also why it fired there."""
    rules = [match.rule for match in matches]
    if any(isinstance(rule, Decision) for rule in rules):
        return "print(match.rule)\n"
    both = 'print(match.rule, match.before, match.after, sep="\\n")\n'
    if not all(isinstance(rule, Rule) for rule in rules):
        return both
    return f"{both}print(ex.why_not(match.rule, match.before, found.name))\n"


def decision_recipe(place: int, decision: Decision) -> str:
    """Return code that prints a decision, `place` of all, and in a comment how to turn it round."""
    other = None if decision.forced else not decision.stored
    turn = f"# the other way: ex = ex.replan({{decision.node: {other}}})\n"
    return (
        f"decision = ex.decisions[{place}]\nprint(decision)\n"
        f"{'' if decision.name == REQUESTED else turn}"
    )
