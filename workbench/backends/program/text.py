"""Text of a kernel in any language: source and language as data, names, comments, expressions.

Sections: Comments in generated code; Unique names of generated code; A language of kernels;
Source; The growing text of a function in a C-like language; C expressions; Source text that a
user wrote.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from workbench.backends.program.launch import LaunchShape
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.nest.accesses import name_of
from workbench.ir.nest.loops import tree_statements
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import UOp, leaves
from workbench.ir.text.program import statement_lines

# --------------------------------------------------------------------------------------------------
# Comments in generated code: the statement that the lines below compute.
#
# A linear program has the statements of its statement tree, in the same order. `Follower` walks the
# tree in step with the program, and so finds the statement of the tree to which each write of the
# program belongs. If the two do not agree (a program written by hand has no tree), it finds none,
# and the code has no comments.

_NOT_FOLLOWED = (Ops.SPECIAL, Ops.BARRIER)
_LONGEST_COMMENT = 88
_LONG_COST = 20
"""Least cost, in additions, of an op that becomes a polynomial of many lines."""
_SIGN = re.compile(r" (?:\+|\*|max|min)?= ")


class Follower:
    """Walks a statement tree in step with its linear program."""

    def __init__(self, block: UOp, tree: UOp | None = None):
        """`tree` has the same statements with the ops that comments should show."""
        written = tree_statements(block)
        originals = written if tree is None else tree_statements(tree)
        if len(originals) != len(written):
            tree, originals = block, written
        self._words = statement_lines(tree or block)
        self._originals = dict(zip(written, originals, strict=True))
        self._levels: list[Iterator[UOp]] = [iter(block.src)]
        self._leaf: UOp | None = None
        self._elements_left = 0

    def open(self, axis: UOp) -> None:
        """A loop over `axis` begins."""
        node = self._next()
        if node is None or node.op is not Ops.LOOP or node.src[0] is not axis:
            self._stop()
            return
        self._levels.append(iter(node.body))

    def open_if(self) -> None:
        """An IF begins."""
        node = self._next()
        if node is None or node.op is not Ops.IF:
            self._stop()
            return
        self._levels.append(iter(node.body))

    def close(self) -> None:
        """The innermost loop or IF ends."""
        if self._levels:
            self._levels.pop()

    def write(self, node: UOp) -> UOp | None:
        """Read a SET or STORE; return its statement if that is complete now, else None."""
        if self._elements_left == 0:
            self._leaf = leaf = self._next()
            if leaf is None or leaf.op not in (Ops.STORE, Ops.ACCUMULATE):
                self._stop()
                return None
            lanes = [r for r in leaf.src[0].ranges if r.axis_kind.is_lane]
            self._elements_left = math.prod(r.extent for r in lanes)
        leaf = self._leaf
        if leaf is None or not _is_part_of(node, leaf):
            self._stop()
            return None
        self._elements_left -= node.src[1].dtype.count
        return leaf if self._elements_left == 0 else None

    def comment(self, leaf: UOp) -> str:
        """Return a statement's readable text; if that is long, the buffers that it reads."""
        leaf = self._originals[leaf]
        lines = self._words[leaf]
        if len(lines) == 1 and len(lines[0]) <= _LONGEST_COMMENT:
            return lines[0]
        target = _SIGN.split(lines[-1], maxsplit=1)[0]
        nodes = leaf.src[1].toposort()
        places = dict.fromkeys(n.place.param for n in nodes if n.op is Ops.LOAD)
        names = ", ".join(name_of(place) for place in places)
        long = [n.op for n in nodes if OPS[n.op].cost >= _LONG_COST]
        functions = dict.fromkeys(op.name.lower() for op in long)
        by = f", with {' and '.join(functions)}" if functions else ""
        return f"{target} from {names}{by}" if names else target + by

    def _next(self) -> UOp | None:
        if self._elements_left or not self._levels:
            return None
        statements = (n for n in self._levels[-1] if n.op not in _NOT_FOLLOWED)
        return next(statements, None)

    def _stop(self) -> None:
        self._levels, self._leaf, self._elements_left = [], None, -1


def deserves_comment(leaf: UOp, n_lines: int) -> bool:
    """Whether `n_lines` lines of code need a comment that says which statement they compute."""
    has_lanes = any(r.axis_kind.is_lane for r in leaf.src[1].ranges)
    return not leaf.src[1].is_const and (n_lines >= 2 or has_lanes)


def _is_part_of(node: UOp, leaf: UOp) -> bool:
    place = leaf.place.memory
    if node.op is Ops.SET:
        return place.op is Ops.DEFINE and place.name == node.src[0].name
    return node.place.param is place.param


# --------------------------------------------------------------------------------------------------
# Unique names of generated code.


