"""Kernel: a kernel with opts applied, with all its public methods. Immutable.

Sections: Kernel; Kernels as Python code to paste, and kernels read from IR text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from workbench.backends.device import Device
from workbench.base.errors import ParseError, require
from workbench.base.target import Target
from workbench.base.terminal import Displayed
from workbench.base.trace import unobserved
from workbench.check.bisect import FirstWrongRewrite
from workbench.check.node_values import NodeValues, values_in_kernel
from workbench.check.oracle import bisected, check_size
from workbench.cost.kernel_cost import Bottleneck, RunCost
from workbench.cost.predicted_cost import bottleneck_of
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.ir.text.program import to_expr
from workbench.ir.verify.tensor import kernel_of, verified
from workbench.kernel import compiled, performance
from workbench.kernel.accesses import MOST_STEPS, AxisAccesses, loop_accesses
from workbench.kernel.compiled import Compiled as Compiled
from workbench.kernel.inputs import Seeded, written
from workbench.kernel.performance import Comparison, compared
from workbench.kernel.rule_trial import RuleTrial, tried
from workbench.kernel.run import arrays
from workbench.kernel.runnable import RunnableKernel
from workbench.kernel.text_trial import TextTrial, tried_text
from workbench.kernel.warp_accesses import WarpAccesses, warp_accesses
from workbench.measure.kernel_time import Timing
from workbench.measure.side_by_side import SideBySide
from workbench.measure.speeds import speeds
from workbench.pickles import pickled
from workbench.portable import Portable, portable
from workbench.search import search as searching
from workbench.search.result import SearchResult

# --------------------------------------------------------------------------------------------------
# Kernel.

Array = np.ndarray[Any, Any]
NO_POSITIONS: Mapping[str, int] = MappingProxyType({})


@pickled
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kernel(RunnableKernel, Displayed):
    """A RunnableKernel with searches, times, comparisons, inspection and export."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle its graphs and the data of its inputs, whose producers run first."""
        names = [field.name for field in fields(self)[2:]]
        values = {name: getattr(self, name) for name in names}
        return restored_kernel, (portable(self.ast, self.original), values)

    @staticmethod
    def from_text(
        text: str, seed: int = 0, shape: tuple[int, ...] | None = None, title: str = ""
    ) -> Kernel:
        """Return the kernel that `text` (see `to_text`) describes, on seeded random data.

        `shape` is the shape of its first output (None: flat), `title` its name on the page.
        Errors: ParseError, VerifyError; ShapeError for a shape of another size.
        """
        ast = graph_of(text)
        first, *others = [param.length for param in written(ast)]
        shape = (first,) if shape is None else compiled.shape_of(shape, first)
        data = Seeded(compiled.seed(seed))
        shapes = (shape, *[(length,) for length in others])
        return Kernel(ast, ast, data, shapes, title=str(title) or ast.arg.name)

    # properties

    @property
    def cost(self) -> RunCost:
        """The cost of a run by the kernel's loop nest: work, bytes from each level of memory, and
        the predicted time. It is the cost on this machine, whose speeds are measured once, in a
        second; for a GPU or another machine with published figures, the cost there by the figures.

        Errors: as `predicted_cost`, and DeviceError where llvmlite is missing.
        """
        has_hardware = Device[self.device].source_device.has_hardware
        return performance.cost_of(self, self.device, None if has_hardware else speeds())

    @property
    def target(self) -> Target:
        """The target of costs: of the kernel's device if that is this machine's processor or has
        published figures, else of the processor."""
        return performance.costs_target(self.device)

    def bound(self) -> Bottleneck:
        """Return the bottleneck of the kernel, in a sentence with numbers. Errors: as `cost`."""
        return bottleneck_of(self.cost, self.target)

    def to_text(self) -> str:
        """Return the graph with opts as IR text, which `Kernel.from_text` reads."""
        return to_text(self.ast)

    def __str__(self) -> str:
        return to_expr(self.ast)

    # searching and measuring

    def search(
        self,
        width: int = 2,
        budget_s: float = 10.0,
        executor: Executor | None = None,
        cached: bool = True,
        progress: bool = True,
    ) -> SearchResult[Self]:
        """Return the result of a beam search of `width`: the fastest candidate, never slower than
        this kernel, and all other candidates.

        Candidates run in a worker process, or on an `executor`: any of `concurrent.futures`, and
        Dask's `client.get_executor()`. Ctrl-C returns the best so far. An earlier search of the
        same kernel with at least this budget is read from the cache, unless `cached` is False.
        For a machine that is not here, the model ranks the candidates: nothing runs, and the result
        says "predicted".

        Units: budget_s is seconds. Errors: DTypeError for a budget that is not in seconds, or a
        width that is not a count; DeviceError for an `executor` that is none.
        """
        return searching.run(self, width, budget_s, executor, cached, progress)

    def time(self, device: str | None = None, budget_s: float = 0.5, cold: bool = False) -> Timing:
        """Return the time of one run, with its spread and its share of the machine's peak; with
        `cold`, also the time with cold caches.

        Units: budget_s is seconds of measuring, without warming up. Errors: DTypeError unless it
        is a number, 0 or more; DeviceError for a machine that is not here.
        """
        budget_s = compiled.budget(budget_s)
        require(cold, bool, "time: cold", "cold=True")
        return performance.timed(self, self._device(device), budget_s, cold)

    def compare_times(
        self,
        others: Mapping[str, Kernel | Callable[[], object]],
        device: str | None = None,
        budget_s: float = 1.0,
    ) -> SideBySide:
        """Return the times of this kernel ("this"), of other kernels and of functions, by name,
        measured in turns. If the samples show no difference, the text says so.

            array, other = a.numpy(), b.numpy()
            k.compare_times({"auto": k.optimized(), "numpy": lambda: array @ other})
        """
        budget_s = compiled.budget(budget_s)
        return performance.with_peers(self, others, self._device(device), budget_s)

    def compare(
        self, other: Kernel, device: str | None = None, budget_s: float = 0.0
    ) -> Comparison:
        """Return the differences from another kernel: of opts, counts, source and answers; unless
        `budget_s` is 0, also of times, measured in turns for `budget_s` seconds."""
        return compared(self, other, self._device(device), compiled.budget(budget_s))

    # inspection

    def values(self, node: UOp, at: Mapping[str, int] = NO_POSITIONS) -> NodeValues:
        """Return the values of a node of `ast`, or of a state of the passes before lowering, on
        the expression's own data. `at` fixes positions by axis name: {"g0": 1}.

        Errors: WorkbenchError for a node without values, and for a position out of range.
        """
        return values_in_kernel(node, at, self._inputs(self.device), self.order)

    def accesses(
        self,
        axis: str,
        at: Mapping[str, int] = NO_POSITIONS,
        first: int = 0,
        steps: int = MOST_STEPS,
    ) -> AxisAccesses:
        """Return which elements of each buffer `steps` steps of a loop, work-item or lane axis
        touch, in order, from step `first` on; printed, with cache lines, pages, banks of shared
        memory, and a picture of each buffer. Loops around it stand at `at`, or else at 0:

            k.optimized().accesses("r0", at={"g0": 3})

        Errors: WorkbenchError for an axis that its loop nest does not have, for a position or a
        number of steps out of range, and for more accesses than can be listed.
        """
        return loop_accesses(self, axis, at, first, steps)

    def warp(self, warp: int = 0, at: Mapping[str, int] = NO_POSITIONS) -> WarpAccesses:
        """Return which elements the lanes of each load and store of a warp access together, with
        the sectors of memory or the passes over banks that this takes. Loops and the grid stand at
        `at`, or else at 0:

            k.optimized().warp(1, at={"g0": 3, "r0": 2})

        Errors: WorkbenchError for a warp that a group lacks, for a position out of range, and for
        groups of too many work-items.
        """
        require(at, Mapping, "warp: at", 'at={"g0": 1}')
        return warp_accesses(self, warp, at)

    def try_rule(self, rule: str, device: str | None = None) -> RuleTrial[Kernel]:
        """Return the trial of a rule that you type, such as "x * 2 -> x + x": both sides on values
        of every dtype that it fits, random ones and extremes. Unless they differ, this kernel is
        compiled with the rule: the trial says where it fired, what the source became, and whether
        the answer is right; its `kernel` has the rule.

            print(k.try_rule("x * 0 -> 0"))     # wrong for NaN and infinity
            print(k.try_rule("x:float * 2 -> x + x"))

        A name is any value, x:float one of that kind, c or c1 a constant. Floats are equal if their
        values are; the signs of zeros are not compared.

        Errors: ParseError, with the column, for a text that is no rule; DeviceError.
        """
        return tried(self, rule, self._device(device))

    def try_text(self, text: str, device: str | None = None) -> TextTrial:
        """Return the trial of the text of a statement tree or of a linear program that you edited:
        it is verified, lowered on from its level, run in a process apart, and checked. For a GPU
        that is not here it runs on the emulator, which names races and the like.

            text = k.compile().text("linear")     # or "tree"
            print(k.try_text(text.replace("MAX", "MIN")))

        Errors: ParseError and VerifyError, with the line and the column; CompileError; DeviceError;
        WorkbenchError if its data are not here.
        """
        return tried_text(self, text, self._device(device))

    def bisect(self, device: str | None = None) -> FirstWrongRewrite | None:
        """Return the first opt or rewrite, from the un-optimised kernel to the program, after which
        the answer differs from the meaning of the expression; None if the answer is right. If the
        kernel is already wrong as scheduled, the result says so: `bisect` of the exploration finds
        the rewrite.

        Errors: WorkbenchError if the kernel is too large to be computed repeatedly, or its data are
        not here.
        """
        self.require_data("cannot bisect this kernel")
        name, original = self._device(device), self.original
        check_size(original)
        with unobserved():
            check = self.data.check_run(original, name)
            inputs = arrays(check.buffers, original.outputs)
        records = self.observed(name)
        return bisected(original, records, name, inputs, check.verdict)

    # export

    def to_python(self) -> str:
        """Return complete code that makes this kernel, on seeded data, and names it `kernel`."""
        return to_python(self)


