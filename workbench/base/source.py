"""The user's source lines: captured once in the front end, stored beside the graph.

Equal nodes are one object, so a node cannot know which line made it: cells share it. The front end
returns tensors, and a tensor has its Derivation: the calls in the user's code that led to its node,
and the derivations of its operands. It is freed with the tensor. This file requires of a node only
sources, and that a weak reference can point to it.

A frame is stored as its code and the position in it; lines and text are looked up when they are
shown.
"""

from __future__ import annotations

import linecache
import os
import site
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple
from weakref import ref

from workbench.pickles import pickled


@pickled
@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's code: `name` is a file's path or a cell ("In[3]"). `inner` are the lines
    of functions that it called, down to the line that made the value; equality ignores them."""

    name: str
    line: int
    text: str
    inner: tuple[SourceLine, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"{os.path.basename(self.name)}:{self.line}"

    @property
    def where(self) -> str:
        """The line as errors name it: "In[7], line 3"."""
        return f"{os.path.basename(self.name)}, line {self.line}"


Call = tuple[CodeType, int, str | None]
"""A frame of the user's code: its code object, its current instruction (`f_lasti`), and its cell
("In[3]"; None for a file)."""
Calls = tuple[Call, ...]
"""The user's frames on the call stack, from the one that called this package outwards."""


class ModuleCall(NamedTuple):
    """The path of a module, or the name of a class or function ("" for code of the viewer), and the
    method of this package that it called."""

    path: str
    method: str

    def __str__(self) -> str:
        return ": ".join(filter(None, self))


class Derivation:
    """The derivation of a tensor's node: the user's `calls`, and the derivations of its operands
    (`sources`); a weak reference to the object whose method called this package (`owner`), and the
    called `method`. The reference to the node is weak, too: the tensor holds both."""

    __slots__ = ("__weakref__", "_node", "calls", "method", "owner", "sources")

    def __init__(
        self,
        node: Any,
        calls: Calls,
        sources: tuple[Derivation, ...] = (),
        owner: Callable[[], Any] | None = None,
        method: str = "",
    ):
        self._node = ref(node)
        self.calls, self.sources = calls, sources
        self.owner, self.method = owner, method

    @property
    def node(self) -> Any:
        """The node; None after it is freed."""
        return self._node()

    def __reduce__(self) -> tuple[Any, ...]:
        return _no_derivation, ()  # a copy in another process is None: the code is not there


def _no_derivation() -> None:
    return None


def derived(node: Any, sources: list[Derivation | None]) -> Derivation:
    """Return the Derivation of `node`, which the user's code derives now from tensors with the
    derivations `sources`. An operation that changes nothing returns its operand's derivation."""
    parents = tuple([source for source in sources if source is not None])
    for source in parents:
        if source._node() is node:
            return source
    call_stack, owner, method = calls_with_owner()
    for source in parents:
        if source.calls == call_stack:  # nodes of one user's call share the tuple
            call_stack = source.calls
            break
    return Derivation(node, call_stack, parents, owner, method)


class NamedModule:
    """A module of a model from outside, which has no object of this package; its `path`."""

    def __init__(self, path: str):
        self.path = path


class Attribution(NamedTuple):
    """Who makes the values of an imported model: its framework's record of `calls`, the module
    (`owner` returns it), and the operator."""

    calls: Calls
    owner: Callable[[], Any]
    method: str


_attribution: ContextVar[Attribution | None] = ContextVar("attribution", default=None)


@contextmanager
def attributed(attribution: Attribution) -> Iterator[None]:
    """While this is active, values have this attribution instead of the frames on the stack."""
    token = _attribution.set(attribution)
    try:
        yield
    finally:
        _attribution.reset(token)


def frame_at(file: str, line: int, function: str) -> Call:
    """Return a call of which only the place is known: a frame of a code object at that line."""
    return _code_at(file, line, function), 0, _cell(file) if _kind(file) == _CELL else None


@cache
def _code_at(file: str, line: int, function: str) -> CodeType:
    code = _NO_CODE.replace(co_filename=file, co_firstlineno=line, co_name=function)
    return code.replace(co_qualname=function)


_NO_CODE = (lambda: None).__code__  # its first instruction is on its first line


def derivations_below(roots: Iterable[Derivation]) -> Iterator[Derivation]:
    """Yield derivations, each once, after those of its sources."""
    visited: set[Derivation] = set()
    stack = [(root, False) for root in roots][::-1]
    while stack:
        derivation, is_ready = stack.pop()
        if is_ready:
            yield derivation
        elif derivation not in visited:
            visited.add(derivation)
            stack.append((derivation, True))
            # gradients of one backward pass have all its steps as sources
            below = [source for source in derivation.sources if source not in visited]
            stack += [(source, False) for source in reversed(below)]


