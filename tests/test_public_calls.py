"""Every public function and method but those of Tensor, given values of every wrong kind: done, or
refused in words. What there is to call, reflection says (Tensor's methods are called in
tests/tensor/operands/test_bad_arguments.py).
"""

from __future__ import annotations

import inspect
import random
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import workbench
from tests.peers import torch
from tests.support import count
from workbench import Device, Opt, OptOps, Tensor, Variable, explore, nn
from workbench.base.errors import WorkbenchError

Call = tuple[tuple[Any, ...], dict[str, Any]]
_ENDLESS = {"search", "to_widget", "bisect"}
"""Methods that take long, or need a notebook, whatever they are given."""
_PYTHON = {"AxisType", "Exploration", "Kernel", "Tensor"}
"""Python's own enum, and classes that are made by other means."""
_MOST_CHARACTERS = 1500


class Stranger:
    """Something that nobody expects."""


@cache
def subjects() -> dict[str, Any]:
    """Return values whose public methods are called, by what they are called."""
    x, w = Tensor(np.ones((8, 6), np.float32)), Tensor(np.ones((6, 4), np.float32))
    ex = explore((x @ w).relu())
    kernel = ex.kernels[0]
    weight = Tensor([[1.0, 2.0]], requires_grad=True)
    optim = nn.optim
    optimizers = [optim.SGD, optim.Adam, optim.AdamW, optim.LAMB, optim.LARS]
    layers = [
        nn.Linear(6, 3), nn.Conv2d(2, 3, 2), nn.ConvTranspose2d(2, 3, 2), nn.Embedding(4, 3),
        nn.LayerNorm(6), nn.LayerNorm2d(6), nn.BatchNorm(3), nn.GroupNorm(1, 2),
        nn.InstanceNorm(3), nn.RMSNorm(6), nn.LSTMCell(6, 3),
    ]  # fmt: skip
    values = [ex, kernel, kernel.compile("PYTHON"), Device, Variable("n", 1, 10)]
    steps = [make([weight]) for make in optimizers]
    return {type(value).__name__: value for value in [*values, *steps, *layers]}


def callables() -> dict[str, Callable[..., Any]]:
    """Return what there is to call, by name."""
    listed: dict[str, Callable[..., Any]] = {}
    for name, value in subjects().items():
        kind = type(value)
        for method in dir(kind):
            is_public = not method.startswith("_") or method in ("__call__", "__getitem__")
            is_property = isinstance(inspect.getattr_static(kind, method), property)
            if is_public and not is_property and method not in _ENDLESS:
                if callable(getattr(kind, method)):
                    listed[f"{name}.{method}"] = getattr(value, method)
    for name in set(workbench.__all__) - _PYTHON - {"dtypes", "nn"}:
        if callable(thing := getattr(workbench, name)):
            listed[name] = thing
    for module in (nn, nn.optim, nn.state, nn.datasets):
        for name, thing in vars(module).items():
            home = getattr(thing, "__module__", "") or ""
            if not name.startswith("_") and callable(thing):
                if home.startswith("workbench.nn"):
                    listed[f"{module.__name__}.{name}"] = thing
    return dict(sorted(listed.items()))


def values() -> dict[str, Any]:
    """Return values of every wrong kind."""
    kernel = subjects()["Kernel"]
    return {
        "None": None, "True": True, "-1": -1, "99": 99, "2**63": 2**63, "10**400": 10**400,
        "1.5": 1.5, "nan": float("nan"), "1j": 1j, "a word": "word", "no word": "", "zero": "\0",
        "half a character": "\ud800", "a long word": "x" * 5000, "bytes": b"x", "a tuple": (),
        "a list": ["a"], "a dict": {"a": 1}, "a set": {1}, "len": len, "int": int,
        "a function": lambda: None, "...": ..., "a slice": slice(None), "a stranger": Stranger(),
        "np.float64": np.float64(1.5), "np.int64": np.int64(1), "an array": np.ones(2),
        "torch": torch.ones(2), "torch scalar": torch.tensor(1), "a tensor": Tensor([1.0, 2.0]),
        "another device's": Tensor([1.0], device="PYTHON"), "a kernel": kernel,
        "an exploration": subjects()["Exploration"], "an opt": Opt(OptOps.UPCAST, "g1", 2),
        "an iterator": iter([1, 2]), "a device": Device["LLVM"], "a node": kernel.ast,
        "a module": np, "an error": ValueError("x"), "no path": "/nonexistent/x/y",
    }  # fmt: skip


def calls(function: Callable[..., Any], value: Any) -> Iterator[Call]:
    """Yield arguments: each parameter in turn is the value, what else is needed is plausible."""
    listed = inspect.signature(function).parameters.values()
    named = [p for p in listed if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = [p.name for p in named if p.default is p.empty]
    if any(p.kind is p.VAR_POSITIONAL for p in listed) and not needed:
        yield (value,), {}
    if any(p.kind is p.VAR_KEYWORD for p in listed):
        yield (), {**dict.fromkeys(needed, 1), "nonsense": value}
    for parameter in named:
        others = [name for name in needed if name != parameter.name]
        for plausible in (1, "word") if others else (1,):
            yield (), {**dict.fromkeys(others, plausible), parameter.name: value}


def complaint(error: BaseException) -> str | None:
    """Return what is wrong with an error; None where it is a refusal in words."""
    if isinstance(error, WorkbenchError):
        if not (error.what and error.because):
            return "it gives no reason"
        if not error.hint and not error.because.startswith("expected "):
            return f"it says nothing to try: {error}"
        return "it is too long" if len(str(error)) > _MOST_CHARACTERS else None
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, TypeError) and "argument" in str(error) and len(frames) <= 2:
        return None  # Python's own, for a call that does not fit the signature
    is_ours = "/workbench/" in frames[-1].filename.replace("\\", "/")
    if isinstance(error, TypeError | ValueError) and is_ours:
        if (frames[-1].line or "").startswith("raise "):
            return None
    return "".join(traceback.format_exception(error))


def test_bad_calls_are_refused_in_words_or_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)  # "word" is a path, too
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    functions, given = callables(), values()
    assert len(functions) > 100
    draw = random.Random("public calls")
    pairs = [(name, kind) for name in functions for kind in given]
    for name, kind in draw.sample(pairs, min(count(20_000), len(pairs))):
        for args, named in calls(functions[name], given[kind]):
            try:
                functions[name](*args, **named)
            except Exception as error:
                wrong = complaint(error)
                assert wrong is None, f"{name}(*{args!r:.80}, **{named!r:.80}): {wrong}"
