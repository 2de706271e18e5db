"""A table of planted defects, and what must be named of each: the kind, the memory, the statements,
and the two work-items or the element. What goes wrong in kernels was listed from textbooks and from
what compute-sanitizer's tools (memcheck, racecheck, initcheck, synccheck) look for.

A statement is written as an op and its memory: "STORE tile", "IF", "BARRIER".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.emulator import kernels
from tests.emulator.kernels import Handwritten


class Defect(NamedTuple):
    """A defect: a kernel with one choice that makes it wrong. `statements` are those of the
    finding, `element` and `items` what it names: the x numbers of the work-items, or of their
    groups."""

    name: str
    kernel: str
    choices: dict[str, Any]
    kind: str
    statements: tuple[str, ...]
    element: int | None = None
    items: tuple[int, ...] | None = None
    groups: tuple[int, ...] | None = None


def D(name: str, kernel: str, kind: str, *statements: str, **choices: Any) -> Defect:
    expected = {k: choices.pop(k) for k in ("element", "items", "groups") if k in choices}
    return Defect(name, kernel, choices, kind, statements, **expected)


# fmt: off
DEFECTS = [
    # barriers
    D("none between fill and read", "transpose", "race", "STORE tile", "LOAD tile", barrier=False),
    D("none before a tree", "tree_sum", "race", "STORE sums", "LOAD sums", barrier_before=False,
      element=32, items=(32, 0)),
    D("none between two steps of a tree", "tree_sum", "race", "STORE sums", "LOAD sums",
      barrier_after=(0, 2, 3, 4, 5), element=8, items=(8, 0)),
    D("none in the last steps of a tree", "tree_sum", "race", "STORE sums", "LOAD sums",
      barrier_after=(0,)),
    D("none before others read what one computed", "shared_scale", "race", "STORE scale",
      "LOAD scale", barrier=False, element=0, items=(0, 1)),
    D("none after the fill of a tile", "product", "race", "STORE As", "LOAD As",
      barriers=(False, True)),
    D("none before a tile is filled again", "product", "race", "LOAD As", "STORE As",
      barriers=(True, False)),
    D("hoisted out of the loop", "product", "race", "STORE Bs", "LOAD Bs", hoisted=True),
    D("none between steps of prefix sums", "prefix_sums", "race", "STORE sums1", "LOAD sums1",
      barriers=False),
    D("none in a stencil's early exit", "stencil", "divergent barrier", "BARRIER", early_exit=True,
      items=(40, 0), groups=(15, 15)),
    D("in the branch of a tree", "tree_sum", "divergent barrier", "BARRIER", barrier_inside=True,
      items=(32, 0)),
    D("on one way of a branch", "branches", "divergent barrier", "BARRIER", inside="some",
      items=(32, 0)),
    D("one on each way of a branch", "branches", "divergent barrier", "BARRIER", inside="both",
      items=(0, 32)),
    # numbers of groups and work-items
    D("x for y in a fill", "transpose", "race", "STORE tile", "STORE tile", fill_rows="x"),
    D("x for y in a group of a rectangular grid", "transpose", "race", "STORE p0", "STORE p0",
      swapped=True),
    D("x for y in a group of a square grid", "transpose", "wrong value", "STORE p0", swapped=True,
      columns=64),
    D("x for y in a group that reads", "product", "wrong value", "STORE p0", wrong_rows=True),
    D("no group in a place", "transpose", "race", "STORE p0", "STORE p0", lost_group=True),
    D("groups of another size", "transpose", "race", "STORE p0", "STORE p0", group_step=16),
    D("a work-item's number for its group's", "tree_sum", "race", "STORE p0", "STORE p0",
      output="item", element=0, items=(0, 0)),
    # tiles
    D("rows without their pad, in its size", "transpose", "out of bounds", "STORE tile", size=1024,
      element=1024),
    D("another stride where it is read", "transpose", "unwritten", "LOAD tile", read_stride=32),
    D("filled by one round too few", "transpose", "unwritten", "LOAD tile", fills=3),
    D("filled by one round too many", "transpose", "out of bounds", "STORE tile", fills=5),
    D("read by one round too few", "transpose", "unwritten", drains=3),
    D("read one too far", "stencil", "out of bounds", "LOAD tile", read_at=1, element=66,
      items=(63,)),
    D("written one too far", "stencil", "unwritten", "LOAD tile", write_at=2, element=1),
    D("no halo", "stencil", "unwritten", "LOAD tile", left_halo=False, element=0, items=(0,)),
    D("as long as a group, without halos", "stencil", "out of bounds", "STORE tile", size=64),
    D("filled by half of the work-items", "tree_sum", "unwritten", "LOAD sums", fillers=32,
      element=32, items=(0,)),
    D("filled across", "product", "wrong value", "STORE p0", swapped_fill=True),
    D("one buffer for two", "prefix_sums", "race", "LOAD sums0", "STORE sums0", buffers=1),
    D("the other buffer first", "prefix_sums", "unwritten", "LOAD sums1", first=1),
    # bounds
    D("an index below 0", "stencil", "out of bounds", "LOAD p1", left_gate=False, element=-1,
      items=(0,)),
    D("no guard where it writes", "stencil", "out of bounds", "STORE p0", guard=False, element=1000,
      items=(40,), groups=(15,)),
    D("no guard around a copy", "scaled_copy", "out of bounds", "STORE p0", guard=False,
      element=1000),
    D("no gate on padded elements", "tree_sum", "out of bounds", "LOAD p1", gate=0, element=1000),
    D("<= for <", "tree_sum", "out of bounds", "LOAD p1", gate=1001, element=1000),
    D("a loop once too often", "product", "out of bounds", "LOAD p2", rounds=4),
    D("a loop once too few", "product", "wrong value", "STORE p0", rounds=2),
    # trees
    D("begun at a quarter", "tree_sum", "wrong value", "STORE p0", steps=(16, 8, 4, 2, 1)),
    D("a step twice", "tree_sum", "wrong value", "STORE p0", steps=(32, 16, 16, 8, 4, 2, 1)),
    D("of 48 work-items", "tree_sum", "out of bounds", "LOAD sums", width=48, element=48,
      groups=(0,)),
    D("all work-items add", "tree_sum", "race", "LOAD sums", "STORE sums", guard=False),
    D("all work-items write the sum", "tree_sum", "race", "STORE p0", "STORE p0", one_writes=False,
      element=0),
    # values
    D("an accumulator that nobody sets", "product", "unwritten", "ADD", starts=False),
    D("a register that half of the work-items set", "branches", "unwritten", "SET", set_by=32),
    D("an index that nobody wrote", "branches", "unwritten", "LOAD places", index_from=32),
    D("added to an output that nobody cleared", "tree_sum", "unwritten", "LOAD p0",
      accumulates=True),
    # global memory
    D("counts that several add to", "histogram", "race", "LOAD p0", "STORE p0", private=False),
    D("a transpose in its place", "transpose", "race", "LOAD p0", "STORE p0", columns=64,
      in_place=True),
    D("a stencil in its place", "stencil", "race", "LOAD p0", "STORE p0", in_place=True,
      groups=(1, 0)),
    D("a barrier between groups", "branches", "race", "STORE p0", "LOAD p0", reader="group",
      groups=(1, 0)),
    D("the last group reads what the first writes", "many_groups", "race", "STORE p0", "LOAD p0",
      reads_first=True, element=0, groups=(0, 1999)),
    D("vectors that overlap", "vectors", "race", "STORE p0", "STORE p0", step=3, element=3,
      items=(0, 1)),
    D("vectors too far apart", "vectors", "out of bounds", "STORE p0", step=5),
    # what is right, and slow
    D("a tile without a pad", "transpose", "bank conflict", "LOAD tile", pad=0, items=(0, 1)),
    D("a pad that does not help", "transpose", "bank conflict", "LOAD tile", pad=2),
    D("a tile filled across", "product", "bank conflict", "STORE Bs", swapped_fill=True),
    D("a tree of strides", "interleaved_sum", "bank conflict", "LOAD sums", by="strides",
      items=(0, 16)),
    D("a tree of branches", "interleaved_sum", "divergent branch", "IF", by="branches",
      items=(0, 1)),
    D("columns written", "transpose", "uncoalesced", "STORE p0", tiled=False, items=(0, 1)),
    D("columns read", "transpose", "uncoalesced", "LOAD p1", by_columns=True, tiled=False,
      items=(0, 1)),
    D("one of three fields", "scaled_copy", "uncoalesced", "LOAD p1", stride=3, items=(0, 1)),
    D("begun beside a sector", "scaled_copy", "uncoalesced", "LOAD p1", shift=1),
]
# fmt: on
SLOW = ("bank conflict", "divergent branch", "uncoalesced")
"""Kinds of what is right, and slow."""
RIGHT = [
    ("transpose", {}),
    ("transpose", {"tiled": False}),
    ("tree_sum", {}),
    ("tree_sum", {"n": 1024, "gate": 0}),
    ("shared_scale", {}),
    ("stencil", {}),
    ("product", {}),
    ("prefix_sums", {}),
    ("histogram", {}),
    ("scaled_copy", {}),
    ("branches", {}),
    ("branches", {"inside": "groups"}), ("vectors", {}), ("many_groups", {}),
    ("numbered", {"shape": "3d"}), ("numbered", {"shape": "40"}),
    ("interleaved_sum", {"by": "strides"}),
    ("interleaved_sum", {"by": "branches"}),
]  # fmt: skip


def kernel_of(kernel: str, choices: dict[str, Any]) -> Handwritten:
    """Return a kernel of `kernels.py`."""
    written: Handwritten = getattr(kernels, kernel)(**choices)
    return written
