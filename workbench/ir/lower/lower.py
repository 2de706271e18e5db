"""Lowering: from a kernel to its statement tree and to a linear program, level by level."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from workbench.base.dtypes import DType
from workbench.base.target import Target
from workbench.ir.lower.decompose import DECOMPOSE_RULES, INTEGER_RULES, require_guards
from workbench.ir.lower.linearize import STEPS as LIST_STEPS
from workbench.ir.lower.linearize import linearize
from workbench.ir.lower.low_precision import has_low_precision, keeps_bits, low_precision_rules
from workbench.ir.lower.statement_tree import STEPS as TREE_STEPS
from workbench.ir.lower.statement_tree import build_tree
from workbench.ir.lower.work_groups import work_groups
from workbench.ir.nest.fragments import lane_kernel, tile_axes
from workbench.ir.nest.recompute import recompute_rows
from workbench.ir.nest.storage import excess
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.rewrite import RuleSet
from workbench.ir.rules.index import SIMPLIFY_INDEX


def values_only(before: UOp, after: UOp) -> UOp:
    """Return `before` for index arithmetic, whose lanes are substituted later, and else `after`."""
    return before if before.dtype.kind == "index" else after


TENSOR_CORES = Pass(
    "tensor-cores",
    "Tiles of a tensor core are dealt to the lanes of a warp, element by element of each lane.",
    lane_kernel,
)
RECOMPUTE_ROWS = Pass(
    "recompute-rows",
    "A row that does not fit the memory of a work-item is computed where it is read.",
    recompute_rows,
)
STATEMENT_TREE = Pass(
    "statement-tree",
    "Loops, their order and the storage of every value are explicit.",
    build_tree,
    steps=TREE_STEPS,
)


@cache
def low_precision(conversions: tuple[DType, ...] = ()) -> Pass:
    """Return the pass for a device that converts the dtypes `conversions` itself."""
    doc = (
        "Low-precision floats are uint16 or uint8, converted by integer arithmetic, or else only"
        " loaded, stored and converted; float32 is computed with."
    )
    return Pass("low-precision", doc, low_precision_rules(conversions))


NO_LOW_PRECISION = low_precision()
DECOMPOSED = Pass(
    "decompose",
    "Only operations that the device has remain: no exp2, sin, floor division or wide shift.",
    RuleSet("decompose", DECOMPOSE_RULES.rules, keep=values_only),
)
WORK_GROUPS = Pass(
    "work-groups",
    "The loops of a launch are numbers of work-groups and work-items; what a group does together is"
    " dealt out to its work-items.",
    work_groups,
)
DECOMPOSED_INTEGERS = Pass(
    "decompose",
    "Only operations that the language has remain: no floor division or wide shift.",
    RuleSet("decompose", INTEGER_RULES.rules, keep=values_only),
)
LINEARIZE = Pass(
    "linearize",
    "Lanes are vectors, every value stands once in the deepest loop it needs.",
    linearize,
    steps=LIST_STEPS,
)


def lower(kernel: UOp, target: Target) -> tuple[UOp, tuple[UOp, ...]]:
    """Return (lowered, linear) of a kernel for `target`: its statement tree with the operations
    of the device, and its linear program."""
    _, lowered, linear = levels(kernel, target)
    return lowered, linear


def levels(kernel: UOp, target: Target) -> Iterator[Any]:
    """Yield the statement tree, the lowered tree and the linear program, each computed on demand.
    The lowered tree has the same statements with operations of the target alone (polynomials
    instead of exp2); of a target with work-groups, it is the tree of a work-item."""
    if tile_axes(kernel) is not None:
        kernel = TENSOR_CORES(kernel, target)
    if excess(kernel, target) is not None:
        kernel = RECOMPUTE_ROWS(kernel, target)
    tree: UOp = STATEMENT_TREE(kernel, target)
    yield tree
    lowered = tree
    if not target.native_low_precision and has_low_precision(lowered):
        lowered = low_precision(_conversions(lowered, target))(lowered)
    if not target.native_transcendentals:
        lowered = DECOMPOSED(lowered)
        require_guards(lowered)
    elif target.has_groups:
        lowered = DECOMPOSED_INTEGERS(lowered)
        require_guards(lowered)
    if target.has_groups:
        lowered = SIMPLIFY_INDEX(WORK_GROUPS(lowered, target))
    yield lowered
    yield LINEARIZE(lowered, target)


def _conversions(tree: UOp, target: Target) -> tuple[DType, ...]:
    """Return the low-precision dtypes of this kernel that the device converts itself."""
    if not target.converts_in_memory:
        return target.conversions
    return tuple(d for d in target.conversions if not keeps_bits(tree, d))
