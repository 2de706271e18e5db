"""Kernel: a kernel with opts applied, and everything one can do with it. Immutable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.base.display import Displayed
from workbench.base.source import SourceLine, here
from workbench.base.target import Target
from workbench.base.trace import PassRecord, unobserved
from workbench.check import answer as checking
from workbench.check.answer import CheckResult
from workbench.check.bisect import Culprit
from workbench.check.node_values import NodeValues, values_in_kernel
from workbench.check.oracle import bisected, observed
from workbench.cost.bottleneck import Bound, bound
from workbench.cost.kernel_cost import Cost
from workbench.ir.lower.barriers import barriers
from workbench.ir.nest.estimates import Counts, Estimates, count, estimate
from workbench.ir.node.uop import UOp
from workbench.ir.opt import apply as opts
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.opt.heuristic.step import NO_STEPS, HeuristicSteps
from workbench.ir.opt.opt import Axis, Opt, axes
from workbench.ir.rewriting.rewrite import check_names, without
from workbench.ir.text.printer import to_text
from workbench.ir.text.readable import to_expr
from workbench.kernel import arguments, figures
from workbench.kernel.compare import Comparison, compared
from workbench.kernel.compiled import Compiled as Compiled
from workbench.kernel.compiled import compiled
from workbench.kernel.inputs import (
    Carried,
    FromSchedule,
    Seeded,
    arrays,
    written,
)
from workbench.kernel.pasted import graph_of, to_python
from workbench.measure.kernel_time import Timing
from workbench.measure.side_by_side import SideBySide
from workbench.measure.speeds import speeds
from workbench.pipeline import COMPILE_PASSES, Stages, build, recorded, rules_of
from workbench.portable import Portable, portable
from workbench.search import search as searching
from workbench.search.result import SearchResult

Array = np.ndarray[Any, Any]
NOWHERE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Kernel(Displayed):
    """A kernel. `ast` is its graph with `applied_opts` applied; `original` is it without.

    `data` says where inputs come from; `shapes` are those of the outputs, as the user sees them;
    `rules_off` names the rules that opts and compiling do without (see `without`). `steps` says,
    of a kernel with the default opts, why it has each of them, with the figures (see `optimized`).
    """

    ast: UOp
    original: UOp
    data: FromSchedule | Carried | Seeded
    shapes: tuple[tuple[int, ...], ...]
    applied_opts: tuple[Opt, ...] = ()
    line: SourceLine | None = None
    title: str = ""
    rules_off: tuple[str, ...] = ()
    steps: HeuristicSteps = NO_STEPS

    def __reduce__(self) -> tuple[Any, ...]:
        """Its graphs, and its inputs' data: producers run first, if they have not."""
        names = [field.name for field in fields(self)[2:]]
        values = {name: getattr(self, name) for name in names}
        return _restored, (portable(self.ast, self.original), values)

    @staticmethod
    def from_text(
        text: str, seed: int = 0, shape: tuple[int, ...] | None = None, title: str = ""
    ) -> Kernel:
        """Return the kernel that `text` (see `to_text`) describes, on seeded random data.

        `shape` is that of its first output (flat where None) and `title` what it is called.
        Errors: ParseError, VerifyError; ShapeError for a shape of another size.
        """
        ast = graph_of(text)
        first, *others = [param.length for param in written(ast)]
        shape = (first,) if shape is None else arguments.shape_of(shape, first)
        data = Seeded(arguments.seed(seed))
        shapes = (shape, *[(length,) for length in others])
        return Kernel(ast, ast, data, shapes, title=str(title) or ast.arg.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self.shapes[0]

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
            return count(self.built(self.device).linear, barriers(self.ast))

    @property
    def cost(self) -> Cost:
        """What a run costs by the kernel's form: work, bytes from each level of memory, and the
        time that is predicted of this machine (whose speeds are measured once, in a second).

        Errors: DeviceError where llvmlite is missing.
        """
        return figures.cost_of(self, self.device, speeds())

    def bound(self) -> Bound:
        """Return what the kernel waits for, in a sentence with numbers. Errors: as `cost`."""
        return bound(self.cost, self.target)

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
        return replace(self, ast=ast, applied_opts=tuple(applied), steps=NO_STEPS)

    def optimized(self) -> Kernel:
        """Return the un-optimised kernel with the default opts: what `realize` runs on a device
        that compiles (an emulator runs kernels without opts). Why it has them is in its
        `steps`:

            print(k.optimized().steps)
        """
        target = Device[self.device].target
        with unobserved(), without(self.rules_off):
            ast, applied, steps = heuristic(self.original, target)
        return replace(self, ast=ast, applied_opts=applied, steps=steps)

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
        check_names(rules, rules_of(COMPILE_PASSES))
        off = tuple(dict.fromkeys((*self.rules_off, *rules)))
        plain = replace(self, ast=self.original, applied_opts=(), rules_off=off)
        return plain.apply(*self.applied_opts)

    # running

    def compile(self, device: str | None = None) -> Compiled:
        """Return the kernel compiled for `device`, with the record of every pass from the
        un-optimised kernel on."""
        name = self._device(device)
        with without(self.rules_off):
            record = recorded(self.original, name, opts=self.applied_opts)
        return compiled(name, record, self.estimates)

    def run(self, device: str | None = None) -> tuple[Array, ...]:
        """Return the outputs on the expression's own data, in the tensor's shape.

        No buffer that a tensor holds is written; repeated runs agree.
        """
        name, slots = self._device(device), self.original.outputs
        with unobserved():
            buffers = self.data.buffers(self.original, name)
            self.built(name).program(buffers)
        results = [buffers[slot].to_numpy() for slot in slots]
        return tuple(a.reshape(s) for a, s in zip(results, self.shapes, strict=True))

    def check(self, device: str | None = None) -> CheckResult:
        """Compare the answer with the un-optimised kernel on the reference interpreter."""
        name, slots = self._device(device), self.original.outputs
        with unobserved():
            buffers = self.data.buffers(self.original, name)
            inputs = arrays(buffers, slots)
            self.built(name).program(buffers)
            got = [buffers[slot].to_numpy() for slot in slots]
            return checking.check(self.original, slots, inputs, got)

    def time(
        self, device: str | None = None, budget_s: float = 0.5, cold: bool = False
    ) -> Timing:
        """Return how long one run takes, with its spread and its share of the machine's peak;
        `cold`: and how long it takes where caches were emptied before each run.

        Units: budget_s is seconds of measuring, warming up apart. Errors: DTypeError unless it
        is a number, 0 or more.
        """
        budget_s = arguments.budget(budget_s)
        return figures.timed(self, self._device(device), budget_s, cold)

    def compare_times(
        self,
        others: Mapping[str, Kernel | Callable[[], object]],
        device: str | None = None,
        budget_s: float = 1.0,
    ) -> SideBySide:
        """Return this kernel's time ("this") beside those of others, and of any functions, by
        name, all in turns. Where the samples show no difference it says so.

            k.compare_times({"auto": k.optimized(), "numpy": lambda: a @ b})
        """
        budget_s = arguments.budget(budget_s)
        return figures.beside(self, others, self._device(device), budget_s)

    def launch(self, device: str | None = None) -> Callable[[], None]:
        """Return a function that runs the kernel once, on buffers of its own."""
        name = self._device(device)
        with unobserved():
            buffers = self.data.buffers(self.original, name)
            run: Callable[[], None] = self.built(name).program.bind(buffers)
            return run

    @property
    def target(self) -> Target:
        """What costs are computed for: the device, if it is this machine's processor, else that."""
        return figures.processor(self.device)

    def built(self, device: str) -> Stages:
        """Return the kernel built for a device, once per process. Errors: DeviceError."""
        with without(self.rules_off):
            return build(self.ast, Device.canonical(device))

    # looking closer

    def values(self, node: UOp, at: Mapping[str, int] = NOWHERE) -> NodeValues:
        """Return the values of a node of `ast`, or of a state of the passes before lowering, on
        the expression's own data. `at` fixes positions by axis name: {"g0": 1}.

        Errors: WorkbenchError for a node without values, and a position that is not there.
        """
        return values_in_kernel(node, at, self._inputs(self.device), self.order)

    def bisect(self, device: str | None = None) -> Culprit | None:
        """Return the first opt or rewrite, from the un-optimised kernel to the program, after
        which the answer is wrong; None where it never is.

        Errors: WorkbenchError where the kernel is too large to be computed again and again.
        """
        name = self._device(device)
        return bisected(self, name, self._inputs(name))

    def observed(self, device: str) -> tuple[PassRecord, ...]:
        """Return the record of every pass of compiling, as far as it comes: the last one has
        the error, where there is one."""
        return observed(self, device)

    def compare(
        self, other: Kernel, device: str | None = None, budget_s: float = 0.0
    ) -> Comparison:
        """Return what differs: opts, counts, source and answers; and times, measured in turns for
        `budget_s` seconds, where that is not 0."""
        return compared(self, other, self._device(device), arguments.budget(budget_s))

    def _inputs(self, device: str) -> list[Array]:
        with unobserved():
            buffers = self.data.buffers(self.original, device)
            return arrays(buffers, self.original.outputs)

    # handing on

    def to_python(self) -> str:
        """Return self-contained code that binds `kernel`: this kernel, on seeded data."""
        return to_python(self)


def _restored(graph: Portable, values: dict[str, Any]) -> Kernel:
    """Return the kernel that was pickled as these graphs and other fields.

    Errors: DeviceError for a device that there is not here.
    """
    if values["data"].device:
        Device.canonical(values["data"].device)
    ast, original = graph.restored()
    return Kernel(ast, original, **values)
