"""Predictions, whose answer stays folded until somebody guesses, and verdicts on exercises."""

from __future__ import annotations

import html
import re
from ast import literal_eval
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from course.answers import ANSWERS
from workbench import Kernel, Opt, Tensor
from workbench.base.errors import WorkbenchError

THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+")
WHOLE = re.compile(r"\b(\d+)\.0*\b")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A guess (None: not made yet) beside the answer that the code gave."""

    guess: Any
    answer: Any
    why: str

    @property
    def is_right(self) -> bool:
        guess = self.guess
        if isinstance(self.answer, str):
            return isinstance(guess, str) and _spelling(guess) == _spelling(self.answer)
        return bool(meant(guess) == self.answer)

    def __str__(self) -> str:
        if self.guess is None:
            return "No guess yet: the answer is folded."
        verdict = "Right" if self.is_right else f"You said {_words(self.guess)}"
        return f"{verdict}: {_words(self.answer)}. {self.why}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self.guess is not None:
            return f"<p><b>{'✓' if self.is_right else '✗'}</b> {html.escape(str(self))}</p>"
        summary = "Put your guess into the cell and run it again, or open the answer."
        answer = html.escape(f"{_words(self.answer)}. {self.why}")
        return f"<details><summary>{summary}</summary><p>{answer}</p></details>"


def predict(question: str, guess: Any, *given: Any) -> Prediction:
    """Return what a cell shows of a guess: with None, the answer stays folded.

    `question` is a key of `course.answers`; `given` is what the answer is computed from.
    """
    answer = ANSWERS[question]
    return Prediction(guess, answer.of(*given), answer.why)


def meant(guess: Any) -> Any:
    """Return what a reader who wrote `guess` means: of a text the number or the numbers in it
    ("3,200" is one), of an array or a tensor what it holds, and of several numbers a tuple."""
    if isinstance(guess, str):
        text = guess.strip()
        if THOUSANDS.fullmatch(text):
            return int(text.replace(",", ""))
        try:
            guess = literal_eval(text)
        except (ValueError, SyntaxError):
            return text
    if isinstance(guess, np.ndarray | np.generic | Tensor):
        guess = guess.tolist()
    return tuple(guess) if isinstance(guess, list | range) else guess


def number(value: Any) -> int | float | None:
    """Return the number that a reader means, an int where it is whole; None where it is none."""
    value = meant(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, int):
        return value
    value = float(value)
    if value.is_integer():
        return int(value)
    return value if isfinite(value) else None


def tuned(kernel: Kernel, opts: Opt | Sequence[Opt]) -> Kernel:
    """Return a kernel with an opt, or a list of them. Errors: KernelOptError, of what is no opt,
    too."""
    several = isinstance(opts, Iterable) and not isinstance(opts, Opt | str)
    chosen: Iterable[Any] = opts if several else [opts]  # type: ignore[assignment]
    return kernel.apply(*chosen)


def _spelling(text: str) -> str:
    """Return a text without what two who mean the same write differently: spaces, capitals, and
    0 for 0.0."""
    return WHOLE.sub(r"\1", "".join(text.lower().split()))


def _words(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says of an exercise: done, or what is still wrong and where to look."""

    ok: bool
    text: str

    def __str__(self) -> str:
        return f"{'right' if self.ok else 'not yet'}: {self.text}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        mark, rest = ("✓", "right") if self.ok else ("✗", "not yet")
        return f"<p><b>{mark} {rest}</b>: {html.escape(self.text)}</p>"


def failure(error: Exception) -> str:
    """Return in a line what a reader's code failed with."""
    if isinstance(error, WorkbenchError):
        return f"{error.what}: {error.because}"
    return f"{type(error).__name__}: {error}"


def right(text: str) -> Verdict:
    return Verdict(True, text)


def wrong(text: str) -> Verdict:
    return Verdict(False, text)