def nodes_between(node: Any, ends: set[Any]) -> list[Any]:
    """Return `node` and the nodes below it, as far as the `ends`, which are left out. Leaves
    (constants, host memory) are left out, too: many tensors share them."""
    nodes, visited = [node], {node}
    for one in nodes:  # it grows
        below = [s for s in one.src if s.src and s not in visited and s not in ends]
        visited.update(below)
        nodes += dict.fromkeys(below)
    return nodes


def user_line() -> SourceLine | None:
    """Return the nearest line outside this package on the call stack; None if there is none."""
    frame = users_frame()
    if frame is None:
        return None
    name = frame.f_code.co_filename
    return _line(name, frame.f_lineno, _cell(name) if _kind(name) == _CELL else None)


def line_at(file: str, number: int) -> SourceLine:
    """Return a line by its place: of a file, or of a cell by the file that its code is in."""
    return _line(file, number, _cell(file) if _kind(file) == _CELL else None)


def users_frame() -> FrameType | None:
    """Return the nearest frame outside this package on the call stack; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def warn_user(message: str) -> None:
    """Warn, at the nearest line outside this package."""
    frame = users_frame()
    if frame is None:  # a thread of ours
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return
    names = frame.f_globals
    warnings.warn_explicit(
        message, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno, names.get("__name__"),
        names.setdefault("__warningregistry__", {}),
    )  # fmt: skip


def is_users_call() -> bool:
    """Whether code outside this package calls the function that asks."""
    return not sys._getframe(2).f_code.co_filename.startswith(_PACKAGE)


MOST_FRAMES = 200
"""The maximal number of frames that are searched for the user's frames."""
MOST_CALLS = 16
"""The maximal number of the user's frames that are stored: if there are more, half of it are the
innermost ones, half the outermost."""
_PACKAGE = os.path.dirname(os.path.dirname(user_line.__code__.co_filename)) + os.sep
LAYERS = os.path.join(_PACKAGE, "nn") + os.sep
"""The folder of this package's own layers: objects of the user's model, in code of a library."""
# where a frame is from
_LAYER = -1
_LIBRARY = 0
_FILE = 1
_CELL = 2
_KINDS: dict[str, int] = {}
_CELLS: dict[str, tuple[int | None, str | None]] = {}


def calls() -> Calls:
    """Return the user's frames on the call stack, innermost first, up to that of a cell, script or
    module; frames of libraries, also of this package, are left out."""
    return calls_with_owner()[0]


