"""The result of a search: the kernel, and every candidate with its change from its parent.

It prints as a tree. As plain data it can be stored, sent, and loaded again for the same kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct

from workbench.base.cache import key_of
from workbench.base.errors import ParseError, WorkbenchError, cut, integer_of, require
from workbench.base.files import FileKind, write_whole
from workbench.base.terminal import Printed
from workbench.base.typed import Amount, Count, to_json, typed, typed_json
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.text.printer import to_text
from workbench.kernel.runnable import RunnableKernel
from workbench.measure.kernel_time import seconds_text
from workbench.pickles import pickled
from workbench.search.moves import Candidate

K = TypeVar("K", bound=RunnableKernel)
VERSION: Literal[1] = 1
SEARCH_FILE = FileKind("saved search", r'\{"v": \d+, "kernel":')
NOT_OF_KERNEL = "this is not a saved search of the kernel"
PRINTED = 40
"""The number of best candidates that are printed, with their ancestors. `tree()` has all."""


@pickled
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SearchResult(Printed, Generic[K]):
    """`kernel` is the best candidate; `tried` has all of them, the start first.

    `best` is the number of the best. `speedup` is how many times as fast as the start it is, by
    their last measurement, in turns; None if the search was interrupted, or the start has no right
    result in time. `ended` says why the search ended; `is_kept`, that the result is from the cache;
    `is_predicted`, that the times are predicted, for a machine that is elsewhere. `answer` is the
    verdict on the kernel's result; "" if it was not compared. Units: `seconds` of the whole search.
    """

    kernel: K
    given: K
    tried: tuple[Candidate, ...]
    best: int
    speedup: float | None
    ended: str
    seconds: float
    device: str
    is_kept: bool = False
    is_predicted: bool = False
    answer: str = ""

    def kernel_of(self, number: int) -> K:
        """Return the kernel of a candidate, by its number in `tree()`.

        Errors: WorkbenchError for a number that no candidate has; KernelOptError if its opts are no
        longer legal.
        """
        place = integer_of(number)
        if place is None or not 0 <= place < len(self.tried):
            because = f"{len(self.tried)} were tried, numbered from 0"
            hint = f"0 to {len(self.tried) - 1}; the best is {self.best}"
            raise WorkbenchError(f"there is no candidate {number!r:.40}", because, hint)
        plain = replace(self.given, ast=self.given.original, applied_opts=())
        return plain.apply(*self.tried[place].opts)

    def ranked(self) -> tuple[Candidate, ...]:
        """Return the candidates that were measured, the fastest first."""
        timed = [t for t in self.tried if t.seconds is not None and not t.note]
        return tuple(sorted(timed, key=lambda t: t.seconds or 0.0))

    def __str__(self) -> str:
        return "\n".join([self._headline(), *self._rows(None, "", self._printed_numbers())])

    def tree(self) -> str:
        """Return all candidates, a line each, below their parents: the number (`*`: the best), the
        time, the change from the parent, and why it was not timed, or is wrong."""
        numbers = {t.number for t in self.tried}
        return "\n".join([self._headline(), *self._rows(None, "", numbers)])

    def _headline(self) -> str:
        timed, how = (
            len(self.ranked()),
            "predicted, not run here" if self.is_predicted else "timed",
        )
        ratio = "" if self.speedup is None else f", {self.speedup:.3g} times as fast"
        origin = " (found in the cache)" if self.is_kept else ""
        best = self.tried[self.best]
        least = (
            f"not {'predicted' if self.is_predicted else 'measured'}"
            if best.seconds is None
            else " ".join(_time_text(best).split())
        )
        return (
            f"{len(self.tried)} tried in {self.seconds:.3g} s, {timed} {how};"
            f" {self.ended}{origin}\n"
            f"best: number {self.best}, {least}{ratio}{self._answer_text()}"
        )

    def _answer_text(self) -> str:
        if self.is_predicted:
            return ""
        return f"; {self.answer or 'its answer was not compared'}"

    def _printed_numbers(self) -> set[int]:
        """Return the numbers of the best candidates, their ancestors, and the starts."""
        parents = {t.number: t.parent for t in self.tried}
        best_numbers = [t.number for t in self.ranked()[:PRINTED]]
        numbers = {t.number for t in self.tried if t.parent is None}
        for number in (self.best, *best_numbers):
            at: int | None = number
            while at is not None and at not in numbers:
                numbers.add(at)
                at = parents[at]
        return numbers

    def _rows(self, parent: int | None, indent: str, numbers: set[int]) -> list[str]:
        rows = []
        for candidate in self.tried:
            if candidate.parent == parent and candidate.number in numbers:
                mark = "*" if candidate.number == self.best else " "
                note = f"  {candidate.note}" if candidate.note else ""
                rows.append(
                    f"{mark}{candidate.number:4} {_time_text(candidate)}  "
                    f"{indent}{candidate.how}{note}"
                )
                rows += self._rows(candidate.number, indent + "  ", numbers)
        return rows

    # as plain data

    def to_saved(self) -> SavedSearch:
        """Return the result as a struct of plain data."""
        return SavedSearch(
            VERSION,
            kernel_key(self.given),
            self.device,
            [_saved(c) for c in self.tried],
            self.best,
            self.speedup,
            self.ended,
            self.seconds,
            self.is_predicted,
            self.answer,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(self.to_saved())
        return data

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as JSON; `SearchResult.load(path, kernel)` reads it, in another session too.

        Errors: WorkbenchError if the file cannot be written; an existing file is then unchanged.
        """
        write_whole(path, SEARCH_FILE, lambda: to_json(self.to_saved()))

    @staticmethod
    def load(path: str | PathLike[str], kernel: K) -> SearchResult[K]:
        """Return the saved result of a search of `kernel`, with the opts of the best applied again.

        Errors: WorkbenchError if the file cannot be read; ParseError for another file, or a search
        of another kernel; KernelOptError if the opts are no longer legal.
        """
        hint = "a path that result.save(path) has written"
        try:
            saved = typed_json(Path(path).read_text(encoding="utf-8"), SavedSearch)
        except (OSError, TypeError) as error:
            because = getattr(error, "strerror", None) or str(error)
            raise WorkbenchError(f"cannot read {cut(str(path), 200)}", because, hint) from error
        except ValueError as error:
            raise ParseError(
                f"{cut(str(path), 200)} is not a saved search", str(error), hint
            ) from error
        return SearchResult.from_saved(saved, kernel)

    @staticmethod
    def from_dict(data: Mapping[str, Any], kernel: K) -> SearchResult[K]:
        """Return the result for `kernel` from the data of `to_dict`. Errors: those of `load`."""
        try:
            saved = typed(data, SavedSearch)
        except ValueError as error:
            raise ParseError(NOT_OF_KERNEL, str(error), "result.to_dict()") from error
        return SearchResult.from_saved(saved, kernel)

    @staticmethod
    def from_saved(saved: SavedSearch, kernel: K) -> SearchResult[K]:
        """Return the result for `kernel` from the struct of `to_saved`. Errors: those of `load`."""
        require(saved, SavedSearch, "from_saved: saved", "result.to_saved()")
        require(kernel, RunnableKernel, "from_saved: kernel", "explore(y).kernels[0]")
        if saved.kernel != kernel_key(kernel):
            raise ParseError(
                NOT_OF_KERNEL, "it is of another kernel", "the kernel that was searched"
            )
        result = SearchResult(
            kernel,
            kernel,
            tuple(_candidate(n, row) for n, row in enumerate(saved.tried)),
            saved.best,
            saved.speedup,
            saved.ended,
            saved.seconds,
            saved.device,
            is_predicted=saved.is_predicted,
            answer=saved.answer,
        )
        return replace(result, kernel=result.kernel_of(saved.best))


