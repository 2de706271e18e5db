"""Results of a user's function that are not computed yet, whose measured time would be that of
building a graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import count

from workbench.base.errors import WorkbenchError
from workbench.execution.values import is_realized
from workbench.ir.node.uop import UOp

MOST_DEPTH = 8
"""Containers in containers that are looked into."""


def computing(name: str, run: Callable[[], object]) -> Callable[[], object]:
    """Return a function that is to be timed; its first call raises a WorkbenchError where the
    result is not computed."""
    calls = count()

    def checked() -> object:
        result = run()
        if not next(calls):
            require_computed(name, result)
        return result

    return checked


def require_computed(name: str, result: object) -> None:
    """Errors: WorkbenchError where what a function returned, or something in it, was not
    computed."""
    for value in _inside(result):
        hint = _hint(value)
        if hint:
            kind = type(value).__name__
            because = f"it returns a {kind} that is not computed: it only describes the work"
            raise WorkbenchError(f"the time of {name} would say nothing", because, hint)


def _hint(value: object) -> str:
    """Return what computes a value that is not computed; "" for any other value."""
    uop = getattr(value, "uop", None)
    if isinstance(uop, UOp):
        if is_realized(uop):
            return ""
        return "numpy arrays (.numpy() of the tensors, before), or a TinyJit of the function"
    if type(value).__module__.partition(".")[0] == "tinygrad":
        graph = uop or getattr(value, "lazydata", None)
        return "" if getattr(graph, "is_realized", False) else ".realize() of it"
    if callable(getattr(value, "__dask_graph__", None)):
        return ".compute() of it"
    if inspect.isgenerator(value) or inspect.iscoroutine(value):
        return "a function that returns when the work is done"
    return ""


def _inside(value: object, depth: int = 0) -> Iterator[object]:
    """Yield a value, and those in containers of it."""
    yield value
    if depth >= MOST_DEPTH:
        return
    inner: Iterator[object] = iter(())
    if isinstance(value, Mapping):
        inner = iter(value.values())
    elif isinstance(value, (tuple, list, set, frozenset)):
        inner = iter(value)
    elif is_dataclass(value) and not isinstance(value, type):
        inner = (getattr(value, f.name, None) for f in fields(value))
    for each in inner:
        yield from _inside(each, depth + 1)
