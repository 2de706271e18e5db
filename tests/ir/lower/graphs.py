"""Decomposed graphs, and their values on numpy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.meaning.values import bitcast_array, cast_array
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import variable as variable
from workbench.ir.rewriting.rewrite import RuleSet, rewrite

FLOATS = [dtypes.float32, dtypes.float64]

Array = Any
Env = dict[UOp, Array]


def decomposed(root: UOp, rules: RuleSet = DECOMPOSE_RULES) -> UOp:
    return rewrite(root, rules)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float32, rounded (all but) once."""
    wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return np.asarray(wide).astype(np.float32)


def evaluate(root: UOp, env: Env, fma: Callable[..., Array] | None = None) -> Array:
    values: Env = dict(env)
    with np.errstate(all="ignore"):
        for node in root.toposort():
            if node.op is Ops.RANGE:
                continue
            computed = [s for s in node.src if s.op is not Ops.RANGE]
            src = [values[s] for s in computed] if node not in env else []
            if node.op is Ops.CONST:
                values[node] = np.asarray(node.arg, node.dtype.numpy)
            elif node.op is Ops.BITCAST:
                values[node] = bitcast_array(src[0], node.src[0].dtype, node.dtype)
            elif node.op is Ops.CAST:
                values[node] = cast_array(src[0], node.src[0].dtype, node.dtype)
            elif node.op is Ops.FMA and fma is not None:
                values[node] = fma(*src)
            elif node.op is Ops.REDUCE:  # of a value that is the same at every step
                steps = [src[0]] * math.prod(r.extent for r in node.src[1:])
                combine = OPS[node.combines].python
                assert combine is not None
                values[node] = functools.reduce(combine, steps)
            elif node not in env:
                meaning = OPS[node.op].python
                assert meaning is not None, node
                values[node] = meaning(*src)
            assert values[node].dtype == node.dtype.numpy, node
    return values[root]