def restored_kernel(graph: Portable, values: dict[str, Any]) -> Kernel:
    """Return the kernel of pickled graphs and fields.

    Errors: DeviceError for a device that is missing here.
    """
    if values["data"].device:
        Device.canonical(values["data"].device)
    ast, original = graph.restored()
    return Kernel(ast, original, **values)


# --------------------------------------------------------------------------------------------------
# Kernels as Python code to paste, and kernels read from IR text.


def graph_of(text: object) -> UOp:
    """Return the kernel of IR text, verified; gates keep each gated index inside its buffer.

    Errors: ParseError for a text that is not a kernel; VerifyError for a kernel that breaks a rule.
    """
    if not isinstance(text, str):
        because = f"this is {type(text).__name__}"
        raise ParseError("a kernel is made from text", because, "str(kernel), the text of one")
    return verified(kernel_of(text))


def to_python(kernel: RunnableKernel) -> str:
    """Return complete Python code that makes `kernel` again, on seeded random data, and names it
    `kernel`."""
    off = ", ".join(map(repr, kernel.rules_off))
    calls = device_call(kernel) + (f".without({off})" if off else "")
    applied = "".join(f"    {opt!r},\n" for opt in kernel.applied_opts)
    calls += f".apply(\n{applied})" if applied else ""
    return (
        "from workbench import Kernel, Opt, OptOps\n\n"
        f"kernel = Kernel.from_text({literal(to_text(kernel.original))}, shape={kernel.shape}, "
        f"title={kernel.title!r}){calls}\n"
    )


def literal(text: str) -> str:
    """Return lines of text as a literal of Python, a line each."""
    escaped = text.replace("\\", "\\\\").replace("'", r"\'")
    return f"'''\n{escaped}\n'''"


def device_call(kernel: RunnableKernel) -> str:
    """Return the `.on(..)` call for a kernel of a machine that is not here; "" for others."""
    is_elsewhere = Device[kernel.device].is_elsewhere
    return f".on({json.dumps(kernel.device)}).kernel" if is_elsewhere else ""
