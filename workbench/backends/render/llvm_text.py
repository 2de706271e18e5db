"""The growing text of an LLVM function: lines, indentation, names that are used once."""

from __future__ import annotations

import re

from workbench.backends.render.names import Names


class Text(Names):
    """Lines of LLVM IR. `depth` is how many loops are open; `block` is the one being written."""

    def __init__(self, taken: set[str]):
        super().__init__(taken, _spelled, ".")
        self.lines: list[str] = []
        self.depth = 0
        self.block = ""

    def put(self, text: str) -> None:
        """Add an instruction that has no result."""
        self.lines.append("  " * (self.depth + 1) + text)

    def emit(self, instruction: str, name: str) -> str:
        """Add an instruction and return the name of its result."""
        self.put(f"%{name} = {instruction}")
        return "%" + name

    def step(self, instruction: str) -> str:
        """Add an instruction whose result is only a step on the way to another."""
        return self.emit(instruction, self.numbered("t"))

    def begin(self, block: str) -> None:
        """Begin a block."""
        self.lines.append("  " * self.depth + block + ":")
        self.block = block


def _spelled(name: str) -> str:
    return re.sub(r"[^\w.]", "_", name, flags=re.ASCII)


def global_name(name: str) -> str:
    """Return the name of a function as LLVM IR writes it, quoted if it has odd characters."""
    if re.fullmatch(r"[A-Za-z_.$][\w.$]*", name, flags=re.ASCII):
        return f"@{name}"
    return '@"' + "".join(_quoted(character) for character in name) + '"'


def _quoted(character: str) -> str:
    if character.isascii() and character.isprintable() and character not in '"\\':
        return character
    return "".join(f"\\{byte:02X}" for byte in character.encode())
