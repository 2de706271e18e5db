"""All errors that a user can meet, as one small tree; short texts that messages share; checks of
arguments.

Sections: Every error a user can meet, as one small tree; Plurals, lists and other short texts
that every layer writes alike; Checks of the arguments of functions.
"""

from __future__ import annotations

import errno
import operator
import os
from collections.abc import Sequence
from typing import Any, Self

# --------------------------------------------------------------------------------------------------
# Every error a user can meet, as one small tree.
#
#     WorkbenchError            what / because / try / where
#     +-- ShapeError            change the shapes, axes or slices (also a ValueError, RuntimeError)
#     |   +-- AxisError         name an axis or an index that exists     (also an IndexError)
#     +-- CopyError             let numpy copy the values                (also a ValueError)
#     +-- DTypeError            cast first                        (also a TypeError, RuntimeError)
#     +-- DeviceError           choose or install another device         (also a RuntimeError)
#     +-- KernelOptError        choose another opt or amount             (also a ValueError)
#     +-- FileError             another file: this one is not what it says   (also a ValueError)
#     |   +-- MissingFileError  a path where there is a file             (also a FileNotFoundError)
#     +-- StateError            other keys, or a model of other shapes (also a ValueError, KeyError)
#     +-- PlaceError            name a row that is there (also an IndexError, KeyError, TypeError)
#     +-- LevelError            name a state that a compilation has      (also a KeyError)
#     +-- GradientError         ask for a gradient that exists           (also a RuntimeError)
#     +-- OptimizerError        other arguments, or gradients first      (also a RuntimeError)
#     +-- JitError              call the captured function as it was     (also a RuntimeError)
#     +-- ModelError            another model, or inputs that fit it     (also a RuntimeError)
#     +-- VerifyError           a graph broke a rule of its level        (also a ValueError)
#     +-- RegisterError         register it otherwise                    (also a ValueError)
#     +-- ParseError            fix the text at the line named           (also a ValueError)
#     +-- EndlessRewrite        switch off one of the rules that undo each other
#     +-- CompileError          look at the stage named, and the state before it
#     |   +-- LanguageError     another dtype, or a device whose language has it
#     +-- DefectError           mend the kernel at the line named
#
# An error carries fields; its text is built only when printed.


class WorkbenchError(Exception):
    """Base of all errors: `what` failed, `because` of which cause, and a `hint` (printed as "try").
    `line` and `column` are the place, from 1, in the text that the error is about; None if none is
    named."""

    def __init__(self, what: str, because: str = "", hint: str = "", where: str = ""):
        super().__init__(what, because, hint, where)
        self.what, self.because, self.hint, self.where = what, because, hint, where
        self.line: int | None = None
        self.column: int | None = None

    def placed(self, line: int, column: int) -> Self:
        """Return this error with a place in the text, which its words begin with."""
        self.line, self.column = line, column
        self.what = f"line {line}, column {column}: {self.what}"
        return self

    def __str__(self) -> str:
        rows = (("because", self.because), ("try", self.hint), ("where", self.where))
        return "\n".join([self.what, *(f"  {label:8} {text}" for label, text in rows if text)])


class ShapeError(WorkbenchError, ValueError, RuntimeError):
    """Shapes, axes or slices do not fit: a ValueError in numpy, a RuntimeError in PyTorch."""


class AxisError(ShapeError, IndexError):
    """A tensor has no such axis, or an axis no such index; numpy's has these bases, too."""


class CopyError(WorkbenchError, ValueError):
    """The values cannot be returned without a copy: numpy's protocol requires a ValueError."""


class DTypeError(WorkbenchError, TypeError, RuntimeError):
    """An operation is not defined for an element type: a TypeError in Python and numpy, a
    RuntimeError in PyTorch."""


class DeviceError(WorkbenchError, RuntimeError):
    """A device is unknown, missing, or cannot do what was asked."""


class KernelOptError(WorkbenchError, ValueError):
    """An opt is not legal on this kernel."""


class FileError(WorkbenchError, ValueError):
    """A file cannot be opened, is damaged, or does not hold what was asked for."""


class MissingFileError(FileError, FileNotFoundError):
    """A path without a file."""

    def __new__(cls, *args: object) -> Self:
        """Construct it as an OSError: `ValueError.__new__`, which comes first, cannot."""
        return OSError.__new__(cls, *args)

    def __init__(self, what: str, because: str = "", hint: str = "", where: str = ""):
        super().__init__(what, because, hint, where)
        self.errno = errno.ENOENT


def file_error(path: object, error: Exception, hint: str = "") -> FileError:
    """Return the error for a path that the system cannot open."""
    kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
    because = getattr(error, "strerror", None) or str(error)
    name = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else repr(path)
    hint = hint or "the path of a file that is there"
    raised = kind(f"cannot open {name:.200}", because, hint)
    if isinstance(raised, MissingFileError):
        raised.filename = path
    return raised


class StateError(WorkbenchError, ValueError, KeyError):
    """A state dict does not fit a model."""


class PlaceError(WorkbenchError, IndexError, KeyError, TypeError):
    """A table has no such row, or a view no such part. A tuple raises an IndexError for a number, a
    TypeError for a name; a dict raises a KeyError."""


