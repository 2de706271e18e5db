"""Questions for teaching: a guess that a record asks for, and the parts that it hides until then.

One table. The page hides and judges by it, and so does `ex.guess`; none of them knows a question by
its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

from workbench.base.errors import WorkbenchError
from workbench.viz.model.words import plural
from workbench.viz.schema.ask import HiddenPart, QuestionRow
from workbench.viz.schema.record import PageRecord

FACTOR = 2.0
"""A time within this factor of the answer is right."""
LEAST_RATIO = 1.1
"""A guess and an answer that differ by less are the same to a reader."""
PLAIN = {"kernel": 0, "name": "plain"}
AUTO = {"kernel": 0, "name": "auto"}
FIRST = "the first kernel"
"""What a question says of the kernel that it asks about."""
NO_PLAN = {
    "width": 0, "height": 0, "nodes": [], "edges": [], "regions": [], "decisions": [],
    "compared": None, "repeats": [], "reads": [], "runs": [], "phases": [], "activations": [],
    "hint": "",
}  # fmt: skip
SHOWN_LATER = HiddenPart(["nothing"], "Shown when you have guessed.")
"""What a pane says that has nothing else to show."""
TRIED = (
    SHOWN_LATER,
    HiddenPart(["variants"], only={"name": "plain"}),
    HiddenPart(["variants", "*", "offers"], []),
    HiddenPart(["variants", "*", "refused"], []),
    HiddenPart(["variants", "*", "search"]),
    HiddenPart(["variants", "*", "note"], ""),
    HiddenPart(["pinned"]),
    HiddenPart(["plan", "runs", "*", "measured_s"]),
    HiddenPart(["plan", "runs", "*", "predicted_s"]),
    HiddenPart(["plan", "runs", "*", "spread"]),
    HiddenPart(["plan", "compared"]),
)
"""What was tried, what to try next, and the times of kernels with the default opts."""
TIMES = (
    HiddenPart(["variants", "*", "timing"]),
    HiddenPart(["variants", "*", "elsewhere"], []),
    HiddenPart(["variants", "*", "cost"]),
    HiddenPart(["variants", "*", "bound"]),
    HiddenPart(["baselines"], []),
)
"""What says how long a run takes, and why."""
PEAKS = (HiddenPart(["machine", "peak"]), HiddenPart(["machine", "bandwidth"]))
GPU_PARTS = ["arithmetic", "instructions", "shared memory", "latency"]
"""What a kernel on a GPU may wait for, besides a level of memory."""
KERNELS = (
    HiddenPart(["headline"], ""),
    SHOWN_LATER,
    HiddenPart(["kernels"], []),
    HiddenPart(["variants"], []),
    HiddenPart(["passes"], []),
    HiddenPart(["plan"], NO_PLAN),
    HiddenPart(["pinned"]),
)
"""The kernels, and all that was decided about them."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and what of a record is its answer and its hints; see QuestionRow. `tables` are
    those of the exploration whose text would answer it."""

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

    Errors: WorkbenchError where there is none.
    """
    base, place = _parts(name)
    if base in QUESTIONS and (place == 0 or FIRST in QUESTIONS[base].text):
        return _about(QUESTIONS[base], place)
    near = get_close_matches(str(name), QUESTIONS, 1) or list(QUESTIONS)
    because = "there are " + ", ".join(QUESTIONS)
    hint = f'explore(y, ask="{near[0]}")'
    raise WorkbenchError(f"there is no question {name!r:.40}", because, hint)


def _parts(name: object) -> tuple[str, int]:
    """Return the name of a question, and the place of the kernel that it is about."""
    base, _, number = name.partition(" ") if isinstance(name, str) else ("", "", "")
    if number.isdecimal() and int(number) > 0:
        return base, int(number) - 1
    return ("" if number else base), 0


def _about(question: Question, place: int) -> Question:
    """Return a question about another kernel than the first."""
    if place == 0:
        return question
    answers = tuple([_of_kernel(step, place) for step in p] for p in question.answers)
    text = question.text.replace(FIRST, f"kernel {place + 1}")
    return replace(question, text=text, answers=answers)


def _of_kernel(step: Any, place: int) -> Any:
    return {**step, "kernel": place} if isinstance(step, Mapping) else step


def check_kernel(name: str, count: int) -> None:
    """Errors: WorkbenchError for a question about a kernel that is not one of `count`."""
    base, place = _parts(name)
    if place and place >= count:
        because = f"there {'is' if count == 1 else 'are'} {plural(count, 'kernel')}"
        raise WorkbenchError(f"cannot ask about kernel {place + 1}", because, f'ask="{base}"')


def question_row(name: str, record: PageRecord) -> QuestionRow:
    """Return a question as a row of the record in which its answer is."""
    question = question_of(name)
    return QuestionRow(
        name, question.text, question.judgement, list(question.answers), list(question.hides),
        question.unit, question.scale, FACTOR, question.choices(record),
    )  # fmt: skip


def answer_in(record: Mapping[str, Any], question: QuestionRow) -> Any:
    """Return the answer that a record, as plain data, has; None where it has none yet."""
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
    """Return a guess beside the answer in words, with how far off it is, as the page says it."""
    if answer is None:
        return f"{question.text} You said {guess}; the answer is not known yet."
    is_right, words = _comparison(question, guess, answer)
    return f"{question.text} {'Right' if is_right else 'Wrong'}: {words}"


def _comparison(question: QuestionRow, guess: str, answer: Any) -> tuple[bool, str]:
    if question.judgement == "choice":
        return guess == answer, f"you said {guess}, it is {answer}."
    if question.judgement == "set":
        return _set_comparison(guess, list(dict.fromkeys(answer)))
    mine, theirs = float(guess), answer / question.scale
    words = f"you said {_figure(mine, question)}, it is {_figure(theirs, question)}"
    if question.judgement == "number":
        off = abs(mine - theirs)
        many = "many" if mine > theirs else "few"
        return off == 0, f"{words}, {off:g} too {many}." if off else f"{words}."
    ratio = float(f"{max(mine / theirs, theirs / mine):.2g}")
    more, less = "The answer", "your guess"
    if mine > theirs:
        more, less = "Your guess", "the answer"
    off = "" if ratio < LEAST_RATIO else f" {more} is {ratio:g} times {less}."
    return ratio <= question.factor, f"{words}.{off}"


def _figure(value: float, question: QuestionRow) -> str:
    return f"{value:,.3g} {question.unit}".rstrip()


def _set_comparison(guess: str, answer: list[str]) -> tuple[bool, str]:
    mine = [part for part in guess.replace(",", " ").split() if part != "none"]
    wrong = [part for part in mine if part not in answer]
    missing = [part for part in answer if part not in mine]
    words = f"you said {', '.join(mine) or 'none'}, it is {', '.join(answer) or 'none'}"
    words += f"; not {', '.join(wrong)}" if wrong else ""
    words += f"; you left out {', '.join(missing)}" if missing else ""
    return not (wrong or missing), f"{words}."


def checked_guess(question: QuestionRow, guess: object) -> str:
    """Return a guess as the text that the page keeps: a number, a choice, or choices with commas.

    Errors: WorkbenchError for what cannot be a guess.
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
