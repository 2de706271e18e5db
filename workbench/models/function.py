"""A Python function over arrays, run once over Tensors: its results are what it computes.

A TinyJit is one, too: its function runs, nothing is captured, and what it realizes stays an
expression. Nothing is computed: arrays among the arguments become Tensors, also those inside of
lists, tuples and dicts, and what needs values is refused, with the line that needs them. The
Tensors have the names of the function's parameters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np

from workbench.base.context import Context
from workbench.base.errors import ModelError, WorkbenchError, kind_of
from workbench.models.array_makers import makers_of_tensors
from workbench.models.numpy_array import NumpyTensor, as_array
from workbench.models.sources import is_source
from workbench.models.torch.values import from_torch
from workbench.tensor.jit.tinyjit import TinyJit
from workbench.tensor.lazily import computing_nothing
from workbench.tensor.tensor import Tensor

Named = list[tuple[str, Tensor]]


class FunctionResults(NamedTuple):
    """The Tensors that a function returns, its inputs by name, its results that have names, what it
    returned, and a name for each of its Tensors, or ""."""

    outputs: tuple[Tensor, ...]
    inputs: Named
    named: Named
    result: Any
    output_names: tuple[str, ...]


def results_of(function: Callable[..., Any], arguments: Sequence[object]) -> FunctionResults:
    """Return what a function makes of arguments, as expressions.

    Errors: ModelError for arguments that the function does not take, and for another result than a
    Tensor, or a tuple, a list or a dict of them; DTypeError where the function needs values.
    """
    name = name_of(function)
    inputs = arguments_of(function, name, arguments)
    # What TinyJit wraps is written for Tensors.
    is_jit = isinstance(function, TinyJit)
    kind = Tensor if is_jit else NumpyTensor
    tensors = {key: over_tensors(value, kind) for key, value in inputs.items()}
    with computing_nothing(name, skips_realize=is_jit), Context(JIT=0):
        with _variables_kept(function), makers_of_tensors():
            result = _called(function, tensors.values())
    outputs = list(_outputs(result, "", name, result))
    if not outputs:
        raise _refused(name, result, result)
    given = [pair for key, value in tensors.items() for pair in _tensors(value, key)]
    named = [(key, tensor) for key, tensor in outputs if key.isidentifier()]
    keys = tuple(key for key, _ in outputs)
    return FunctionResults(tuple(tensor for _, tensor in outputs), given, named, result, keys)


def outputs_of(result: Any) -> list[Any]:
    """Return the arrays, or Tensors, of what a function returned, in order."""
    if isinstance(result, Tensor | np.ndarray | np.generic):
        return [result]
    if isinstance(result, dict):
        return [each for part in result.values() for each in outputs_of(part)]
    if isinstance(result, tuple | list):
        return [each for part in result for each in outputs_of(part)]
    if is_dataclass(result) and not isinstance(result, type):
        return outputs_of([getattr(result, each.name) for each in fields(result)])
    return []


def _called(function: Callable[..., Any], arguments: Iterable[object]) -> Any:
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        # numpy says that it cannot set an element, because a Tensor refused to be a number
        if isinstance(error.__cause__, WorkbenchError):
            raise error.__cause__ from None
        raise


@contextmanager
def _variables_kept(function: Callable[..., Any]) -> Generator[None, None, None]:
    """Keep, after the block, the variables around a function that it binds to Tensors."""
    inner: Any = getattr(function, "__func__", function)
    code, names = getattr(inner, "__code__", None), getattr(inner, "__globals__", {})
    cells = [(c, _contents(c)) for c in getattr(inner, "__closure__", None) or ()]
    before = {name: names[name] for name in getattr(code, "co_names", ()) if name in names}
    try:
        yield
    finally:
        for cell, value in cells:
            if isinstance(_contents(cell), Tensor):
                cell.cell_contents = value
        names.update({k: v for k, v in before.items() if isinstance(names[k], Tensor)})


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable is bound later
        return None


def name_of(function: Callable[..., Any]) -> str:
    """Return how a message names a function: "f", "the function" for a lambda."""
    name = getattr(function, "__name__", "") or type(function).__name__
    return name if name.isidentifier() else "the function"


def over_tensors(value: Any, of_array: type[Tensor] = NumpyTensor) -> Any:
    """Return an argument with Tensors in place of arrays: `of_array` for those of numpy, whose
    meaning they keep, and Tensors for those of PyTorch."""
    if isinstance(value, np.ndarray) and not isinstance(value, Tensor):
        return as_array(value) if of_array is NumpyTensor else of_array(value)
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return from_torch(value)
    if type(value) in (list, tuple):
        return type(value)(over_tensors(part, of_array) for part in value)
    if type(value) is dict:
        return {key: over_tensors(part, of_array) for key, part in value.items()}
    return value


def arguments_of(
    function: Callable[..., Any], name: str, arguments: Sequence[object]
) -> dict[str, object]:
    """Return arguments by the names of the function's parameters; those of `*rest` as rest[0].

    Errors: ModelError for arguments that the function does not take.
    """
    try:
        parameters = signature(function).parameters
        bound = signature(function).bind(*arguments).arguments
    except ValueError:  # a function of C states no names
        return {f"x{place}": value for place, value in enumerate(arguments)}
    except TypeError as error:
        names = ", ".join(str(each) for each in signature(function).parameters.values())
        called = name if name.isidentifier() else "f"
        hint = f"explore({called}, {names})" if names else f"explore({called})"
        raise ModelError(f"cannot call {name} with these inputs", str(error), hint) from None
    inputs: dict[str, object] = {}
    for key, value in bound.items():
        if parameters[key].kind is Parameter.VAR_POSITIONAL:
            inputs |= {f"{key}[{place}]": part for place, part in enumerate(value)}
        else:
            inputs[key] = value
    return inputs


def _tensors(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the Tensors in an argument, with the text that names each."""
    if isinstance(value, Tensor):
        yield name, value
    elif type(value) in (list, tuple):
        for place, part in enumerate(value):
            yield from _tensors(part, f"{name}[{place}]")
    elif type(value) is dict:
        for key, part in value.items():
            yield from _tensors(part, f"{name}[{key!r}]")


def _outputs(value: Any, key: str, name: str, whole: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield key, value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _outputs(part, "", name, whole)
    elif isinstance(value, dict):
        for each, part in value.items():
            yield from _outputs(part, str(each), name, whole)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        yield from _outputs(parts, key, name, whole)
    elif value is whole or not isinstance(value, int | float | str | np.dtype | None):
        raise _refused(name, value, whole)


def _refused(name: str, value: Any, whole: Any) -> ModelError:
    what = f"cannot explore {name}: it returned {kind_of(whole)}"
    if value is not whole:
        what += f" with {kind_of(value)} in it"
    elif isinstance(whole, tuple | list | dict):
        what += " without a Tensor"
    hint = "return a Tensor, or a tuple, a list or a dict with Tensors"
    if is_source(value):
        hint = "explore(y), where y is what it returned"
    if isinstance(value, np.ndarray | np.generic):
        hint = "numpy computed it from arrays alone: make what it is of an argument of the function"
    return ModelError(what, "what is explored is the expression of a Tensor", hint)
