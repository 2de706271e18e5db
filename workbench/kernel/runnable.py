"""RunnableKernel: a kernel with opts applied, and data to run it on. Immutable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

import numpy as np

from workbench.backends.contract import Program, require_room
from workbench.backends.device import Device
from workbench.base.errors import DeviceError, KernelOptError
from workbench.base.source import ModuleCall, SourceLine, user_line
from workbench.base.terminal import Printed
from workbench.base.trace import PassRecord, unobserved
from workbench.check.answer import CheckResult
from workbench.check.oracle import observed
from workbench.cost.default_opts import default_opts
from workbench.execution.buffers import no_data
from workbench.ir.lower.launch import barriers
from workbench.ir.nest.estimates import Counts, Estimates, count, estimate
from workbench.ir.node.uop import UOp
from workbench.ir.opt import apply as opts
from workbench.ir.opt.apply import opts_from_code_text
from workbench.ir.opt.heuristic.step import NO_STEPS, HeuristicSteps
from workbench.ir.opt.opt import Axis, Opt, axes
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.compiled import Compiled as Compiled
from workbench.kernel.compiled import compiled
from workbench.kernel.inputs import FromSchedule, PickledData, Seeded
from workbench.kernel.run import arrays
from workbench.pipeline import (
    Stages,
    build_whole,
    check_switches,
    compile_switches,
    recorded,
    require_core,
    stages,
)

Array = np.ndarray[Any, Any]
NO_POSITIONS: Mapping[str, int] = MappingProxyType({})


K = TypeVar("K")


@dataclass(frozen=True, slots=True, repr=False)
class OptsReplay(Printed, Generic[K]):
    """A kernel for another device, and the opts that are not legal there with their reasons. It has
    no methods of the kernel: what a kernel that lost opts says would be taken for this one's."""

    kernel: K
    refused: tuple[tuple[Opt, str], ...] = ()

    if not TYPE_CHECKING:  # a checker names what is not there by itself

        def __getattr__(self, name: str) -> NoReturn:
            what = f"an OptsReplay has no .{name}"
            known = name.startswith("_") or name in self.__slots__  # of a copy not yet filled
            if not known and hasattr(type(self.kernel), name):
                what += f": it is of its kernel, .on(..).kernel.{name}, without the .refused opts"
            raise AttributeError(what)

    def __str__(self) -> str:
        lines = [f"{opt}: {because}" for opt, because in self.refused]
        count = len(self.refused)
        head = f"{count} {'opt is' if count == 1 else 'opts are'} refused there"
        return "\n".join([repr(self.kernel), *([f"{head}:", *lines] if lines else [])])


