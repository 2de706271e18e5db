"""Loops of a text: over rounds that are known, or until no work-item goes on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.declarations import DeclarationTranslation
from workbench.emulator.source.meaning import BOOL, Counter, LoopFlags, NamedValue, RegisterVariable
from workbench.emulator.source.scan import assigns, is_plain, jumps, names_in, unrolls
from workbench.emulator.source.syntax import (
    AssignmentStatement,
    Binary,
    DeclarationStatement,
    Expr,
    LoopStatement,
    Name,
    Number,
    SourceStatement,
)
from workbench.emulator.source.values import COMPARISONS, Abstract, arithmetic_type, truncated
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp

MOST_ROUNDS = 1 << 30
"""Most rounds of a loop."""
MOST_LISTED = 4096
"""Most rounds of a loop that multiplies, divides or shifts its variable."""
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}
MOST_UNROLLED = 64
"""Most rounds of a loop that is written out since a shuffle's distance depends on its variable."""


@dataclass(frozen=True)
class FixedNumber:
    """A number that stands in the text, or follows from its constants; a dtype of None: it takes
    the type of what it meets (WGSL)."""

    number: int
    dtype: DType | None


@dataclass(frozen=True)
class KnownRounds:
    """The values of a loop's variable: `first` + round * `step`, or those `listed`."""

    name: str
    dtype: DType
    count: int
    first: int
    step: int
    listed: tuple[int, ...] = ()

    def values(self) -> Iterator[int]:
        """Yield the variable's value in each round."""
        if self.listed:
            yield from self.listed
            return
        for number in range(self.count):
            yield self.first + number * self.step


class LoopTranslation(DeclarationTranslation):
    """Writes loops."""

    @abstractmethod
    def _statement(self, statement: SourceStatement) -> None:
        """Translate a statement."""

    @abstractmethod
    def _inside(self, statement: SourceStatement) -> None:
        """Translate the statement of an IF or a loop, in a scope of its own."""

    def _loop(self, loop: LoopStatement) -> None:
        self.scopes.append({})
        rounds = self._rounds(loop)
        if rounds is not None and unrolls(loop, rounds.name) and rounds.count <= MOST_UNROLLED:
            self._unrolled(loop, rounds)
        elif rounds is not None:
            self._counted_loop(loop, rounds)
        else:
            for each in loop.first:
                self._statement(each)
            self._open_loop(loop)
        self.scopes.pop()

    def _rounds(self, loop: LoopStatement) -> KnownRounds | None:
        """Return the rounds of a loop if they are known: a variable of its own that begins at a
        fixed number, is compared with one, and changes by one; None for another loop."""
        if len(loop.first) != 1 or len(loop.step) != 1 or loop.is_checked_after:
            return None
        first, step, test = loop.first[0], loop.step[0], loop.condition
        if not isinstance(first, DeclarationStatement) or first.value is None:
            return None
        if not isinstance(step, AssignmentStatement) or not isinstance(step.target, Name):
            return None
        name = first.name
        if step.target.name != name or assigns(loop.body, name):
            return None
        if isinstance(test, Name) and self.language.converts:  # it goes on while that is not 0
            test = Binary(test.at, "!=", test, Number(test.at, 0, dtypes.int32))
        if not isinstance(test, Binary):
            return None
        begin = self._fixed(first.value)
        if begin is None:
            return None
        dtype = dtypes.int32 if first.type is None else first.type.dtype
        if first.type is None and begin.dtype is not None:
            dtype = begin.dtype
        if not dtype.is_int or dtype.count > 1:
            return None
        sign, bound = test.sign, test.right
        if isinstance(test.right, Name) and test.right.name == name:
            sign, bound = MIRRORED.get(sign, ""), test.left
        elif not (isinstance(test.left, Name) and test.left.name == name):
            return None
        if any(each.name == name for value in (bound, step.value) for each in names_in(value)):
            return None
        last, amount = self._fixed(bound), self._fixed(step.value)
        if last is None or amount is None or sign not in MIRRORED:
            return None
        if last.dtype is not None:  # what is compared is of the common type
            dtype_of_test = arithmetic_type(dtype, last.dtype)
            if min(dtype.min, begin.number, last.number) < dtype_of_test.min:
                return None
        values = known_values(begin.number, step.sign, amount.number, sign, last.number, dtype)
        return None if values is None else KnownRounds(name, dtype, *values)

    def _fixed(self, value: Expr) -> FixedNumber | None:
        """Return the number that an expression always is; None if it is none."""
        if not is_plain(value):
            return None
        for each in names_in(value):
            if not isinstance(self._find(each.name), NamedValue):
                return None
        result = self.value(value)
        if isinstance(result, Abstract) and isinstance(result.value, int):
            return FixedNumber(result.value, None)
        if isinstance(result, UOp) and result.op is Ops.CONST and result.dtype.is_int:
            return FixedNumber(int(result.arg), result.dtype)
        return None

    def _unrolled(self, loop: LoopStatement, rounds: KnownRounds) -> None:
        for value in rounds.values():
            self.scopes[-1][rounds.name] = NamedValue(UOp.const(rounds.dtype, value))
            if jumps(loop.body) & {"break", "continue", "return"}:
                because = "a jump out of a loop with shuffles is not supported"
                raise self.fault(loop.at, because)
            self._inside(loop.body)

    def _counted_loop(self, loop: LoopStatement, rounds: KnownRounds) -> None:
        if rounds.count == 0:
            return
        axis = UOp.range(rounds.count, self._unique(rounds.name), AxisType.REDUCE)
        register: UOp | None = None
        if rounds.listed:
            register = self._register(rounds.name, rounds.dtype)
            self._set(register, UOp.const(rounds.dtype, rounds.listed[0]))
            self.scopes[-1][rounds.name] = RegisterVariable(register)
        else:
            counter = Counter(axis, rounds.dtype, rounds.first, rounds.step)
            self.scopes[-1][rounds.name] = counter
        flags = self._loop_flags(loop)
        position = len(self.linear)
        with self._within(UOp(Ops.LOOP, dtypes.void, (axis,)), Ops.ENDLOOP):
            self._note_at(position)
            row = self.row
            self._round(loop, flags)
            self.row = row
            if register is not None:
                self._step_of(loop)

    def _step_of(self, loop: LoopStatement) -> None:
        """Translate the step of a loop, which has no line of its own."""
        for each in loop.step:
            assert isinstance(each, AssignmentStatement)
            self.values.computed = [set()]
            row, self.row = self.row, None
            self._assign(each)
            self.row = row

    def _loop_flags(self, loop: LoopStatement) -> LoopFlags:
        kinds = jumps(loop.body)
        flags = LoopFlags()
        if "break" in kinds:
            flags.broken = self._flag("broken")
            self._set(flags.broken, UOp.const(BOOL, False))
        if "continue" in kinds:
            flags.skipped = self._flag("skipped")
        return flags

    def _round(self, loop: LoopStatement, flags: LoopFlags) -> None:
        """Translate the body of a loop, unless a break or a return has ended it."""
        ends = self._ends(loop, flags)
        if not ends:
            self._round_body(loop, flags)
            return
        self.values.computed = [set()]
        with self._when(self._none_of(ends)):
            self._round_body(loop, flags)

    def _ends(self, loop: LoopStatement, flags: LoopFlags) -> list[UOp]:
        ends = [] if flags.broken is None else [flags.broken]
        returned = self.frames[-1].returned if self.frames else None
        if "return" in jumps(loop.body) and returned is not None:
            ends.append(returned)
        return ends

    def _round_body(self, loop: LoopStatement, flags: LoopFlags) -> None:
        self.loops.append(flags)
        if flags.skipped is not None:
            self._set(flags.skipped, UOp.const(BOOL, False))
        self._inside(loop.body)
        self.loops.pop()

    def _open_loop(self, loop: LoopStatement) -> None:
        """Translate a loop whose rounds are not known."""
        row = self.row
        goes_on = self._flag("goes on")
        self._set(goes_on, UOp.const(BOOL, True))
        flags = self._loop_flags(loop)
        axis = UOp.range(MOST_ROUNDS, self._unique("round"), AxisType.REDUCE)
        position = len(self.linear)
        self._until[position] = goes_on
        with self._within(UOp(Ops.LOOP, dtypes.void, (axis,)), Ops.ENDLOOP):
            self._note_at(position)
            if not loop.is_checked_after:
                self._check(loop, goes_on)
            with self._when(goes_on):
                self._round(loop, flags)
                self.row = row
                self.values.computed = [set()]
                ends = self._ends(loop, flags)
                if ends:
                    none = self._none_of(ends)
                    self._set(goes_on, self.values.node(Ops.AND, BOOL, [goes_on, none]))
                    self.values.computed = [set()]
                with self._when(goes_on):
                    self._step_of(loop)
                    if loop.is_checked_after:
                        self._check(loop, goes_on)

    def _check(self, loop: LoopStatement, goes_on: UOp) -> None:
        """Set whether a work-item goes on."""
        if loop.condition is None:
            return
        self.values.computed = [set()]
        with self._when(goes_on):
            test = self.values.truth(self.value(loop.condition), loop.condition.at)
            self._set(goes_on, test)


