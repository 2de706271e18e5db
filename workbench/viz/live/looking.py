"""Requests about rewrites: a node's value at a position, why a rule did not fire, and what a
kernel is without a rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.dtypes import dtypes
from workbench.engine import array_of, memory_of
from workbench.errors import WorkbenchError
from workbench.ir.explain import explain
from workbench.ir.interpret import interpret_tensor
from workbench.ir.interpret_kernel import interpret_kernel
from workbench.ir.ops import Ops
from workbench.ir.rewrite import Rule, RuleSet
from workbench.ir.uop import UOp
from workbench.pipeline import COMPILE_RULES, SCHEDULE_RULES
from workbench.viz.live import tuning

if TYPE_CHECKING:
    from workbench.viz.live.session import Session

MOST_ELEMENTS = 1 << 24
"""A tensor whose graph holds more is not computed only to be looked at."""
SHOWN = 16
"""Values of a tensor that are shown, from its beginning."""
LOWERED = frozenset({Ops.BLOCK, Ops.LOOP, Ops.ENDLOOP, Ops.ACCUMULATE, Ops.AFTER})
Result = dict[str, Any]


def values(
    session: Session,
    variant: int | None,
    place: int,
    step: int,
    node: int,
    at: dict[str, int],
) -> Result:
    """Return the value of a node: of a kernel's at a position of its axes (0 where none is
    given), of a tensor its first values, with the least and the greatest.

    Errors: WorkbenchError where a node has no value of its own, or computing it is too much.
    """
    uop = session.recorder.node(node)
    below = uop.toposort()
    if uop.dtype is dtypes.void or any(n.op in LOWERED for n in below):
        because = "values are computed for tensors, and for kernels before lowering"
        raise WorkbenchError(f"{uop.op.name} has no value to show", because)
    kernel = session.record["passes"][place]["kernel"]
    if kernel is None or not any(n.op in (Ops.PARAM, Ops.RANGE) for n in below):
        return _tensor_value(uop)
    root = session.record["kernels"][kernel]["root"]
    chosen = session.kernels[root if variant is None else variant]
    held = chosen.data.buffers(chosen.original, "LLVM")
    return _told(_kernel_value(uop, at, [b.array for b in held]))


def _tensor_value(uop: UOp) -> Result:
    below = uop.toposort()
    if sum(n.size for n in below if n.dtype is not dtypes.void) > MOST_ELEMENTS:
        because = f"its graph holds more than {MOST_ELEMENTS:,} elements"
        raise WorkbenchError("the value is not computed", because, "a smaller example")
    held = {
        n: array_of(memory_of(n)).reshape(n.shape) for n in below if n.op is Ops.BUFFER
    }
    return _told(interpret_tensor(uop, held))


def _kernel_value(uop: UOp, at: dict[str, int], arrays: list[Any]) -> Any:
    """Return the value at a position: a kernel that stores just that is interpreted."""
    fixed = {r: UOp.index(_position(r, at)) for r in uop.ranges}
    value = uop.substitute(fixed)
    if value.dtype is dtypes.index:
        value = value.cast(dtypes.int64)
    target = UOp(Ops.PARAM, value.dtype, (), (len(arrays), 1))
    where = UOp(Ops.INDEX, value.dtype, (target, UOp.index(0)))
    store = UOp(Ops.STORE, dtypes.void, (where, value))
    sink = UOp.sink(UOp(Ops.END, dtypes.void, (store,)))
    room = np.zeros(1, value.dtype.numpy)
    return interpret_kernel(sink, [*arrays, room])[-1].reshape(())


def _position(axis: UOp, at: dict[str, int]) -> int:
    place = at.get(axis.axis_name, 0)
    if not 0 <= place < axis.extent:
        because = f"{axis.axis_name} goes from 0 to {axis.extent - 1}"
        raise WorkbenchError(f"{axis.axis_name} is never {place}", because)
    return place


def _told(found: Any) -> Result:
    array = np.asarray(found)
    flat = array.reshape(-1)
    numbers = flat[~np.isnan(flat)] if flat.dtype.kind == "f" else flat
    first = [_plain(v) for v in flat[:SHOWN].tolist()]
    is_many = array.size > 1
    return {
        "value": first if array.shape else first[0],
        "min": _plain(numbers.min().item()) if is_many and numbers.size else None,
        "max": _plain(numbers.max().item()) if is_many and numbers.size else None,
        "nan": int(flat.size - numbers.size),
        "shape": list(array.shape),
    }


def _plain(value: Any) -> Any:
    """Return a number as JSON can say it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def why_not(session: Session, place: int, step: int, node: int, rule: int) -> Result:
    """Return why a rule does not fire at a node: its text, the part that fails, a sentence.

    Errors: WorkbenchError for what is an opt or a step and no rule.
    """
    row = _rule(session, rule)
    found = explain(row, session.recorder.node(node), _set_of(row))
    because = f"it fires: {found.because}" if found.fires else found.because
    return {
        "text": found.text,
        "caret_start": found.start,
        "caret_end": found.end,
        "because": because,
    }


def rule_off(session: Session, kernel: int, rule: int, on: bool | None) -> Result:
    """Return the variant of a kernel with one more rule off, or on again; the kernel itself
    where none is off."""
    row = _rule(session, rule)
    root = session.record["kernels"][kernel]["root"]
    off = session.off.setdefault(kernel, [])
    if on and row.name in off:
        off.remove(row.name)
    elif not on and row.name not in off:
        session.kernels[root].without(row.name)  # refused before it is noted
        off.append(row.name)
    if not off:
        return {"variant": root}
    made = session.kernels[root].without(*off)
    name = tuning.free_name(session, kernel, "without")
    return {"variant": tuning.variant_of(session, made, root, name)}


def _rule(session: Session, place: int) -> Rule:
    found = session.recorder.rule(place)
    if found is None:
        name = session.record["rules"][place]["name"]
        raise WorkbenchError(f"{name} is no rule", "it is a step of its own")
    return found


def _set_of(rule: Rule) -> RuleSet | None:
    """Return the set of the pipeline that a rule is a row of."""
    sets = (*SCHEDULE_RULES, *COMPILE_RULES)
    return next((s for s in sets if rule in s.rules), None)