@dataclass(frozen=True, slots=True, eq=False)
class RunnableKernel:
    """A kernel. `ast` is its graph with `applied_opts` applied; `original` is the graph without
    them.

    `data` is the source of its inputs; `shapes` are the shapes of the outputs as the user sees
    them; `rules_off` names the rules that are switched off in opts and compilation (see `without`).
    `steps` has, for a kernel with the default opts, the reason and the counts of each opt (see
    `optimized`). `names` has the user's names of the arguments by slot, "" for one without.
    `modules` are the user's modules whose methods made what it computes, the one to show first;
    `phases` are the phases of a model that it belongs to, () where nothing is trained.
    """

    ast: UOp
    original: UOp
    data: FromSchedule | PickledData | Seeded
    shapes: tuple[tuple[int, ...], ...]
    applied_opts: tuple[Opt, ...] = ()
    line: SourceLine | None = None
    title: str = ""
    rules_off: tuple[str, ...] = ()
    steps: HeuristicSteps = NO_STEPS
    names: tuple[str, ...] = ()
    modules: tuple[ModuleCall, ...] = ()
    phases: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self.shapes[0]

    @property
    def device(self) -> str:
        """The device of the kernel's data, where it runs by default."""
        return self.data.device or Device.DEFAULT

    def _device(self, name: str | None) -> str:
        return self.device if name is None else Device.canonical(name)

    # properties

    @property
    def name(self) -> str:
        """The name of the kernel's function in generated code."""
        return str(self.ast.arg.name)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, by kind (g i l t x r u n w) and then in loop order."""
        return axes(self.ast)

    @property
    def order(self) -> tuple[str, ...]:
        """The names of the loops, outermost first."""
        return tuple(self.ast.arg.order)

    @property
    def estimates(self) -> Estimates:
        """Operations and bytes of the algorithm."""
        return estimate(self.original)

    @property
    def counts(self) -> Counts:
        """Counts of the generated program in one run, on the kernel's device."""
        target = Device[self.device].target
        with unobserved(), without(self.rules_off):
            linear = self.built(self.device).linear
            return count(linear, barriers(self.ast, target), target.has_groups)

    def __repr__(self) -> str:
        listed = " ".join(f"{a.name}={a.size}" for a in self.axes)
        note = f"; {self.opts_in_code}" if self.opts_in_code else ""
        count = f"{len(self.applied_opts)} opts"
        return f"Kernel({self.title or self.name}: {listed}; {count}{note})"

    @property
    def opts_in_code(self) -> str:
        """The opts that the code asks for, as text, with which the kernel runs, or the
        reason why they are refused; "" if the code asks for none."""
        with unobserved(), without(self.rules_off):
            return opts_from_code_text(self.original, Device[self.device].target)

    # opts

    def legal_opts(self) -> tuple[Opt, ...]:
        """Return the legal opts of the action table; of opts with equal results, the first."""
        with without(self.rules_off):
            return opts.legal_opts(self.ast, Device[self.device].target)

    def why_not(self, opt: Opt) -> str | None:
        """Return None where `opt` is legal, else the text of its KernelOptError."""
        with without(self.rules_off):
            refusal = opts.why_not(self.ast, opt, Device[self.device].target)
        return None if refusal is None else str(opts.refusal_error(opt, refusal))

    def apply(self, *additions: Opt) -> Self:
        """Return the kernel with opts applied, one after the other; this kernel is unchanged. The
        page of an exploration shows the result after `ex.add(kernel, "its name")`.

        Errors: KernelOptError (what / because / try / where) for an opt that is not legal.
        """
        target = Device[self.device].target
        ast, applied = self.ast, list(self.applied_opts)
        line = user_line()
        where = "" if line is None else line.where
        with without(self.rules_off):
            for opt in additions:
                ast, named = opts.apply_opt(ast, opt, target, where)
                applied.append(named)
        return replace(self, ast=ast, applied_opts=tuple(applied), steps=NO_STEPS)

    def optimized(self) -> Self:
        """Return the kernel with the default opts instead of its own: `realize` runs it on a device
        that compiles (an emulator runs kernels without opts). `steps` has the reasons for the opts:

            print(k.optimized().steps)
        """
        target = Device[self.device].target
        with unobserved(), without(self.rules_off):
            ast, applied, steps = default_opts(self.original, target)
        return replace(self, ast=ast, applied_opts=applied, steps=steps)

    def without(self, *rules: str) -> Self:
        """Return the kernel with rules and steps switched off, by name: they are off when its opts
        are applied, and when it is compiled.

        Errors: WorkbenchError for a name that no rule or step of opts and compilation has.
        """
        check_switches(rules, compile_switches())
        off = tuple(dict.fromkeys((*self.rules_off, *rules)))
        plain = replace(self, ast=self.original, applied_opts=(), rules_off=off)
        return plain.apply(*self.applied_opts)

    def on(self, device: str, target: str = "") -> OptsReplay[Self]:
        """Return this kernel for another device, or for a machine that need not be here ("CUDA" and
        "H100", or one of the two alone), with the same opts. Opts that are not legal there are left
        out, and listed with the reasons.

            k.on("CUDA:H100").kernel.cost
            print(k.on("CUDA:H100"))   # what was refused

        Errors: DeviceError for a device or a machine that does not exist.
        """
        name = Device.on_machine(device, target)
        data = self.data.for_device(name)
        kernel = replace(self, data=data, ast=self.original, applied_opts=(), steps=NO_STEPS)
        refused: list[tuple[Opt, str]] = []
        for opt in self.applied_opts:
            try:
                kernel = kernel.apply(opt)
            except KernelOptError as error:
                refused.append((opt, error.because))
        return OptsReplay(kernel, tuple(refused))

    def code_for(self, device: str, language: str = "") -> str:
        """Return the kernel's text for a device that need not be here ("CUDA", or "CUDA:H100"), in
        the device's language, or in another of its languages, named `language`.

        Errors: DeviceError for a device, a machine or a language that does not exist; CompileError
        if the kernel cannot be written in it, or has the tile of a tensor core that the device does
        not have: `on` leaves such opts out.
        """
        info = Device[Device.on_machine(device)]
        spoken = {each.name.upper(): each for each in info.languages}
        other = spoken.get(language.upper())
        if language and other is None:
            names = [each.name for each in info.languages]
            what = f"{info.name} writes no {language:.40}"
            because = f"its languages are {', '.join(names) or 'none'}"
            raise DeviceError(what, because, next(iter(names), ""))
        require_core(self.ast, info.name)
        with without(self.rules_off), unobserved():
            return stages(self.ast, info.name, "source", language=other).source.text

    # running

    def compile(self, device: str | None = None) -> Compiled:
        """Return the kernel compiled for `device`, with the record of every pass from the
        un-optimised kernel on."""
        name = self._device(device)
        with without(self.rules_off):
            record = recorded(self.original, name, opts=self.applied_opts)
            return compiled(name, record, self.estimates)

    def run(self, device: str | None = None) -> tuple[Array, ...]:
        """Return the outputs on the expression's own data, in the shapes of `shapes`.

        No tensor's buffer is written; repeated runs agree.
        Errors: WorkbenchError where the expression was loaded without its data.
        """
        self.require_data("cannot run this kernel")
        name, slots = self._device(device), self.original.outputs
        with unobserved():
            program = self._program(name)
            buffers = self.data.buffers(self.original, name)
            program(buffers)
        results = [buffers[slot].to_numpy() for slot in slots]
        return tuple(a.reshape(s) for a, s in zip(results, self.shapes, strict=True))

    def check(self, device: str | None = None) -> CheckResult:
        """Compare the outputs with the meaning of the user's expression, before any rule; `against`
        of the result names the reference. A kernel without an expression, from text or a pickle, is
        compared with itself before its opts.

        Errors: WorkbenchError where the expression was loaded without its data.
        """
        self.require_data("cannot check this kernel")
        name = self._device(device)
        with unobserved():
            program = self._program(name)
            check = self.data.check_run(self.original, name)
            program(check.buffers)
            outputs = [check.buffers[slot] for slot in self.original.outputs]
            return check.verdict([buffer.to_numpy() for buffer in outputs])

    def launch(self, device: str | None = None) -> Callable[[], None]:
        """Return a function that runs the kernel once, on buffers of its own."""
        name = self._device(device)
        with unobserved():
            program = self._program(name)
            buffers = self.data.buffers(self.original, name)
            run: Callable[[], None] = program.bind(buffers)
            return run

    def built(self, device: str) -> Stages:
        """Return the kernel built for a device, once per process. Errors: DeviceError."""
        with without(self.rules_off):
            return build_whole(self.ast, Device.canonical(device))

    def observed(self, device: str) -> tuple[PassRecord, ...]:
        """Return the records of the passes of compiling. At an error they end: the last record has
        it."""
        return observed(self.original, self.applied_opts, self.rules_off, device)

    @property
    def has_data(self) -> bool:
        """Whether its inputs are here. If not, its expression was loaded without them, and it is
        timed on random inputs."""
        return not isinstance(self.data, FromSchedule) or self.data.has_data

    def require_data(self, what: str) -> None:
        """Raise a WorkbenchError if inputs are not here; `what` says what is not possible."""
        if not self.has_data:
            raise no_data(what)

    def _program(self, device: str) -> Program:
        """Return the program for a device. Errors: DeviceError if its memory is too large for the
        device, before its inputs are allocated."""
        program: Program = self.built(device).program
        require_room(program)
        return program

    def _inputs(self, device: str) -> list[Array]:
        self.require_data("cannot compute values of this kernel")
        with unobserved():
            buffers = self.data.buffers(self.original, device)
            return arrays(buffers, self.original.outputs)
