"""Recipes: parts of the Python code for a view of the page, which the page joins and copies."""

from __future__ import annotations

from msgspec import Struct


class PageRecipes(Struct, forbid_unknown_fields=True):
    """Python code for the view of a page. `plan` follows the lines of the expression; `opts` is
    what can be pasted, `baseline` how to compare with something else, `add` how a cell shows a
    variant; `without` is the text around the name of a rule, to do without it."""

    plan: str
    opts: str
    baseline: str
    add: str
    without: list[str]


class PassRecipe(Struct, forbid_unknown_fields=True):
    """Python code for a pass: `outcome` prints what it made, `match` is the text around the
    place of one of its matches. It follows the lines of the expression and of the variant."""

    outcome: str
    match: list[str]
