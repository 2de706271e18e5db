"""Random indexes against numpy: integers, slices with steps, None, ..., masks, tensors, lists.

An index is a tuple of entries as text, which is what a failure prints: a line that can be pasted.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.support import count
from workbench.base.context import Context
from workbench.base.errors import WorkbenchError
from workbench.tensor import Tensor

KINDS = "int int slice slice slice none list array tensor mask mask_tensor scalar_tensor".split()
INDEX_KINDS = frozenset("list array tensor mask mask_tensor scalar_tensor flag".split())


def shape_of(rng: random.Random) -> tuple[int, ...]:
    """Return a shape of up to four axes, sometimes an empty one."""
    sizes = [rng.choice((1, 2, 3, 4, 5)) for _ in range(rng.randrange(5))]
    if sizes and rng.random() < 0.08:
        sizes[rng.randrange(len(sizes))] = 0
    return tuple(sizes)


def entry(rng: random.Random, kind: str, sizes: tuple[int, ...], lead: Any) -> str:
    """Return an entry of `kind` for an axis (a mask: for the axes) of `sizes`, as Python. `lead` is
    the shape that index arrays broadcast to."""
    size = sizes[0] if sizes else 1
    if kind == "none":
        return "None"
    if kind == "int":
        return str(rng.randrange(-size, size) if size else 0)
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
    shape = tuple(rng.choice((1, n)) for n in lead)[rng.choice((0, 0, 0, 1)) :]
    if kind == "scalar_tensor":
        shape = ()
    numbers = [
        rng.randrange(-size, size) if size else 0 for _ in range(int(np.prod(shape)))
    ]
    array = np.array(numbers, int).reshape(shape)
    if not size:
        array = np.zeros((0,), int)
    if kind == "list":
        return str(array.tolist()) if array.ndim else str([int(array)])
    dtype = rng.choice(("int32", "int64", "int8"))
    text = f"np.array({array.tolist()}, {dtype!r})"
    return text if kind == "array" and array.ndim else f"Tensor({text})"


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
        entries.append(entry(rng, kind, shape[axis : axis + width], lead))
        axis += 0 if kind == "none" else width
    if rng.random() < 0.25:
        entries.insert(rng.randrange(len(entries) + 1), "...")
    if rng.random() < 0.04 and not any("[" in e for e in entries):
        entries.insert(rng.randrange(len(entries) + 1), entry(rng, "flag", (), ()))
    if rng.random() < 0.05:
        entries.append(str(rng.choice((7, -8, 0))))
    return entries


def numpys(x: Any, entries: tuple[Any, ...]) -> Any:
    """Return numpy's answer by torch's rule: integers come first, and then index arrays."""
    entries = tuple(e.numpy() if isinstance(e, Tensor) else e for e in entries)
    used = sum(
        np.ndim(e) if np.asarray(e).dtype == bool and e is not ... else 1
        for e in entries
        if e is not None and e is not ... and not isinstance(e, bool)
    )
    if ... not in [e for e in entries if e is ...]:
        entries = (*entries, ...)
    basic: list[Any] = []
    advanced: list[Any] = []
    for e in entries:
        if e is ...:
            rest = [slice(None)] * (x.ndim - used)
            basic, advanced = basic + rest, advanced + rest
        elif e is None or isinstance(e, slice):
            basic.append(e)
            advanced.append(slice(None))
        elif isinstance(e, bool):
            advanced.append(e)
        elif isinstance(e, int):
            basic.append(e)
        else:
            array = np.asarray(e)
            array = array if array.size or array.dtype == bool else array.astype(int)
            width = array.ndim if array.dtype == bool else 1
            axis = len([b for b in basic if b is not None])
            # numpy takes a mask without elements for an axis of any size
            if array.dtype == bool and array.shape != x.shape[axis : axis + width]:
                raise IndexError(f"a mask of {array.shape} for axis {axis}")
            basic += [slice(None)] * width
            advanced.append(array)
    if used > x.ndim:
        raise IndexError("too many indices")
    return x[tuple(basic)][tuple(advanced)]


@pytest.mark.parametrize("seed", range(0, count(5000), 50))
def test_indexes_give_what_numpy_gives(seed: int) -> None:
    for number in range(seed, seed + 50):
        rng = random.Random(number)
        shape = shape_of(rng)
        text = f"({''.join(e + ', ' for e in index(rng, shape))})"
        x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        device = "LLVM" if number % 10 == 0 else "PYTHON"
        program = f"seed {number} on {device}: Tensor(np.arange({x.size}).reshape({shape}))[{text}]"
        with Context(DEV=device):
            entries = eval(text, {"np": np, "Tensor": Tensor})
            try:
                want = numpys(x, entries)
            except IndexError as error:
                if any(isinstance(e, Tensor) for e in entries):
                    continue  # out of range in a tensor, which gives 0
                with pytest.raises(WorkbenchError):
                    Tensor(x)[entries].numpy()
                    pytest.fail(f"{program}: numpy says {error}")
                continue
            have = Tensor(x)[entries].numpy()
        assert have.shape == want.shape, program
        assert np.array_equal(have, want), program
