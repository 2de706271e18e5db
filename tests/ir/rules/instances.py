"""Random graphs made from a rule's own pattern, so that a new rule is tested by being there.

    instances(rule, Leaves(value, constant), 200)  ->  200 times (before, after)

The pattern is filled from the top: ops and dtypes are drawn, names become random leaves or
constants. Most draws do not pass the rule's guard, and are thrown away.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from workbench.base.dtypes import Const, DType, dtypes
from workbench.ir.node.ops import COMPARE, OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat
from workbench.ir.rewriting.rewrite import Rule

KINDS: dict[str | None, tuple[str, ...]] = {
    None: ("bool", "int", "uint", "float", "index"),
    "bool": ("bool",),
    "index": ("index",),
    "float": ("float",),
    "integer": ("int", "uint", "index"),
    "exact": ("bool", "int", "uint", "index"),
    "value": ("bool", "int", "uint", "float"),
}
_LOGIC = {Ops.AND, Ops.OR, Ops.XOR}
_INTEGER = {Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR, Ops.CDIV, Ops.CMOD}
_ANY = {Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN, Ops.WHERE, Ops.CAST}
DRAWS = 200_000


@dataclass(frozen=True)
class Leaves:
    """Where the parts of a graph come from: values, constants, and the dtypes to draw from."""

    value: Callable[[random.Random, DType], UOp]
    constant: Callable[[random.Random, DType], Const]
    dtypes: tuple[DType, ...]


class Unfit(Exception):
    """A draw that the pattern, an op or a dtype has no place for."""


def instances(rule: Rule, leaves: Leaves, count: int) -> Iterator[tuple[UOp, UOp]]:
    """Yield (before, after) for `wanted` different nodes that `rule` changes.

    Errors: AssertionError where DRAWS draws do not find them.
    """
    pick = random.Random(rule.name)
    nodes: set[UOp] = set()
    for _ in range(DRAWS):
        try:
            node = _Filling(leaves, pick).fill(rule.match, pick.choice(leaves.dtypes))
        except Unfit:
            continue
        if node in nodes or (after := rule.matcher(node)) is None or after is node:
            continue
        nodes.add(node)
        yield node, after
        if len(nodes) == count:
            return
    raise AssertionError(f"only {len(nodes)} graphs were found for {rule}")


class _Filling:
    """One draw: what the names of the pattern stand for so far."""

    def __init__(self, leaves: Leaves, pick: random.Random):
        self.leaves, self.pick = leaves, pick
        self.names: dict[str, UOp] = {}

    def fill(self, pat: Pat | None, dtype: DType) -> UOp:
        if pat is None:
            return self._leaf(dtype)
        if dtype.kind not in KINDS[pat.kind] or pat.arg is not None:
            raise Unfit
        if pat.name in self.names:
            return self._again(pat.name, dtype)
        node = self._node(pat, dtype)
        if pat.name is not None:
            self.names[pat.name] = node
        return node

    def _again(self, name: str, dtype: DType) -> UOp:
        node = self.names[name]
        if node.dtype is not dtype:
            raise Unfit
        return node

    def _leaf(self, dtype: DType) -> UOp:
        if self.pick.random() < 0.4:
            return UOp.const(dtype, self.leaves.constant(self.pick, dtype))
        return self.leaves.value(self.pick, dtype)

    def _node(self, pat: Pat, dtype: DType) -> UOp:
        if pat.value is not None:
            return UOp.const(dtype, pat.value)
        if pat.ops is None:
            return self._leaf(dtype)
        if pat.ops == (Ops.CONST,):
            return UOp.const(dtype, self.leaves.constant(self.pick, dtype))
        op = self.pick.choice(pat.ops)
        parts = pat.src or (None,) * (OPS[op].arity or 1)
        wants = self._operands(op, dtype, len(parts))
        src = [self.fill(p, d) for p, d in zip(parts, wants, strict=True)]
        return UOp(op, dtype, tuple(src))

    def _operands(self, op: Ops, dtype: DType, count: int) -> list[DType]:
        """Return the dtypes that `op` takes for a result of `dtype`."""
        if op in COMPARE:
            return [self._from(dtype.is_bool)] * count
        if op is Ops.CAST:
            return [self._from(dtype.kind != "index")]
        if op is Ops.BITCAST:
            other = self._from(True)
            return [other if other.bits == dtype.bits else self._refuse()]
        if op is Ops.WHERE:
            return [dtypes.bool, dtype, dtype]
        if op is Ops.THREEFRY:
            return [dtype if dtype is dtypes.uint32 else self._refuse()] * count
        fits = {
            "bool": op in _LOGIC or op is Ops.NOT,
            "float": op not in _LOGIC | _INTEGER | {Ops.NOT},
        }.get(dtype.kind, op in _LOGIC | _INTEGER | {Ops.NOT, Ops.NEG})
        return [dtype] * count if fits or op in _ANY else self._refuse()

    def _from(self, fits: bool) -> DType:
        return self.pick.choice(self.leaves.dtypes) if fits else self._refuse()

    def _refuse(self) -> DType:
        raise Unfit
