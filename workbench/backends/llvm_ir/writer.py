"""The growing text of an LLVM function: lines, indentation, unique names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workbench.backends.program.text import Names


class LLVMWriter(Names):
    """Lines of LLVM IR. `depth` is the number of open loops; `block` is the one being written.

    `positions` has, for each line, the positions in the program of the nodes whose code it is; `at`
    is the position that is being written.
    """

    def __init__(self, reserved: Iterable[str]):
        super().__init__({*reserved}, _spelled, ".")
        self.lines: list[str] = []
        self.positions: list[tuple[int, ...]] = []
        self.at: tuple[int, ...] = ()
        self.depth = 0
        self.block = ""

    def put(self, text: str) -> None:
        """Add an instruction that has no result."""
        self.lines.append("  " * (self.depth + 1) + text)
        self.positions.append(self.at)

    def emit(self, instruction: str, name: str) -> str:
        """Add an instruction and return the name of its result."""
        self.put(f"%{name} = {instruction}")
        return "%" + name

    def step(self, instruction: str) -> str:
        """Add an instruction whose result only the next instructions use."""
        return self.emit(instruction, self.numbered("t"))

    def begin(self, block: str) -> None:
        """Begin a block."""
        self.lines.append("  " * self.depth + block + ":")
        self.positions.append(())
        self.block = block

    def blank(self) -> None:
        """Add an empty line."""
        self.lines.append("")
        self.positions.append(())

    def insert(self, at: int, lines: list[tuple[str, tuple[int, ...]]]) -> None:
        """Put lines, each with its positions, before line `at`."""
        self.lines[at:at] = [line for line, _ in lines]
        self.positions[at:at] = [positions for _, positions in lines]


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
