"""A reader of pickles that executes nothing.

A pickle is a program for a stack machine, and two of its instructions call whatever the file names.
Here a name is looked up in a table of what may be constructed, and any other name is an error.
Lengths in the file are compared with the bytes that there are.
"""

from __future__ import annotations

import pickletools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from workbench.base.errors import FileError
from workbench.nn.state.byte_reader import ByteReader

Makers = Mapping[str, Any]
"""The meaning of each name in a file: a function of the arguments in the file, or a value."""

_MARK = object()
"""The beginning of a group of values on the stack."""
_PLAIN_KEYS = (str, bytes, int, float, bool, type(None))
"""Types of keys of dicts and sets. A tuple of tuples of tuples could take years to hash."""
_HINT = "torch.save(model.state_dict(), path), which writes tensors, dicts, lists and numbers"


class PickleReader:
    """The stack and the memo of one pickle.

    `find_storage` returns a storage of tensors by its identity (a "persistent id").
    """

    def __init__(self, makers: Makers, find_storage: Callable[[Any], Any]):
        self.makers, self.find_storage = makers, find_storage
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def read(self, file: ByteReader) -> Any:
        """Return the value of the pickle at the file's position, which moves behind it.

        Errors: FileError for a pickle that is damaged, or that names what is not in the table.
        """
        try:
            with warnings.catch_warnings(action="ignore"):  # of escapes in damaged text
                self._steps(file)
            value = self._pop()
        except FileError:
            raise
        # Damaged bytes lead to an empty stack, a wrong type, or a length beyond the end.
        except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
            because = f"{type(error).__name__}: {error}"[:200]
            hint = "a file that torch.save has written"
            raise FileError("cannot read the pickle in the file", because, hint) from error
        return value

    def _steps(self, file: ByteReader) -> None:
        for op, arg, _ in pickletools.genops(file):  # type: ignore[arg-type] # it reads only
            self._step(op.name, arg)

    def _step(self, name: str, arg: Any) -> None:
        if name in _IGNORED:
            return
        if name in _PUSHES:
            self.stack.append(arg)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _TUPLES:
            count = _TUPLES[name]
            self.stack.append(tuple(self._pop() for _ in range(count))[::-1])
        elif name in _GETS:
            self.stack.append(self.memo[int(arg)])
        elif name in _PUTS:
            place = len(self.memo) if arg is None else int(arg)
            self.memo[place] = self.stack[-1]
        else:
            step = _STEPS.get(name)
            if step is None:
                raise _refused(f"the instruction {name}")
            step(self, arg)

    def _pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a group has no end")
        return value

    def _group(self) -> list[Any]:
        """Pop the values since the last mark, and the mark; return the values."""
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise ValueError("a group has no beginning")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def _global(self, arg: Any) -> None:
        self._name(*arg.split(" ", 1))

    def _stack_global(self, _: Any) -> None:
        name, module = self._pop(), self._pop()
        self._name(module, name)

    def _name(self, module: str, name: str) -> None:
        full = f"{module}.{name}"
        if full not in self.makers:
            raise _refused(f"{full:.100}")
        self.stack.append(self.makers[full])

    def _reduce(self, _: Any) -> None:
        arguments, maker = self._pop(), self._pop()
        if not (callable(maker) and isinstance(arguments, tuple)):
            raise TypeError("a call of something that is not a function")
        self.stack.append(maker(*arguments))

    def _build(self, _: Any) -> None:
        """Drop the attributes of a dict: in a state dict PyTorch stores a version there."""
        self._pop()
        if not isinstance(self.stack[-1], dict):
            raise _refused(f"the attributes of a {type(self.stack[-1]).__name__}")

    def _persistent(self, _: Any) -> None:
        self.stack.append(self.find_storage(self._pop()))

    def _append(self, _: Any) -> None:
        value = self._pop()
        _typed(self.stack[-1], list).append(value)

    def _appends(self, _: Any) -> None:
        values = self._group()
        _typed(self.stack[-1], list).extend(values)

    def _set_item(self, _: Any) -> None:
        value, key = self._pop(), self._pop()
        _typed(self.stack[-1], dict).update(_pairs([key, value]))

    def _set_items(self, _: Any) -> None:
        values = self._group()
        _typed(self.stack[-1], dict).update(_pairs(values))

    def _add_items(self, _: Any) -> None:
        values = self._group()
        _typed(self.stack[-1], set).update(plain_set(values))


def plain_set(values: Iterable[Any] = ()) -> set[Any]:
    """Return a set of values that may be keys. Errors: TypeError for others."""
    return set(map(_plain_key, values))


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{type(value).__name__} in the place of a {kind.__name__}")
    return value


def _plain_key(key: Any) -> Any:
    if type(key) not in _PLAIN_KEYS:
        raise TypeError(f"a key that is a {type(key).__name__}")
    return key


def _pairs(values: list[Any]) -> dict[Any, Any]:
    keys = map(_plain_key, values[::2])
    return dict(zip(keys, values[1::2], strict=True))


def _refused(name: str) -> FileError:
    return FileError(
        f"refused to load a file that needs {name}",
        "nothing in a file is executed, and this is more than tensors and plain values",
        _HINT,
    )


_IGNORED = frozenset(("PROTO", "FRAME", "STOP"))
"""Instructions without an effect here."""
_PUSHES = frozenset(
    "INT LONG LONG1 LONG4 BININT BININT1 BININT2 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING"
    " BINBYTES SHORT_BINBYTES BINBYTES8 UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8".split()
)
"""Instructions that push their argument."""
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": lambda: _MARK,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}
"""Instructions that push a value without an argument."""
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
"""The number of values in the tuple that each makes."""
_GETS = frozenset(("GET", "BINGET", "LONG_BINGET"))
"""Instructions that push a value of the memo."""
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"))
"""Instructions that put the last value into the memo."""
_STEPS: dict[str, Callable[[PickleReader, Any], object]] = {
    "TUPLE": lambda r, _: r.stack.append(tuple(r._group())),
    "LIST": lambda r, _: r.stack.append(r._group()),
    "DICT": lambda r, _: r.stack.append(_pairs(r._group())),
    "POP": lambda r, _: r.stack.pop(),
    "POP_MARK": lambda r, _: r._group(),
    "DUP": lambda r, _: r.stack.append(r.stack[-1]),
    "GLOBAL": PickleReader._global,
    "STACK_GLOBAL": PickleReader._stack_global,
    "REDUCE": PickleReader._reduce,
    "BUILD": PickleReader._build,
    "BINPERSID": PickleReader._persistent,
    "APPEND": PickleReader._append,
    "APPENDS": PickleReader._appends,
    "SETITEM": PickleReader._set_item,
    "SETITEMS": PickleReader._set_items,
    "ADDITEMS": PickleReader._add_items,
}
"""Instructions with a step of their own."""
