"""Questions for teaching, the first wrong rewrite, and the verdict on an exploration.

Sections: Questions for teaching; The first wrong rewrite of an exploration; The verdict on an
exploration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from msgspec import to_builtins

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.terminal import Printed
from workbench.base.trace import PassRecord, unobserved
from workbench.check.answer import CheckResult, reduce_steps
from workbench.check.bisect import FirstWrongRewrite, first_wrong
from workbench.check.node_values import MOST_ELEMENTS, memory_below
from workbench.check.oracle import KernelOracle, StateReference, check_size
from workbench.ir.meaning.interpret import interpret_tensors
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.kernel.kernel import Kernel
from workbench.kernel.run import IN_MEMORY, ScheduleRun
from workbench.viz.model.provenance import scheduled
from workbench.viz.model.words import error_text, plural
from workbench.viz.schema.plan import PlanPicture
from workbench.viz.schema.record import HiddenPart, PageRecord, QuestionRow

# --------------------------------------------------------------------------------------------------
# Questions for teaching: a record asks for a guess, and hides the answer and its hints until then.
#
# The page and Python hide and judge by one table, QUESTIONS: neither has code for a single
# question.

FACTOR = 2.0
"""A time within this factor of the answer is right."""
LEAST_RATIO = 1.1
"""Below this ratio of a guess and the answer, the verdict does not mention the ratio."""
PLAIN = {"kernel": 0, "name": "plain"}
AUTO = {"kernel": 0, "name": "auto"}
FIRST_KERNEL = "the first kernel"
"""The words for the kernel in a question; `question_of` replaces them for another kernel."""
NO_PLAN = to_builtins(
    PlanPicture(
        width=0, height=0, nodes=[], edges=[], regions=[], decisions=[], compared=None, repeats=[],
        reads=[], runs=[], phases=[], activations=[], by_hand=[],
    )
)  # fmt: skip
SHOWN_LATER = HiddenPart(["nothing"], "Shown when you have guessed.")
"""The text of a pane whose contents are hidden."""
TRIED = (
    SHOWN_LATER,
    HiddenPart(["variants"], only={"name": "plain"}),
    HiddenPart(["variants", "*", "offers"], []),
    HiddenPart(["variants", "*", "refused"], []),
    HiddenPart(["variants", "*", "searches"], []),
    HiddenPart(["variants", "*", "note"], ""),
    HiddenPart(["pinned"]),
    HiddenPart(["plan", "runs", "*", "measured_s"]),
    HiddenPart(["plan", "runs", "*", "predicted_s"]),
    HiddenPart(["plan", "runs", "*", "spread"]),
    HiddenPart(["plan", "compared"]),
    HiddenPart(["runs"], []),
)
"""Parts of a record: tried variants, offers, and times of kernels with the default opts."""
TIMES = (
    HiddenPart(["variants", "*", "timing"]),
    HiddenPart(["variants", "*", "elsewhere"], []),
    HiddenPart(["variants", "*", "cost"]),
    HiddenPart(["variants", "*", "bound"]),
    HiddenPart(["baselines"], []),
)
"""Parts of a record that say how long a run takes, and why."""
PEAKS = (HiddenPart(["machine", "peak"]), HiddenPart(["machine", "bandwidth"]))
GPU_PARTS = ["arithmetic", "instructions", "shared memory", "latency"]
"""Bottlenecks of a kernel on a GPU, besides the levels of memory."""
KERNELS = (
    HiddenPart(["headline"], ""),
    SHOWN_LATER,
    HiddenPart(["kernels"], []),
    HiddenPart(["variants"], []),
    HiddenPart(["passes"], []),
    HiddenPart(["plan"], NO_PLAN),
    HiddenPart(["pinned"]),
)
"""Parts of a record: the kernels, and all decisions about them."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, with the paths of its `answers` in a record, and the parts of the record that it
    `hides`: the answer and its hints; see QuestionRow. `tables` names the tables of an exploration
    whose text would answer it."""

    text: str
    judgement: Literal["number", "factor", "choice", "set"]
    answers: tuple[list[Any], ...]
    hides: tuple[HiddenPart, ...]
    tables: tuple[str, ...] = ("variants",)
    unit: str = ""
    scale: float = 1.0
    choices: Callable[[PageRecord], list[str]] = lambda record: []


QUESTIONS: Mapping[str, Question] = {
    "kernels": Question(
        "How many kernels will it be?",
        "number",
        (["kernels"],),
        KERNELS,
        tables=("kernels", "decisions", "passes", "variants"),
    ),  # fmt: skip
    "opts": Question(
        "Which kinds of opts does auto apply to the first kernel?",
        "set",
        (["variants", AUTO, "opt_rows", "*", "op"],),
        TRIED,
        choices=lambda record: sorted(record.opt_kinds),
    ),
    "bound": Question(
        "What bounds the first kernel without opts: what the core computes, or a memory?",
        "choice",
        (["variants", PLAIN, "cost", "limit"],),
        (*TRIED, *TIMES, *PEAKS),
        choices=lambda record: [
            *(GPU_PARTS if record.machine.kind == "unit" else ["core"]),
            *[row.level for row in record.machine.caches],
            "memory",
        ],  # fmt: skip
    ),
    "time": Question(
        "How long does one run of the first kernel take without opts?",
        "factor",
        (["variants", PLAIN, "timing", "median_s"], ["variants", PLAIN, "cost", "predicted_s"]),
        (*TRIED, *TIMES),
        unit="µs",
        scale=1e-6,
    ),
}
"""The questions by their names."""


def question_of(name: object) -> Question:
    """Return a question by its name: "bound", or "bound 2" of the second kernel.

    Errors: WorkbenchError for an unknown name.
    """
    base, place = _parts(name)
    if base in QUESTIONS and (place == 0 or FIRST_KERNEL in QUESTIONS[base].text):
        return _about_kernel(QUESTIONS[base], place)
    near = get_close_matches(str(name), QUESTIONS, 1) or list(QUESTIONS)
    because = "there are " + ", ".join(QUESTIONS)
    hint = f'explore(y, ask="{near[0]}")'
    raise WorkbenchError(f"there is no question {name!r:.40}", because, hint)


def _parts(name: object) -> tuple[str, int]:
    """Return the name of a question, and the position of the kernel that it is about."""
    base, _, number = name.partition(" ") if isinstance(name, str) else ("", "", "")
    if number.isdecimal() and int(number) > 0:
        return base, int(number) - 1
    return ("" if number else base), 0


def _about_kernel(question: Question, place: int) -> Question:
    """Return a question about the kernel at `place` instead of the first."""
    if place == 0:
        return question
    answers = tuple([_of_kernel(step, place) for step in p] for p in question.answers)
    text = question.text.replace(FIRST_KERNEL, f"kernel {place + 1}")
    return replace(question, text=text, answers=answers)


def _of_kernel(step: Any, place: int) -> Any:
    return {**step, "kernel": place} if isinstance(step, Mapping) else step


def check_kernel(name: str, count: int) -> None:
    """Errors: WorkbenchError for a question about another kernel than the `count` that exist."""
    base, place = _parts(name)
    if place and place >= count:
        because = f"there {'is' if count == 1 else 'are'} {plural(count, 'kernel')}"
        raise WorkbenchError(f"cannot ask about kernel {place + 1}", because, f'ask="{base}"')


def question_row(name: str, record: PageRecord) -> QuestionRow:
    """Return a question as a row of a record, which has the choices."""
    question = question_of(name)
    return QuestionRow(
        name, question.text, question.judgement, list(question.answers), list(question.hides),
        question.unit, question.scale, FACTOR, question.choices(record),
    )  # fmt: skip


def answer_in(record: Mapping[str, Any], question: QuestionRow) -> Any:
    """Return the answer in a record, which is plain data; None if the record has none yet."""
    values = (_at(record, path) for path in question.answers)
    return next((value for value in values if value is not None), None)


def _at(value: Any, path: Sequence[Any]) -> Any:
    for place, step in enumerate(path):
        if value is None:
            return None
        if step == "*":
            return [_at(row, path[place + 1 :]) for row in value]
        if isinstance(step, Mapping):
            rows = (r for r in value if all(r[k] == v for k, v in step.items()))
            value = next(rows, None)
        else:
            value = value[step]
    return len(value) if isinstance(value, list) else value


def verdict(question: QuestionRow, guess: str, answer: Any) -> str:
    """Return a guess and the answer as text, with their difference; the page has the same text."""
    if answer is None:
        return f"{question.text} You said {guess}; the answer is not known yet."
    is_right, words = _comparison(question, guess, answer)
    return f"{question.text} {'Right' if is_right else 'Wrong'}: {words}"


def _comparison(question: QuestionRow, guess: str, answer: Any) -> tuple[bool, str]:
    if question.judgement == "choice":
        return guess == answer, f"you said {guess}, it is {answer}."
    if question.judgement == "set":
        return _set_comparison(guess, list(dict.fromkeys(answer)))
    guessed, answered = float(guess), answer / question.scale
    words = f"you said {_amount_text(guessed, question)}, it is {_amount_text(answered, question)}"
    if question.judgement == "number":
        off = abs(guessed - answered)
        many = "many" if guessed > answered else "few"
        return off == 0, f"{words}, {off:g} too {many}." if off else f"{words}."
    ratio = float(f"{max(guessed / answered, answered / guessed):.2g}")
    more, less = "The answer", "your guess"
    if guessed > answered:
        more, less = "Your guess", "the answer"
    off = "" if ratio < LEAST_RATIO else f" {more} is {ratio:g} times {less}."
    return ratio <= question.factor, f"{words}.{off}"


def _amount_text(value: float, question: QuestionRow) -> str:
    return f"{value:,.3g} {question.unit}".rstrip()


def _set_comparison(guess: str, answer: list[str]) -> tuple[bool, str]:
    guessed = [part for part in guess.replace(",", " ").split() if part != "none"]
    wrong = [part for part in guessed if part not in answer]
    missing = [part for part in answer if part not in guessed]
    words = f"you said {', '.join(guessed) or 'none'}, it is {', '.join(answer) or 'none'}"
    words += f"; not {', '.join(wrong)}" if wrong else ""
    words += f"; you left out {', '.join(missing)}" if missing else ""
    return not (wrong or missing), f"{words}."


def checked_guess(question: QuestionRow, guess: object) -> str:
    """Return a guess as the text that the page stores: a number, a choice, or choices with commas.

    Errors: WorkbenchError for a value that cannot be a guess.
    """
    several = isinstance(guess, (list, tuple, set))
    parts = [str(part) for part in guess] if several else str(guess).split(",")  # type: ignore[attr-defined]
    names = [part.strip() for part in parts if part.strip()]
    if question.choices:
        ok = all(name in (*question.choices, "none") for name in names)
        because = "the choices are " + ", ".join(question.choices)
        is_one = len(names) == 1 or question.judgement == "set"
    else:
        ok = is_one = _is_positive(names)
        because = f"it must be a number of {question.unit}" if question.unit else (
            "it must be a number"
        )  # fmt: skip
    if not ok or not is_one:
        hint = f'ex.guess("{question.choices[0]}")' if question.choices else "ex.guess(2)"
        raise WorkbenchError(f"cannot guess {guess!r:.40}", because, hint)
    return ", ".join(names) or "none"


def _is_positive(names: list[str]) -> bool:
    try:
        return len(names) == 1 and 0 < float(names[0]) < float("inf")
    except ValueError:
        return False


Array = np.ndarray[Any, Any]


# --------------------------------------------------------------------------------------------------
# The first wrong rewrite of an exploration: of the scheduler's passes, then of one kernel's.
#
# The reference is the user's expression, computed by the reference interpreter.


def bisected(
    records: Sequence[PassRecord], items: Sequence[ScheduleItem], kernel: Kernel, at: int
) -> FirstWrongRewrite | None:
    """Return the first opt or rewrite after which the value that kernel number `at` computes is
    wrong, or None. `records` and `items` are the scheduler's; `kernel` may have opts.

    Errors: WorkbenchError if tensors or kernel are too large to be computed repeatedly.
    """
    item = [i for i in items if i.kernel is not None][at]
    check_size(kernel.original)
    steps = list(scheduled(records))[at].records
    graphs = [r for r in steps if r.parent is None and _is_of_tensors(r.after)]
    with unobserved():
        wrong_rewrite = first_wrong(graphs, _TensorOracle(graphs[0].before))
        if wrong_rewrite is not None:
            return wrong_rewrite
        draft_item = next(i for r in steps for i in _items(r.after) if i.nodes == item.nodes)
        memory, cuts = _memory(items, item)
    oracle = _oracle(draft_item, memory, cuts, kernel)
    if oracle(draft_item.kernel):
        rangeify = next(r for r in steps if draft_item in _items(r.after))
        problem = str(oracle(draft_item.kernel))
        return FirstWrongRewrite(
            rangeify.name,
            0,
            0,
            None,
            draft_item.nodes[0],
            draft_item.kernel,
            problem,
            ("pass decide",),
        )
    final = _oracle(item, memory, cuts, kernel)
    simplified, *merged = [r for r in steps if _is_kernel(r.before)]
    for passes, checked in (
        ([simplified], oracle),
        (merged, final),
        (kernel.observed(kernel.device), final),
    ):
        wrong_rewrite = first_wrong(passes, checked)
        if wrong_rewrite is not None:
            return wrong_rewrite
    return None


def _items(state: Any) -> tuple[ScheduleItem, ...]:
    is_schedule = isinstance(state, tuple) and state
    return state if is_schedule and isinstance(state[0], ScheduleItem) else ()


def _is_of_tensors(state: Any) -> bool:
    return isinstance(state, UOp) and state.op is Ops.SINK and state.arg is None


def _is_kernel(state: Any) -> bool:
    return isinstance(state, UOp) and state.op is Ops.SINK and state.arg is not None


def _memory(
    items: Sequence[ScheduleItem], last: ScheduleItem
) -> tuple[dict[UOp, Array], list[UOp]]:
    """Return the contents of the BUFFERs before `last` runs, computed by interpreting the items
    before it, and the values of `last` as graphs of these BUFFERs."""
    memory: dict[UOp, Array] = {}
    stored: dict[UOp, UOp] = {}
    for item in items:
        cuts = [node.substitute(stored) for node in item.nodes]
        below = UOp.sink(*cuts).toposort()
        memory |= memory_below({n: None for n in below if n not in memory})
        if item is last:
            return memory, cuts
        values = interpret_tensors(cuts, memory)
        for node, buffer, value in zip(item.nodes, item.outputs, values, strict=True):
            memory[buffer] = value.reshape(node.shape)
        stored |= zip(item.nodes, item.outputs, strict=True)
    raise AssertionError


def _oracle(
    item: ScheduleItem, memory: dict[UOp, Array], cuts: Sequence[UOp], kernel: Kernel
) -> KernelOracle:
    """Return the oracle for the states of an item's kernel, which must compute `cuts`."""
    assert item.kernel is not None

    def compute(widen: bool) -> list[Array]:
        return [a.reshape(-1) for a in interpret_tensors(cuts, memory, widen)]

    reference = StateReference(item.slots, compute, reduce_steps(item.kernel))
    sizes = dict(zip(item.slots, item.nodes, strict=True))
    inputs = [
        np.zeros(sizes[slot].size, sizes[slot].dtype.numpy)
        if slot in sizes
        else memory[buffer].reshape(-1)
        for slot, buffer in enumerate(item.buffers)
    ]
    return KernelOracle(reference, inputs, Device[kernel.device].target)