def known_values(
    begin: int, kind: str, amount: int, sign: str, last: int, dtype: DType
) -> tuple[int, int, int, tuple[int, ...]] | None:
    """Return the count, the first value, the step and the list of the values of a loop whose
    variable `begin`s at a number and changes by `kind` and `amount` while `sign` and `last` hold;
    None where they are not known: the loop does not end, or leaves the numbers of `dtype`."""
    if not dtype.min <= begin <= dtype.max:
        return None
    if kind in ("+", "-"):
        step = amount if kind == "+" else -amount
        total = _affine_count(begin, step, sign, last)
        if total is None or not 0 <= total <= MOST_ROUNDS:
            return None
        ends = begin, begin + total * step
        if not all(dtype.min <= value <= dtype.max for value in ends):
            return None
        return total, begin, step, ()
    listed: list[int] = []
    value = begin
    while COMPARISONS[sign](value, last):
        if len(listed) >= MOST_LISTED:
            return None
        listed.append(value)
        changed = _changed(value, kind, amount)
        if changed is None or not dtype.min <= changed <= dtype.max:
            return None
        value = changed
    return len(listed), begin, 0, tuple(listed)


def _affine_count(begin: int, step: int, sign: str, last: int) -> int | None:
    if not COMPARISONS[sign](begin, last):
        return 0
    if step == 0:
        return None
    if sign == "!=":
        whole, rest = divmod(last - begin, step)
        return whole if rest == 0 and whole > 0 else None
    rises = sign in ("<", "<=")
    if rises != (step > 0):
        return None
    distance = abs(last - begin) + (sign in ("<=", ">="))
    return -(-distance // abs(step))


def _changed(value: int, kind: str, amount: int) -> int | None:
    if kind == "*":
        return value * amount
    if kind == "/" and amount:
        return truncated(value, amount)[0]
    if kind == "<<" and 0 <= amount < 64:
        return value << amount
    if kind == ">>" and 0 <= amount < 64:
        return value >> amount
    return None
