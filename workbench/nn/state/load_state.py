"""Loading of a state dict into a model: all of it, or one error that names each wrong key."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from workbench.base.errors import StateError
from workbench.nn.state.state_dict import get_state_dict
from workbench.tensor.operands.arguments import flag, short
from workbench.tensor.operands.refuse import where
from workbench.tensor.tensor import Tensor

_MOST_NAMES = 10
"""Most keys that an error names of each kind."""


def load_state_dict(
    model: Any,
    state_dict: dict[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Make the tensors of `model` equal to those of the same names, and return them.

    Arrays of numpy and of PyTorch are taken, too.
    A tensor takes the dtype of `state_dict`, and stays on its device. Nothing is copied that is
    there already, in the pages of a file too: what is written to the model later, the state dict
    and the file do not see. `strict=False` leaves out keys that only one of them has; `consume`
    removes the entries; `verbose` prints how much was loaded; `realize=False` leaves the work for
    later.

    Shapes: those of the model; () and (1,) fit each other.
    Errors: StateError, before anything is changed, that names all missing, unexpected and
    misshaped keys.
    """
    start = time.perf_counter()
    switches = {"strict": strict, "verbose": verbose, "consume": consume, "realize": realize}
    for name, value in switches.items():
        flag(value, f"load_state_dict: {name}")
    targets = get_state_dict(model)
    entries = _entries(state_dict)
    _check(targets, entries, strict)
    loaded = [targets[key] for key in targets if key in entries]
    for key, target in targets.items():
        if key in entries:
            source = entries.pop(key)
            target.replace(source.reshape(target.shape).to(target.device))
            if consume:
                del state_dict[key]
    if realize and loaded:
        loaded[0].realize(*loaded[1:])
    if verbose:
        megabytes = sum(t.nbytes() for t in loaded) / 1e6
        ms = (time.perf_counter() - start) * 1e3
        print(f"loaded {len(loaded)} tensors, {megabytes:.1f} MB, in {ms:.0f} ms")
    return loaded


def _entries(state_dict: object) -> dict[str, Tensor]:
    """Return the entries of a state dict; arrays, of numpy or PyTorch, become tensors."""
    if not isinstance(state_dict, dict):
        because = f"it is a dict of tensors by name, and this is {short(state_dict)}"
        raise StateError("cannot load a state dict", because, "", where())
    return {
        key: Tensor(value)
        if hasattr(value, "__array__") and not isinstance(value, Tensor)
        else value
        for key, value in state_dict.items()
    }


def _check(targets: dict[str, Tensor], state_dict: dict[str, Tensor], strict: bool) -> None:
    """Raise StateError unless the entries of a state dict fit a model."""
    others = [key for key, value in state_dict.items() if not isinstance(value, Tensor)]
    problems = [f"neither tensors nor arrays: {_listed(map(str, others))}"] if others else []
    if strict:
        missing = [key for key in targets if key not in state_dict]
        unexpected = [str(key) for key in state_dict if key not in targets]
        problems += [f"missing: {_listed(missing)}"] if missing else []
        problems += [f"unexpected: {_listed(unexpected)}"] if unexpected else []
    misshaped = [
        f"{key} (the model has {target.shape}, the state dict {state_dict[key].shape})"
        for key, target in targets.items()
        if isinstance(state_dict.get(key), Tensor)
        and target.shape != (shape := state_dict[key].shape)
        and {target.shape, shape} != {(), (1,)}
    ]
    problems += [f"of another shape: {_listed(misshaped)}"] if misshaped else []
    if problems:
        hint = "strict=False, to load what fits" if strict and not misshaped and not others else ""
        raise StateError(
            "the state dict does not fit the model", "; ".join(problems), hint, where()
        )


def _listed(keys: Iterable[str]) -> str:
    names = list(keys)
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names)} {'key' if len(names) == 1 else 'keys'}, " + (
        ", ".join(names[:_MOST_NAMES]) + more
    )
