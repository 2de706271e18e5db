"""Sizes of a sweep: which inputs of a source get which shapes, and their values there."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.backends.native.host_memory import data_memory
from workbench.base.errors import WorkbenchError, integer_of, kind_of
from workbench.tensor.tensor import Tensor

Size = int | tuple[int, ...]
"""The size of an input's axis 0, or its shape."""
Place = tuple[Any, ...]
"""Where an input is: the number of an argument or a keyword, then the keys inside of it."""
BATCH = "batch"
"""The name for axis 0 of all inputs that have as many rows as the first."""
MOST_SIZES = 100
"""Most sizes of a sweep."""
MOST_BYTES = 1 << 40
"""Most bytes of an input: a shape beyond is a slip."""
HINT = "ex.sweep(batch=[1, 2, 4, 8])"


class Again(NamedTuple):
    """How an exploration came from a source: `explore(*arguments, **by_name)` makes another one,
    of the same source with other inputs. `names` are those of its inputs, in their order."""

    explore: Callable[..., Any]
    arguments: tuple[Any, ...]
    by_name: Mapping[str, Any]
    names: tuple[str, ...]

    def inputs(self) -> dict[str, tuple[Place, Any]]:
        """Return the array inputs by name, each with its place: the number of the argument or the
        keyword, and the keys of the lists and dicts that it is inside of. Arguments whose names are
        not known are called by their place."""
        own = [*_arrays(self.arguments)]
        names = [name for name in self.names if name not in self.by_name]
        if len(names) != len(own):
            names = [_name(f"argument_{n + 1}", inside) for (n, *inside), _ in own]
        found = dict(zip(names, own, strict=True))
        named = [*_arrays(self.by_name)]
        others = {_name(place[0], place[1:]): (place, value) for place, value in named}
        return found | others

    def resized(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return the exploration of the source with inputs of these shapes."""
        arguments, by_name = self.arguments, self.by_name
        for name, (place, value) in self.inputs().items():
            if name in shapes:
                other = resized(value, shapes[name])
                if isinstance(place[0], int):
                    arguments = _with_part(arguments, place, other)
                else:
                    by_name = _with_part(by_name, place, other)
        return self.explore(*arguments, **by_name)


def _arrays(nest: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield the arrays in a nest of lists, tuples and dicts, each with its place."""
    if _is_array(nest):
        yield place, nest
    elif isinstance(nest, Mapping | list | tuple):
        parts = nest.items() if isinstance(nest, Mapping) else enumerate(nest)
        for key, part in parts:
            yield from _arrays(part, (*place, key))


def _name(start: str, inside: Sequence[Any]) -> str:
    return "_".join([start, *map(str, inside)])


def _with_part(nest: Any, place: Place, part: Any) -> Any:
    """Return a nest with another part at a place; the nest itself stays as it is."""
    if not place:
        return part
    key, *rest = place
    inner = _with_part(nest[key], (*rest,), part)
    if isinstance(nest, Mapping):
        return {**nest, key: inner}
    parts = [inner if n == key else each for n, each in enumerate(nest)]
    if hasattr(nest, "_fields"):
        return type(nest)(*parts)
    return parts if isinstance(nest, list) else tuple(parts)


class SizeStep(NamedTuple):
    """One size of a sweep: the value that was given, and the shapes of its inputs."""

    value: Size | tuple[Size, ...]
    shapes: Mapping[str, tuple[int, ...]]


def size_steps(again: Again, sizes: Mapping[str, object]) -> list[SizeStep]:
    """Return the steps of a sweep over `sizes`, by the name of an input, or "batch".

    Errors: WorkbenchError for names that no input has, lists of different lengths, and what is no
    size.
    """
    inputs = {name: value for name, (_, value) in again.inputs().items()}
    if not inputs:
        because = "none of its arguments is an array"
        raise WorkbenchError("cannot sweep this exploration", because, "explore(f, x), with arrays")
    if not sizes:
        raise WorkbenchError("cannot sweep", "no sizes are given", HINT)
    lists = {name: _listed(name, values) for name, values in sizes.items()}
    counts = {len(values) for values in lists.values()}
    if len(counts) > 1:
        words = " and ".join(f"{len(v)} for {name}" for name, v in lists.items())
        raise WorkbenchError("cannot sweep these sizes together", f"there are {words}", HINT)
    steps = []
    for place in range(counts.pop()):
        shapes: dict[str, tuple[int, ...]] = {}
        for name, values in lists.items():
            shapes |= _shapes(inputs, name, values[place])
        own = tuple(values[place] for values in lists.values())
        steps.append(SizeStep(own if len(own) > 1 else own[0], shapes))
    return steps


def _listed(name: str, values: object) -> list[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, list | tuple | range) or not 1 <= len(values) <= MOST_SIZES:
        because = f"it takes a list of 1 to {MOST_SIZES} sizes"
        raise WorkbenchError(f"cannot sweep {name}={values!r:.40}", because, HINT)
    return [*values]


def _shapes(
    inputs: Mapping[str, Any], name: str, size: object
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the inputs that a size is for, with their shapes."""
    if name in inputs:
        yield name, _shape(name, tuple(inputs[name].shape), size)
        return
    shapes = {key: tuple(value.shape) for key, value in inputs.items()}
    rows = next((shape[0] for shape in shapes.values() if shape), None)
    if name != BATCH or rows is None:
        because = f"its inputs are {', '.join(inputs)}"
        hint = f"ex.sweep({next(iter(inputs))}=[..]), or batch=[..] for axis 0 of the inputs"
        raise WorkbenchError(f"cannot sweep {name}", because, hint)
    if integer_of(size) is None:
        because = f"{kind_of(size)} is no number of rows"
        raise WorkbenchError(f"cannot sweep batch={size!r:.40}", because, HINT)
    for key, shape in shapes.items():
        if shape and shape[0] == rows:
            yield key, _shape(BATCH, shape, size)


def _shape(name: str, shape: tuple[int, ...], size: object) -> tuple[int, ...]:
    """Return the shape that an input of `shape` gets for a size of a sweep."""
    what = f"cannot sweep {name}={size!r:.40}"
    is_whole = isinstance(size, tuple | list)
    new: list[Any] = [*size] if is_whole else [size, *shape[1:]]  # type: ignore[misc]
    if len(new) != len(shape):
        because = f"the input has {len(shape)} axes, and this {len(new)}"
        raise WorkbenchError(what, because, f"a shape such as {shape}")
    for each, old in zip(new, shape, strict=True):
        if (integer_of(each) or 0) < 1:
            raise WorkbenchError(what, "a size is a whole number from 1 on", HINT)
        if not old and each != old:
            raise WorkbenchError(what, "the input has no elements to repeat", "an input with rows")
    return tuple([int(each) for each in new])


def resized(value: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of this shape, of the values of `value`, repeated or left out at the end of
    each axis: indexes stay in their range. Errors: DeviceError where memory is short."""
    nbytes = math.prod(shape) * _itemsize(value)
    if nbytes > MOST_BYTES:
        because = f"it would have {nbytes:,} bytes"
        raise WorkbenchError(f"cannot make an input of shape {shape}", because, "a smaller one")
    data_memory.pool.check_room(nbytes)
    for axis, size in enumerate(shape):
        if size != value.shape[axis]:
            value = _along(value, axis, size)
    return value.detach().contiguous().realize() if _is_tensor(value) else value


def _along(value: Any, axis: int, size: int) -> Any:
    """Return an array with `size` elements along an axis: those of `value`, again and again."""
    if _is_tensor(value):
        repeats = -(-size // value.shape[axis])
        more = value.repeat(*[repeats if n == axis else 1 for n in range(value.ndim)])
        return more[tuple([slice(0, size) if n == axis else slice(None) for n in range(more.ndim)])]
    places = np.arange(size) % value.shape[axis]
    if isinstance(value, np.ndarray):
        return value.take(places, axis)
    torch: Any = sys.modules["torch"]
    return value.detach().index_select(axis, torch.from_numpy(places).to(value.device))


def _itemsize(value: Any) -> int:
    return int(value.dtype.itemsize)


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, np.ndarray)


def _is_array(value: object) -> bool:
    torch: Any = sys.modules.get("torch")
    kinds: Sequence[type] = (Tensor, np.ndarray, *([] if torch is None else [torch.Tensor]))
    return isinstance(value, tuple(kinds))


def names_text(steps: Iterable[SizeStep]) -> str:
    """Return in words which inputs a sweep resizes."""
    return ", ".join(dict.fromkeys(name for step in steps for name in step.shapes))
