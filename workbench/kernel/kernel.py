"""Kernel: a kernel with opts applied, and everything one can do with it. Immutable."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import engine
from workbench.backends.device import Device
from workbench.backends.runtime.assembly import AsmLine
from workbench.display import Displayed
from workbench.errors import DeviceError, ParseError
from workbench.ir.expr import to_expr
from workbench.ir.ops import Ops
from workbench.ir.opt import apply as opts
from workbench.ir.opt.heuristic import heuristic
from workbench.ir.opt.opt import Axis, Opt, axes
from workbench.ir.rewrite import check_names, without
from workbench.ir.text import parse, to_text
from workbench.ir.uop import UOp
from workbench.ir.verify import verify
from workbench.kernel import arguments, checking, searching
from workbench.kernel.checking import CheckResult
from workbench.kernel.estimates import Counts, Estimates, count, estimate
from workbench.kernel.fence import fenced
from workbench.kernel.inputs import FromSchedule, Seeded, outputs
from workbench.kernel.search_result import SearchResult
from workbench.kernel.timing import Timing, measure_kernel
from workbench.pipeline import COMPILE_RULES, Built, build, recorded
from workbench.source import SourceLine, here
from workbench.trace import PassRecord, observe, unobserved

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Compiled(Displayed):
    """A kernel compiled for a device, with the record of how. Nothing has run yet."""

    device: str
    built: Built
    passes: tuple[PassRecord, ...]
    estimates: Estimates
    counts: Counts

    @property
    def source(self) -> str:
        """The program as the device's compiler reads it."""
        return self.built.source.text

    @property
    def assembly(self) -> str:
        """The machine code as text.

        Errors: DeviceError on a device that has no machine code.
        """
        return str(self._of_program("assembly"))

    @property
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The machine code without directives; each instruction with its line of the source.

        It is compiled anew for this. Errors: as `assembly`.
        """
        found: tuple[AsmLine, ...] = self._of_program("assembly_lines")
        return found

    def _of_program(self, name: str) -> Any:
        found = getattr(self.built.program, name, None)
        if found is None:
            raise DeviceError(
                f"{self.device} has no machine code", "it is an emulator", '"LLVM"'
            )
        return found

    def __getitem__(self, level: str) -> Any:
        """Return the state at "lowered" (a BLOCK) or "linear" (a tuple of UOps)."""
        levels = {"lowered": self.built.lowered, "linear": self.built.linear}
        if not isinstance(level, str) or level not in levels:
            raise KeyError(f"no level {level!r}: there are " + ", ".join(levels))
        return levels[level]

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True, eq=False)
class Kernel(Displayed):
    """A kernel. `ast` is its graph with `applied_opts` applied; `original` is it without.

    `data` says where inputs come from; `shape` is the output's shape as the user sees it;
    `rules_off` names the rules that opts and compiling do without (see `without`).
    """

    ast: UOp
    original: UOp
    data: FromSchedule | Seeded
    shape: tuple[int, ...]
    applied_opts: tuple[Opt, ...] = ()
    line: SourceLine | None = None
    title: str = ""
    rules_off: tuple[str, ...] = ()

    @staticmethod
    def from_text(
        text: str, seed: int = 0, shape: tuple[int, ...] | None = None, title: str = ""
    ) -> Kernel:
        """Return the kernel that `text` (see `to_text`) describes, on seeded random data.

        `shape` is that of its first output (flat where None) and `title` what it is called.
        Errors: ParseError, VerifyError; ShapeError for a shape of another size.
        """
        if not isinstance(text, str):
            raise ParseError(
                "a kernel is made from text", f"and not from {type(text).__name__}"
            )
        ast = parse(text)
        if not isinstance(ast, UOp) or ast.op is not Ops.SINK:
            raise ParseError("the text is no kernel", "its last line must be a SINK")
        verify(ast, "kernel")
        if not ast.src:
            raise ParseError("the text is no kernel", "it stores nothing")
        ast = fenced(ast)
        target = ast.src[0].src[0].src[0].src[0]
        size = target.arg[1]
        shape = (size,) if shape is None else arguments.shape_of(shape, size)
        data = Seeded(arguments.seed(seed))
        return Kernel(ast, ast, data, shape, title=str(title) or ast.arg.name)

    @property
    def device(self) -> str:
        """The device of the kernel's data: where it runs unless another is named."""
        return self.data.device or Device.DEFAULT

    def _device(self, name: str | None) -> str:
        return self.device if name is None else Device.canonical(name)

    # looking

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
        """What the algorithm needs: operations and bytes."""
        return estimate(self.original)

    @property
    def counts(self) -> Counts:
        """What the generated program does in one run (on its own device)."""
        with unobserved():
            return count(self._built(self.device).linear)

    def to_text(self) -> str:
        """Return the graph as IR text, which `Kernel.from_text` reads."""
        return to_text(self.ast)

    def __str__(self) -> str:
        return to_expr(self.ast)

    def __repr__(self) -> str:
        listed = " ".join(f"{a.name}={a.size}" for a in self.axes)
        return f"Kernel({self.title or self.name}: {listed}; {len(self.applied_opts)} opts)"

    # opts

    def legal_opts(self) -> tuple[Opt, ...]:
        """Return the legal opts of the action table; equal results are listed once."""
        with without(self.rules_off):
            return opts.legal_opts(self.ast, Device[self.device].target)

    def why_not(self, opt: Opt) -> str | None:
        """Return None where `opt` is legal, else the text that KernelOptError would carry."""
        with without(self.rules_off):
            refusal = opts.why_not(self.ast, opt, Device[self.device].target)
        return None if refusal is None else str(opts.refusal_error(opt, refusal))

    def apply(self, *chosen: Opt) -> Kernel:
        """Return the kernel with opts applied in turn; this one is unchanged.

        Errors: KernelOptError (what / because / try / where) where one is not legal.
        """
        target = Device[self.device].target
        ast, applied = self.ast, list(self.applied_opts)
        line = here()
        where = "" if line is None else line.where
        with without(self.rules_off):
            for opt in chosen:
                ast, named = opts.apply_opt(ast, opt, target, where)
                applied.append(named)
        return replace(self, ast=ast, applied_opts=tuple(applied))

    def optimized(self) -> Kernel:
        """Return the un-optimised kernel with the default opts: what `realize` runs."""
        target = Device[self.device].target
        with unobserved(), without(self.rules_off):
            ast, applied, _ = heuristic(self.original, target)
        return replace(self, ast=ast, applied_opts=applied)

    def search(
        self,
        width: int = 2,
        budget_s: float = 10.0,
        executor: Executor | None = None,
        cached: bool = True,
        progress: bool = True,
    ) -> SearchResult:
        """Return the fastest form that a beam search of `width` finds, never one that is slower
        than this one; every form that was tried is in it.

        Forms run in a process of ours, or on an `executor`: any of `concurrent.futures`, and
        Dask's `client.get_executor()`. Ctrl-C returns the best so far. A search of the same
        kernel that had as much time is found in the cache, unless `cached` is False.

        Units: budget_s is seconds. Errors: DTypeError for a budget or a width that is none.
        """
        return searching.run(self, width, budget_s, executor, cached, progress)

    def without(self, *rules: str) -> Kernel:
        """Return the kernel with rules switched off, by name: its opts are applied, and it is
        compiled, without them.

        Errors: WorkbenchError for a rule that kernels are not made with.
        """
        check_names(rules, COMPILE_RULES)
        off = tuple(dict.fromkeys((*self.rules_off, *rules)))
        plain = replace(self, ast=self.original, applied_opts=(), rules_off=off)
        return plain.apply(*self.applied_opts)

    # running

    def compile(self, device: str | None = None) -> Compiled:
        """Return the kernel compiled for `device`, with the record of every pass from the
        un-optimised kernel on."""
        name = self._device(device)
        target = Device[name].target
        passes: list[PassRecord] = []
        ast = self.original
        with without(self.rules_off):
            for opt in self.applied_opts:
                ast, records = _observed_opt(ast, opt, target)
                passes += records
            built, records = recorded(ast, name)
        return Compiled(
            name, built, (*passes, *records), self.estimates, count(built.linear)
        )

    def run(self, device: str | None = None) -> tuple[Array, ...]:
        """Return the outputs on the expression's own data, in the tensor's shape.

        No buffer that a tensor holds is written; repeated runs agree.
        """
        results = self._run(self._device(device))[1]
        size = math.prod(self.shape)
        return tuple(a.reshape(self.shape) if a.size == size else a for a in results)

    def check(self, device: str | None = None) -> CheckResult:
        """Compare the answer with the un-optimised kernel on the reference interpreter."""
        inputs, got = self._run(self._device(device))
        with unobserved():
            return checking.check(self.original, outputs(self.original), inputs, got)

    def time(self, device: str | None = None, budget_s: float = 0.5) -> Timing:
        """Return how long one run takes, with its spread and its share of the machine's peak.

        Units: budget_s is seconds of measuring, warming up apart. Errors: DTypeError unless it
        is a number, 0 or more.
        """
        name, budget_s = self._device(device), arguments.budget(budget_s)
        with unobserved():
            built = self._built(name)
            run = built.program.bind(self.data.buffers(self.original, name))
            bits, threads = _float_bits(self.original), built.source.threads
            return measure_kernel(run, name, self.estimates, bits, budget_s, threads)

    def _run(self, device: str) -> tuple[list[Array], list[Array]]:
        with unobserved():
            buffers = self.data.buffers(self.original, device)
            inputs = [np.array(engine.array_of(b)) for b in buffers]
            self._built(device).program(buffers)
            return inputs, [
                np.array(buffers[slot].array) for slot in outputs(self.original)
            ]

    def _built(self, device: str) -> Built:
        with without(self.rules_off):
            return build(self.ast, device)

    # handing on

    def to_python(self) -> str:
        """Return self-contained code that binds `kernel`: this kernel, on seeded data."""
        applied = "".join(f"    {opt!r},\n" for opt in self.applied_opts)
        off = f".without({', '.join(map(repr, self.rules_off))})" if self.rules_off else ""
        call = off + (f".apply(\n{applied})" if applied else "")
        text = to_text(self.original).replace("\\", "\\\\").replace("'", r"\'")
        return (
            "from workbench import Kernel, Opt, OptOps\n\n"
            f"kernel = Kernel.from_text('''\n{text}\n''', shape={self.shape}, "
            f"title={self.title!r}){call}\n"
        )


def _observed_opt(
    ast: UOp, opt: Opt, target: Any
) -> tuple[UOp, tuple[PassRecord, ...]]:
    with observe() as watching:
        after, _ = opts.apply_opt(ast, opt, target)
    return after, tuple(watching.records)


def _float_bits(kernel: UOp) -> int:
    """Return 64 for a kernel that computes in float64, else 32: which peak it is held against."""
    return (
        64
        if any(n.dtype.is_float and n.dtype.bits == 64 for n in kernel.toposort())
        else 32
    )