class _TensorOracle:
    """The oracle for the states of a tensor graph: it compares the values of all outputs."""

    def __init__(self, graph: UOp):
        nodes = graph.toposort()
        elements = sum(n.size for n in nodes if n.op is not Ops.SINK)
        if elements > MOST_ELEMENTS:
            because = f"its tensors have {elements:,} elements"
            hint = "the same on smaller shapes"
            raise WorkbenchError("this expression is too large to bisect", because, hint)
        self.memory = memory_below(nodes)
        sums = [n for n in nodes if n.op is Ops.REDUCE_AXIS and n.size]
        steps = max((n.src[0].size // n.size for n in sums), default=1)
        self.shapes = [n.shape for n in graph.src]
        self.reference = StateReference(
            range(len(graph.src)),
            lambda widen: self._full(interpret_tensors(graph.src, self.memory, widen)),
            steps,
        )

    def __call__(self, state: Any) -> str | None:
        if not _is_of_tensors(state):
            return None
        try:
            nodes = state.toposort()
            memory = self.memory | memory_below({n: None for n in nodes if n not in self.memory})
            actual_arrays = interpret_tensors(state.src, memory)
            return self.reference.problem(dict(enumerate(self._full(actual_arrays))))
        except Exception as error:  # any error: the state before had none
            return f"it fails: {error}"

    def _full(self, arrays: Sequence[Array]) -> list[Array]:
        pairs = zip(arrays, self.shapes, strict=True)
        return [np.broadcast_to(a, shape) for a, shape in pairs]


# --------------------------------------------------------------------------------------------------
# The verdict on an exploration: on each kernel as it runs, and on the results.


@dataclass(frozen=True, slots=True, repr=False)
class Checks(Printed):
    """The verdicts on the kernels of an exploration, with the opts that they run with, and on its
    `results`: a CheckResult each, or the error if it cannot be compiled or run. They print as a
    line each, followed by the references of the comparisons. `in_memory`: some results were in
    memory already, so that nothing computes them, and nothing is compared."""

    titles: tuple[str, ...]
    kernels: tuple[CheckResult | WorkbenchError, ...]
    results: tuple[CheckResult | WorkbenchError, ...]
    in_memory: bool = False

    @property
    def ok(self) -> bool:
        """Whether all kernels and results are right."""
        return all(isinstance(c, CheckResult) and c.ok for c in self._all)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def _all(self) -> tuple[CheckResult | WorkbenchError, ...]:
        return *self.kernels, *self.results

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        names = [f"kernel {n}: {title}" for n, title in enumerate(self.titles, 1)]
        names += ["all results"] * len(self.results)
        width = max(map(len, names), default=0)
        for name, verdict in zip(names, self._all, strict=True):
            if isinstance(verdict, CheckResult):
                text = verdict.summary
            else:
                text = "ERROR: " + error_text(verdict).splitlines()[0]
            yield f"{name:{width}}  {text}"
        if self.in_memory:
            yield f"{'results' if self._all else 'all results'}  {IN_MEMORY}"
        verdicts = [v for v in self._all if isinstance(v, CheckResult)]
        for against in dict.fromkeys([verdict.against for verdict in verdicts]):
            yield f"compared with {against}"


def checks_of(kernels: Sequence[Kernel], runs: Sequence[ScheduleRun], on: str) -> Checks:
    """Return the verdicts on kernels, with the opts that they run with, and on the results of
    `runs`, on the device `on` ("": on the device of each run)."""
    return Checks(
        tuple(kernel.title or kernel.name for kernel in kernels),
        tuple([_check_of_kernel(kernel) for kernel in kernels]),
        tuple([_of_results(run, on) for run in runs if not run.is_in_memory]),
        any(run.is_in_memory for run in runs),
    )


def _check_of_kernel(kernel: Kernel) -> CheckResult | WorkbenchError:
    try:
        is_plain = Device[kernel.device].runs_plain or kernel.original.code is not None
        return (kernel if is_plain else kernel.optimized()).check()
    except WorkbenchError as error:
        return error


def _of_results(run: ScheduleRun, on: str) -> CheckResult | WorkbenchError:
    try:
        with unobserved():
            return run.check(on or run.device)
    except WorkbenchError as error:
        return error
