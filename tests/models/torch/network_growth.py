"""Networks of torch.nn that grow as text: a class that can be pasted, with its inputs.

A network grows line by line. A line is kept if PyTorch computes it, so that shapes, dtypes and
arguments need no rules here: what is drawn at random and refused by PyTorch is drawn again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.peers import torch

MOST_ELEMENTS = 1500
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11)
HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"


@dataclass
class Network:
    """A network as text: lines of its constructor and of its forward, and what makes its inputs."""

    seed: int
    init: list[str]
    forward: list[str]
    inputs: list[str]
    results: list[str]
    dtype: str
    is_training: bool
    weights: int

    @property
    def text(self) -> str:
        """The class, and the lines that make `net` and `inputs`."""
        names = ", ".join(f"x{n}" for n in range(len(self.inputs)))
        lines = ["class Net(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        lines += [f"        {line}" for line in self.init]
        lines += ["", f"    def forward(self, {names}):"]
        lines += [f"        {line}" for line in self.forward]
        lines += [f"        return {', '.join(self.results)}", "", ""]
        lines += [f"torch.manual_seed({self.seed})"]
        mode = "train()" if self.is_training else "eval()"
        lines += [f"net = Net().to(torch.{self.dtype}).{mode}"]
        lines += [f"inputs = [{', '.join(self.inputs)}]"]
        return HEAD + "\n".join(lines) + "\n"

    def build(self, dtype: str = "") -> tuple[Any, list[Any]]:
        """Return the module and its inputs, in another dtype if one is given."""
        space: dict[str, Any] = {}
        text = self.text.replace(f"torch.{self.dtype}", f"torch.{dtype or self.dtype}")
        exec(compile(text, f"<network {self.seed}>", "exec"), space)
        return space["net"], space["inputs"]


@dataclass
class Growth:
    """A network that grows, with the values that its lines have."""

    dice: random.Random
    dtype: str
    is_training: bool
    names: dict[str, Any] = field(default_factory=dict)
    init: list[str] = field(default_factory=list)
    forward: list[str] = field(default_factory=list)
    owner: Any = None
    count: int = 0

    def pick(self, *choices: Any) -> Any:
        return self.dice.choice(choices)

    def value(self, fits: Callable[[Any], bool] = lambda x: True) -> str:
        """Return the name of a float value; of the newest as often as of all others."""
        found = [n for n, v in self.names.items() if v.is_floating_point() and fits(v)]
        if not found:
            raise NoOperand
        return found[-1] if self.dice.random() < 0.6 else self.dice.choice(found)

    def module(self, text: str) -> str:
        """Note a module of the constructor, and return its name."""
        name = f"m{sum(line.startswith('self.m') for line in self.init)}"
        module = eval(text, SPACE).to(getattr(torch, self.dtype)).train(self.is_training)
        setattr(self.owner, name, module)
        self.init.append(f"self.{name} = {text}")
        return f"self.{name}"

    def buffer(self, shape: tuple[int, ...]) -> str:
        name = f"b{sum('register_buffer' in line for line in self.init)}"
        text = f"torch.randn({shape})"
        setattr(self.owner, name, eval(text, SPACE).to(getattr(torch, self.dtype)))
        self.init.append(f'self.register_buffer("{name}", {text})')
        return f"self.{name}"

    def grow(self, line: Callable[[Growth], str]) -> bool:
        """Add a line, or none where PyTorch refuses it; return whether there is one more."""
        kept = len(self.init), len(self.forward)
        try:
            text = line(self)
            lines = text.split("\n")
            name = f"v{self.count}"
            space = {**SPACE, **self.names, "self": self.owner}
            for line in lines[:-1]:
                exec(line, space)
            value = eval(lines[-1], space)
            if not isinstance(value, torch.Tensor) or value.numel() > MOST_ELEMENTS:
                raise NoOperand
            if value.is_floating_point() and not bool((value.abs() < 1e4).all()):
                raise NoOperand
        except (NoOperand, RuntimeError, ValueError, IndexError, TypeError, AssertionError):
            del self.init[kept[0] :], self.forward[kept[1] :]
            return False
        self.count += 1
        self.forward += [*lines[:-1], f"{name} = {lines[-1]}"]
        self.names[name] = value
        return True


class NoOperand(Exception):
    """No value fits what was drawn."""


SPACE: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
