"""A linear program, carried out step by step in Python, counting what is done: the oracle of
`count`, which only multiplies trip counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench.ir.meaning.values import bitcast_array, cast_array
from workbench.ir.nest.estimates import Counts
from workbench.ir.node.ops import CASTS, OPS, Ops
from workbench.ir.node.uop import UOp

Array = Any


def executed(linear: Sequence[UOp], arrays: Sequence[Array]) -> Counts:
    """Run a program on `arrays`, which it changes; return what it did."""
    machine = _Machine(arrays)
    machine.run(list(linear))
    return Counts(**machine.done)


class _Machine:
    def __init__(self, arrays: Sequence[Array]):
        self.arrays = arrays
        self.values: dict[UOp, Array] = {}
        self.registers: dict[tuple[Any, ...], Array] = {}
        self.scratch: dict[UOp, Array] = {}
        self.done: Counter[str] = Counter()

    def run(self, steps: list[UOp]) -> None:
        place = 0
        while place < len(steps):
            step = steps[place]
            if step.op is not Ops.LOOP:
                self.step(step)
                place += 1
                continue
            axis = step.src[0]
            end = next(
                i
                for i, s in enumerate(steps)
                if i > place and s.op is Ops.ENDLOOP and s.src[0] is axis
            )
            for position in range(axis.extent):
                self.values[axis] = np.int64(position)
                self.run(steps[place + 1 : end])
            place = end + 1

    def value(self, node: UOp) -> Array:
        """Return a value: of a leaf here and now, else what its step made."""
        if node.op is Ops.CONST:
            return np.asarray(node.arg, node.dtype.numpy)[()]
        if node.op is Ops.LANES:
            return np.asarray(node.arg, node.dtype.numpy)
        if node.op is Ops.REG:
            return self.registers[node.arg, node.dtype]
        return self.values[node]

    def memory(self, node: UOp) -> Array:
        while node.op is Ops.AFTER:
            node = node.src[0]
        if node.op is Ops.PARAM:
            return self.arrays[node.arg[0]]
        size = int(np.prod(node.arg.shape, dtype=np.int64))
        return self.scratch.setdefault(node, np.zeros(size, node.dtype.numpy))

    def step(self, step: UOp) -> None:
        if step.op is Ops.STORE:
            self.store(step)
        elif step.op is Ops.SET:
            register = step.src[0]
            self.registers[register.arg, register.dtype] = self.value(step.src[1])
        elif step.op is Ops.LOAD:
            self.values[step] = self.load(step)
        elif step.op is Ops.INDEX:
            self.values[step] = self.value(step.src[1])
        elif step.op not in (Ops.BLOCK, Ops.DEFINE):
            self.values[step] = self.computed(step)

    def lanes(self, step: UOp, count: int, gate: UOp | None) -> Iterator[tuple[int, int]]:
        """Yield (lane, position in memory) where the gate is open."""
        first = int(self.value(step.src[0]))
        is_open = np.full(count, True) if gate is None else self.value(gate)
        for lane in range(count):
            if np.broadcast_to(is_open, (count,))[lane]:
                yield lane, first + lane

    def load(self, step: UOp) -> Array:
        memory, count = self.memory(step.src[0].src[0]), step.dtype.count
        self.done["loads"] += 1
        self.done["bytes_loaded"] += count * step.dtype.scalar.itemsize
        lanes = np.zeros(count, step.dtype.numpy)
        gate = step.src[1] if len(step.src) > 1 else None
        for lane, position in self.lanes(step, count, gate):
            assert 0 <= position < memory.size
            lanes[lane] = memory[position]
        return lanes if count > 1 else lanes[0]

    def store(self, step: UOp) -> None:
        value, memory = self.value(step.src[1]), self.memory(step.src[0].src[0])
        count = step.src[1].dtype.count
        self.done["stores"] += 1
        self.done["bytes_stored"] += count * step.src[1].dtype.scalar.itemsize
        gate = step.src[2] if len(step.src) > 2 else None
        for lane, position in self.lanes(step, count, gate):
            assert 0 <= position < memory.size
            memory[position] = np.broadcast_to(value, (count,))[lane]

    def computed(self, step: UOp) -> Array:
        sources = [self.value(s) for s in step.src]
        op, count = step.op, step.dtype.count
        if op is Ops.BROADCAST:
            return np.full(count, sources[0], step.dtype.numpy)
        if op is Ops.STACK:
            return np.asarray(sources, step.dtype.numpy)
        if op is Ops.EXTRACT:
            return sources[0][step.arg]
        if step.dtype.kind != "index":
            self.done["fmas" if op is Ops.FMA else "other"] += 1
        if op is Ops.SHUFFLE:
            return np.concatenate(sources)[list(step.arg)]
        if op is Ops.HREDUCE:
            python = OPS[step.arg].python
            assert python is not None
            total = sources[0][0]
            for lane in sources[0][1:]:
                total = python(total, lane)
            return total
        with np.errstate(all="ignore"):
            if op in CASTS:
                turn = cast_array if op is Ops.CAST else bitcast_array
                source = np.asarray(sources[0])
                return turn(source, step.src[0].dtype.scalar, step.dtype.scalar)[()]
            python = OPS[op].python
            assert python is not None
            value = python(*sources)
        return value if step.dtype.is_bool else np.asarray(value, step.dtype.numpy)[()]
