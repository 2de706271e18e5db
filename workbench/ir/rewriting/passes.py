"""Passes: named, documented values, each a rule table or a function from IR to IR.

Sections: Passes; Memos of values computed from kernels under the rules in force.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from workbench.base.interrupts import free_lock, scope
from workbench.base.trace import PassStep, Recording, merged, recording
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule, RuleSet, rewrite, rules_in_force, with_added

# --------------------------------------------------------------------------------------------------
# Passes.


Switch = Rule | PassStep
"""What can be switched off by its name, wherever it is used."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One stage of a pipeline. `doc` says what holds after it; `run` is a RuleSet or a function. A
    function may apply `rules` to a state that it makes, or consist of named `steps`."""

    name: str
    doc: str
    run: RuleSet | Callable[..., Any]
    rules: RuleSet | None = None
    steps: tuple[PassStep, ...] = ()

    @property
    def switches(self) -> tuple[Switch, ...]:
        """What can be switched off in the pass: its rules, also registered ones, and its steps."""
        rules = () if self.table is None else with_added(self.table, self.name).rules
        return (*rules, *self.steps)

    @property
    def table(self) -> RuleSet | None:
        """The rules of the pass, if it has any."""
        return self.run if isinstance(self.run, RuleSet) else self.rules

    def __call__(self, state: Any, *context: Any) -> Any:
        """Return the state after the pass; recorded where an observer watches."""
        if isinstance(self.run, RuleSet):
            results = _results.get().get(self.name)
            if results is None:
                return rewrite(state, self.run, name=self.name, doc=self.doc)
            if state not in results:
                results[state] = rewrite(state, self.run, name=self.name, doc=self.doc)
            return results[state]
        with self.recording(state) as record:
            record.after = self.run(state, *context)
            return record.after

    def recording(self, state: Any) -> Recording:
        """Return a context that records one run, for a caller of `run` itself, which may return
        more than a state, or take other arguments."""
        return recording(self.name, self.doc, state)

    @contextmanager
    def merged(self) -> Iterator[None]:
        """Return a context in which runs of this pass on many expressions are recorded as one run.
        The rules in force stay the same in it, and each expression is rewritten once."""
        with merged(self.name, UOp.sink), _results_of(self.name):
            yield


_results: ContextVar[Mapping[str, dict[Any, Any]]] = ContextVar(
    "results of merged passes", default=MappingProxyType({})
)


@scope
def _results_of(name: str) -> Generator[None, None, None]:
    """Keep the results of a pass by the states before them, in a `with` block."""
    token = _results.set({**_results.get(), name: {}})
    try:
        yield
    finally:
        _results.reset(token)


def tables(*passes: Pass) -> dict[str, RuleSet]:
    """Return the rule table of each pass that has one, by the name of the pass."""
    return {p.name: p.table for p in passes if p.table is not None}


# --------------------------------------------------------------------------------------------------
# Memos of values computed from kernels under the rules in force.

T = TypeVar("T")
MOST_ENTRIES = 1024


class Memo(Generic[T]):
    """Values computed from kernels, by a key (the kernel, and a device or a target that matters)
    and the rules in force. The latest entries are kept.

    Nothing is locked while a value is made: two threads may make one at once, and the first stays.
    A value whose making fails, or is ended by Ctrl-C, leaves no entry.
    """

    def __init__(self, most: int = MOST_ENTRIES):
        self.entries: dict[Hashable, T] = {}
        self.made = 0
        """How many values were made."""
        self._most, self._lock = most, free_lock()

    def has(self, of: Hashable) -> bool:
        """Whether there is an entry for `of`."""
        return (of, rules_in_force()) in self.entries

    def value(self, of: Hashable, make: Callable[[], T], is_seen: bool = False) -> T:
        """Return the entry for `of`; if there is none, `make` makes it. With `is_seen` it is made
        in any case, so that an observer sees how."""
        rules = rules_in_force()
        key = of, rules
        entry = self.entries.get(key)
        if entry is not None and not is_seen:
            return entry
        value = make()
        self.made += 1
        if rules != rules_in_force():
            return value  # a rule was added meanwhile, and may have been used
        with self._lock:
            self.entries[key] = entry = self.entries.pop(key, value)  # the newest
            while len(self.entries) > self._most:
                del self.entries[next(iter(self.entries))]
            return entry
