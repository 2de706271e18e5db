"""Programs of work-items, written by hand: an `Assembly` appends statements to a linear program,
each after the values that it needs.

    p = Assembly(grid=(4,), group=(64,))
    (g,), (l,) = p.groups, p.items
    x, y = p.param(1, 256), p.param(0, 256)
    p.store(y, g * 64 + l, p.load(x, g * 64 + l))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from workbench.backends.gpu.work_group_device import common_gpu
from workbench.base.dtypes import DType, dtypes
from workbench.base.target import Target
from workbench.emulator.program import emulated
from workbench.emulator.steps import Trace
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.verify.linear import STEPLESS_OPS

Array = np.ndarray[Any, Any]
Index = UOp | int
GPU = common_gpu("GPU")


class Assembly:
    """A linear program. `groups` and `items` are the numbers of the group and of the work-item
    along x, y and z."""

    def __init__(self, grid: tuple[int, ...], group: tuple[int, ...]):
        self.steps = [UOp(Ops.BLOCK, dtypes.void, (), KernelInfo("kernel", ()))]
        self._open: list[set[UOp]] = [set()]
        self._names = count()
        self.groups = [self._number("grid", d, size) for d, size in enumerate(grid)]
        self.items = [self._number("item", d, size) for d, size in enumerate(group)]

    def _number(self, role: Any, dimension: int, size: int) -> UOp:
        kind = AxisType.GLOBAL if role == "grid" else AxisType.LOCAL
        axis = UOp.range(size, f"{'gl'[role == 'item']}{dimension}", kind)
        self.steps.append(construct.special(axis, role, dimension))
        return axis

    # memory

    def param(self, slot: int, length: int, dtype: DType = dtypes.float32) -> UOp:
        return construct.param(dtype, slot, length)

    def shared(self, name: str, length: int, dtype: DType = dtypes.float32) -> UOp:
        memory = construct.define(dtype, name, (length,), "shared")
        self.step(memory)
        return memory

    def register(self, name: str, dtype: DType = dtypes.float32) -> UOp:
        return construct.register(dtype, name, 0)

    # statements

    def step(self, node: UOp) -> None:
        """Append a statement, and before it the values that it needs."""
        for value in node.toposort():
            known = any(value in scope for scope in self._open)
            if value is not node and value.op not in STEPLESS_OPS and not known:
                self._append(value)
        self._append(node)

    def _append(self, node: UOp) -> None:
        self.steps.append(node)
        self._open[-1].add(node)

    def load(self, memory: UOp, place: Index, gate: UOp | None = None, lanes: int = 1) -> UOp:
        """Append a load, which reads memory anew."""
        mark = UOp(Ops.VAR, dtypes.index, (), (f"read{next(self._names)}", 0, 0))
        fresh = UOp(Ops.AFTER, memory.dtype, (memory, mark))
        gates = () if gate is None else (gate,)
        index = construct.index(fresh, _node(place))
        value = UOp(Ops.LOAD, memory.dtype.vec(lanes), (index, *gates))
        self.step(value)
        return value

    def store(self, memory: UOp, place: Index, value: UOp | float, gate: UOp | None = None) -> None:
        if not isinstance(value, UOp):
            value = UOp.const(memory.dtype, value)
        gates = () if gate is None else (gate,)
        index = construct.index(memory, _node(place))
        self.step(construct.store(index, value, None, gates))

    def set(self, register: UOp, value: UOp | float) -> None:
        if not isinstance(value, UOp):
            value = UOp.const(register.dtype, value)
        self.step(UOp(Ops.SET, dtypes.void, (register, value)))

    def barrier(self, stands: bool = True) -> None:
        if stands:
            self.step(UOp(Ops.BARRIER, dtypes.void))

    @contextmanager
    def loop(self, steps: int) -> Iterator[UOp]:
        axis = UOp.range(steps, f"r{next(self._names)}", AxisType.REDUCE)
        with self._within(UOp(Ops.LOOP, dtypes.void, (axis,)), Ops.ENDLOOP):
            yield axis

    @contextmanager
    def when(self, condition: UOp, stands: bool = True) -> Iterator[None]:
        if not stands:
            yield
            return
        with self._within(construct.when(condition, ()), Ops.ENDIF):
            yield

    @contextmanager
    def _within(self, begin: UOp, end: Ops) -> Iterator[None]:
        self.step(begin)
        self._open.append(set())
        yield
        self._open.pop()
        self._append(UOp(end, dtypes.void, begin.src))

    # running

    def run(
        self, output: Array, *inputs: Array, is_fresh: bool = True, target: Target = GPU
    ) -> Trace:
        """Run it on `inputs` as params 1, 2, ..; `output` is what param 0 should be afterwards.
        Before, it is written by nobody, or has zeros."""
        begin = np.full_like(output, -77 if is_fresh else 0)
        arrays = [a.ravel() for a in (begin, *(i.copy() for i in inputs))]
        fresh = frozenset({0} if is_fresh else ())
        expected = {0: output.ravel()}
        return emulated(self.steps, arrays, target, expected=expected, fresh=fresh)


def _node(place: Index) -> UOp:
    return place if isinstance(place, UOp) else UOp.index(place)
