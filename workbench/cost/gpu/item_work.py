"""What a work-item does, apart from moving memory: operations by kind, and how long it takes where
it never waits for its turn.

Source of the rates: NVIDIA, CUDA C++ Programming Guide, table of the throughput of native
arithmetic instructions; of the latencies: W. Luo and others, Benchmarking and Dissecting the Nvidia
Hopper GPU Architecture via Microbenchmarking, 2024. GPUs of other makers are taken to be alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.base.dtypes import DType
from workbench.base.tensor_cores.tensor_core import TensorCore
from workbench.ir.nest.estimates import executed
from workbench.ir.node.ops import CASTS, ELEMENTWISE, OPS, Ops
from workbench.ir.node.uop import UOp

GLOBAL_CYCLES = 500
"""Cycles from a load from memory to its value."""
SHARED_CYCLES = 30
"""Cycles from a load from shared memory to its value, and of a barrier."""
SHUFFLE_CYCLES = 23
"""Cycles from a warp shuffle to its value."""
WORD_BYTES = 4
VALUE_CYCLES = 4
"""Cycles from an operation to its value."""
PRODUCT_CYCLES = 32
"""Cycles from an instruction of a tensor core to its tile."""
IN_FLIGHT = 4
"""Steps of a loop whose loads are in flight together: compilers unroll loops."""
LOOP_INSTRUCTIONS = 3
SPECIAL_FUNCTION = "special function"
SPECIAL_OPS = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.SQRT, Ops.FDIV})


@dataclass(frozen=True, slots=True)
class ItemWork:
    """The work of one work-item in one run: `operations` on values by the name of their dtype, or
    SPECIAL_FUNCTION; of its warp the multiply-adds of tensor cores (`products`), by the format in
    which they take their operands, the words that it hands on in `shuffles`, and the
    `instructions`. Units: `cycles` that it takes where no
    other one is in its way."""

    operations: Mapping[str, int]
    products: Mapping[str, int]
    shuffles: int
    instructions: int
    cycles: int


def item_work(linear: Sequence[UOp]) -> ItemWork:
    """Return the work of a work-item of a linear program."""
    operations, products = Counter[str](), Counter[str]()
    instructions = shuffles = 0
    for node, trips, share in executed(tuple(linear)):
        times = math.ceil(trips * share)
        if node.op in (Ops.LOAD, Ops.STORE, Ops.BARRIER):
            instructions += times
        elif node.op is Ops.WARP_SHUFFLE:
            shuffles += times * _words(node.dtype)
        elif node.op is Ops.WMMA:
            core: TensorCore = node.arg
            products[core.operand_format] += times * core.m * core.n * core.k
            instructions += times
        elif _computes(node):
            slots = times * max(1, OPS[node.op].slots) * node.dtype.count
            operations[_kind(node)] += slots
            instructions += slots
    steps = _loop_steps(linear)
    instructions += LOOP_INSTRUCTIONS * steps
    instructions += shuffles
    return ItemWork(operations, products, shuffles, instructions, _cycles(linear))


def _computes(node: UOp) -> bool:
    if node.dtype.kind == "index":  # addresses have room for a constant
        return node.op in ELEMENTWISE and node.src[-1].op is not Ops.CONST
    return node.op in ELEMENTWISE and node.op not in CASTS or node.op is Ops.HREDUCE


def _kind(node: UOp) -> str:
    if node.op in SPECIAL_OPS:
        return SPECIAL_FUNCTION
    dtype = (node.src[0] if node.dtype.is_bool else node).dtype
    return dtype.scalar.name if dtype.is_float else "int32"


def _loop_steps(linear: Sequence[UOp]) -> int:
    times, total = [1], 0
    for node in linear:
        if node.op is Ops.LOOP:
            times.append(times[-1] * node.axis.extent)
            total += times[-1]
        elif node.op is Ops.ENDLOOP:
            times.pop()
    return total


def _cycles(linear: Sequence[UOp]) -> int:
    """Return the cycles of a program: in each loop those of a step, times its steps."""
    scopes: list[tuple[list[UOp], int]] = [([], 1)]
    inner = [0]
    for node in linear:
        if node.op is Ops.LOOP:
            scopes.append(([], node.axis.extent))
            inner.append(0)
        elif node.op is Ops.ENDLOOP:
            own, steps = scopes.pop()
            total = steps * (_step_cycles(own, min(steps, IN_FLIGHT)) + inner.pop())
            inner[-1] += round(total)
        else:
            scopes[-1][0].append(node)
    return round(_step_cycles(scopes[0][0], 1) + inner[0])


def _step_cycles(own: Sequence[UOp], in_flight: int) -> float:
    """Return the cycles of a step: the loads, of which those of several steps are in flight
    together, then a chain of operations, as long as the values that wait for each other."""
    spaces = [_space(n) for n in own if n.op in (Ops.LOAD, Ops.BARRIER)]
    waits = GLOBAL_CYCLES * ("global" in spaces)
    # what is read after a barrier waits for what stands before it
    rounds = "".join(space[0] for space in spaces).split("b")
    waits += SHARED_CYCLES * sum("s" in round_spaces for round_spaces in rounds)
    barriers = sum(n.op is Ops.BARRIER for n in own)
    chains = max(1, len({n.src[0] for n in own if n.op is Ops.SET}))
    values = sum(n.op in ELEMENTWISE and n.dtype.kind != "index" for n in own)
    products = sum(n.op is Ops.WMMA for n in own)
    shuffles = sum(n.op is Ops.WARP_SHUFFLE for n in own)
    chain = (
        VALUE_CYCLES * values + PRODUCT_CYCLES * products + SHUFFLE_CYCLES * shuffles
    )
    return waits / in_flight + SHARED_CYCLES * barriers + chain / chains


def _words(dtype: DType) -> int:
    """Return how many words of 32 bits a lane hands on of a value."""
    return max(1, dtype.scalar.itemsize // WORD_BYTES) * dtype.count


def _space(node: UOp) -> str:
    if node.op is Ops.BARRIER:
        return "barrier"
    memory = node.place.param
    if memory.op is Ops.PARAM:
        return "global"
    return "shared" if memory.space == "shared" else "private"
