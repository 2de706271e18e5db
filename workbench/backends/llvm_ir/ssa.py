"""SSA form of a linear program, and the constant offsets of its addresses, for the LLVM renderer.

LLVM's values never change, so a register that a loop changes becomes a phi at the loop's head,
which must be known before the loop is written. Constant parts of indexes become offsets of
addresses.

Sections: SSA form of a linear program, and the constant offsets of its addresses, for the LLVM
renderer; The growing text of an LLVM function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from workbench.backends.program.text import Names
from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# SSA form of a linear program, and the constant offsets of its addresses, for the LLVM renderer.


@dataclass(frozen=True, slots=True)
class SSAPlan:
    """The values of a linear program in SSA form.

    `loop_carried` has, by the position of each LOOP, its loop-carried registers; `set_in` has, by
    the position of each IF, the registers that it sets, and `conditional` has all of these;
    `folded` are sums that are only offsets of addresses; `names` has, for a value, the register
    that it is computed for.

    Units: zero_bytes is the size of the widest load under a condition.
    """

    loop_carried: dict[int, tuple[UOp, ...]]
    set_in: dict[int, tuple[UOp, ...]]
    conditional: frozenset[UOp]
    folded: frozenset[UOp]
    names: dict[UOp, UOp]
    zero_bytes: int


def construct_ssa(linear: tuple[UOp, ...]) -> SSAPlan:
    """Walk a linear program once and return its values in SSA form."""
    gated = [n for n in linear if n.op is Ops.LOAD and len(n.src) > 1]
    zeros = [n.dtype.itemsize for n in gated if n.src[1].dtype.count == 1]
    set_in = _set_in_branches(linear)
    return SSAPlan(
        loop_carried=_loop_carried(linear),
        set_in=set_in,
        conditional=frozenset(r for registers in set_in.values() for r in registers),
        folded=_folded(linear),
        names={n.src[1]: n.src[0] for n in linear if n.op is Ops.SET},
        zero_bytes=max(zeros, default=0),
    )


@dataclass(slots=True)
class _OpenLoop:
    """A LOOP during the walk: its position, the number of open IFs in it, the registers that it
    accesses (True: their old value is read first), and those that it changes."""

    position: int
    branches: int = 0
    read_first: dict[UOp, bool] = field(default_factory=dict)
    changed: dict[UOp, None] = field(default_factory=dict)

    def read(self, node: UOp) -> None:
        if node.op is Ops.REG:
            self.read_first.setdefault(node, True)

    def set(self, register: UOp) -> None:
        """A register that is set in a branch keeps its old value in the other one."""
        self.read_first.setdefault(register, self.branches > 0)
        self.changed[register] = None


def _loop_carried(linear: tuple[UOp, ...]) -> dict[int, tuple[UOp, ...]]:
    """Return, by the position of each LOOP, the registers that it changes after it reads them.

    A loop body runs from top to bottom, so the first access of a register decides.
    """
    by_loop: dict[int, tuple[UOp, ...]] = {}
    open_loops: list[_OpenLoop] = []
    for position, node in enumerate(linear):
        if node.op is Ops.LOOP:
            open_loops.append(_OpenLoop(position))
        elif node.op is Ops.ENDLOOP:
            loop_end = open_loops.pop()
            registers = (r for r in loop_end.changed if loop_end.read_first[r])
            by_loop[loop_end.position] = tuple(registers)
        else:
            reads = node.src[1:] if node.op is Ops.SET else node.src
            for loop in open_loops:
                loop.branches += (node.op is Ops.IF) - (node.op is Ops.ENDIF)
                for source in reads:
                    loop.read(source)
                if node.op is Ops.SET:
                    loop.set(node.src[0])
    return by_loop


def _set_in_branches(linear: tuple[UOp, ...]) -> dict[int, tuple[UOp, ...]]:
    """Return the registers that each IF sets, by its position."""
    by_branch: dict[int, tuple[UOp, ...]] = {}
    branches: list[tuple[int, dict[UOp, None]]] = []
    for position, node in enumerate(linear):
        if node.op is Ops.IF:
            branches.append((position, {}))
        elif node.op is Ops.ENDIF:
            start, registers = branches.pop()
            by_branch[start] = tuple(registers)
        elif node.op is Ops.SET:
            for _, registers in branches:
                registers[node.src[0]] = None
    return by_branch


def _folded(linear: tuple[UOp, ...]) -> frozenset[UOp]:
    """Return the sums of a value and a constant that only addresses use."""
    sums = {n for n in linear if n.op is Ops.ADD and split_offset(n)[0] is not n}
    for node in linear:
        used = node.src[2:] if node.op is Ops.INDEX else node.src
        sums.difference_update(used)
    return frozenset(sums)


def split_offset(index: UOp) -> tuple[UOp, int]:
    """Return (rest, constant) of an index, which is their sum."""
    if index.op is Ops.CONST:
        return UOp.index(0), int(index.arg)
    if index.op is Ops.ADD and index.dtype is dtypes.index:
        for rest, offset in (index.src, index.src[::-1]):
            if offset.op is Ops.CONST:
                return rest, int(offset.arg)
    return index, 0


# --------------------------------------------------------------------------------------------------
# The growing text of an LLVM function: lines, indentation, unique names.


class LLVMWriter(Names):
    """Lines of LLVM IR. `depth` is the number of open loops; `block` is the block being written.

    `positions` has, for each line, the positions of its nodes in the program; `at` has the
    positions for the lines that are being written.
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
