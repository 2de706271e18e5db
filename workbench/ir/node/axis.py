"""Kinds of axis: the purpose of a kernel's loop, and the first letter of its name."""

from __future__ import annotations

from enum import Enum


class AxisType(Enum):
    """The kind of an axis, in the order in which kernels list their axes. A row has all facts of a
    kind; text, pictures and the page read them here.

    Names of such axes begin with `letter`; pictures show the `badge` on `colour` and `pattern`
    (see `workbench/viz/model/kinds.py`), never colour alone. `is_lane`: such axes are computed
    together, without a loop, and have no place in the loop order. `is_independent`: no step
    needs another one's result. `is_work_item`: each step is a work-item of a work-group.
    """

    # fmt: off
    #              letter badge colour  pattern    traits                   caption
    GLOBAL       = "g", "G",  "#0072B2", "plain",   "independent",           "outputs, in any order"
    LOOP         = "i", "O",  "#999999", "rails",   "independent",           "outputs, one by one"
    LOCAL        = "l", "L",  "#56B4E9", "dotted",  "independent work-item", "outputs of a group"
    THREAD       = "t", "T",  "#009E73", "dashed",  "independent",           "outputs per thread"
    GROUP_REDUCE = "x", "GR", "#D55E00", "hatched", "work-item",             "a sum shared out"
    REDUCE       = "r", "R",  "#D55E00", "ruled",   "",                      "steps of a reduction"
    UPCAST       = "u", "U",  "#E69F00", "half",    "lane",                  "outputs at once"
    UNROLL       = "n", "N",  "#CC79A7", "morse",   "lane",                  "steps at once"
    WARP         = "w", "W",  "#F0E442", "slanted", "lane",                  "steps in lock step"
    FILL         = "f", "F",  "#F0E442", "fine",    "independent",           "elements of a copy"
    # fmt: on

    def __new__(cls, letter: str, *row: str) -> AxisType:
        """The letter names the kind: `AxisType("g")` is GLOBAL."""
        kind = object.__new__(cls)
        kind._value_ = letter
        return kind

    def __init__(
        self, letter: str, badge: str, colour: str, pattern: str, traits: str, caption: str
    ):
        self.letter, self.badge, self.caption = letter, badge, caption
        self.colour, self.pattern = colour, pattern
        self.is_lane = traits == "lane"
        self.is_independent = "independent" in traits
        self.is_work_item = "work-item" in traits

    @property
    def words(self) -> str:
        """The name of the kind in text and pictures."""
        return self.name.lower().replace("_", " ")

    def __repr__(self) -> str:
        return f"AxisType.{self.name}"


AXIS_ORDER = {kind: rank for rank, kind in enumerate(AxisType)}