class LevelError(WorkbenchError, KeyError):
    """A compilation has no state of that name."""


class GradientError(WorkbenchError, RuntimeError):
    """A gradient does not exist, or what was asked for has none."""


class OptimizerError(WorkbenchError, RuntimeError):
    """An optimiser cannot be made of its arguments, or cannot step now."""


class JitError(WorkbenchError, RuntimeError):
    """A function cannot be captured, or not replayed with these inputs."""


class ModelError(WorkbenchError, RuntimeError):
    """A model from outside cannot be read, or not computed, or its inputs do not fit."""


class VerifyError(WorkbenchError, ValueError):
    """A graph breaks a rule of its IR level. `node` is the node that does, `position` its step in a
    linear program; None where they are not known."""

    def __init__(self, what: str, because: str = "", hint: str = "", where: str = ""):
        super().__init__(what, because, hint, where)
        self.node: object = None
        self.position: int | None = None


class RegisterError(WorkbenchError, ValueError):
    """A registered value is not of the required kind, or its name is taken."""


class ParseError(WorkbenchError, ValueError):
    """IR text does not parse."""


class EndlessRewrite(WorkbenchError):
    """Rules undo each other: the rewrite was stopped."""


class CompileError(WorkbenchError):
    """A kernel could not be compiled. `stage` names the pass; `last_good` is the state before."""

    def __init__(
        self,
        stage: str,
        because: str,
        last_good: object = None,
        hint: str = "",
        line: int | None = None,
    ):
        super().__init__(f"cannot compile: stage {stage} failed", because, hint)
        self.stage, self.last_good, self.line = stage, last_good, line

    def __str__(self) -> str:
        state = "" if self.last_good is None else f"\n  last good state:\n{self.last_good}"
        return super().__str__() + state


class LanguageError(CompileError):
    """The language of a device lacks a dtype or an operation of a kernel."""

    def __init__(self, language: str, what: str, hint: str = ""):
        hint = hint or "another dtype, or another device"
        super().__init__("render", f"{language} has no {what}", hint=hint)


class DefectError(WorkbenchError):
    """A run of a kernel did what no kernel may: a race, an access outside of memory. `lines` are
    lines of its source, from 1; `positions` are those of the same nodes in its linear program."""

    def __init__(
        self,
        what: str,
        because: str,
        hint: str = "",
        where: str = "",
        lines: tuple[int, ...] = (),
        positions: tuple[int, ...] = (),
    ):
        super().__init__(what, because, hint, where)
        self.lines, self.positions = lines, positions
        self.line = lines[0] if lines else None


INTERNAL = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
            ValueError)  # fmt: skip
"""Errors of Python, which tell a user nothing: a fault of the project's own code raises them."""


def kind_and_text(error: Exception) -> str:
    """Return an error of Python as text: "KeyError: 'name'"."""
    return f"{type(error).__name__}: {error!s:.80}"


# --------------------------------------------------------------------------------------------------
# Plurals, lists and other short texts that every layer writes alike.


def plural(count: int, word: str) -> str:
    """Return "1 kernel", "2 kernels", "2 passes", "2 copies"."""
    if count == 1:
        return f"1 {word}"
    if word.endswith("y"):
        return f"{count:,} {word[:-1]}ies"
    return f"{count:,} {word}{'es' if word.endswith(('s', 'ch')) else 's'}"


def cut(text: str, most: int) -> str:
    """Return `text` with at most `most` characters; if it is cut, its last one is an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def short(value: object) -> str:
    """Return the text of a value, cut to 40 characters."""
    try:
        return cut(repr(value), 40)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        return f"<{type_name(type(value))}>"


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as "64x48"; "scalar" for no axes."""
    return "x".join(map(str, shape)) or "scalar"


def kind_of(value: object) -> str:
    """Return "a function", "the class Net", "a torch.Tensor": the name of the value's type. The
    module precedes the name, except for Python's own types, this package's, and the notebook's."""
    if isinstance(value, type):
        return f"the class {type_name(value)}"
    name = type_name(type(value))
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def type_name(kind: type) -> str:
    module = str(kind.__module__)
    is_plain = module.partition(".")[0] in ("builtins", "__main__", "workbench")
    return kind.__qualname__ if is_plain else f"{module}.{kind.__qualname__}"


# --------------------------------------------------------------------------------------------------
# Checks of the arguments of functions: an argument of the wrong type is refused before the function
# fails somewhere inside.


def require(value: object, kinds: type | tuple[type, ...], name: str, hint: str) -> Any:
    """Return the value of the argument `name`, which is of one of `kinds`.

    Errors: DTypeError for another one; `hint` is an example of what fits.
    """
    if isinstance(value, kinds):
        return value
    types = kinds if isinstance(kinds, tuple) else (kinds,)
    expected = " or ".join(kind.__name__ for kind in types)
    raise DTypeError(
        f"{name} does not take {value!r:.40}",
        f"it must be {expected}, and this is {type(value).__name__}",
        hint,
    )


def integer_of(value: Any) -> int | None:
    """Return an integer as an int, also one of NumPy; None for another value, and for a bool, which
    is meant as a flag."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
