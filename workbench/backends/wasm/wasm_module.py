"""WebAssembly modules from LLVM's object files, and the LLVM renderer for WebAssembly (WebAssembly
Core Specification, chapter 5; the tool conventions' "Linking").

Sections: The linker for WebAssembly; The LLVM renderer for WebAssembly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workbench.backends.compilers import compilers
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.refusal import missing_kernel
from workbench.backends.llvm_ir.instructions import INDEX_BITS, Operands, type_of
from workbench.backends.llvm_ir.loops import ArgumentMemory
from workbench.backends.llvm_ir.render import LLVMWalker
from workbench.backends.llvm_ir.ssa import LLVMWriter, construct_ssa, global_name
from workbench.backends.native import object_cache
from workbench.backends.program.analysis import about, analyse, finished, needs_wide
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp

# --------------------------------------------------------------------------------------------------
# The linker for WebAssembly: from LLVM's object file to a module that exports the kernel and
# imports its memory.

ISA = compilers.Isa("wasm32-unknown-unknown", "", "+simd128,+sign-ext,+nontrapping-fptoint")
"""WebAssembly 2.0, as browsers have it."""
EXPORT = "kernel"
"""The name of the function that a module exports."""
MEMORY = "__linear_memory"
"""The name of the memory that a module imports."""
STACK = "__stack_pointer"
"""The name of the stack pointer, a number that a module imports."""
STACK_BYTES = 1 << 20
"""The size of the stack, which is at the beginning of the memory and grows down from its end."""
_CUSTOM = 0
_IMPORTS = 2
_EXPORTS = 7
_ORDER = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11)
"""The ids of sections, in their order."""
_FUNCTION = 0
_TABLE = 1
_GLOBAL = 3
_LINKING = b"linking"
_SYMBOLS = 8
_DATA = 1
_SECTION = 3
_UNDEFINED = 0x10
_EXPLICIT_NAME = 0x40


def module_of(source: Source) -> bytes:
    """Return the WebAssembly module of a kernel, from the cache if it is there.

    It exports `EXPORT`, a function of the addresses of the arguments that the kernel touches, in
    order of their slots, and of its scratch memory where the Source has some. It imports MEMORY
    from "env", and STACK, a mutable global, where it needs a stack.
    Errors: CompileError if LLVM refuses the text, or the text has no such kernel, or it calls
    functions that WebAssembly lacks.
    """

    def compile_text(text: str) -> bytes:
        image = in_child(compilers.object_of, text, ISA)
        functions = dict(_functions(image))
        if source.name not in functions:
            raise missing_kernel("wasm", source)
        return with_export(image, EXPORT, functions[source.name])

    version = [compilers.package_version(), source.name]
    return object_cache.object_of(source.text, version, ISA, compile_text)


def with_export(image: bytes, name: str, function: int) -> bytes:
    """Return an object file as a module, without the sections for linkers. It exports the function
    with the number `function` as `name`.

    Errors: CompileError where the file imports functions.
    """
    sections = {kind: body for kind, body in _sections(image) if kind != _CUSTOM}
    imports = list(_imports(sections.get(_IMPORTS, b"\0")))
    functions = [each.name for each in imports if each.kind == _FUNCTION]
    if functions:
        because = f"WebAssembly has no {' and no '.join(functions)}"
        raise CompileError("wasm", because)
    word = name.encode()
    entry = _number(len(word)) + word + bytes([_FUNCTION]) + _number(function)
    sections[_EXPORTS] = _number(1) + entry
    return image[:8] + b"".join(
        bytes([kind]) + _number(len(sections[kind])) + sections[kind]
        for kind in _ORDER
        if kind in sections
    )


class Import(NamedTuple):
    """An import of a module: its kind and its name."""

    kind: int
    name: str


def _sections(image: bytes, at: int = 8) -> Iterator[tuple[int, bytes]]:
    while at < len(image):
        size, begin = _read(image, at + 1)
        yield image[at], image[begin : begin + size]
        at = begin + size


def _functions(image: bytes) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of each function that an object file defines, from its table of
    symbols for linkers (WebAssembly's tool conventions, "Linking")."""
    for kind, body in _sections(image):
        size, at = _read(body, 0)
        if kind == _CUSTOM and body[at : at + size] == _LINKING:
            _, at = _read(body, at + size)  # the version
            for part, content in _sections(body, at):
                if part == _SYMBOLS:
                    yield from _function_symbols(content)


def _function_symbols(body: bytes) -> Iterator[tuple[str, int]]:
    count, at = _read(body, 0)
    for _ in range(count):
        kind, (flags, at) = body[at], _read(body, at + 1)
        is_data, has_name = kind == _DATA, not flags & _UNDEFINED
        index = 0
        if not is_data:
            index, at = _read(body, at)
        if kind != _SECTION and (is_data or has_name or flags & _EXPLICIT_NAME):
            size, begin = _read(body, at)
            at = begin + size
            if kind == _FUNCTION and has_name:
                yield body[begin:at].decode(), index
        if is_data and has_name:
            for _ in range(3):  # segment, offset, size
                _, at = _read(body, at)