class Names:
    """Returns unique names. `spell` turns a text into an identifier of the language; `joint` stands
    between a name and the number that its second use gets."""

    def __init__(self, reserved: set[str], spell: Callable[[str], str], joint: str):
        self._used, self._spell, self._joint = reserved, spell, joint
        self._counts: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return `name` as an identifier of the language, with a number after it from its second
        use on."""
        name = self._spell(name)
        unique_name, number = name, 1
        while unique_name in self._used:
            number += 1
            unique_name = f"{name}{self._joint}{number}"
        self._used.add(unique_name)
        return unique_name

    def numbered(self, name: str) -> str:
        """Return `name0`, `name1`, ... in turn."""
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        return self.unique(f"{name}{number}")


# --------------------------------------------------------------------------------------------------
# A language of kernels: its label, and the patterns that highlight its text.


@dataclass(frozen=True, slots=True)
class Language:
    """`name` is the label of its tab on the page, `title` its description. The others are regular
    expressions that Python and JavaScript read alike: `head` matches the line where the kernel
    begins ("": the first line), `comment` a comment, `word` a word in bold."""

    name: str
    title: str
    comment: str
    word: str
    head: str = ""


# --------------------------------------------------------------------------------------------------
# Source: the text of a kernel, and the facts that a runtime needs to load it.

MOST_CHARACTERS = 1 << 22
"""A compiler takes minutes for a longer text, and no user writes such a kernel by hand."""
_UNREADABLE = re.compile("\\A\ufeff|[\0\ud800-\udfff]")
"""Characters that some compilers do not read: many ignore the text after a NUL, UTF-8 has no single
surrogates, and NVRTC refuses a byte order mark, which is invisible."""


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel as text in the `language` of a device.

    `params` has the dtype and the number of elements of each argument, by slot (dtype void
    for a slot that the kernel never touches); `launch` has the loops of which a launch runs a
    part; `aligned` are the slots whose memory must begin at a multiple of
    `Memory.alignment_bytes`; `block` is the lowered statement tree, for the emulator. `linear` is
    the linear program, and `lines` has, for each line of the text, the positions in `linear` of the
    line's nodes (none for a brace or a comment); both are () for a text that a user wrote.
    `original` is the Source whose text was edited, None for an unedited text; `is_handwritten` says
    that a user wrote the kernel.

    Errors: as `require_readable`.
    Units: shared_bytes is the memory of a group that a launch allocates, 0 if the text has the
    sizes of its arrays; scratch_bytes is the scratch memory that a launch passes, 0 if it is on the
    kernel's stack.
    """

    name: str
    language: str
    text: str
    params: tuple[tuple[DType, int], ...]
    scratch_bytes: int = 0
    launch: LaunchShape = LaunchShape()
    aligned: tuple[int, ...] = ()
    block: UOp | None = None
    lines: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)
    linear: tuple[UOp, ...] = field(default=(), compare=False, repr=False)
    shared_bytes: int = 0
    original: Source | None = field(default=None, compare=False, repr=False)
    is_handwritten: bool = False

    def __post_init__(self) -> None:
        require_readable(self.text)

    def edited(self, text: str) -> Source:
        """Return a Source with another text, and this one as its `original`."""
        return replace(self, text=text, lines=(), linear=(), original=self)

    def __str__(self) -> str:
        return self.text

    @property
    def slots(self) -> list[int]:
        """The slots that the kernel uses, in the order of the parameters of its text."""
        return [slot for slot, (dtype, _) in enumerate(self.params) if dtype.bits]


def require_readable(text: str) -> None:
    """Errors: CompileError for a text that is too long, or has a character that some compilers do
    not read."""
    fault = None if text.isascii() and "\0" not in text else _UNREADABLE.search(text)
    if fault is not None:
        line = text.count("\n", 0, fault.start()) + 1
        half = f"has half a character, U+{ord(fault[0]):X}"
        names = {"\0": "has a NUL", "\ufeff": "begins with a byte order mark"}
        name = names.get(fault[0], half)
        because = f"line {line} {name}: the compiler reads another text than the one shown"
        hint = f"line {line} without it"
        raise CompileError("read", because, hint=hint, line=line)
    if len(text) > MOST_CHARACTERS:
        because = f"the text has {len(text):,} characters, and a compiler gets {MOST_CHARACTERS:,}"
        raise CompileError("read", because, hint="a shorter text, or other opts")


def signature(params: Iterable[UOp]) -> tuple[tuple[DType, int], ...]:
    """Return (dtype, elements) by slot from PARAMs; a slot without a PARAM is void and empty."""
    by_slot = {p.slot: (p.dtype.scalar, p.length) for p in params}
    slots = range(max(by_slot, default=-1) + 1)
    return tuple(by_slot.get(slot, (dtypes.void, 0)) for slot in slots)


# --------------------------------------------------------------------------------------------------
# The growing text of a function in a C-like language: lines, indentation, unique names.

