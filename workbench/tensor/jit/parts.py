"""The parts of objects in which tensors may be, and the steps that lead to them.

No code of the user's runs to read them. Tensors may be in variables of enclosing functions, module
variables that code names, defaults, attributes of objects and of their classes, and items of lists,
tuples, dicts, sets and queues.

Sections: Paths; The parts of objects in which tensors may be, and the steps that lead to them.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections import deque
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from dis import get_instructions, hasname
from fractions import Fraction
from functools import cache, cached_property, partial, partialmethod
from hashlib import blake2b
from threading import local
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np

from workbench.base.files import Unpicklable
from workbench.tensor.tensor import Tensor

# --------------------------------------------------------------------------------------------------
# Paths: the ways from a function to the tensors that it reaches.

Path = tuple["Step", ...]
"""The way from a root to a tensor."""


@dataclass(frozen=True, slots=True)
class Step:
    """The step from an object to a part of it. `kind` is "attribute", "item", "member" (of a set),
    "cell", "global", "module", "referent" (of a weak reference), "context" or "gradient"; `name` is
    the name or number of the part. Steps to "length", "contents" (of an array), "code" and "kind"
    lead to no tensor, but to what is compared."""

    kind: str
    name: Any

    def part(self, holder: Any) -> Any:
        """Return the part. Errors: LookupError, AttributeError or ValueError if there is none."""
        match self.kind:
            case "attribute":
                return _attribute(holder, self.name)
            case "item":
                return holder[self.name]
            case "member":
                return [*holder][self.name]
            case "module":
                return sys.modules[self.name]
            case "gradient":
                return holder.grad
            case "referent":
                return holder()
            case "context":
                return holder.get()
            case "cell":
                return holder.__closure__[self.name].cell_contents
        return holder.__globals__[self.name]

    def bind(self, holder: Any, value: Any) -> None:
        """Put `value` in the place of the part."""
        match self.kind:
            case "attribute":
                setattr(holder, self.name, value)
            case "item":
                holder[self.name] = value
            case "cell":
                holder.__closure__[self.name].cell_contents = value
            case "context":
                holder.set(value)
            case "global":
                holder.__globals__[self.name] = value
            case kind:
                raise TypeError(f"cannot bind a {kind}")


GRADIENT = Step("gradient", "grad")
LENGTH = Step("length", None)
ASPECTS = ("length", "contents", "code", "kind")
"""Kinds of steps to what is compared of an object apart from its parts."""


def gradient_of(tensor: Tensor) -> Any:
    """Return the `.grad` of a tensor, or None."""
    state = tensor._grad_state
    return None if state is None else state.grad


def tensor_at(root: Any, path: Path) -> Any:
    """Return what is at a path now; None if the path leads nowhere."""
    try:
        return part_at(root, path)
    except (LookupError, AttributeError, ValueError, TypeError):
        return None


def part_at(root: Any, path: Path) -> Any:
    """Return what is at a path. Errors: those of `Step.part`."""
    for step in path:
        root = step.part(root)
    return root


def words_of(path: Path) -> str:
    """Return the last steps of a path as code."""
    text = ""
    for step in path:
        if step.name == "__self__":
            text = "self"
        elif step.kind == "attribute":
            text += f".{step.name}"
        elif step.kind == "item":
            text += f"[{step.name!r}]"
        else:
            text = step.name if isinstance(step.name, str) else ""
    return text


def _attribute(holder: Any, name: str) -> Any:
    """Return an attribute, if possible without running the user's code."""
    own = namespace(holder)
    return own[name] if own is not None and name in own else getattr(holder, name)


def namespace(holder: Any) -> dict[str, Any] | None:
    if isinstance(holder, type):
        return dict(vars(holder))
    try:
        own = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


# --------------------------------------------------------------------------------------------------
# The parts of objects in which tensors may be, and the steps that lead to them.

Parts = Callable[[Any], list[Any]]
"""The function that returns the parts of a holder."""


class _Absent:
    """The value of a name that is not bound."""


ABSENT = _Absent()


PLAIN = (str, bytes, int, float, complex, Fraction, Decimal, np.generic, type(None))
"""Types that hold no tensor."""
CODE = (
    FunctionType, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, type,
    ModuleType, property, staticmethod, classmethod, cached_property, partialmethod, _Absent,
)  # fmt: skip
"""Types of code and the like, which a program binds once."""
STRUCTURE = {"func", "args", "keywords", "fget", "_function", "maps", "data", "_data"}
"""Attributes in which partial(), properties, ChainMap, UserDict and os.environ hold other objects:
like `__self__`, they are used by code that does not name them."""
ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})
"""Variables of the module os that give the environment; its other ones are not searched."""
NAMESPACES = frozenset({
    "globals", "vars", "eval", "exec", "__globals__", "f_globals", "modules", "import_module",
    "__import__", "getmodule",
})  # fmt: skip
"""Names of what gives a module or its variables: code with one may read a variable by a text or as
an attribute."""
_LIBRARIES = {*sys.stdlib_module_names, "builtins", "numpy", "workbench"}
"""Modules in whose variables users put no tensors."""