def _imports(body: bytes) -> Iterator[Import]:
    count, at = _read(body, 0)
    for _ in range(count):
        size, at = _read(body, at)
        at += size
        size, at = _read(body, at)
        name, kind = body[at : at + size].decode(), body[at + size]
        at += size + 1
        if kind == _FUNCTION:
            _, at = _read(body, at)
        elif kind == _GLOBAL:
            at += 2
        else:
            at = _limits(body, at + (kind == _TABLE))
        yield Import(kind, name)


def _limits(body: bytes, at: int) -> int:
    """Return where the limits of a memory or table end."""
    has_most = body[at] & 1
    _, at = _read(body, at + 1)
    return _read(body, at)[1] if has_most else at


def _number(value: int) -> bytes:
    """Return a number as LEB128."""
    digits = b""
    while True:
        value, digit = value >> 7, value & 127
        digits += bytes([digit | (128 if value else 0)])
        if not value:
            return digits


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in LEB128, and where it ends."""
    value = shift = 0
    while True:
        digit = data[at]
        value |= (digit & 127) << shift
        shift, at = shift + 7, at + 1
        if digit < 128:
            return value, at


# --------------------------------------------------------------------------------------------------
# The LLVM renderer for WebAssembly: a linear program as a function in LLVM IR.
#
#     void name(ptr p0, ptr p1, ptr scratch)
#
# A launch runs the whole function. Memory is one block with addresses of 32 bits; indexes have 32
# bits, too, unless a kernel needs 64. There are no constants in memory, since nothing would put
# them there, and no library of functions: the remainder of floats is a function after the kernel.

_RESERVED = frozenset({"entry", "scratch"})
# The divisor is doubled as long as it does not exceed the dividend, then halved again, and
# subtracted where it fits: the difference of two floats within a factor of two is exact. (An
# infinite divisor ends the loop: its half is not smaller.)
_REMAINDER = """
define double @fmod(double %a, double %b) #0 {
entry:
  %x = call double @llvm.fabs.f64(double %a)
  %y = call double @llvm.fabs.f64(double %b)
  %finite = fcmp olt double %x, 0x7FF0000000000000
  %positive = fcmp ogt double %y, 0.0
  %valid = and i1 %finite, %positive
  br i1 %valid, label %up, label %nothing
nothing:
  ret double 0x7FF8000000000000
up:
  %t = phi double [ %y, %entry ], [ %double, %up ]
  %double = fmul double %t, 2.0
  %more = fcmp ole double %double, %x
  br i1 %more, label %up, label %down
down:
  %s = phi double [ %t, %up ], [ %half, %down ]
  %r = phi double [ %x, %up ], [ %rest, %down ]
  %fits = fcmp oge double %r, %s
  %less = fsub double %r, %s
  %rest = select i1 %fits, double %less, double %r
  %half = fmul double %s, 0.5
  %above = fcmp oge double %half, %y
  %smaller = fcmp olt double %half, %s
  %again = and i1 %above, %smaller
  br i1 %again, label %down, label %done
done:
  %result = call double @llvm.copysign.f64(double %rest, double %a)
  ret double %result
}
define float @fmodf(float %a, float %b) #0 {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %r = call double @fmod(double %x, double %y)
  %result = fptrunc double %r to float
  ret float %result
}"""


def render(linear: tuple[UOp, ...], target: Target) -> Source:
    """Return the LLVM IR of a linear program.

    Errors: CompileError for an operation that lowering should have decomposed.
    """
    token = INDEX_BITS.set(64 if needs_wide(linear) else 32)
    try:
        return _render(linear, target)
    finally:
        INDEX_BITS.reset(token)


def _render(linear: tuple[UOp, ...], target: Target) -> Source:
    info: KernelInfo = linear[0].arg
    plan = analyse(linear, target)
    text = LLVMWriter(_RESERVED)
    operands = Operands(construct_ssa(linear), text)
    memory = _Arguments(plan, frozenset(), operands, text)
    walker = _WasmWalker(text, operands, memory)
    walker.loops.runs_whole = True
    text.begin("entry")
    memory.pointers()
    for position, node in enumerate(linear):
        walker.write(position, node)
    text.at = ()
    text.put("ret void")
    names = [f"p{param.slot}" for param in plan.params]
    names += [] if plan.on_stack else ["scratch"]
    parameters = ", ".join(f"ptr %{name}" for name in names)
    head = ["; " + words for words in about(info.name, plan)]
    head.append(f"define void {global_name(info.name)}({parameters}) #0 {{")
    foot = ["}", *(_REMAINDER.strip().split("\n") if walker.has_remainder else [])]
    foot += ["attributes #0 = { nounwind }", ""]
    body = text.lines, text.positions
    return finished(info.name, "LLVM IR", plan, head, body, foot)


class _Arguments(ArgumentMemory):
    """Pointers are the function's own arguments."""

    def _argument(self, name: str, slot: int) -> str:
        self.text.unique(name)
        return f"%{name}"

    def conditional_load(self, node: UOp, test: str, kind: str) -> str:
        return self.load_in_branch(node, test, kind)


class _WasmWalker(LLVMWalker):
    """Writes a program; FMOD calls the function after the kernel."""

    has_remainder = False

    def function(self, node: UOp) -> str | None:
        if node.op is not Ops.FMOD:
            return None
        self.has_remainder = True
        a, b = self.operands.operands(node)
        return f"frem {type_of(node.dtype)} {a}, {b}"
