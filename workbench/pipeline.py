"""The pipeline from a kernel to its program: `stages` runs it, up to the stage that is requested.

Tensor --schedule--> items --Kernel + opts--> lower --> render --> load --> run
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, get_args

from workbench.backends.contract import require_code
from workbench.backends.device import Device, DeviceInfo
from workbench.backends.elsewhere import Elsewhere
from workbench.backends.native.processor import Processor
from workbench.backends.native.source_cache import keep_source, kept_source, source_key
from workbench.backends.program.text import Language, Source
from workbench.base.errors import CompileError, DeviceError, WorkbenchError, require
from workbench.base.files import Unpicklable
from workbench.base.recording import span
from workbench.base.target import Target
from workbench.base.trace import PassRecord, observe, observer, unobserved
from workbench.debug import needs_records, prints_stages, say_compiled
from workbench.ir.functions.expand import EXPAND_FUNCTIONS, FUNCTION_RULES, FUNCTIONS
from workbench.ir.lower.lower import (
    DECOMPOSED,
    LINEARIZE,
    NO_LOW_PRECISION,
    RECOMPUTE_ROWS,
    STATEMENT_TREE,
    TENSOR_CORES,
    levels,
)
from workbench.ir.nest.fragments import core_of, tile_axes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.passes import Memo, Pass, Switch, tables
from workbench.ir.rewriting.rewrite import (
    Rule,
    RuleSet,
    are_switched,
    is_complete,
    is_typed,
    rules_off,
    typed_rule,
    unknown_rule,
)
from workbench.ir.rules.collapse import SIMPLIFY_KERNEL
from workbench.ir.rules.index import SIMPLIFY_INDEX
from workbench.ir.schedule.plan import DecisionName
from workbench.ir.schedule.schedule import MERGE_AXES, RANGEIFY, SIMPLIFY_TENSOR, SPLIT_REDUCTIONS
from workbench.ir.text.program import to_expr
from workbench.ir.verify.verify import Level, verify

SCHEDULING = (
    SIMPLIFY_TENSOR, SPLIT_REDUCTIONS, RANGEIFY, SIMPLIFY_INDEX, EXPAND_FUNCTIONS, SIMPLIFY_KERNEL,
    MERGE_AXES,
)  # fmt: skip
"""The passes of scheduling that have rules or steps."""
FOR_DEVICE = (NO_LOW_PRECISION, DECOMPOSED)
"""The passes after which only operations of the device are left."""
COMPILING = (SIMPLIFY_INDEX, SIMPLIFY_KERNEL, STATEMENT_TREE, *FOR_DEVICE, LINEARIZE)
"""The passes of opts and lowering that have rules or steps."""
SCHEDULE_PASSES: Mapping[str, RuleSet] = tables(*SCHEDULING)
COMPILE_PASSES: Mapping[str, RuleSet] = tables(*COMPILING)

GRADIENT_NAMES = "gradient-"
"""The beginning of the names of the rules of gradients."""

FIRST_OF_LOWERING = (TENSOR_CORES.name, RECOMPUTE_ROWS.name, STATEMENT_TREE.name)
"""Passes of which one is the first after the opts."""

STAGES = ("kernel", "tree", "lowered", "linear", "source", "program")
"""The stages of a kernel on a device, in their order."""
Tuner = Callable[[UOp, str], UOp]
"""Returns a kernel with the opts to run it with on a device. Whoever runs schedules gets one as an
argument: choosing opts needs predictions and a search, and these need the pipeline."""
_programs = Memo["Stages"]()
"""Compiled kernels in memory, by kernel and device; a device that is registered again counts as
another. Older ones are read from the disk cache again."""
_whole = Memo["Stages"]()
"""Those of them that were lowered for a reader, after their source was read from the disk."""
_ABSENT: Any = None


@dataclass(frozen=True, slots=True)
class Stages(Unpicklable):
    """The stages of a kernel on a device: the kernel with its opts, its statement tree, the tree
    with only operations of the device, the linear program, the source, and the program ready to
    run. A stage that was not requested is None."""

    kernel: UOp
    tree: UOp = _ABSENT
    lowered: UOp = _ABSENT
    linear: tuple[UOp, ...] = _ABSENT
    source: Source = _ABSENT
    program: Any = _ABSENT


def build(kernel: UOp, device: str) -> Stages:
    """Return all stages of `kernel` (a SINK) on `device`; equal kernels compile once per process.

    Errors: CompileError, with the stage that failed and the last good state; DeviceError.
    """
    info = Device[device]

    def compiled() -> Stages:
        with span("compile", kernel):
            if needs_records() and observer() is None:
                reached, records = recorded(kernel, device)
            else:
                reached, records = _with_kept_source(kernel, device), ()
        say_compiled(info, kernel, reached, records)
        return reached

    return _programs.value((kernel, info), compiled, is_seen=observer() is not None)


def begin_build(kernel: UOp, device: str) -> Callable[[], Stages] | None:
    """Return the function that ends the `build` of a kernel, which this call begins: the source is
    there, and the function compiles and loads it, in any thread. None if memory has it already.

    Errors: as `build`.
    """
    info = Device[device]
    key = kernel, info
    if _programs.has(key):
        return None
    with span("compile", kernel):
        begun = _with_kept_source(kernel, device, "source")

    def compiled() -> Stages:
        with span("compile", kernel):
            reached = _rendered(begun, info, STAGES.index("program"), None)
            require_code(reached.program)
        say_compiled(info, kernel, reached, ())
        return reached

    return lambda: _programs.value(key, compiled)


def built_count() -> int:
    """Return how many times `build` has found no compiled kernel in memory."""
    return _programs.made


def build_whole(kernel: UOp, device: str) -> Stages:
    """Return what `build` does, with the stages before the source: one that an earlier session has
    written comes without them."""
    reached = build(kernel, device)
    if reached.linear is not None:
        return reached

    def lowered() -> Stages:
        before = stages(kernel, device, upto="linear")
        return replace(before, source=reached.source, program=reached.program)

    return _whole.value((kernel, Device[device]), lowered)


def _with_kept_source(kernel: UOp, device: str, upto: str = "program") -> Stages:
    """Return the stages of a kernel, up to the source or to the program. If an earlier session has
    written its source for this processor, and nobody looks, those between are missing."""
    info = Device[device]
    is_seen = observer() is not None or prints_stages()
    if is_seen or kernel.code is not None or not isinstance(info, Processor) or are_switched():
        return _verified(kernel, device, upto)
    key = source_key(kernel, info)
    source = None if key is None else kept_source(key)
    if source is not None:
        return _rendered(Stages(kernel, source=source), info, STAGES.index(upto), None)
    reached = _verified(kernel, device, upto)
    if key is not None:
        keep_source(key, reached.source)
    return reached


def _verified(kernel: UOp, device: str, upto: str) -> Stages:
    """Return the stages of a kernel whose program is loaded now or later: it is verified."""
    if upto != STAGES[-1]:
        with unobserved():
            _checked(kernel, "kernel", "verify-kernel")
    return stages(kernel, device, upto)


def stages(
    begin: UOp | Stages,
    device: str | Target,
    upto: str = "program",
    opts: Sequence[Opt] = (),
    language: Language | None = None,
) -> Stages:
    """Return the stages of a kernel, with `opts` applied to it, up to the one named `upto`. `begin`
    is the kernel, or Stages to continue from (without opts). An observer sees every pass.

    The kernel is verified only if a program will be loaded. Up to "linear", a Target without a
    device is enough. `language` is for a source that is only read; None: the language that the
    device runs. Errors: as `build`, and KernelOptError for an opt that is not legal.
    """
    target = device if isinstance(device, Target) else Device[device].target
    reached = begin if isinstance(begin, Stages) else Stages(_opted(begin, opts, target))
    last = STAGES.index(upto)
    if last >= STAGES.index("source"):
        _refuse_functions(reached.kernel)
    if last == len(STAGES) - 1:
        with unobserved():
            _checked(reached.kernel, "kernel", "verify-kernel")
    if reached.linear is None and reached.lowered is not None:  # a tree that a user edited
        tree = reached.lowered
        linear = _staged("linearize", tree, lambda: LINEARIZE(tree, target))
        reached = replace(reached, linear=linear)
    if reached.linear is None:
        reached = _lowered(reached.kernel, target, last)
    if last < STAGES.index("source"):
        return reached
    name = device.device if isinstance(device, Target) else device
    return _rendered(reached, Device[name], last, language)


def require_core(kernel: UOp, device: str) -> None:
    """Check that `device` has a tensor core for the tile of `kernel`; a kernel without a tile
    passes. Without the core one work-item would compute the whole tile: only the text of
    `Device.reader`, whose language can show every kernel, may do that.

    Errors: CompileError.
    """
    info, axes = Device[device], tile_axes(kernel)
    if axes is None or info is Device.reader or core_of(kernel, info.target):
        return
    tile = "x".join(map(str, axes.sizes))
    why = info.target.no_tensor_cores
    because = f"the kernel has tiles of {tile}, and no tensor core of {info.name} computes them" + (
        f": {why}" if why else ""
    )
    hint = f'kernel.on("{info.name}"), which leaves out what is not legal there, and says so'
    raise CompileError(TENSOR_CORES.name, because, hint=hint)


def _refuse_functions(kernel: UOp) -> None:
    """Errors: CompileError for a kernel with a function that no rule expanded."""
    left = {n.op: None for n in kernel.toposort() if n.op in FUNCTIONS}
    if left:
        ops = " and ".join([op.name for op in left])
        rules = FUNCTION_RULES.rules
        names = [r.name for r in rules if not left.keys().isdisjoint(r.match.ops or ())]
        because = f"no device has {ops}: {' and '.join(names)} make it arithmetic"
        if len(names) == 1:
            because = f"no device has {ops}: {names[0]} makes it arithmetic"
        hint = f"switch {' and '.join(names)} on again"
        raise CompileError("expand-functions", because, to_expr(kernel), hint)


def _opted(kernel: UOp, opts: Sequence[Opt], target: Target) -> UOp:
    for opt in opts:
        kernel, _ = apply_opt(kernel, opt, target)
    return kernel


def _lowered(kernel: UOp, target: Target, last: int) -> Stages:
    steps = levels(kernel, target)
    states = _staged("lower", kernel, lambda: tuple(islice(steps, last)))
    return Stages(kernel, *states)


def _rendered(reached: Stages, info: DeviceInfo, last: int, language: Language | None) -> Stages:
    try:
        if reached.source is None:
            reached = replace(reached, source=_source(info, reached, language))
        if last == len(STAGES) - 1:
            load = Pass("load", "The source as machine code, loaded.", _loader(info, reached))
            source = reached.source
            program = _staged("load", reached.lowered, lambda: load(source))
            reached = replace(reached, program=program)
    except CompileError as error:
        missing = _missing(reached.lowered)
        if not missing:
            raise
        # the error of a device's compiler would be about a text other than the user's
        detail = "" if error.stage == info.name.lower() else f": {error.because}"
        names = " and ".join(missing)
        because = f"the device {info.name} needs what is switched off, {names}{detail}"
        hint = f"switch {names} on again"
        expression = to_expr(reached.lowered)
        raise CompileError(error.stage, because, expression, hint) from error
    return reached


def _loader(info: DeviceInfo, reached: Stages) -> Callable[[Source], Any]:
    """Return the function that loads a source on a device. Text that a user wrote may do anything:
    it runs in a process of its own, unless only this process has the device.

    Errors: DeviceError for text that came with a file.
    """
    kernel = reached.kernel
    if kernel.code is None and isinstance(info, Elsewhere):
        from workbench.emulator.program import WorkItemProgram

        linear, target = reached.linear, info.target
        return lambda source: info.load_emulated(source, WorkItemProgram(linear, target, source))
    if info is Device.emulator and reached.source.linear:  # edited: its other sources are trees
        from workbench.emulator.program import WorkItemProgram

        return lambda source: WorkItemProgram(source.linear, info.target, source)
    if kernel.code is None:
        return info.load
    if kernel.code.is_foreign:
        raise DeviceError(
            f"the kernel {kernel.arg.name} is not run",
            f"its {kernel.code.language} came with a file, and may be a stranger's",
            "read it, and give it to Tensor.custom_kernel",
        )
    if not Device.is_own(info.name):  # only this process has it
        return info.load
    from workbench.worker.sandbox import sandboxed

    return lambda source: sandboxed(kernel, info, source)


def _handwritten(info: DeviceInfo, kernel: UOp, language: Language | None) -> Source:
    """Return the source of a kernel whose text a user wrote. Errors: DeviceError if the text is not
    in `language` (None: the device's)."""
    reading, text = language or info.language, kernel.code
    assert text is not None
    writer = Device.for_language(text.language)
    if writer is None or reading is None or reading.name != text.language:
        other = "its statements" if reading is None else reading.name
        raise DeviceError(
            f"the kernel {kernel.arg.name} is written in {text.language}",
            f"{info.name} runs {other}, and nothing translates it",
            f'.to("{writer.name}") for its tensors' if writer else "",
        )
    return writer.framed(kernel)


def _source(info: DeviceInfo, reached: Stages, language: Language | None) -> Source:
    tree, lowered, linear = reached.tree, reached.lowered, reached.linear
    if not is_complete():  # nodes may be left that a device cannot refuse by itself
        with unobserved():
            _checked(lowered, "lowered", "verify-lowered", bounds=False)
            _checked(linear, "linear", "verify-linear")
    doc = "The program as source text."

    def write(state: tuple[UOp, ...]) -> Source:
        if reached.kernel.code is not None:
            source = _handwritten(info, reached.kernel, language)
            stores = [n for n, node in enumerate(state) if node.op is Ops.STORE]
            count = source.text.count("\n") + 1
            return replace(source, lines=(tuple(stores),) * count)
        if language is None or language is info.language:
            return info.render(lowered, state, tree)
        return info.render_as(language, lowered, state, tree)

    render = Pass("render", doc, write)
    source: Source = _staged("render", lowered, lambda: render(linear))
    return source


def _missing(lowered: UOp) -> list[str]:
    """Return the names of the switched-off rules that match nodes of a statement tree: not every
    device can compile such nodes."""
    off = rules_off()
    rules = [r for r in switches(*FOR_DEVICE) if isinstance(r, Rule) and r.name in off]
    nodes = lowered.toposort() if rules else ()
    rule_names = [
        r.name
        for r in rules
        if any(
            (r.match.ops is None or n.op in r.match.ops) and r.matcher(n) is not None for n in nodes
        )
    ]
    return list(dict.fromkeys(rule_names))


def _staged(stage: str, state: UOp, run: Any) -> Any:
    """Run one stage. Errors: CompileError, with the stage or pass, and the state before it."""
    try:
        return run()
    except DeviceError:
        raise  # not an error of the kernel
    except CompileError as error:
        error.last_good = error.last_good or to_expr(state)
        raise
    except Exception as error:
        because, hint = f"{type(error).__name__}: {error}", ""
        if isinstance(error, WorkbenchError):
            because, hint = f"{error.what}: {error.because}", error.hint
        where = getattr(error, "stage", stage)  # the pass, if one was running
        good = getattr(error, "state", state)  # the input of that pass
        raise CompileError(where, because, to_expr(good if is_ir(good) else state), hint) from error


def switches(*passes: Pass) -> Mapping[Switch, Sequence[str]]:
    """Return the rules and steps of passes (none named: of all), also registered rules, each with
    the names of the passes that have it. What is listed here can be switched off by its name, and
    nothing else can."""
    names: dict[Switch, list[str]] = {}
    for each in dict.fromkeys(passes or (*SCHEDULING, *COMPILING)):
        for switch in each.switches:
            names.setdefault(switch, []).append(each.name)
    return names


def compile_switches() -> Mapping[Switch, Sequence[str]]:
    """Return what can be switched off in opts and lowering."""
    return switches(*COMPILING)


def check_switches(names: Iterable[str], usable: Mapping[Switch, object]) -> None:
    """Errors: WorkbenchError for a name that no rule or step of `usable` has."""
    require(names, (tuple, list), "names of rules", '("add-zero",)')
    usable_names = {switch.name for switch in usable}
    for name in names:
        if isinstance(name, str) and is_typed(name):
            typed_rule(name)
            continue
        if not isinstance(name, str) or name not in usable_names:
            raise _no_switch(str(name), usable_names)


def _no_switch(name: str, usable_names: Collection[str]) -> WorkbenchError:
    """Return the error for a name that cannot be switched off: it says what else the name is."""
    what = f"cannot switch {name:.60} off"
    if any(switch.name == name for switch in switches()):
        because = "scheduling uses it, and scheduling has made the kernel already"
        return WorkbenchError(what, because, f"explore(y, without=({name!r},))")
    if name in get_args(DecisionName):
        because = "it is no rule: a decision is about one value"
        return WorkbenchError(what, because, "ex.replan({ex.decisions[0].node: True})")
    if name.startswith(GRADIENT_NAMES):
        because = "gradients are made before they are explored"
        return WorkbenchError(what, because, f"with without([{name!r}]): around the gradient")
    return unknown_rule(f"there is no rule {name!r:.60} to switch off", name, usable_names)


def is_ir(value: object) -> bool:
    """Whether a state of the pipeline is IR: a graph, or a linear program."""
    return isinstance(value, (UOp, tuple))


def _checked(state: UOp | tuple[UOp, ...], level: Level, stage: str, bounds: bool = True) -> None:
    try:
        verify(state, level, bounds)
    except WorkbenchError as error:
        raise CompileError(stage, str(error), to_expr(state)) from error


Recorded = tuple[Stages, tuple[PassRecord, ...]]
"""Stages, with the record of every pass that led to them."""


def recorded(
    begin: UOp | Stages,
    device: str,
    upto: str = "program",
    opts: Sequence[Opt] = (),
    language: Language | None = None,
) -> Recorded:
    """Return `stages` with the same arguments, and the record of every pass that ran."""
    with observe() as watching:
        reached = stages(begin, device, upto, opts, language)
    return reached, tuple(watching.records)
