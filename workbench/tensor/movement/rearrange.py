"""Axes split, reordered and merged by a formula: "b (h w) c -> b c h w".

Source: einops. Each side names axes; parentheses hold the axes that one axis of the tensor is
made of, the slowest first; `...` stands for all axes that are not named, 1 for an axis of size 1.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn, Self

from workbench.ir.node.shapes import Shape
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import short, text, whole
from workbench.tensor.operands.refuse import shape_error

_TOKEN = re.compile(r"\s*(\.\.\.|[()]|[A-Za-z_]\w*|1\b)")
_DOTS = "..."
_MERGED_DOTS = "(...)"
"""The axes of `...` side by side, and as a part of one axis."""

Side = list[list[str]]
"""The names that each axis is made of."""


class Rearrange(Base):
    """rearrange."""

    __slots__ = ()

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Return the elements with axes split, reordered and merged as `formula` says; `sizes`
        gives those that the shape does not.

        Errors: ShapeError for a formula that cannot be read, names that differ between its sides,
        or sizes that do not fit.
        """
        left, right = _sides(text(formula, "rearrange: formula"))
        left, right = _without_dots(left, right, self.ndim, formula)
        lengths = _lengths(left, self.shape, sizes, formula)
        names = [name for axis in left for name in axis]
        split = self.reshape([lengths[name] for name in names])
        right_names = [name for axis in right for name in axis if name != "1"]
        # An axis of size 1 that is not named is in no place: it goes, or comes by reshape.
        order = [names.index(name) for name in right_names]
        rest = [i for i in range(len(names)) if i not in order]
        shape = [math.prod(lengths.get(n, 1) for n in axis) for axis in right]
        return split.permute(*order, *rest).reshape(shape)


def _sides(formula: str) -> tuple[Side, Side]:
    halves = formula.split("->")
    if len(halves) != 2:
        _refuse(formula, f"it has {len(halves) - 1} arrows, and must have one")
    left, right = (_axes(half, formula) for half in halves)
    for side in (left, right):
        names = [n.strip("()") for axis in side for n in axis if n != "1"]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice:
            _refuse(formula, f"{twice} stands twice on one side")
    sets = [{n.strip("()") for axis in side for n in axis} for side in (left, right)]
    unmatched = (sets[0] ^ sets[1]) - {"1"}
    if unmatched:
        _refuse(formula, f"{', '.join(sorted(unmatched))} stands on one side alone")
    return left, right


def _axes(half: str, formula: str) -> Side:
    axes: Side = []
    is_inside, place, half = False, 0, half.rstrip()
    while place < len(half):
        match = _TOKEN.match(half, place)
        if match is None:
            _refuse(formula, f"{half[place:].strip()[:20]!r} is not the name of an axis")
        token, place = match[1], match.end()
        if token in "()":
            if (token == "(") is is_inside:
                _refuse(formula, "parentheses must come in pairs, and not in each other")
            is_inside = not is_inside
            if is_inside:
                axes.append([])
        elif is_inside:
            axes[-1].append(_MERGED_DOTS if token == _DOTS else token)
        else:
            axes.append([token])
    if is_inside:
        _refuse(formula, "a parenthesis is open at the end")
    return axes


def _without_dots(left: Side, right: Side, ndim: int, formula: str) -> tuple[Side, Side]:
    """Return both sides with a name for each of the axes that `...` stands for."""
    has_dots = [_DOTS] in left
    if any(_MERGED_DOTS in axis for axis in left):
        _refuse(formula, "... cannot be a part of an axis of the tensor")
    missing = ndim - len(left) + has_dots
    if missing < 0 or (missing and not has_dots):
        _refuse(formula, f"it names {len(left) - has_dots} axes, and the tensor has {ndim}")
    dots = [f"...{i}" for i in range(missing)]

    def named(side: Side) -> Side:
        axes: Side = []
        for axis in side:
            if axis == [_DOTS]:
                axes += [[dot] for dot in dots]
            else:
                axes.append([n for a in axis for n in (dots if a == _MERGED_DOTS else [a])])
        return axes

    return named(left), named(right)


def _lengths(left: Side, shape: Shape, sizes: dict[str, Any], formula: str) -> dict[str, int]:
    """Return the size of each name of the left side; one in an axis may follow from the rest."""
    names = {name for axis in left for name in axis}
    for name in sizes:
        if name not in names:
            _refuse(formula, f"it has no axis {short(name)}")
    lengths = {name: whole(n, f"rearrange: {name}", 0) for name, n in sizes.items()}
    lengths["1"] = 1
    for axis, (parts, size) in enumerate(zip(left, shape, strict=True)):
        unknown = [name for name in parts if name not in lengths]
        product = math.prod(lengths[name] for name in parts if name in lengths)
        if len(unknown) > 1:
            _refuse(formula, f"the sizes of {' and '.join(unknown)} are unknown", unknown)
        if unknown and product and size % product == 0:
            lengths[unknown[0]] = size // product
        elif unknown or product != size:
            _refuse(
                formula,
                f"axis {axis} of shape {shape} has {size} elements, and"
                f" ({' '.join(parts)}) has {product}{' times as many' if unknown else ''}",
            )
    return lengths


def _refuse(formula: str, because: str, unknown: list[str] | None = None) -> NoReturn:
    hint = f"{unknown[0]}=2, or its size, as an argument" if unknown else ""
    raise shape_error(f"cannot rearrange by {short(formula)}", because, hint)
