"""Paths: the ways from a function to the tensors that it reaches."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from workbench.tensor.tensor import Tensor

Path = tuple["Step", ...]
"""The way from a root to a tensor."""


@dataclass(frozen=True, slots=True)
class Step:
    """From an object to a part of it: `kind` is "attribute", "item", "member" (of a set), "cell",
    "global", "module", "referent" (of a weak reference), "context" or "gradient", and `name` which
    one it is. To "length", "contents" (of an array), "code" and "kind" leads no tensor: what is
    there is compared alone."""

    kind: str
    name: Any

    def part(self, holder: Any) -> Any:
        """Return the part. Errors: LookupError, AttributeError or ValueError where it is gone."""
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
"""Kinds of steps to what is compared of an object beside its parts."""


def gradient_of(tensor: Tensor) -> Any:
    """Return the `.grad` of a tensor, or None."""
    state = tensor._grad_state
    return None if state is None else state.grad


def tensor_at(root: Any, path: Path) -> Any:
    """Return what is at a path now; None where the path is gone."""
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
    """Return an attribute, without running code of the user's where it can be helped."""
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