CONTAINERS = (dict, MappingProxyType, list, tuple, deque, set, frozenset)


class Layout(NamedTuple):
    """The `steps` to the parts of a holder, None for a part that is compared but not searched, and
    the function that returns the parts."""

    steps: list[Step | None]
    parts: Parts


def layout_of(holder: Any, used: frozenset[str], by_text: bool = False) -> Layout | None:
    """Return the layout of a holder; None if it has no parts. `used` are the names of attributes in
    the code that led here; `by_text`: whether functions read variables by texts, too."""
    match holder:
        case FunctionType():
            return _of_function(holder, by_text)
        case MethodType():
            return _of_attributes("__self__", "__func__")
        case BuiltinFunctionType():
            return None if isinstance(holder.__self__, ModuleType) else _of_attributes("__self__")
        case partial():
            return _of_attributes("func", "args", "keywords")
        case property():
            return _of_attributes("fget")
        case staticmethod() | classmethod():
            return _of_attributes("__func__")
        case cached_property() | partialmethod():
            return _of_attributes("func")
        case ModuleType():
            if holder is os:
                return _of_names([*used & ENVIRONMENT])
            return None if is_library(holder.__name__) else _of_names([*used])
        case type():
            return _of_class(holder)
        case np.ndarray():  # it may be written to
            return Layout([Step("contents", None)], _of_array)
        case bytearray() | array():
            return Layout([Step("contents", None)], lambda value: [bytes(value)])
        case ref():
            return Layout([Step("referent", None)], lambda value: [value()])
        case ContextVar():
            return Layout([Step("context", None)], lambda value: [value.get(None)])
        case KeysView() | ValuesView() | ItemsView():
            steps: list[Step | None] = [Step("member", n) for n in range(len(holder))]
            return Layout(steps, list)
        case local():  # the attributes in this thread
            steps = [Step("attribute", name) for name in holder.__dict__]
            return Layout(steps, lambda value: [*value.__dict__.values()])
        case Unpicklable():  # a captured function, whose own captures do not count
            return _of_attributes("_function") if hasattr(holder, "_function") else None
    return _joined([*_of_items(holder), *_of_object(holder)])


def _of_attributes(*names: str) -> Layout:
    return Layout(
        [Step("attribute", name) for name in names],
        lambda value: [getattr(value, name, ABSENT) for name in names],
    )


def _of_names(names: list[str]) -> Layout:
    """Return the layout of the variables `names` of a module or a class."""
    return Layout(
        [Step("attribute", name) for name in names],
        lambda value: [value.__dict__.get(name, ABSENT) for name in names],
    )


def _of_function(function: FunctionType, by_text: bool) -> Layout:
    own, names = function.__globals__, names_in(function.__code__)
    texts = [n for n in names.attributes if by_text and n in own]  # globals()[..]
    variables = [*dict.fromkeys([*names.variables, *texts])]
    modules = names.modules
    if is_library(function.__module__):
        is_of_os = function.__module__ == "os"
        variables, modules = [v for v in variables if is_of_os and v in ENVIRONMENT], []
    others = [n for n in ("__defaults__", "__kwdefaults__", "__dict__") if getattr(function, n)]

    def parts(value: FunctionType) -> list[Any]:
        variables_of = value.__globals__
        return [
            *map(_contents, value.__closure__ or ()),
            *[variables_of.get(name, ABSENT) for name in variables],
            *[sys.modules.get(name, ABSENT) for name in modules],
            *[getattr(value, name) for name in others],
            value.__code__,
        ]

    if not (function.__closure__ or variables or modules or others):
        return Layout([None], lambda value: [value.__code__])

    steps = [Step("cell", n) for n in range(len(function.__closure__ or ()))]
    steps += [Step("global", name) for name in variables]
    steps += [Step("module", name) for name in modules]
    steps += [Step("attribute", name) for name in others]
    return Layout([*steps, None], parts)


