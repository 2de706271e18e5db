"""Settings that a `with` block scopes: `with Context(DEV="PYTHON"): ...`."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextvars import Token
from difflib import get_close_matches
from textwrap import indent
from typing import Any

from workbench.base.errors import WorkbenchError, integer_of
from workbench.base.interrupts import DynamicScope
from workbench.base.situation import Situational


class Setting:
    """A named setting, read with `.value`. Its environment variable replaces the default.

    `doc` says what it does. `values` are all values that it can have; () is any of its type.
    """

    __slots__ = ("_var", "default", "doc", "name", "values")

    def __init__(self, name: str, default: Any, doc: str, values: tuple[Any, ...] = ()):
        raw = os.environ.get(name)
        self.name, self.default, self.doc, self.values = name, default, doc, values
        start = default if raw is None else self._parsed(raw)
        self._var = Situational(name, start)

    @property
    def value(self) -> Any:
        """The value in this context: from the innermost `with Context` that names the setting."""
        return self._var.get()

    def set(self, value: Any) -> Token[Any]:
        """Change the setting in this context; the token is for `reset`."""
        return self._var.set(value)

    def reset(self, token: Token[Any]) -> None:
        """Undo a `set`."""
        self._var.reset(token)

    def checked(self, value: Any) -> Any:
        """Return the value to store: a bool as an int; with `values`, text in lower case.

        Errors: WorkbenchError for a value that the setting cannot have.
        """
        kind = type(self.default)
        if kind is int:
            whole = int(value) if isinstance(value, bool) else integer_of(value)
            value = value if whole is None else whole
        if not isinstance(value, kind):
            because = f"it is of type {kind.__name__}, not {type(value).__name__}"
            raise WorkbenchError(f"cannot set {self.name}", because, f"{self.default!r}")
        if kind is int and value < 0:
            because = "it is a number of 0 or more"
            raise WorkbenchError(f"cannot set {self.name} to {value}", because, f"{self.default}")
        if not self.values:
            return value
        lowered = value.lower() if isinstance(value, str) else value
        if lowered not in self.values:
            because = f"it is one of {', '.join(map(str, self.values))}"
            hint = repr(next(iter(self.values)))
            raise WorkbenchError(f"cannot set {self.name} to {value!r:.40}", because, hint)
        return lowered

    def _parsed(self, raw: str) -> Any:
        """Return the text of the environment in the type of the default."""
        where = f"the environment says {self.name}={raw!r}"
        try:
            return self.checked(type(self.default)(raw))
        except ValueError:
            hint = f"a number, such as {self.default}, or no {self.name} at all"
            what = f"the setting {self.name} is not a number"
            raise WorkbenchError(what, where, hint) from None
        except WorkbenchError as error:
            raise WorkbenchError(error.what, f"{where}, and {error.because}", error.hint) from None


def values_of(settings: Iterable[Setting]) -> list[Any]:
    """Return the settings in this context. It must be quick: each call of a TinyJit reads them."""
    return [setting._var.get() for setting in settings]


_FLOATS = ("float16", "half", "bfloat16", "float32", "float", "float64", "double")
_INTS = (
    *("int8", "char", "int16", "short", "int32", "int", "int64", "long"),
    *("uint8", "uchar", "uint16", "ushort", "uint32", "uint", "uint64", "ulong"),
)

DEV = Setting("DEV", "", 'the device of tensors without a device argument; "" is the best one here')
DEBUG = Setting("DEBUG", 0, """what is printed on stderr, each level with those below it
1 devices as they open, schedules, memory that values share, captures of TinyJit, searches of BEAM
2 a line for every kernel that runs
3 the loops of each kernel that is compiled
4 its opts and its source
5 its linear program
6 its machine code
7 its passes, with their seconds and how often their rules fired""")  # fmt: skip
NOOPT = Setting("NOOPT", 0, "1: kernels run without opts", (0, 1))
BEAM = Setting(
    "BEAM", 0, "the width of a search for the opts of each kernel that runs; 0: no search;"
    " what was found is cached, and is used again",
)  # fmt: skip
TUNING = Setting(
    "TUNING", "", 'a file of opts that kernels run with; "": the workbench-tuning.jsonl in the'
    " folders of the script (of a notebook: the current one) and of ONNX files that were loaded;"
    " none: no file",
)  # fmt: skip
JIT = Setting("JIT", 1, """whether TinyJit captures and replays
0 no: it only calls its function
1 yes, all kernels of a device by one call where it can
2 yes, one kernel after another""", (0, 1, 2))  # fmt: skip
DEFAULT_FLOAT = Setting("DEFAULT_FLOAT", "float32", "the dtype of floats that name none", _FLOATS)
DEFAULT_INT = Setting("DEFAULT_INT", "int32", "the dtype of integers that name none", _INTS)
TRAINING = Setting(
    "TRAINING", 0, "1: dropout drops, and normalisation takes the statistics of the batch", (0, 1)
)  # fmt: skip
NO_MEMORY_PLANNER = Setting(
    "NO_MEMORY_PLANNER", 0, "1: each value on the way to a result has memory of its own; 0: they"
    " share it, each for as long as it is read", (0, 1)
)  # fmt: skip
LIVE = Setting("LIVE", 2, """how a notebook shows explore
2 the workbench, with prefetched measurements
1 the workbench, which measures on request
0 a static picture""", (0, 1, 2))  # fmt: skip

SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        *(DEV, DEBUG, NOOPT, BEAM, TUNING, JIT),
        *(DEFAULT_FLOAT, DEFAULT_INT, TRAINING, NO_MEMORY_PLANNER, LIVE),
    )
}


def settings_table() -> str:
    """Return all settings as text: name, default, meaning."""
    lines = []
    for setting in SETTINGS.values():
        first, *levels = setting.doc.splitlines()
        lines.append(f"{setting.name:17} {setting.default!s:8} {first}")
        lines += [f"{'':26} {level}" for level in levels]
    return "\n".join(lines)


class Context(DynamicScope["Context"]):
    """Scope settings to a block: `with Context(DEV="PYTHON"):`. Defaults may come from environment
    variables.

    Errors: WorkbenchError for a setting that does not exist, or a value that it cannot have.
    """

    def __init__(self, **values: Any):
        unknown = sorted(set(values) - set(SETTINGS))
        if unknown:
            raise WorkbenchError(
                f"no setting {', '.join(unknown)}",
                "Context takes the settings " + ", ".join(SETTINGS),
                (get_close_matches(unknown[0].upper(), SETTINGS, 1) or ["DEBUG"])[0],
            )
        self._values = {n: SETTINGS[n].checked(value) for n, value in values.items()}
        super().__init__(self._block)

    def _block(self) -> Generator[Context, None, None]:
        tokens: list[tuple[Setting, Token[Any]]] = []
        try:
            for name, value in self._values.items():
                setting = SETTINGS[name]
                tokens.append((setting, setting.set(value)))
            yield self
        finally:
            for setting, token in reversed(tokens):
                setting.reset(token)


Context.__doc__ = f"{Context.__doc__}\n{indent(settings_table(), '    ')}\n"
