"""Exploration: the kernels of some tensors and how they were scheduled, as a value to show.

Sections: Selections in a notebook's workbench, checked before the page gets them; Exploration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, overload

from msgspec import inspect as types
from msgspec import to_builtins
from msgspec.structs import fields

from workbench.base.errors import PlaceError, WorkbenchError, kind_of, require
from workbench.base.files import PAGE, FileKind, Unpicklable, write_whole
from workbench.base.terminal import Displayed
from workbench.base.typed import typed
from workbench.execution.buffers import Array
from workbench.ir.schedule.by_hand import NOTHING_BY_HAND, HandChoices
from workbench.kernel.kernel import Kernel
from workbench.models.baselines import framework_run
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration.display import Display
from workbench.viz.exploration.memory_budget import MemoryBudget, within
from workbench.viz.exploration.planned import Expression, planned
from workbench.viz.exploration.questions import answer_in, checked_guess, verdict
from workbench.viz.exploration.replanning import ChoiceChanges, Value, changed_choices
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.exploration.tables import Decisions, KernelTuple, PassTable, Variant, Variants
from workbench.viz.model.lines import HERE, NOBODY, FileOrigin, Viewer
from workbench.viz.model.words import plural
from workbench.viz.page.document import modes
from workbench.viz.page.panel import kernel_table, pane_of
from workbench.viz.pane import Pane
from workbench.viz.record.about import language_rows
from workbench.viz.record.variants import kernel_origin, kernel_row
from workbench.viz.run.run import Run
from workbench.viz.run.sizes import Again, Size
from workbench.viz.run.sweep import Sweep, swept
from workbench.viz.schema.messages import ViewState
from workbench.viz.schema.record import PageRecord
from workbench.viz.text import kernel_heading, work_text

EXPLORATION_FILE = FileKind("saved exploration", r'\{"format": "workbench exploration"')

# --------------------------------------------------------------------------------------------------
# Selections in a notebook's workbench, checked before the page gets them.

FIELDS = {field.name: field for field in fields(ViewState) if field.name != "only"}
"""The fields that `select` can set; the one pane that is shown is a field of the exploration."""


def checked_view(
    ex: ScheduledTensors, view: Mapping[str, object], unnamed: Sequence[object] = ()
) -> ViewState:
    """Return the selection for a page; a Kernel becomes its position.

    Errors: WorkbenchError for a name or a value that a page does not know; PlaceError for a value
    without a name.
    """
    choices = {"mode": modes(), "language": tuple(r.name for r in language_rows())}
    if unnamed:
        raise _without_name(unnamed[0], choices)
    plain = dict(view)
    for name, value in view.items():
        if name not in FIELDS:
            raise _refused(name, value, f"there are {', '.join(FIELDS)}", 'mode="plan"')
        if name == "kernel":
            plain[name] = ex.kernel_at(value)[0]  # type: ignore[arg-type]  # it refuses other types
        if name in choices and not _is_one_of(choices[name], value):
            because = f"there are {', '.join(choices[name])}"
            raise _refused(name, value, because, f'{name}="{choices[name][0]}"')
        try:
            typed(plain[name], FIELDS[name].type)
        except ValueError:
            raise _refused(name, value, *_expected_value(name)) from None
    return typed(plain, ViewState)


def _without_name(value: object, choices: Mapping[str, tuple[str, ...]]) -> WorkbenchError:
    """Return the error for a value without a name; its hint has the name of a field that fits."""
    hints = {name: f'"{values[0]}"' for name, values in choices.items()}
    fits = [name for name in choices if _is_one_of(choices[name], value)]
    name = (*fits, "mode")[0]
    hint = f"{name}={value!r}" if fits else f"{name}={hints[name]}"
    because = f"a value needs its name: {', '.join(FIELDS)}"
    hint = f"kernel={value}" if type(value) is int else hint
    return PlaceError(f"cannot select {value!r:.40}", because, f"ex.select({hint})")


def _is_one_of(choices: tuple[str, ...], value: object) -> bool:
    return isinstance(value, str) and value in choices


def _expected_value(name: str) -> tuple[str, str]:
    """Return what the value of a field must be, as text, and an example of one."""
    info = types.type_info(FIELDS[name].type)
    assert isinstance(info, types.Metadata)
    schema = info.extra_json_schema or {}
    return str(schema["title"]), str(schema["examples"][0])


def _refused(name: str, value: object, because: str, hint: str) -> WorkbenchError:
    what = f"cannot select {name}={value!r:.40}"
    return WorkbenchError(what, because, f"ex.select({hint})")


# --------------------------------------------------------------------------------------------------
# Exploration.


class Verdict(str):
    """A text with a guess and the answer, which a cell shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


