"""Functions that the front end spells out, recognised again: exp, log, sigmoid, tanh, tan.

Equal graphs are one object: the formula, simplified as the compiler does it and put on the
same operand, would be the very node that is looked at, or it is another function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from workbench.base.dtypes import DType
from workbench.base.trace import unobserved
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rewrite
from workbench.ir.rules.values import VALUE_RULES
from workbench.tensor import formulas, trigonometry


class Named(NamedTuple):
    """A node is the function `name` of `operand`."""

    name: str
    operand: UOp


def _log(x: UOp) -> UOp:
    return x.log2() * math.log(2)


class _Function(NamedTuple):
    """`way` leads from a result of op `op` down to the operand, by source positions."""

    op: Ops
    way: tuple[int, ...]
    formula: Callable[[UOp], UOp]


_FUNCTIONS = {
    "exp": _Function(Ops.MUL, (0,) * 7, formulas.exp),
    "log": _Function(Ops.MUL, (0,) * 2, _log),
    "sigmoid": _Function(Ops.RECIP, (0,) * 10, formulas.sigmoid),
    "tanh": _Function(Ops.WHERE, (2, 0, 0), formulas.tanh),
    "tan": _Function(Ops.FDIV, (0, 0), trigonometry.tan),
}


def named(node: UOp) -> Named | None:
    """Return the function that `node` is the result of, or None."""
    if not node.dtype.is_float:
        return None
    for name, function in _FUNCTIONS.items():
        operand = _follow(node, function.way) if node.op is function.op else None
        if operand is None or operand.dtype is not node.dtype:
            continue
        try:
            blank, template = _template(name, node.dtype)
        except Exception:  # a rule raises: then nothing has a name
            return None
        if _is_filled(template, blank, node, operand):
            return Named(name, operand)
    return None


@cache
def _template(name: str, dtype: DType) -> tuple[UOp, UOp]:
    """Return (a stand-in for the operand, the simplified formula on it)."""
    blank = UOp(Ops.BUFFER, dtype, (), ("operand", "", ()))
    with unobserved():
        return blank, rewrite(_FUNCTIONS[name].formula(blank), VALUE_RULES)


def _is_filled(template: UOp, blank: UOp, node: UOp, operand: UOp) -> bool:
    """Whether `template` with `operand` in place of `blank` is `node`; no node is made for it."""
    todo, visited = [(template, node)], set()
    while todo:
        pair = pattern, candidate = todo.pop()
        if pattern is blank or not pattern.src:
            if candidate is not (operand if pattern is blank else pattern):
                return False
        elif pair not in visited:
            visited.add(pair)
            if _without_sources(pattern) != _without_sources(candidate):
                return False
            todo += zip(pattern.src, candidate.src, strict=True)
    return True


def _without_sources(node: UOp) -> tuple[object, ...]:
    return node.op, node.dtype, node.arg, len(node.src)


def between(node: UOp, operand: UOp) -> set[UOp]:
    """Return the nodes strictly between a result and its operand, constants apart."""
    below = node.toposort(lambda n: n is not operand)
    return {n for n in below if not n.is_const} - {node, operand}


def _follow(node: UOp, way: tuple[int, ...]) -> UOp | None:
    for place in way:
        if place >= len(node.src):
            return None
        node = node.src[place]
    return node
