"""Inline assembly of CUDA C++ that the emulator runs: extremes, tensor cores, rows of matrices,
asynchronous copies. Source: NVIDIA, PTX ISA 8.5."""

from __future__ import annotations

import re

from workbench.base.dtypes import dtypes
from workbench.emulator.source.calls import CallTranslation
from workbench.emulator.source.meaning import Pointer
from workbench.emulator.source.syntax import AsmStatement, Call, Cast, Expr
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_EXTREME = re.compile(r"(max|min)\.NaN\.f32 %0, %1, %2;\Z")
_COMMIT = re.compile(r"cp\.async\.commit_group;\Z")
_WAIT = re.compile(r"cp\.async\.wait_group (\d+);\Z")
_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global \[%0\], \[%1\], (\d+), %2;\Z")
_PRODUCT = re.compile(r"(mma\.sync\.\S+) [{}%\d, ]+;\Z")
_ROWS = re.compile(
    r"ldmatrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared\.b16 \{.*\}, \[%\d\];\Z"
)
MATRIX_ELEMENT_BYTES = 2
_SUPPORTED = "max.NaN.f32, mma.sync, ldmatrix, cp.async"


def instruction(program: CallTranslation, statement: AsmStatement) -> None:
    """Write an instruction of inline assembly. Errors: SourceError for an unknown one."""
    template = " ".join(statement.template.split())
    if _COMMIT.match(template):
        program.commit()
    elif match := _WAIT.match(template):
        program.wait(int(match[1]))
    elif match := _EXTREME.match(template):
        _extreme(program, statement, Ops.MAX if match[1] == "max" else Ops.MIN)
    elif match := _COPY.match(template):
        _copy(program, statement, int(match[1]))
    elif match := _PRODUCT.match(template):
        _product(program, statement, match[1])
    elif match := _ROWS.match(template):
        _rows(program, statement, int(match[1]), bool(match[2]))
    else:
        because = f"the instruction `{template[:60]}` is not supported"
        raise program.fault(statement.at, because, f"one of {_SUPPORTED}, as it was")


def _operands(program: CallTranslation, statement: AsmStatement) -> list[UOp]:
    return [program.values.concrete(program.value(value)) for _, value in statement.inputs]


def _set(program: CallTranslation, target: Expr, value: UOp) -> None:
    place = program.place(target)
    program.write(place, program.values.cast(value, value.dtype))


def _extreme(program: CallTranslation, statement: AsmStatement, op: Ops) -> None:
    if len(statement.inputs) != 2 or len(statement.outputs) != 1:
        raise program.fault(statement.at, "this instruction has two inputs and one output")
    a, b = (program.values.cast(v, dtypes.float32) for v in _operands(program, statement))
    _set(program, statement.outputs[0][1], program.values.node(op, dtypes.float32, [a, b]))


def _copy(program: CallTranslation, statement: AsmStatement, nbytes: int) -> None:
    if len(statement.inputs) != 3:
        raise program.fault(statement.at, "a copy has three operands")
    (_, to), (_, source), (_, size) = statement.inputs
    target, origin = _address(program, to), _address(program, source)
    if target.memory.dtype.itemsize != origin.memory.dtype.itemsize:
        raise program.fault(statement.at, "a copy between memories of two types is not supported")
    amount = program.values.cast(program.value(size), dtypes.int32)
    count = nbytes // target.memory.dtype.itemsize
    zero = UOp.const(dtypes.int32, 0)
    is_on = program.values.node(Ops.CMPNE, dtypes.bool, [amount, zero])
    if is_on.op is Ops.CONST and amount.arg not in (0, nbytes):
        raise program.fault(statement.at, f"a copy of {amount.arg} of {nbytes} bytes")
    dtype = target.memory.dtype.scalar.vec(count)
    with program.gated(is_on):
        value = program.load(program.retyped(origin, dtype))
    program.store(program.retyped(target, dtype), value, is_copy=True)


def _address(program: CallTranslation, value: Expr) -> Pointer:
    if isinstance(value, Cast):
        value = value.value
    if isinstance(value, Call) and value.name == "__cvta_generic_to_shared" and value.arguments:
        value = value.arguments[0]
    return program.pointer(value)


def _product(program: CallTranslation, statement: AsmStatement, name: str) -> None:
    cores = [core for core in program.cores if core.instruction == name]
    if not cores:
        raise program.fault(statement.at, f"this machine has no instruction {name}")
    core = cores[0]
    words = _operands(program, statement)
    values = program.values
    bits = core.operand if not core.operand.is_low_precision else dtypes.uint16
    share = max(1, words[0].dtype.itemsize // bits.itemsize)
    count = core.a.per_lane // share
    if len(words) != count + core.b.per_lane // share or len(statement.outputs) != core.c.per_lane:
        raise program.fault(statement.at, f"{name} has other operands")
    a = values.bits(values.vector(words[:count]), bits.vec(core.a.per_lane))
    b = values.bits(values.vector(words[count:]), bits.vec(core.b.per_lane))
    totals = [values.concrete(program.value(target)) for _, target in statement.outputs]
    result = program.multiplied(core, a, b, values.vector(totals))
    for number, (_, target) in enumerate(statement.outputs):
        _set(program, target, values.lane(result, number))


def _rows(
    program: CallTranslation, statement: AsmStatement, count: int, is_transposed: bool
) -> None:
    layouts = program.layouts.get((count, is_transposed))
    if layouts is None:
        because = "the kernel has no such instruction, so that its layout is not known"
        raise program.fault(statement.at, because, "the instruction as it was")
    if len(statement.inputs) != 1 or len(statement.outputs) != count:
        raise program.fault(statement.at, "this instruction has one input")
    rows = _address(program, statement.inputs[0][1])
    element = rows.memory.dtype.scalar
    if element.itemsize != MATRIX_ELEMENT_BYTES:
        raise program.fault(statement.at, f"rows of {element} are not supported", "16-bit floats")
    value = program.load(program.retyped(rows, element.vec(layouts[0].per_lane)))
    words = program.values.bits(program.exchanged(value, layouts), dtypes.uint32.vec(count))
    for number, (_, target) in enumerate(statement.outputs):
        _set(program, target, program.values.lane(words, number))
