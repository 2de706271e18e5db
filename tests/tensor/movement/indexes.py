"""Random indexes of integers, slices, None, ..., masks, tensors and lists, and what they name.

An index is a tuple of entries as text, which is what a failure prints: a line that can be pasted.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tests.tensor.agree import Array
from workbench.tensor import Tensor

KINDS = "int int slice slice slice none list array tensor mask mask_tensor scalar_tensor".split()
INDEX_KINDS = frozenset("list array tensor mask mask_tensor scalar_tensor flag".split())
OUTSIDE = 0.03
"""How often an index in a tensor is out of range."""


def shape_of(rng: random.Random) -> tuple[int, ...]:
    """Return a shape of up to four axes, sometimes an empty one."""
    sizes = [rng.choice((1, 2, 3, 4, 5)) for _ in range(rng.randrange(5))]
    if sizes and rng.random() < 0.08:
        sizes[rng.randrange(len(sizes))] = 0
    return tuple(sizes)


def index(rng: random.Random, shape: tuple[int, ...]) -> list[str]:
    """Return entries for `shape`; a fault in one of them is as likely as in a user's program."""
    entries: list[str] = []
    lead = tuple(rng.choice((1, 2, 3)) for _ in range(rng.randrange(3)))
    masks, axis = 0, 0
    while axis < len(shape) and rng.random() < 0.85:
        kind = rng.choice(KINDS)
        if kind.startswith("mask"):
            # The number of true ones decides the shape: one mask an index, and no array beside it.
            if masks or any("array" in e or "[" in e for e in entries):
                kind = "slice"
            masks += kind != "slice"
        elif kind in INDEX_KINDS and masks:
            kind = "int"
        width = min(rng.choice((1, 1, 2)), len(shape) - axis) if "mask" in kind else 1
        entries.append(_entry(rng, kind, shape[axis : axis + width], lead))
        axis += 0 if kind == "none" else width
    if rng.random() < 0.25:
        entries.insert(rng.randrange(len(entries) + 1), "...")
    if rng.random() < 0.04 and not any("[" in e for e in entries):
        entries.insert(rng.randrange(len(entries) + 1), _entry(rng, "flag", (), ()))
    if rng.random() < 0.05:
        entries.append(str(rng.choice((7, -8, 0))))
    return entries


def _entry(rng: random.Random, kind: str, sizes: tuple[int, ...], lead: tuple[int, ...]) -> str:
    """Return an entry of `kind` for an axis (a mask: for the axes) of `sizes`, as Python. `lead` is
    the shape that index arrays broadcast to."""
    size = sizes[0] if sizes else 1
    if kind == "none":
        return "None"
    if kind == "int":
        at = rng.randrange(-size, size) if size else 0
        return rng.choice(("{}", "{}", "np.int64({})", "np.array({})")).format(at)
    if kind == "slice":
        ends = [rng.choice((None, rng.randrange(-size - 2, size + 3))) for _ in "ab"]
        step = rng.choice((None, 1, 2, 3, -1, -2, -5))
        return f"slice({ends[0]}, {ends[1]}, {step})"
    if kind == "flag":
        return str(rng.random() < 0.7)
    if kind.startswith("mask"):
        cells = np.array([rng.random() < 0.6 for _ in range(int(np.prod(sizes)))], bool)
        text = f"np.array({cells.tolist()}, bool).reshape({sizes})"
        return f"Tensor({text})" if kind == "mask_tensor" else text
    return _integers(rng, kind, size, lead)


def _integers(rng: random.Random, kind: str, size: int, lead: tuple[int, ...]) -> str:
    """Return positions in an axis of `size` as a list, a tuple, an array or a tensor."""
    shape = tuple(rng.choice((1, n)) for n in lead)[rng.choice((0, 0, 0, 1)) :]
    if kind == "scalar_tensor":
        shape = ()
    numbers = [rng.randrange(-size, size) if size else 0 for _ in range(int(np.prod(shape)))]
    is_tensor = kind in ("tensor", "scalar_tensor")
    if is_tensor and numbers and rng.random() < OUTSIDE:
        numbers[0] = rng.choice((size, -size - 1, 100))
    array = np.array(numbers, int).reshape(shape) if size else np.zeros((0,), int)
    if kind == "list":
        entries = array.tolist() if array.ndim else [int(array)]
        return str(tuple(entries) if rng.random() < 0.2 else entries)
    dtype = rng.choice(("int32", "int64", "int8"))
    dtype = "int32" if size > 100 else dtype  # it must hold each position
    text = f"np.array({array.tolist()}, {dtype!r})"
    if kind == "array" and array.ndim:
        return text
    # One out of range is refused where it is known: the sum is not computed yet.
    is_outside = size and not ((array >= -size) & (array < size)).all()
    return f"(Tensor({text}) + 0)" if is_outside else f"Tensor({text})"


