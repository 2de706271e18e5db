"""A program that is being written: steps, lines, registers, blocks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.languages import SourceLanguage
from workbench.emulator.source.meaning import (
    BOOL,
    Frame,
    KernelContext,
    LoopFlags,
    Meaning,
    NamedValue,
    Pointer,
    SourceRow,
)
from workbench.emulator.source.syntax import Expr, Name, SourceModule, SourceStatement
from workbench.emulator.source.tokens import SourceError, Token
from workbench.emulator.source.values import SourceValues, Value
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

MOST_STEPS = 50_000
"""Most steps of a program."""


class StepWriter(ABC):
    """A program while it is written: its steps, the lines that they are of, the names that are
    known. Subclasses write expressions, declarations, loops and statements."""

    def __init__(
        self, text: str, language: SourceLanguage, module: SourceModule, context: KernelContext
    ):
        self.text, self.language, self.module = text, language, module
        self.params, self.warp_lanes = context.params, context.warp_lanes
        self.cores, self.layouts = context.cores, context.layouts
        self.grid: tuple[int, ...] = ()
        self.group: tuple[int, ...] = ()
        self.numbers: dict[str, tuple[UOp, ...]] = {}
        """The axes that number work-groups ("grid") and work-items ("item"), along x, y and z."""
        self.linear: list[UOp] = []
        self.values = SourceValues(language, self._append)
        self.scopes: list[dict[str, Meaning]] = [{}]
        self.frames: list[Frame] = []
        self.loops: list[LoopFlags] = []
        self.gate: UOp | None = None
        self.rows: dict[int, SourceRow] = {}
        self.row: SourceRow | None = None
        self.depth = 0
        self._jumps = 0
        self._names: set[str] = set()
        self._numbers = count()
        self._until: dict[int, UOp] = {}
        self._aligned: dict[int, int] = {}
        self._copies: set[int] = set()
        self._updates: dict[int, Ops] = {}
        self._atomic: set[UOp] = set()
        self._constant: set[UOp] = set()
        """Arguments that the text declares as read-only."""
        self._arrays: list[UOp] = []
        self._commits: set[int] = set()
        self._waits: dict[int, int] = {}

    @abstractmethod
    def value(self, value: Expr, may_be_void: bool = False) -> Value:
        """Return the value of an expression. Errors: SourceError for an address."""

    @abstractmethod
    def value_or_pointer(self, value: Expr, may_be_void: bool = False) -> Value | Pointer:
        """Return the value of an expression, or the address that it is."""

    def fault(self, at: Token, because: str, hint: str = "") -> SourceError:
        return SourceError(at, because, hint)

    # steps

    def _append(self, node: UOp) -> None:
        if len(self.linear) >= MOST_STEPS:
            because = f"the program has more than {MOST_STEPS:,} steps"
            raise self.fault(self.here(), because, "a shorter text, or a loop")
        self.linear.append(node)

    def here(self) -> Token:
        """Return the place of the line that is translated."""
        number = 1 if self.row is None else self.row.number
        return Token("sign", "", number, 1, 0)

    def _note(self, is_main: bool = False) -> None:
        """Note the last step as one of this line; `is_main`: the one that the line is of."""
        if is_main:
            self._note_at(len(self.linear) - 1)
        elif self.row is not None:
            self.row.positions.append(len(self.linear) - 1)

    def _note_at(self, position: int) -> None:
        """Note a step as the one that this line is of."""
        if self.row is not None:
            self.row.positions.append(position)
            self.row.main = [position]

    def _set(self, register: UOp, value: UOp, is_noted: bool = False) -> None:
        self._append(UOp(Ops.SET, dtypes.void, (register, value)))
        for known in self.values.computed:  # what was computed of the register is out of date
            known.clear()
        if is_noted:
            self._note(is_main=True)
            if self.row is not None:
                self.row.name = register.name

    def commit(self) -> None:
        """Write the step that commits the copies begun so far as a batch."""
        self._commits.add(self._batches_step(0))

    def wait(self, batches: int) -> None:
        """Write the step that waits for all copies but those of the last `batches` batches."""
        self._waits[self._batches_step(batches)] = batches

    def _batches_step(self, batches: int) -> int:
        """Write a step of work-items alone, and return its position. It sets a register, as a step
        without a value has no op; annotations say what else it does."""
        register = construct.register(dtypes.int32, "batches ", 0)
        self._set(register, UOp.const(dtypes.int32, batches))
        self._note(is_main=True)
        return len(self.linear) - 1

    def _register(self, name: str, dtype: DType) -> UOp:
        return construct.register(dtype, self._unique(name), 0)

    def _flag(self, name: str) -> UOp:
        return self._register(f"{name} ", BOOL)

    def _unique(self, name: str) -> str:
        """Return a name that no register, array or axis of the program has yet."""
        unique, number = name, 2
        while unique in self._names:
            unique, number = f"{name}_{number}", number + 1
        self._names.add(unique)
        return unique

    @contextmanager
    def _within(self, begin: UOp, end: Ops) -> Iterator[None]:
        """Yield inside of a LOOP or an IF."""
        self._append(begin)
        known = self.values.computed
        self.values.computed = [set()]
        yield
        self.values.computed = known
        self._append(UOp(end, dtypes.void, begin.src))

    @contextmanager
    def _when(self, condition: UOp, is_noted: bool = False) -> Iterator[None]:
        if condition.op is Ops.CONST:
            condition = self.values.node(Ops.OR, BOOL, [self._never(), condition])
        step = UOp(Ops.IF, dtypes.void, (condition,))
        position = len(self.linear)
        with self._within(step, Ops.ENDIF):
            if is_noted:
                self._note_at(position)
            yield

    def _never(self) -> UOp:
        """Return a register that is false: for a condition that a node has to be."""
        register = construct.register(BOOL, "never ", 0)
        self._set(register, UOp.const(BOOL, False))
        return register

    def _none_of(self, flags: Sequence[UOp]) -> UOp:
        total = flags[0]
        for flag in flags[1:]:
            total = self.values.node(Ops.OR, BOOL, [total, flag])
        return self.values.node(Ops.NOT, BOOL, [total])

    @contextmanager
    def gated(self, condition: UOp) -> Iterator[None]:
        """Yield where memory is read only if a condition holds."""
        before = self.gate
        self.gate = self.values.gate = self.values.all_of(before, condition)
        yield
        self.gate = self.values.gate = before

    def _row(self, statement: SourceStatement) -> SourceRow:
        begin = statement.at.offset
        if begin not in self.rows:
            words = " ".join(self.text[begin : statement.end].split())
            self.rows[begin] = SourceRow(words, max(0, self.depth), statement.at.line)
        return self.rows[begin]

    def _of_warp(self, node: UOp) -> UOp:
        """Return the value of a step that all lanes of a warp take together."""
        if self.gate is not None:
            raise self.fault(self.here(), "a step of a whole warp stands in a condition", "if")
        register = self._register("of warp ", node.dtype)
        self._append(node)
        self._note(is_main=True)
        self._set(register, node)
        return register

    # names

    def _find(self, name: str) -> Meaning | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _meaning(self, name: Name) -> Meaning:
        meaning = self._find(name.name)
        if meaning is not None:
            return meaning
        constants: dict[str, tuple[DType, Any]] = {
            "warpSize": (dtypes.int32, self.warp_lanes), "NAN": (dtypes.float32, math.nan),
            "INFINITY": (dtypes.float32, math.inf), "HUGE_VAL": (dtypes.float64, math.inf),
            "M_PI_F": (dtypes.float32, math.pi), "FLT_MAX": (dtypes.float32, dtypes.float32.max),
        }  # fmt: skip
        if name.name in constants and not self.language.is_wgsl:
            return NamedValue(UOp.const(*constants[name.name]))
        near = [n for scope in self.scopes for n in scope]
        hint = f"one of {', '.join(dict.fromkeys(near))}" if near else ""
        raise self.fault(name.at, f"there is no {name.name} here", hint)