_NO_SOURCE = "it is of Tensors, which have their sizes, and not of a source with inputs"
NO_CHANGES: Mapping[Any, Any] = MappingProxyType({})
MOST_KERNELS = 12
"""Most kernels that are shown in full; further ones are counted, or listed by title."""


class Page(Protocol):
    """The display of explorations in a notebook or a file. `explore` passes one in, so that this
    module imports none."""

    def baseline(self, ex: Exploration, name: str, run: Callable[[], object]) -> None:
        """Add a baseline to an exploration."""

    def select(self, ex: Exploration, view: ViewState) -> None:
        """Set the selection in the widgets of an exploration."""

    def to_html(self, ex: Exploration) -> str:
        """Return the page of an exploration as one file."""

    def record(self, ex: Exploration) -> PageRecord:
        """Return the complete record of an exploration."""

    def variants(self, ex: Exploration, deleted: bool = False) -> Variants:
        """Return the variants of an exploration, with `deleted` also deleted ones."""

    def ask(self, ex: Exploration, do: str, **fields: Any) -> Any:
        """Return the result of a request of the page of an exploration."""

    def to_file(self, ex: Exploration) -> str:
        """Return the text of an exploration's file, which `load` reads."""

    def to_script(self, ex: Exploration, path: Path | None) -> str:
        """Return an exploration as a script; with a path, write it and its data, and return the
        path."""

    def from_file(self, path: Path) -> Exploration:
        """Return the exploration of a file."""

    def saved_files(self, folder: Path) -> list[Path]:
        """Return the files of a folder that hold explorations, the latest first."""

    def to_widget(self, ex: Exploration) -> Any:
        """Return an exploration as a widget."""

    def run(self, ex: Exploration, device: str, repeat: int) -> Run:
        """Return the run of repeated rounds of the kernels, as they were chosen."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exploration(ScheduledTensors, Unpicklable, Displayed):
    """ScheduledTensors that can be shown: as text, in panes, in a notebook, as a file. `page` shows
    them; `show` names the one pane that is shown and printed ("": all). `budget` says what a plan
    within a budget of memory costs (None: there was no budget), and `again` how another exploration
    of its source is made (None: it has none)."""

    page: Page = field(kw_only=True)
    show: str = ""
    budget: MemoryBudget | None = None
    again: Again | None = field(default=None, kw_only=True)

    @property
    def budget_words(self) -> str:
        return "" if self.budget is None else str(self.budget)

    @property
    def loops(self) -> Pane:
        """The pane of the loop nests of the kernels."""
        return self.pane("loops")

    @property
    def plan(self) -> Pane:
        """The pane of the tensor graph, cut into kernels, with the reasons."""
        return self.pane("plan")

    @property
    def results(self) -> Pane:
        """The pane of the variants of the kernels, with times and checks."""
        return self.pane("results")

    @property
    def variants(self) -> Variants:
        """The variants that were tried in the workbench, after the kernels without opts; they print
        as a table. `ex.variants.named("auto").kernel` is a Kernel."""
        return self.page.variants(self)

    def add(self, kernel: Kernel, name: str = "") -> Variant:
        """Add a kernel of this exploration with other opts to its workbench, and return the
        Variant; without a name it is called by its opts.

        Errors: WorkbenchError for a kernel of another exploration, or with other rules off, and for
        a name that is taken.
        """
        require(name, str, "add: name", 'name="mine"')
        variant_kernel = kernel if isinstance(kernel, Kernel) else self.kernel_at(kernel)[1]
        rows = self.page.variants(self, True)
        shown = next((r for r in rows if r.kernel.original is variant_kernel.original), None)
        if shown is None:
            self.kernel_at(kernel)  # fails for that of another exploration
            because = "the page shows another plan, of choices by hand, with other kernels"
            raise WorkbenchError("cannot add this kernel", because, "a kernel of ex.variants")
        if variant_kernel.rules_off != shown.kernel.rules_off:
            because = "it has other rules off"
            raise WorkbenchError(
                "cannot add this kernel", because, "the same opts with these rules on"
            )
        opts = ", ".join(map(str, variant_kernel.applied_opts))
        reply = self.page.ask(self, "paste", variant=shown.place, text=opts, name=name)
        return next(v for v in self.variants if v.place == reply.variant)

    def rename(self, variant: Variant, name: str) -> None:
        """Name a variant; with "" it is called by its opts.

        Errors: WorkbenchError for "plain" and "auto", and for a name that another one has.
        """
        self.page.ask(self, "name", variant=self._variant_place(variant), text=name)

    def delete(self, variant: Variant, back: bool = False) -> None:
        """Delete a variant from the workbench, or bring it `back`.

        Errors: WorkbenchError for a kernel without opts.
        """
        place = self._variant_place(variant, deleted=back)
        self.page.ask(self, "delete", variants=[place], back=back)

    def _variant_place(self, variant: object, deleted: bool = False) -> int:
        """Return the position of a variant of this exploration; with `deleted` it may be one that
        was deleted. Errors: WorkbenchError for another value."""
        if not isinstance(variant, Variant):
            because = f"it is a {type(variant).__name__}"
            hint = 'ex.variants.named("auto"), or ex.add(kernel), which returns one'
            raise WorkbenchError("this is not a variant", because, hint)
        what = "this is not a variant of the exploration"
        if variant.display is not self.display:
            raise WorkbenchError(what, "it is one of another exploration", "ex.variants")
        rows = {row.place: row for row in self.page.variants(self, deleted)}
        row = rows.get(variant.place)
        if row is None or not _is_same(row, variant):
            because = "it was deleted, or the kernels were planned again"
            raise WorkbenchError(what, because, "ex.variants")
        return variant.place

    def rewrites(self, kernel: Kernel | int | None = None) -> Pane:
        """Return the pane of passes and rewrites of a kernel (its position, or a variant of it;
        None: of all).

        Errors: WorkbenchError for a kernel of another exploration.
        """
        return self.pane("rewrites", kernel)

    def code(self, kernel: Kernel | int | None = None) -> Pane:
        """Return the pane of the code of a kernel (its position, or a variant of it; None: of all):
        C, or its code for a machine that is not here.

        Errors: WorkbenchError for a kernel of another exploration.
        """
        return self.pane("code", kernel)

    def pane(self, name: str, kernel: Kernel | int | None = None) -> Pane:
        """Return a pane by its name, one of those above or of a panel of your own, of a kernel (its
        position, or a variant of it; None: of all).

        Errors: WorkbenchError for a pane that does not exist, and for a kernel of another
        exploration.
        """
        pane_of(name, "ex.pane({})")
        return Pane(self, name, None if kernel is None else self.kernel_at(kernel))

    def replan(
        self,
        changes: Mapping[Value, bool | None] = NO_CHANGES,
        *,
        recompute: Mapping[Value, Iterable[Value] | None] = NO_CHANGES,
        split: Mapping[Value, int | None] = NO_CHANGES,
        before: Mapping[Value, Value | None] = NO_CHANGES,
        in_place: Mapping[Value, Value | Literal[False] | None] = NO_CHANGES,
        memory: str | int | None = None,
    ) -> Exploration:
        """Return the Exploration with some choices made by hand, after those that it has. A value
        is a node of `decisions`, or a Tensor; None undoes a choice.

        `changes`: a value is stored (True: "cut here"), or fused into every kernel that reads it
        (False: "fuse anyway"). `recompute`: these readers compute a value themselves, and the
        others read it from memory. `split`: a reduction has so many partial results, which a kernel
        of their own computes; a sum of floats then rounds otherwise. `before`: the kernel that
        stores a value runs before the kernel that stores the other one. `in_place`: a value is
        written over another one that its kernel is the last to read (False: over none).

        `memory` is a budget for the values that the kernels compute, in bytes or as a text:

            small = ex.replan(memory="64 MiB")
            small.budget    # what it holds, and what that costs; print(small) has it, too

        Kernels then run in another order, and values that take much memory while the most is held
        are computed again by every reader, by a greedy search (`memory_budget.py`). Results are
        equal but for rounding.

        Errors: WorkbenchError for a budget that is too small, with the least that can be kept to;
        for a result that would be fused, a kernel that would run before one whose results it reads,
        a value that is needed after it is overwritten, and a value that no kernel computes.
        """
        given = ChoiceChanges(changes, recompute, split, before, in_place)
        ex = self
        if memory is None or any(given):
            ex = self.planned_again(changed_choices(self, given), self.rules_off)
        if memory is None:
            return ex
        choices, budget = within(ex, memory, lambda new: ex.planned_again(new, ex.rules_off))
        return replace(ex.planned_again(choices, ex.rules_off), budget=budget)

    def planned_again(self, choices: HandChoices, rules_off: tuple[str, ...]) -> Exploration:
        """Return the Exploration of the same expression, as it was when it was explored, with these
        choices by hand and these rules off. A question that waits for a guess still waits; one
        that was answered is over, because its answer was about the plan before."""
        if not isinstance(choices, HandChoices):
            because = f"{kind_of(choices)} is no HandChoices"
            raise WorkbenchError("cannot plan again with this", because, "replan(..)")
        ask = self.display.ask if self.waits else ""
        return of(
            self.tensors, self.page, choices, rules_off, self.show, self.viewer, self.origin,
            ask, self.on, self.expression,
        )  # fmt: skip

    def baseline(self, name: str, run: Any, *inputs: object) -> Exploration:
        """Add a row to compare with: `run(*inputs)` is timed in this process, in turns with the
        pinned variant. Return the exploration itself.

        A model runs in its framework, on the inputs that were explored if none are given: a
        torch.nn.Module or an exported program without gradients, and compiled if it is called
        "torch.compile"; an ONNX model in ONNX Runtime. It is timed in turns with all kernels, too,
        and by module or node where the framework tells.

            ex = explore(module, x)
            ex.baseline("torch eager", module).baseline("torch.compile", module)

        Errors: WorkbenchError for a name that is not a text, and a `run` that cannot be called;
        ModelError for inputs of other shapes, and where the framework is missing.
        """
        explored = [(key, Tensor._on(node, None)) for key, node in self.viewer.inputs]
        model = framework_run(name, run, inputs, explored)
        timed = partial(run, *inputs) if inputs and callable(run) else run
        self.page.baseline(self, name, timed if model is None else model)
        return self

    @overload
    def run(self, device: str = "") -> list[Array]: ...
    @overload
    def run(self, device: str = "", *, repeat: int) -> Run: ...
    def run(self, device: str = "", *, repeat: int | None = None) -> list[Array] | Run:
        """Return the values of the tensors; with `repeat`, the Run of so many rounds of the kernels
        on `device` ("": the exploration's own), which prints where the time went.

            run = ex.run(repeat=10)
            run.kernels, run.gaps, run.memory, run.phases   # tables; print(run) is a summary
            run.to_chrome_trace("run.json")                 # for ui.perfetto.dev

        A round runs all kernels and copies, those of producers too, each with the opts of the
        variant that was added last, or else the default opts. They are warm: one round before is
        not recorded. No tensor's memory is read or written after it was copied. Ctrl-C ends the
        rounds, and so does a kernel that fails: the Run has what ran before.

        Errors: WorkbenchError if there are no kernels because a rule failed; for values also if the
        expression was loaded without its data; DTypeError for a `repeat` that is no number of
        rounds; DeviceError for the run on a machine that is not here.
        """
        if repeat is None:
            return super(Exploration, self).run(device)
        return self.page.run(self, device, repeat)

    def sweep(self, *, repeat: int = 10, **sizes: Sequence[Size]) -> Sweep:
        """Return the Sweep of the source over sizes of its inputs: how its time grows, and which
        roof of the machine it meets. A notebook draws it.

            ex = explore(module, x)
            ex.sweep(batch=[1, 2, 4, 8])                    # axis 0 of the inputs
            ex.sweep(x=[(1, 3, 32, 32), (1, 3, 64, 64)])    # shapes of one, by its name
            ex.sweep(ids=[..], mask=[..])                   # of several together

        `batch` is axis 0 of the first input, and of all others that have as many rows. Inputs of
        other sizes repeat the values of those that were explored, or leave out the last. Each size
        is explored anew, with default opts, and its kernels are measured in `repeat` rounds (0: the
        times are only predicted, as on a machine that is not here). A size that the source refuses
        has a row that says why; Ctrl-C ends the sweep with the rows so far.

        Errors: WorkbenchError for an exploration of Tensors, or with a plan by hand, which cannot
        be made again, for names that no input has, and for what is no size; DTypeError for a
        `repeat` that is no number of rounds.
        """
        if self.again is None:
            by_hand = self.choices != NOTHING_BY_HAND
            because = "its plan was made by hand, for these sizes" if by_hand else _NO_SOURCE
            hint = "explore(f, x).sweep(batch=[1, 2, 4, 8]), where f returns the tensors"
            raise WorkbenchError("cannot sweep this exploration", because, hint)
        return swept(self.again, self.device, sizes, repeat)

    def select(self, *unnamed: Any, **view: Any) -> None:
        """Set the selection in the notebook's workbench of this exploration: mode (a layout:
        "board", "tune", "rewrites", "plan", "side_by_side", "rules", "gpu", "run", "schedule",
        "trace", "teach", "compare", "compare_plans", "accesses" or "values"), kernel (or its
        position), variant, node, line (positions in the record), axis (a name), language ("C",
        "asm", ..).

        Errors: WorkbenchError for anything else.
        """
        self.page.select(self, checked_view(self, view, unnamed))

    def to_html(self, path: str | Path) -> Path:
        """Write the workbench as one file that opens offline; return its path.

        Errors: WorkbenchError if the file cannot be written; an existing file is then unchanged.
        """
        return write_whole(path, PAGE, lambda: self.page.to_html(self))

    def save(self, path: str | Path) -> Path:
        """Write the exploration as one file, which `workbench.load` opens elsewhere: expression,
        lines, variants, notes and times, without the tensors' data; return its path.

        Errors: WorkbenchError if the file cannot be written; an existing file is then unchanged.
        """
        return write_whole(path, EXPLORATION_FILE, lambda: self.page.to_file(self))

    @overload
    def to_python(self) -> str: ...
    @overload
    def to_python(self, path: str | Path) -> Path: ...
    def to_python(self, path: str | Path | None = None) -> str | Path:
        """Write the kernels as a script, whose function of the inputs runs them in their order, and
        the arrays that they read, such as a model's weights, as a .safetensors file beside it;
        return the script's path. Without a path, return the text of the script, and write nothing.

            ex = explore(module, x)
            ex.to_python("net.py")      # then: python net.py, or from net import net; net(x)

        It needs this package, with safetensors, and not the framework that the model came from. The
        variant of a kernel that was added last, with its opts or its edited C, is what it runs; the
        other kernels get the default opts of the machine.

        Errors: WorkbenchError if a file cannot be written, if the tensors were loaded without data,
        for kernels of a machine that is not here, and for an edit in another language than C.
        """
        if path is None:
            return self.page.to_script(self, None)
        require(path, (str, Path), "to_python: path", '"net.py"')
        if Path(path).suffix == ".safetensors":
            because = "the data have that name, beside the script"
            raise WorkbenchError(f"cannot write a script to {path}", because, '"net.py"')
        return Path(self.page.to_script(self, Path(path)))

    def to_widget(self) -> Any:
        """Return the workbench as a Jupyter widget, to be put beside others."""
        return self.page.to_widget(self)

    def guess(self, value: object) -> str:
        """Answer the question of `explore(y, ask=..)` with a number, a name, or for "opts" several
        names, and show what was hidden. Return the guess and the answer, with their difference.

        Errors: WorkbenchError if nothing is asked, and for a value that cannot be a guess.
        """
        if not self.display.ask:
            because = "this exploration asks nothing"
            raise WorkbenchError("cannot guess", because, 'explore(y, ask="kernels")')
        record = self.page.record(self)
        assert record.ask is not None
        self.display.guess = checked_guess(record.ask, value)
        self.page.select(self, ViewState(guess=self.display.guess))
        return self._verdict(record)

    def _verdict(self, record: PageRecord) -> Verdict:
        """Return the guess beside the answer that a record has."""
        assert record.ask is not None and self.display.guess is not None
        answer = answer_in(to_builtins(record), record.ask)
        return Verdict(verdict(record.ask, self.display.guess, answer))

    def __str__(self) -> str:
        if self.waits:
            return self.waits
        if self.show:
            return str(Pane(self, self.show))
        line = "" if self.line is None else f"{self.line.text}   ({self.line})\n"
        if self.display.ask:
            line = f"{self._verdict(self.page.record(self))}\n{line}"
        parts = [f"{line}{self.headline}", *([self.elsewhere] if self.elsewhere else [])]
        parts += [self.budget_words] if self.budget_words else []
        if self.nothing_to_do:
            parts.append(self.nothing_to_do)
        if len(self.kernels) > 1:
            parts.append("kernels\n" + _indented(str(kernel_table(self))))
        parts += [_kernel_text(i, k) for i, k in enumerate(self.kernels[:MOST_KERNELS])]
        if len(self.kernels) > MOST_KERNELS:
            parts.append(f"and {plural(len(self.kernels) - MOST_KERNELS, 'more kernel')}")
        if self.decisions:
            parts.append("decisions\n" + _indented(str(self.decisions)))
        parts.append("passes\n" + _indented(str(self.passes)))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        if self.waits:
            return f"Exploration({self.waits})"
        titles = ", ".join(k.title for k in self.kernels)
        return f"Exploration({self.headline}{': ' if titles else ''}{titles})"


def of(
    tensors: tuple[Tensor, ...],
    page: Page,
    choices: HandChoices = NOTHING_BY_HAND,
    rules_off: tuple[str, ...] = (),
    show: str = "",
    viewer: Viewer = NOBODY,
    origin: FileOrigin = HERE,
    ask: str = "",
    device: str = "",
    expression: Expression | None = None,
) -> Exploration:
    """Return the Exploration of `tensors` as scheduled now; `viewer` has the user's calls and
    names, `origin` says where tensors without data were loaded from, `ask` names a question,
    `device` is the device that the kernels are for ("": the tensors'), and `expression` is what is
    scheduled (None: the present expression of the tensors)."""
    expression = expression or Expression.of(tensors)
    plan, display = (
        planned(expression, choices, rules_off, viewer, origin, device),
        Display(ask=ask, on=device),
    )
    ex = Exploration(
        tensors, expression, KernelTuple(plan.kernels, display), tuple(plan.items),
        Decisions(plan.decisions, display), PassTable(plan.passes, display),
        tuple(plan.outputs), plan.line, plan.lines, viewer, choices, rules_off, plan.error,
        origin, device, tuple(plan.runs), plan.originals, page=page, show=show, display=display,
    )  # fmt: skip
    if choices.in_place and plan.error is None:
        ex.require_memory()
    return ex


def _is_same(row: Variant, variant: Variant) -> bool:
    """Whether a row is that of a variant, which may have been renamed or timed since."""
    same_kernel = row.kernel.ast is variant.kernel.ast
    return same_kernel and row.kernel.rules_off == variant.kernel.rules_off


def _kernel_text(place: int, kernel: Kernel) -> str:
    row = kernel_row(kernel)
    head = f"{kernel_heading(place, row, kernel_origin(kernel))}  ({work_text(row)})"
    lines = [row.opts_in_code, str(kernel)] if row.opts_in_code else [str(kernel)]
    return "\n".join([head, *map(_indented, lines)])


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