def positions(shape: tuple[int, ...], entries: tuple[Any, ...]) -> Array:
    """Return which elements of an array of `shape` an index names, by their numbers: -1 for one
    that an index in a tensor has out of range.

    It is numpy's answer by torch's rule: integers come first, and then index arrays.
    Errors: IndexError where numpy raises it, or a tensor indexes an axis without elements.
    """
    basic, advanced = _split(shape, entries)
    numbers = np.arange(int(np.prod(shape))).reshape(shape)[tuple(basic)]
    if not any(isinstance(e, np.ndarray) for e in advanced):
        return numbers[tuple(advanced)]
    # An element more along each axis is where what is out of range leads.
    axes = [n for n, e in enumerate(advanced) if not isinstance(e, bool)]
    for axis, n in enumerate(axes):
        size = numbers.shape[axis]
        entry = advanced[n]
        advanced[n] = slice(0, size) if isinstance(entry, slice) else _inside(entry, size)
    wide = np.pad(numbers, [(0, 1)] * numbers.ndim, constant_values=-1)
    return wide[tuple(advanced)]


def _split(shape: tuple[int, ...], entries: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Return the basic entries of an index, and the arrays that index what these leave. A mask is
    an array for each of its axes, a tensor an object array that holds its numbers."""
    entries = tuple(_plain(e) for e in entries)
    used = sum(
        e.ndim if isinstance(e, np.ndarray) and e.dtype == bool else 1
        for e in entries
        if e is not None and e is not ... and not isinstance(e, bool)
    )
    if used > len(shape):
        raise IndexError("too many indices")
    if not any(e is ... for e in entries):
        entries = (*entries, ...)
    basic: list[Any] = []
    advanced: list[Any] = []
    for e in entries:
        axis = len([b for b in basic if b is not None])
        if e is ...:
            rest = [slice(None)] * (len(shape) - used)
            basic, advanced = basic + rest, advanced + rest
        elif e is None or isinstance(e, slice):
            basic.append(e)
            advanced.append(slice(None))
        elif isinstance(e, bool):
            advanced.append(e)
        elif isinstance(e, int):
            basic.append(e)
        elif e.dtype == bool:
            # numpy takes a mask without elements for an axis of any size
            if e.shape != shape[axis : axis + e.ndim]:
                raise IndexError(f"a mask of {e.shape} for axis {axis}")
            basic += [slice(None)] * e.ndim
            advanced += np.nonzero(e)
        else:
            basic.append(slice(None))
            advanced.append(e)
    return [*basic, ...], advanced


def _plain(entry: Any) -> Any:
    """Return an entry as None, ..., a slice, a bool, an int or an array."""
    if isinstance(entry, Tensor):
        array = entry.numpy()
        return array if array.dtype == bool else array.astype(object)
    if isinstance(entry, int | np.integer) or np.ndim(entry) == 0:
        is_number = entry is not None and entry is not ... and not isinstance(entry, slice)
        return entry if isinstance(entry, bool) or not is_number else int(entry)
    array = np.asarray(entry)
    return array if array.size or array.dtype == bool else array.astype(int)


def _inside(entry: Array, size: int) -> Array:
    """Return positions of an axis of `size`, counted from its start: `size` is out of range."""
    is_tensor, entry = entry.dtype == object, entry.astype(np.int64)
    outside = (entry < -size) | (entry >= size)
    if np.any(outside) and (not is_tensor or not size):
        raise IndexError("out of range")
    return np.where(outside, size, np.where(entry < 0, entry + size, entry))