_WIDTH = 96
"""Most characters of a line of a comment."""
_LONGEST_LINE = 110
"""Most characters of a line of code."""


class CodeWriter(Names):
    """Lines of code, the body of a function. `depth` is the number of open loops.

    `positions` has, for each line, the positions of its nodes in the program; `at` has the
    positions for the lines that are being written.
    """

    def __init__(self, reserved: Iterable[str]):
        self.words = frozenset(reserved)
        super().__init__({*self.words}, self.identifier, "_")
        self.lines: list[str] = []
        self.positions: list[tuple[int, ...]] = []
        self.at: tuple[int, ...] = ()
        self.depth = 0

    def put(self, text: str) -> None:
        """Add a statement; a long line is wrapped."""
        pad = "  " * (self.depth + 1)
        lines = [pad + text]
        if len(lines[0]) > _WIDTH:
            code, mark, note = text.partition("  // ")
            lines = textwrap.wrap(
                code,
                _WIDTH,
                initial_indent=pad,
                subsequent_indent=pad + "    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines[-1] += mark + note
        self.lines += lines
        self.positions += [self.at] * len(lines)

    def comment(self, words: str, at: int) -> None:
        """Put a comment before line `at`: one line, cut where it would be too long."""
        line = "  " * (self.depth + 1) + "// " + words.replace("\n", " ")
        self.lines.insert(at, line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + " ..")
        self.positions.insert(at, ())

    def identifier(self, name: str) -> str:
        """Return `name` as an identifier of the language."""
        return identifier(name, self.words)


def identifier(name: str, reserved: Container[str]) -> str:
    """Return `name` as an identifier of a language with these `reserved` words."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not name or name[0].isdigit():
        name = "k" + name
    return name + "_" if name in reserved else name


# --------------------------------------------------------------------------------------------------
# C expressions: text with its precedence, so that only needed parentheses are written.

Expression = tuple[str, int]
"""The text of an expression, and its precedence."""

# C's precedences: a greater number binds tighter
ATOM = 15  # a name
UNARY = 14  # -a
MUL = 13  # a * b
ADD = 12  # a + b
SHIFT = 11  # a << b
LESS = 10  # a < b
EQUAL = 9  # a == b
AND = 8  # a & b
XOR = 7  # a ^ b
OR = 6  # a | b
BOTH = 5  # a && b
EITHER = 4  # a || b
CHOICE = 3  # a ? b : c


def paren(text: Expression, tight: int) -> str:
    """Return the text of an expression, in parentheses if its precedence is below `tight`."""
    words, binds = text
    return words if binds >= tight else f"({words})"


def signed(words: str) -> Expression:
    """Return a constant as an expression: one with a minus has a lower precedence than a name."""
    return words, UNARY if words.startswith("-") else ATOM


def call(name: str, *arguments: str) -> Expression:
    """Return the call of a function or builtin."""
    return f"{name}({', '.join(arguments)})", ATOM


# --------------------------------------------------------------------------------------------------
# Source text that a user wrote: the parameters of its function, and its kernel (an EXTERN) as a
# Source.


class DeclaredArgument(NamedTuple):
    """An argument of a function: memory of a dtype, and whether the function writes it."""

    name: str
    dtype: DType
    is_written: bool


class Declaration(NamedTuple):
    """A function's name and arguments, read from its text."""

    name: str
    arguments: tuple[DeclaredArgument, ...]


OUTSIDE = 0x776F726B62656E63
"""The mark of a note that a CheckedText writes in front of a buffer: three integers of 8 bytes, the
last of which ends where the buffer begins: the mark, the line, and the index outside."""


class CheckedText(NamedTuple):
    """A kernel's text with bounds checks, and the names of the arguments that it checks, by slot.
    The lines are those of the text before."""

    text: str
    names: Mapping[int, str]


class CopiedArgument(NamedTuple):
    """An argument whose memory first gets a copy of the contents of slot `begins_as`."""

    slot: int
    begins_as: int
    size_bytes: int


def slots_of(kernel: UOp) -> tuple[list[int], list[CopiedArgument]]:
    """Return the slots that the function of a kernel takes, in order, and the arguments that begin
    as copies of other slots."""
    (code, *_) = leaves([kernel], Ops.EXTERN)
    starts = code.arg.starts
    count = len(code.src) - len(starts)
    arguments, others = code.src[:count], code.src[count:]
    copies = [
        CopiedArgument(arguments[place].slot, other.slot, other.length * other.dtype.itemsize)
        for place, other in zip(starts, others, strict=True)
    ]
    return [argument.slot for argument in arguments], copies


def source_of(kernel: UOp, name: str, language: str, text: str) -> Source:
    """Return the Source of a kernel whose text a user wrote; a launch runs it once."""
    params = signature(leaves([kernel], Ops.PARAM))
    return Source(name, language, text, params, is_handwritten=True)