def calls_with_owner() -> tuple[Calls, Callable[[], Any] | None, str]:
    """Return `calls()`; the owner: the `self` of the innermost frame of the user or of a layer that
    has one; and the name of the library function that the innermost of these frames called."""
    made_by = _attribution.get()
    if made_by is not None:
        return made_by
    frames: list[Call] = []
    owner: ref[Any] | None = None
    inside: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        name = code.co_filename
        kind = _KINDS.get(name)
        if kind is None:
            kind = _kind(name)
        if kind:
            if owner is None:
                owner = _owner(frame, code, kind > 0)
            if kind > 0:
                cell = _cell(name) if kind == _CELL else None
                frames.append((code, frame.f_lasti, cell))
                if code.co_name == "<module>":
                    break
        elif owner is None and not frames:
            inside = frame
        frame = frame.f_back
    method = "" if inside is None else _method(inside)
    if len(frames) > MOST_CALLS:
        frames = [*frames[: MOST_CALLS // 2], *frames[-MOST_CALLS // 2 :]]
    return tuple(frames), owner, method


_PROTOCOLS = {"__array_function__": "func", "__array_ufunc__": "ufunc"}
"""The methods that numpy calls, with the argument that is its function."""


def _method(frame: FrameType) -> str:
    """Return the name of a library function; of numpy's, where it asks a tensor for the result."""
    name = frame.f_code.co_name
    return str(frame.f_locals[_PROTOCOLS[name]].__name__) if name in _PROTOCOLS else name


def _owner(frame: FrameType, code: CodeType, is_users_frame: bool) -> ref[Any] | None:
    """Return a weak reference to the `self` of a frame, whatever its method calls it; None if it
    has none, or `self` allows no weak reference. No code of the user runs.

    Until Python 3.13 a frame copies its variables into one dict, the same each time, which
    `locals()` returns. So the copy is cleared again: otherwise it would keep objects alive. If the
    frame's code may use that dict itself, nothing is read.
    """
    entry = _SELF.get(id(code))
    if entry is None or entry[0]() is not code:
        entry = _SELF[id(code)] = ref(code, _remover(id(code))), _name_of_self(code)
    name = entry[1]
    if not name:
        return None
    variables: Any = frame.f_locals
    value = variables.get(name)
    if is_users_frame and type(variables) is dict and sys.gettrace() is None:
        variables.clear()  # a debugger would write an empty dict back to the frame
    if value is None or (name != "self" and not _has_method(value, code)):
        return None
    try:
        return ref(value)
    except TypeError:
        return None


_SELF: dict[int, tuple[ref[CodeType], str]] = {}
"""The name of `self` in a frame ("": none that may be read), by the id of its code object while
that lives."""
_READERS = frozenset({"locals", "vars", "dir", "eval", "exec", "f_locals", "breakpoint"})
"""Names in code that may use the dict of a frame's variables itself."""


def _name_of_self(code: CodeType) -> str:
    """Return the name that frames of a code may have for `self`: else the first argument of what is
    defined in a class; "" if there is none, or the code uses its dict of variables."""
    is_function = code.co_argcount > 0 and code.co_name[0] != "<"
    if not is_function or not _READERS.isdisjoint(code.co_names):
        return ""
    if "self" in (*code.co_varnames, *code.co_freevars):
        return "self"
    return code.co_varnames[0] if _class_name(code) else ""


def _class_name(code: CodeType) -> str:
    """Return the qualified name of the class in which a function is defined, or ""."""
    outer = code.co_qualname.rpartition(".")[0]
    return "" if outer.endswith("<locals>") else outer


def _has_method(value: object, code: CodeType) -> bool:
    """Whether a class of the value is the one in which a function is defined: the first argument of
    a static method is another object."""
    kinds = type.__getattribute__(type(value), "__mro__")
    name = _class_name(code)
    return any(type.__getattribute__(kind, "__qualname__") == name for kind in kinds)


def _remover(key: int) -> Callable[[object], object]:
    return lambda _: _SELF.pop(key, None)


def is_users(filename: str) -> bool:
    """Whether a file of code is the user's: a cell or a file, not of a library."""
    return _kind(filename) > _LIBRARY


def line_of(call: Call) -> SourceLine:
    """Return the current line of a frame."""
    code, at, cell = call
    return _line(code.co_filename, _number_at(code, at), cell)


@lru_cache(maxsize=4096)
def _number_at(code: CodeType, at: int) -> int:
    """Return the number of the line of an instruction: the nodes of a model come from few lines,
    and the table of a code object can only be read from its start."""
    number = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= at < end and line is not None:
            number = line
    return number


def line_for_viewer(origin: Calls, viewer: Calls) -> SourceLine | None:
    """Return the line of `origin` that `viewer` should see: the line in the innermost cell, script
    or function that is in both; else the outermost line. Its `inner` are the lines of functions
    that it called. None if `origin` is empty."""
    begin = 0
    for place, (one, other) in enumerate(zip(origin[::-1], viewer[::-1], strict=False)):
        if one[0] is not other[0]:
            break
        begin = place
        if one[1] != other[1]:
            break
    lines = [line_of(call) for call in _without_comprehended(origin[::-1][begin:])]
    if not lines:
        return None
    inner = tuple(line for line in dict.fromkeys(lines[1:]) if line != lines[0])
    return SourceLine(lines[0].name, lines[0].line, lines[0].text, inner)


_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""The names of the code of comprehensions, which may be frames without a function call."""


def _without_comprehended(stack: Calls) -> Calls:
    """Return calls, outermost first, without a frame that only runs the comprehension after it."""
    follows = [*stack[1:], None]
    return tuple(
        call
        for call, inner in zip(stack, follows, strict=False)
        if inner is None or inner[0].co_name not in _COMPREHENSIONS
    )


def _kind(filename: str) -> int:
    """Return the kind of a file: a cell, a file of the user, a layer of this package, or a library
    (other files of this package, installed files, and code that Python generates)."""
    kind = _KINDS.get(filename)
    if kind is None:
        if filename.startswith(LAYERS):
            kind = _LAYER
        elif filename.startswith(("<frozen ", _PACKAGE, *_installed())):
            kind = _LIBRARY
        else:
            kind = _CELL if _cell(filename) else _FILE
        _KINDS[filename] = kind
    return kind


@cache
def _installed() -> tuple[str, ...]:
    """Return the folders of installed packages and of Python's own modules."""
    # sysconfig lists them too, but takes as long as the compilation of a small kernel
    own = os.path.dirname(os.__file__)
    paths = dict.fromkeys([own, *site.getsitepackages(), site.getusersitepackages()])
    return tuple(path + os.sep for path in paths if path)


def _line(filename: str, number: int, cell: str | None) -> SourceLine:
    linecache.checkcache(filename)  # a module that is loaded again may have other lines
    text = linecache.getline(filename, number).strip().rstrip("; ")  # it hides a cell's value
    return SourceLine(cell or filename, number, text)


def _cell(filename: str) -> str | None:
    """Return "In[3]" for the file name that IPython gives a cell's code; None for a file.

    A cell that runs again keeps its file name, so the label is looked up again after each cell.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return None
    count = shell.execution_count
    entry = _CELLS.get(filename)
    if entry is None or entry[0] != count:
        named = shell.compile.format_code_name(filename)
        label = None if named is None else str(named[1]).replace(" ", "")
        entry = _CELLS[filename] = count, label
    return entry[1]
