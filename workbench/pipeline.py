"""The order of things: the only file that knows which pass follows which.

Tensor --schedule--> items --Kernel + opts--> lower --> render --> load --> run
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from workbench.backends.device import Device, DeviceInfo
from workbench.backends.program.source import Source
from workbench.base.errors import CompileError, DeviceError, WorkbenchError
from workbench.base.forking import free_lock
from workbench.base.trace import PassRecord, observe, observer, unobserved
from workbench.base.unpicklable import Unpicklable
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.lower.half_precision import ALL_SMALL_FLOAT_RULES
from workbench.ir.lower.lower import levels
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.rewrite import rules_off
from workbench.ir.rules.collapse import KERNEL_RULES
from workbench.ir.rules.movement import TENSOR_RULES
from workbench.ir.schedule.split import SPLIT_RULES
from workbench.ir.text.readable import to_expr
from workbench.ir.verify.verify import Level, verify

SCHEDULE_RULES = (TENSOR_RULES, SPLIT_RULES, KERNEL_RULES)
"""The rule sets that scheduling uses."""
COMPILE_RULES = (KERNEL_RULES, ALL_SMALL_FLOAT_RULES, DECOMPOSE_RULES)
"""The rule sets that opts and lowering use."""

Key = tuple[UOp, DeviceInfo, frozenset[str]]
"""A kernel, a device (one that is registered anew is another), and the rules that are off."""
_programs: dict[Key, Built] = {}
_tuned: dict[Key, UOp] = {}
_lock = free_lock()
T = TypeVar("T")
KEPT_KERNELS = 1024
"""Kernels that stay compiled; an older one is found in the disk cache again."""


@dataclass(frozen=True, slots=True)
class Built(Unpicklable):
    """A kernel on a device, ready to run."""

    lowered: UOp
    linear: tuple[UOp, ...]
    source: Source
    program: Any


def build(kernel: UOp, device: str) -> Built:
    """Return `kernel` (a SINK) compiled for `device`; equal kernels compile once per process.

    Errors: CompileError names the stage that failed and carries the last good state.
    """
    key = kernel, Device[device], rules_off()
    found = _programs.get(key)
    if found is None or observer() is not None:
        found = _remember(_programs, key, _build(kernel, device))
    return found


def _remember(table: dict[Key, T], key: Key, made: T) -> T:
    """Return what `table` holds for `key`, `made` if nothing; the oldest of many is dropped."""
    with _lock:
        table[key] = found = table.pop(key, made)  # last in line again
        while len(table) > KEPT_KERNELS:
            del table[next(iter(table))]
        return found


def _build(kernel: UOp, device: str) -> Built:
    info = Device[device]
    with unobserved():
        _checked(kernel, "kernel", "verify-kernel")
    tree, lowered, linear = _staged(
        "lower", kernel, lambda: levels(kernel, info.target)
    )
    try:
        return _loaded(info, tree, lowered, linear)
    except CompileError as error:
        missing = _missing(lowered)
        if not missing:
            raise
        # what a device's own compiler says of it is about another text than the reader's
        said = "" if error.stage == info.name.lower() else f": {error.because}"
        names = " and ".join(missing)
        because = f"the device {info.name} needs what is switched off, {names}{said}"
        hint = f"switch {names} on again"
        raise CompileError(error.stage, because, to_expr(lowered), hint) from error


def _missing(lowered: UOp) -> list[str]:
    """Return the rules that are switched off and would have made of a statement tree what every
    device can do."""
    off = rules_off()
    needed = (*ALL_SMALL_FLOAT_RULES.rules, *DECOMPOSE_RULES.rules)
    rules = [rule for rule in needed if rule.name in off]
    nodes = lowered.toposort() if rules else ()
    found = [
        r.name
        for r in rules
        if any(
            (r.match.ops is None or n.op in r.match.ops) and r.matcher(n) is not None
            for n in nodes
        )
    ]
    return list(dict.fromkeys(found))


def _loaded(
    info: DeviceInfo, tree: UOp, lowered: UOp, linear: tuple[UOp, ...]
) -> Built:
    if (
        rules_off()
    ):  # what their absence leaves undone, a device need not be able to refuse
        with unobserved():
            _checked(lowered, "lowered", "verify-lowered")
            _checked(linear, "linear", "verify-linear")
    doc = "The program as source text."
    render = Pass("render", doc, lambda state: info.render(lowered, state, tree))
    source: Source = _staged("render", lowered, lambda: render(linear))
    load = Pass("load", "The source as machine code, loaded.", info.load)
    program = _staged("load", lowered, lambda: load(source))
    return Built(lowered, linear, source, program)


def _staged(stage: str, state: UOp, run: Any) -> Any:
    """Run one stage; a failure says where, and shows the state before it."""
    try:
        return run()
    except DeviceError:
        raise  # nothing is wrong with the kernel
    except CompileError as error:
        error.last_good = error.last_good or to_expr(state)
        raise
    except Exception as error:
        because = f"{type(error).__name__}: {error}"
        where = getattr(error, "stage", stage)  # the pass, where one was running
        good = getattr(error, "state", state)  # what went into that pass
        raise CompileError(
            where, because, to_expr(good if is_ir(good) else state)
        ) from error


def is_ir(value: object) -> bool:
    """Whether a state of the pipeline is IR: a graph, or a linear program."""
    return isinstance(value, (UOp, tuple))


def _checked(state: UOp | tuple[UOp, ...], level: Level, stage: str) -> None:
    try:
        verify(state, level)
    except WorkbenchError as error:
        raise CompileError(stage, str(error), to_expr(state)) from error


def tuned(kernel: UOp, device: str) -> UOp:
    """Return `kernel` with the default opts for `device`: what `realize` runs. Some devices
    run kernels plain."""
    info = Device[device]
    if info.runs_plain:
        return kernel
    key = kernel, info, rules_off()
    found = _tuned.get(key)
    if found is None:
        made = heuristic(kernel, info.target)[0]
        found = _remember(_tuned, key, made)
    return found


def recorded(kernel: UOp, device: str) -> tuple[Built, tuple[PassRecord, ...]]:
    """Return `build(kernel, device)` with the record of every pass, from kernel to program."""
    with observe() as watching:
        built = build(kernel, device)
    return built, tuple(watching.records)
