"""A kernel's text as a linear program: statements, loops, functions, memory.

Every variable is a register, so that a step has the values of its moment. A loop whose rounds are
known before it runs is a LOOP over them; any other is a LOOP that ends when no work-item goes on. A
break, a continue and a return set a register, and the statements after them stand in an IF.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from workbench.backends.program.launch import LaunchShape
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import INTERNAL, WorkbenchError, kind_and_text
from workbench.emulator.source.assembly import instruction
from workbench.emulator.source.c_parser import CParser
from workbench.emulator.source.languages import LANGUAGES, SourceLanguage
from workbench.emulator.source.loops import LoopTranslation
from workbench.emulator.source.meaning import (
    BOOL,
    Frame,
    KernelContext,
    LoopFlags,
    NamedValue,
    Pointer,
    StructVariable,
)
from workbench.emulator.source.program import Annotations, TextProgram
from workbench.emulator.source.scan import BARRIERS, jumps, names_in, returns_early
from workbench.emulator.source.syntax import (
    AsmStatement,
    AssignmentStatement,
    BlockStatement,
    Call,
    DeclarationStatement,
    EvaluationStatement,
    IfStatement,
    JumpStatement,
    LoopStatement,
    SourceFunction,
    SourceModule,
    SourceStatement,
    SwitchStatement,
)
from workbench.emulator.source.tokens import SourceError, Token
from workbench.emulator.source.values import PARTS
from workbench.emulator.source.wgsl_parser import WgslParser
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.text.program import ProgramLine

MOST_JUMPS = 40
"""Most IFs around the statements after breaks and returns."""


def read_program(text: str, language: str, context: KernelContext) -> TextProgram:
    """Return the program of a kernel's text.

    Errors: SourceError, with line and column, for a text that cannot be parsed, or that needs what
    the emulator does not support; also if the emulator itself fails to read it.
    """
    known = LANGUAGES[language]
    parser = (WgslParser if known.is_wgsl else CParser)(text, known)
    translation: Translation | None = None
    try:
        translation = Translation(text, known, parser.module(), context)
        return translation.program()
    except RecursionError:
        because = "its statements stand too deep inside of each other"
        at = Token("sign", "", 1, 1, 0)
        raise SourceError(at, because, "fewer blocks in blocks") from None
    except WorkbenchError:
        raise
    except INTERNAL as error:
        because = f"its own code failed at this line: {kind_and_text(error)}"
        at = parser.token if translation is None else translation.here()
        raise SourceError(at, because, "another form of the line") from error


class Translation(LoopTranslation):
    """Writes the program of a kernel."""

    def __init__(
        self, text: str, language: SourceLanguage, module: SourceModule, context: KernelContext
    ):
        super().__init__(text, language, module, context)
        self.kernel = self._kernel()
        self.grid, self.group = self._sizes(context.launch)

    def program(self) -> TextProgram:
        """Return the program of the kernel."""
        name = self.kernel.name
        self._append(UOp(Ops.BLOCK, dtypes.void, (), KernelInfo(name, ())))
        self.numbers = {
            role: self._number_axes(role, sizes)
            for role, sizes in (("grid", self.grid), ("item", self.group))
        }
        self._outside()
        self.scopes.append({})
        self._bind_parameters()
        frame = Frame(self.kernel)
        body = self.kernel.body.body
        if returns_early(body):
            frame.returned = self._flag("returned")
            self._set(frame.returned, UOp.const(BOOL, False))
        self.frames.append(frame)
        self._body(body)
        waits = self.language.awaits_returned
        linear = (self.linear[0], *self._arrays, *self.linear[1:])
        moved = len(self._arrays)
        annotations = Annotations(
            until={p + moved: register for p, register in self._until.items()},
            aligned={p + moved: nbytes for p, nbytes in self._aligned.items()},
            copies=frozenset(p + moved for p in self._copies),
            commits=frozenset(p + moved for p in self._commits),
            waits={p + moved: batches for p, batches in self._waits.items()},
            returned=None if waits else frame.returned,
            updates={p + moved: op for p, op in self._updates.items()},
            atomic=frozenset(self._atomic),
            divisions={
                p: self.values.divisions[n]
                for p, n in enumerate(linear)
                if n in self.values.divisions
            },
            reads_outside=self.language.is_wgsl,
            is_zeroed=self.language.is_zeroed,
        )
        return TextProgram(self.language.name, linear, self._lines(moved), annotations)

    def _kernel(self) -> SourceFunction:
        kernels = [f for each in self.module.functions.values() for f in each if f.is_kernel]
        if len(kernels) != 1:
            words = "no kernel" if not kernels else "several kernels"
            at = kernels[1].at if kernels else Token("end", "", 1, 1, 0)
            hint = "the kernel as it was, with other edits"
            raise self.fault(at, f"the text has {words}", hint)
        return kernels[0]

    def _sizes(self, launch: LaunchShape) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the sizes of the grid and of a group along x, y and z."""
        grid, group = tuple(reversed(launch.grid)), tuple(reversed(launch.group))
        own = self.kernel.group
        if own is not None and (*own, 1, 1, 1)[:3] != (*group, 1, 1, 1)[:3]:
            if not self.language.is_wgsl:
                because = f"the kernel is launched with groups of {group}, and the text has {own}"
                raise self.fault(self.kernel.at, because, f"the size {group}")
            group = own
        most, items = self.kernel.most_items, math.prod(group)
        if most is not None and items > most:
            because = f"the kernel is launched with groups of {items}, and the text allows {most}"
            raise self.fault(self.kernel.at, because, f"__launch_bounds__({items})")
        return grid, group

    def _number_axes(self, role: str, sizes: Sequence[int]) -> tuple[UOp, ...]:
        axes = []
        kind = AxisType.GLOBAL if role == "grid" else AxisType.LOCAL
        word = "group" if role == "grid" else "item"
        for dimension, size in enumerate(sizes):
            axis = UOp.range(size, f"{word}.{PARTS[dimension]}", kind)
            self._append(construct.special(axis, role, dimension))  # type: ignore[arg-type]
            axes.append(axis)
        return tuple(axes)

    def _outside(self) -> None:
        """Declare what stands outside of functions: constants, and arrays of the group."""
        for each in self.module.globals:
            self._statement(each)
        self.rows.clear()

    def _bind_parameters(self) -> None:
        arrays = [p for p in self.kernel.parameters if p.type.is_pointer] + self.module.bindings
        memory = sorted(arrays, key=lambda parameter: parameter.number)
        for one, other in pairwise(memory):
            if one.number and one.number == other.number:
                because = f"{one.name} and {other.name} have one number"
                raise self.fault(other.at, because, "a number for each")
        others = [p for p in self.kernel.parameters if not p.type.is_pointer]
        if len(memory) != len(self.params.slots):
            because = (
                f"the text has {len(memory)} arrays as arguments, and the kernel gets"
                f" {len(self.params.slots)}"
            )
            raise self.fault(self.kernel.at, because, "the kernel's own arguments")
        for parameter, slot, nbytes in zip(
            memory, self.params.slots, self.params.nbytes, strict=True
        ):
            dtype = parameter.type.dtype
            if dtype is dtypes.void:
                because = f"{parameter.name} is a pointer to {parameter.type.named}"
                raise self.fault(parameter.at, f"{because}: that is not supported", "float *")
            length = -(-nbytes // dtype.scalar.itemsize)
            param = construct.param(dtype.scalar, slot, length)
            if parameter.type.is_atomic:
                self._atomic.add(param)
            if parameter.is_constant:
                self._constant.add(param)
            self._require_stride(dtype, parameter.at)
            scope = self.scopes[0 if parameter in self.module.bindings else -1]
            scope[parameter.name] = Pointer(param, UOp.index(0), dtype)
        for parameter in others:
            struct = parameter.type.struct
            if struct is not None and all(struct.roles):
                self.scopes[-1][parameter.name] = StructVariable(struct)
                for (part, of), role in zip(struct.parts, struct.roles, strict=True):
                    number = NamedValue(self._numbers_of(role, of.dtype, parameter.at))
                    self.scopes[-1][f"{parameter.name}.{part}"] = number
                continue
            if not parameter.role:
                because = f"nothing says what {parameter.name} is"
                raise self.fault(parameter.at, because, "the kernel's own arguments")
            value = self._numbers_of(parameter.role, parameter.type.dtype, parameter.at)
            self.scopes[-1][parameter.name] = NamedValue(value)

    def _lines(self, moved: int) -> tuple[ProgramLine, ...]:
        lines = []
        for _, row in sorted(self.rows.items()):
            main = row.main or row.positions[-1:]
            if not main:
                continue
            others = [p for p in row.positions if p not in main]
            places = tuple(p + moved for p in (*others, *main))
            lines.append(ProgramLine(row.text, row.depth, places, row.name, row.number))
        return tuple(lines)

    # statements

    def _body(self, statements: Sequence[SourceStatement]) -> None:
        """Translate statements, those after a jump in an IF."""
        for place, statement in enumerate(statements):
            self._statement(statement)
            rest = statements[place + 1 :]
            if not rest:
                return
            flags = self._flags_of(statement)
            if flags:
                self._jumps += 1
                if self._jumps > MOST_JUMPS:
                    because = f"more than {MOST_JUMPS} breaks and returns stand before this"
                    raise self.fault(rest[0].at, because, "fewer of them")
                self.values.computed = [set()]
                with self._when(self._none_of(flags)):
                    self._body(rest)
                self._jumps -= 1
                return

    def _flags_of(self, statement: SourceStatement) -> list[UOp]:
        """Return the registers that a statement may set to go elsewhere."""
        kinds = jumps(statement)
        flags: list[UOp | None] = []
        if "return" in kinds:
            flags.append(self.frames[-1].returned)
        if self.loops:
            flags += [self.loops[-1].broken] if "break" in kinds else []
            flags += [self.loops[-1].skipped] if "continue" in kinds else []
        return [flag for flag in flags if flag is not None]

    def _statement(self, statement: SourceStatement) -> None:
        self.values.computed = [set()]
        if isinstance(statement, BlockStatement):
            self.scopes.append({})
            self.depth += 1
            self._body(statement.body)
            self.depth -= 1
            self.scopes.pop()
            return
        before, self.row = self.row, self._row(statement)
        match statement:
            case DeclarationStatement():
                self._declare(statement)
            case AssignmentStatement():
                self._assign(statement)
            case EvaluationStatement():
                self._evaluate(statement)
            case IfStatement():
                self._if(statement)
            case LoopStatement():
                self._loop(statement)
            case SwitchStatement():
                self._switch(statement)
            case JumpStatement():
                self._jump(statement)
            case AsmStatement():
                instruction(self, statement)
        self.row = before

    def _evaluate(self, statement: EvaluationStatement) -> None:
        value = statement.value
        if isinstance(value, Call) and value.name in BARRIERS:
            self._barrier(value)
            return
        self.value(value, may_be_void=True)

    def _barrier(self, call: Call) -> None:
        if self.gate is not None:
            raise self.fault(call.at, "a barrier in a condition is not supported", "if")
        names = {n.name for a in call.arguments for n in names_in(a)}
        if any("GLOBAL" in n or "device" in n for n in names) and not any(
            "LOCAL" in n or "threadgroup" in n for n in names
        ):
            because = "a barrier of global memory alone is not supported"
            raise self.fault(call.at, because, "CLK_LOCAL_MEM_FENCE")
        self._append(construct.barrier())
        self._note(is_main=True)

    def _jump(self, statement: JumpStatement) -> None:
        at = statement.at
        if statement.kind == "return":
            frame = self.frames[-1]
            if statement.value is not None:
                if frame.result is None:
                    raise self.fault(at, "this function returns nothing", "return;")
                value = self.value(statement.value)
                result = self.values.converted(value, frame.result.dtype, at)
                self._set(frame.result, result)
                self._note()
            if frame.returned is not None:
                self._set(frame.returned, UOp.const(BOOL, True))
                self._note()
            return
        if not self.loops:
            raise self.fault(at, f"a {statement.kind} stands outside of a loop")
        flags = self.loops[-1]
        flag = flags.broken if statement.kind == "break" else flags.skipped
        if flag is None:  # a switch that no loop is around
            raise self.fault(at, f"a {statement.kind} stands outside of a loop")
        self._set(flag, UOp.const(BOOL, True))
        self._note()

    def _if(self, statement: IfStatement) -> None:
        condition = self.values.truth(self.value(statement.condition), statement.condition.at)
        no = statement.no
        if no is not None:
            register = self._flag("condition")
            self._set(register, condition)
            condition = register
        with self._when(condition, is_noted=True):
            self._inside(statement.yes)
        if no is not None:
            self.values.computed = [set()]
            with self._when(self.values.node(Ops.NOT, BOOL, [condition])):
                self._inside(no)

    def _switch(self, statement: SwitchStatement) -> None:
        """Translate each case in an IF: a break sets a register, as that of a loop does."""
        value = self.values.concrete(self.value(statement.value))
        if not value.dtype.is_int or value.dtype.count > 1:
            because = f"a switch is of a whole number, and this is {value.dtype}"
            raise self.fault(statement.value.at, because, "if and else")
        chosen, broken = self._register("switch ", value.dtype), self._flag("broken")
        self._set(chosen, value)
        self._note(is_main=True)
        self._set(broken, UOp.const(BOOL, False))
        labels = self._labels(statement, value.dtype)
        enters = self._flag("case")
        self._set(enters, UOp.const(BOOL, False))
        outer = self.loops[-1].skipped if self.loops else None
        returned = self.frames[-1].returned if self.frames else None
        kinds = jumps(statement)
        others = [
            flag for flag, kind in ((outer, "continue"), (returned, "return")) if kind in kinds
        ]
        ends = [broken, *(flag for flag in others if flag is not None)]
        self.loops.append(LoopFlags(broken, outer))
        self.scopes.append({})
        for case, numbers in zip(statement.cases, labels, strict=True):
            self.values.computed = [set()]
            test = self._is_one_of(chosen, numbers)
            if case.is_default:
                listed = [n for each in labels if each is not numbers for n in each]
                test = self.values.node(Ops.NOT, BOOL, [self._is_one_of(chosen, listed)])
            if statement.falls_through:
                test = self.values.node(Ops.OR, BOOL, [enters, test])
            self._set(enters, test)
            stays = self._none_of(ends)
            with self._when(self.values.node(Ops.AND, BOOL, [enters, stays])):
                self._body(case.body)
        self.scopes.pop()
        self.loops.pop()

    def _labels(self, statement: SwitchStatement, dtype: DType) -> list[list[int]]:
        """Return the numbers of each case. Errors: SourceError for a number of two cases."""
        labels: list[list[int]] = []
        for case in statement.cases:
            labels.append([])
            for label in case.labels:
                number = self._fixed(label)
                if number is None:
                    raise self.fault(label.at, "the label of a case is a fixed whole number", "1")
                if any(number.number in each for each in labels):
                    raise self.fault(label.at, f"two cases are of {number.number}", "one of them")
                if not dtype.min <= number.number <= dtype.max:
                    raise self.fault(label.at, f"{number.number} does not fit {dtype}")
                labels[-1].append(number.number)
        if sum(case.is_default for case in statement.cases) > 1:
            raise self.fault(statement.at, "a switch has two defaults", "one of them")
        return labels

    def _is_one_of(self, value: UOp, numbers: Sequence[int]) -> UOp:
        total = UOp.const(BOOL, False)
        for number in numbers:
            test = self.values.node(Ops.CMPEQ, BOOL, [value, UOp.const(value.dtype, number)])
            total = self.values.node(Ops.OR, BOOL, [total, test])
        return total

    def _inside(self, statement: SourceStatement) -> None:
        """Translate the statement of an IF or a loop, in a scope of its own."""
        if isinstance(statement, BlockStatement):
            self._statement(statement)
            return
        self.scopes.append({})
        self.depth += 1
        self._statement(statement)
        self.depth -= 1
        self.scopes.pop()
