"""The situation of a call: the context variables on which the results of its code may depend.

A captured function is replayed only in the situation of its capture, and has to compare a dozen
variables at each call. So each change of one of them, in this context, gives the context a new
token: while the token is the same, so are they all.

    rules_off = Situational("rules off", frozenset())
    token = situation()
    rules_off.set(frozenset({"mul-one"}))
    assert situation() is not token
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Generic, TypeVar

T = TypeVar("T")
_FIRST = object()
_token: ContextVar[object] = ContextVar("situation", default=_FIRST)

situation = _token.get
"""Return the token of this context: another one after each change of a Situational."""


class _ProcessChanges:
    """The count of changes, by any thread, of what is not a matter of a context: rules that are
    added, memory that is overwritten or moved, tensors that get another value by replace()."""

    count = 0


process_changes = _ProcessChanges()


class Situational(Generic[T]):
    """A context variable on which what a function computes may depend."""

    __slots__ = ("_var", "get")

    def __init__(self, name: str, default: T):
        self._var: ContextVar[T] = ContextVar(name, default=default)
        self.get = self._var.get

    def set(self, value: T) -> Token[T]:
        """Change the value in this context; the token is for `reset`."""
        token = self._var.set(value)
        _token.set(object())
        return token

    def reset(self, token: Token[T]) -> None:
        """Undo a `set`. The situation is a new one: blocks need not end in the order in which they
        began."""
        self._var.reset(token)
        _token.set(object())