class SavedOpt(Struct, array_like=True, forbid_unknown_fields=True):
    """An opt as a list: kind, axis, argument."""

    op: str
    axis: str | int | None
    arg: str | int | None


class SavedCandidate(Struct, forbid_unknown_fields=True):
    """A candidate; `parent` is the position of its parent, which comes earlier."""

    parent: Count | None
    opts: list[SavedOpt]
    how: str
    seconds: Amount | None
    note: str
    spread: Amount | None = None


class SavedSearch(Struct, forbid_unknown_fields=True):
    """A search as plain data; `kernel` is its `kernel_key`."""

    v: Literal[1]
    kernel: str
    device: str
    tried: list[SavedCandidate]
    best: Count
    speedup: Amount | None
    ended: str
    seconds: Amount
    is_predicted: bool = False
    answer: str = ""

    def __post_init__(self) -> None:
        if self.best >= len(self.tried):
            raise ValueError("best must be the number of a candidate")
        for place, candidate in enumerate(self.tried):
            if candidate.parent is not None and candidate.parent >= place:
                raise ValueError("a candidate must come after its parent")


def kernel_key(kernel: RunnableKernel) -> str:
    """Return a key of the kernel without opts, the opts of the search's start, and its rules that
    are switched off."""
    opts = " ".join(map(str, kernel.applied_opts))
    return key_of(to_text(kernel.original), opts, *kernel.rules_off)[:32]


def _saved(candidate: Candidate) -> SavedCandidate:
    return SavedCandidate(
        candidate.parent,
        [SavedOpt(o.op.name, o.axis, o.arg) for o in candidate.opts],
        candidate.how,
        candidate.seconds,
        candidate.note,
        candidate.spread,
    )


def _time_text(candidate: Candidate) -> str:
    """Return the time of a candidate with its spread, padded to one width."""
    seconds, spread = candidate.seconds, candidate.spread
    time = "" if seconds is None else seconds_text(seconds)
    within = "" if seconds is None or spread is None else f"± {spread:.1%}"
    return f"{time:>8} {within:<8}"


def _candidate(place: int, saved: SavedCandidate) -> Candidate:
    opts = tuple(map(_opt, saved.opts))
    return Candidate(place, saved.parent, opts, saved.how, saved.seconds, saved.note, saved.spread)


def _opt(saved: SavedOpt) -> Opt:
    try:
        return Opt(OptOps[saved.op], saved.axis, saved.arg)
    except KeyError:
        because = f"there is no opt {saved.op:.40}"
        raise ParseError(NOT_OF_KERNEL, because, "register() the opt first") from None
