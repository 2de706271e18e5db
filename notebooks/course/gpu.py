"""Chapter 7: checks of exercises by what the emulator counts and finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.ask import Verdict, failure, right, tuned, wrong
from workbench import Kernel, Opt, emulate
from workbench.base.errors import WorkbenchError
from workbench.base.tensor_cores import TensorCore
from workbench.emulator.steps import Trace
from workbench.ir.node.ops import Ops


def per_warp(trace: Trace, is_store: bool) -> int:
    """Return the sectors that a warp needs for the loads, or the stores, of global memory."""
    counts = [c for c in trace.accesses.values() if c.space == "global"]
    (count,) = (c for c in counts if c.is_store == is_store)
    return count.transactions // count.requests


def tensor_core(trace: Trace) -> TensorCore:
    """Return the tensor core that a program uses. Errors: StopIteration where it has none."""
    core: TensorCore = next(n.arg for n in trace.linear if n.op is Ops.WMMA)
    return core


def products(trace: Trace) -> int:
    """Return how often all warps together execute the instruction of a tensor core."""
    return sum(
        trace.executed[place] // node.arg.lanes
        for place, node in enumerate(trace.linear)
        if node.op is Ops.WMMA
    )


def fragment(trace: Trace, lane: int) -> Any:
    """Return what a lane of the stepped group holds of A at the first step with a tensor core.
    Errors: StopIteration where it has none."""
    history = trace.history
    assert history is not None
    steps = (trace.step(number) for number in range(len(history)))
    step = next(s for s in steps if s.node.op is Ops.WMMA)
    return np.asarray(step.registers(lane)[history.names[step.node.src[0]]])


def check_sectors(kernel: Kernel, opts: Opt | Sequence[Opt]) -> Verdict:
    """With `opts`, all bytes that move from and to global memory must be wanted."""
    trace = _emulated(kernel, opts)
    return trace if isinstance(trace, Verdict) else _sectors(trace)


def _emulated(kernel: Kernel, opts: Opt | Sequence[Opt]) -> Trace | Verdict:
    try:
        return emulate(tuned(kernel, opts))
    except WorkbenchError as error:
        return wrong(failure(error))


def _sectors(trace: Trace) -> Verdict:
    count = trace.total("global")
    if count.bytes_moved > count.bytes_wanted:
        slow = (n.words for n in trace.inefficiencies if n.kind == "uncoalesced")
        reason = next(slow, "a warp has too few work-items for whole sectors")
        return wrong(
            f"{count.bytes_moved:,} bytes are moved, and {count.bytes_wanted:,} are wanted:"
            f" {reason}"
        )
    return right(f"{count.transactions:,} sectors, and every byte of them is wanted")


def check_conflicts(kernel: Kernel, opts: Opt | Sequence[Opt]) -> Verdict:
    """With `opts`, no pass over the banks must be for a conflict, and no byte must be moved that
    nobody wants."""
    trace = _emulated(kernel, opts)
    if isinstance(trace, Verdict):
        return trace
    verdict = _sectors(trace)
    if not verdict.ok:
        return verdict
    shared = trace.total("shared")
    if not shared.requests:
        return wrong("it uses no shared memory")
    if shared.conflicts:
        return wrong(
            f"{shared.conflicts:,} of {shared.transactions:,} passes are for conflicts: how many"
            " rows of the tile does a warp read at once?"
        )
    return right(f"{shared.transactions:,} passes, and none of them is for a conflict")


def check_loads(kernel: Kernel, opts: Opt | Sequence[Opt]) -> Verdict:
    """With `opts`, a kernel must use a tensor core and load each element of its operands once."""
    trace = _emulated(kernel, opts)
    if isinstance(trace, Verdict):
        return trace
    if not products(trace):
        return wrong("no tensor core is used")
    loads = [n for n in trace.linear if n.op is Ops.LOAD and n.place.param.op is Ops.PARAM]
    once = sum(p.length * p.dtype.itemsize for p in {n.place.param for n in loads})
    counts = [c for c in trace.accesses.values() if c.space == "global" and not c.is_store]
    wanted = sum(count.bytes_wanted for count in counts)
    if wanted > once:
        return wrong(
            f"{wanted:,} bytes are loaded, and the operands have {once:,}: which warps need the"
            " same tile?"
        )
    return right(f"{wanted:,} bytes are loaded, for {products(trace)} products of tiles")


def check_race(trace: Trace, pair: Any) -> Verdict:
    """`pair`: the ops of the two steps that race, the earlier one first."""
    if not isinstance(pair, tuple | list) or [type(word) for word in pair] != [str, str]:
        return wrong('it should be two words, as in ("LOAD", "LOAD")')
    first, second = (word.strip().upper() for word in pair)
    races = [f for f in trace.findings if f.kind == "race"]
    found = [tuple(trace.linear[p].op.name for p in race.positions) for race in races]
    if (first, second) in found:
        return right(races[found.index((first, second))].words)
    if (second, first) in found:
        return wrong("these two, but the other one comes first: in which round is each?")
    if first == second == "STORE":
        return wrong("both write; but which step uses what the other one writes over?")
    return wrong(
        f"nothing goes wrong between {first} and {second}: one of the two must write, and"
        " both must be of the tile"
    )