def _of_class(kind: type) -> Layout | None:
    """Return the layout of a class: its variables and functions, and the classes it is made of."""
    if is_library(kind.__module__):
        return None
    slots = (*_slots_of(kind), "__dict__", "__weakref__")
    variables = [
        name
        for name, part in vars(kind).items()
        if name not in slots and (isinstance(part, FunctionType) or not is_special(name))
    ]
    bases = _of_attributes("__bases__")
    count = Layout([None], lambda value: [len(vars(value))])  # a new one may hide a base's
    return _joined([_of_names(variables), bases, count])


def _of_items(holder: Any) -> Iterator[Layout]:
    if isinstance(holder, dict | MappingProxyType):
        yield Layout([*[Step("item", key) for key in holder], *[None] * len(holder)], _entries)
    elif isinstance(holder, list | tuple | deque):
        yield Layout([Step("item", n) for n in range(len(holder))], list)
    elif isinstance(holder, set | frozenset):
        yield Layout([Step("member", n) for n in range(len(holder))], list)


def _of_object(holder: Any) -> Iterator[Layout]:
    """Yield the layouts of attributes and slots, and the step to the class, if it is a user's."""
    kind = type(holder)
    own = namespace(holder)
    if own is not None:
        steps = [Step("attribute", name) for name in own]
        yield Layout([*steps, *[None] * len(steps)], lambda value: _entries(value.__dict__))
    slots = [name for each in kind.__mro__ for name in _slots_of(each)]
    if slots:
        yield Layout(
            [Step("attribute", name) for name in slots],
            lambda value: [_slot(value, name) for name in slots],
        )
    if not is_library(kind.__module__):
        yield Layout([Step("attribute", "__class__")], lambda value: [type(value)])


def _of_array(array: np.ndarray[Any, Any]) -> list[Any]:
    """Return a text for the contents of an array: the same object for equal contents."""
    kind = f"{array.dtype} {array.shape} "
    contents = array.tobytes() if array.dtype != object else repr([*map(id, array.flat)])
    digest = blake2b(contents if isinstance(contents, bytes) else contents.encode())
    return [sys.intern(kind + digest.hexdigest())]


def _joined(layouts: list[Layout]) -> Layout | None:
    if len(layouts) < 2:
        return layouts[0] if layouts else None
    steps, parts = zip(*layouts, strict=True)
    if len(layouts) == 2:
        first, second = parts
        return Layout([*steps[0], *steps[1]], lambda value: first(value) + second(value))
    return Layout(
        [step for each in steps for step in each],
        lambda value: [part for each in parts for part in each(value)],
    )


def _entries(own: dict[Any, Any]) -> list[Any]:
    """Return the values of a dict, and its keys."""
    return [*own.values(), *own]


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return ABSENT


def _slots_of(kind: type) -> list[str]:
    slots = kind.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else [*slots]
    private = f"_{kind.__name__.lstrip('_')}"
    return [
        f"{private}{name}" if name.startswith("__") and not is_special(name) else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    ]


def _slot(holder: Any, name: str) -> Any:
    try:
        return object.__getattribute__(holder, name)
    except AttributeError:
        return ABSENT


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


@cache
def is_library(module: str | None) -> bool:
    """Whether a module is the standard library's, this package's, or one that was installed."""
    root = str(module).partition(".")[0]
    path = str(getattr(sys.modules.get(root), "__file__", ""))
    return root in _LIBRARIES or "site-packages" in path or "dist-packages" in path


class CodeNames(NamedTuple):
    """The names that code and the functions in it use: variables of its module, attributes (and
    texts, which may name one), and modules that it imports. Local variables are none of these."""

    variables: list[str]
    attributes: frozenset[str]
    modules: list[str]


_OF_VARIABLES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL")
_names: WeakKeyDictionary[CodeType, CodeNames] = WeakKeyDictionary()


def names_in(code: CodeType) -> CodeNames:
    if code in _names:
        return _names[code]
    variables: dict[str, None] = {}
    modules: dict[str, None] = {}
    attributes: set[str] = set()
    for step in get_instructions(code):
        if step.opname in _OF_VARIABLES:
            variables[step.argval] = None
        elif step.opname == "IMPORT_NAME":
            modules[step.argval] = None
        elif step.opcode in hasname:
            attributes.add(step.argval)
        elif step.opname == "LOAD_CONST":
            texts = step.argval if isinstance(step.argval, tuple | frozenset) else (step.argval,)
            attributes |= {text for text in texts if isinstance(text, str)}
        elif step.opname == "MATCH_CLASS":
            attributes.add("__match_args__")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = names_in(constant)
            variables.update(dict.fromkeys(inner.variables))
            modules.update(dict.fromkeys(inner.modules))
            attributes |= inner.attributes
    names = _names[code] = CodeNames([*variables], frozenset(attributes), [*modules])
    return names
