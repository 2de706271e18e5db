"""The LLVM renderer for GPUs: a linear program as the LLVM IR of one work-item.

    define ptx_kernel void @name(ptr addrspace(1) %p0, ptr addrspace(1) %p1) #0

As in the languages of work-items, indexes are 32 bits wide where addresses allow, and a scalar load
under a condition is in a branch. Functions such as exp2 are the machine's own approximations.

Sections: Warp shuffles in LLVM IR; The LLVM renderer for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from workbench.backends.llvm_ir.gpu_targets import GpuTarget
from workbench.backends.llvm_ir.instructions import (
    INDEX_BITS,
    Operands,
    bits_of,
    call,
    constant,
    memory_type,
    type_of,
)
from workbench.backends.llvm_ir.memory import LLVMMemory
from workbench.backends.llvm_ir.render import LLVMWalker
from workbench.backends.llvm_ir.ssa import LLVMWriter, construct_ssa, global_name
from workbench.backends.program.analysis import (
    ProgramAnalysis,
    about,
    alignment,
    analyse,
    element_type,
    finished,
    needs_wide,
)
from workbench.backends.program.text import Source
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp

# --------------------------------------------------------------------------------------------------
# Warp shuffles in LLVM IR: machines exchange words of 32 bits, so values are converted to words and
# back.
#
#     %t0 = bitcast float %acc0_0 to i32
#     %t1 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t0, i32 16, i32 31)
#     %shuffle_0 = bitcast i32 %t1 to float

Step = Callable[[str], str]
"""Writes an instruction, and returns the name of its value."""
WORD = 32


def shuffled(dtype: DType, value: str, exchange: Step, step: Step) -> str:
    """Return the last instruction of a shuffle of `value`. `exchange` writes the shuffle of a word
    of 32 bits, and returns the name of its result."""
    if dtype.count == 1:
        return _shuffled_scalar(dtype, value, exchange, step)
    kind, one = type_of(dtype), type_of(dtype.scalar)
    whole, last = "poison", ""
    for i in range(dtype.count):
        if last:
            whole = step(last)
        lane = step(f"extractelement {kind} {value}, i32 {i}")
        other = step(_shuffled_scalar(dtype.scalar, lane, exchange, step))
        last = f"insertelement {kind} {whole}, {one} {other}, i32 {i}"
    return last


def _shuffled_scalar(dtype: DType, value: str, exchange: Step, step: Step) -> str:
    bits, kind = bits_of(dtype), type_of(dtype)
    plain = f"i{bits}"
    if dtype.is_float:
        value = step(f"bitcast {kind} {value} to {plain}")
    if bits <= WORD:
        word = value if bits == WORD else step(f"zext {plain} {value} to i32")
        result = exchange(word)
        last = f"trunc i32 {result} to {plain}" if bits < WORD else ""
    else:
        above = step(f"lshr {plain} {value}, {WORD}")
        parts = [step(f"trunc {plain} {part} to i32") for part in (value, above)]
        low, high = (step(f"zext i32 {exchange(p)} to {plain}") for p in parts)
        top = step(f"shl {plain} {high}, {WORD}")
        last = f"or disjoint {plain} {low}, {top}"
    if not dtype.is_float:
        return last or f"bitcast i32 {result} to i32"
    return f"bitcast {plain} {step(last) if last else result} to {kind}"


# --------------------------------------------------------------------------------------------------
# The LLVM renderer for GPUs.

_SPACES = {"shared": "shared", "scratch": "private", "register": "private"}
_RESERVED = frozenset({"entry"})
_VECTOR_BYTES = 16
"""Memory of a GPU begins at a multiple of this many bytes."""


def render_gpu(gpu: GpuTarget, linear: tuple[UOp, ...], target: Target) -> Source:
    """Return the LLVM IR of a linear program for a GPU.

    Errors: CompileError for an operation that LLVM lacks for this GPU.
    """
    token = INDEX_BITS.set(64 if needs_wide(linear) else 32)
    try:
        return _render(gpu, linear, target)
    finally:
        INDEX_BITS.reset(token)


def _render(gpu: GpuTarget, linear: tuple[UOp, ...], target: Target) -> Source:
    info: KernelInfo = linear[0].arg
    plan = analyse(linear, target)
    text = LLVMWriter(_RESERVED)
    operands = Operands(construct_ssa(linear), text)
    memory = _WorkItemMemory(gpu, plan, operands, text)
    walker = _WorkItemWalker(gpu, text, operands, memory)
    text.begin("entry")
    memory.arrays()
    for position, node in enumerate(linear):
        walker.write(position, node)
    text.at = ()
    text.put("ret void")
    shuffles = any(node.op is Ops.WARP_SHUFFLE for node in linear)
    metadata = gpu.metadata(plan.launch, target.warp_lanes if shuffles else 0)
    head, foot = _frame(info.name, gpu, plan, memory, metadata)
    body = text.lines, text.positions
    return finished(info.name, "LLVM IR", plan, head, body, foot)


def _frame(
    name: str,
    gpu: GpuTarget,
    plan: ProgramAnalysis,
    memory: _WorkItemMemory,
    metadata: Mapping[str, Sequence[int]],
) -> tuple[list[str], list[str]]:
    """Return the lines before and after the body of the function."""
    pointer = f"ptr addrspace({gpu.spaces['global']})"
    argument = f"{pointer} align {_VECTOR_BYTES}"
    parameters = ", ".join(f"{argument} %p{p.slot}" for p in plan.params)
    convention = f"define {gpu.convention} void {global_name(name)}({parameters}) #0"
    head = ["; " + words for words in about(name, plan)]
    head += [*gpu.declarations, *memory.shared]
    words = "".join(f" !{key} !{i}" for i, key in enumerate(metadata))
    head.append(f"{convention}{words} {{")
    attributes = f"nounwind {gpu.attributes(plan.launch)}".strip()
    foot = ["}", f"attributes #0 = {{ {attributes} }}"]
    for i, numbers in enumerate(metadata.values()):
        listed = ", ".join(f"i32 {n}" for n in numbers)
        foot.append(f"!{i} = !{{{listed}}}")
    return head, [*foot, ""]


class _WorkItemMemory(LLVMMemory):
    """Writes the memory accesses of a work-item, in address spaces."""

    def __init__(self, gpu: GpuTarget, plan: ProgramAnalysis, operands: Operands, text: LLVMWriter):
        super().__init__(plan, frozenset(), operands, text)
        self.gpu = gpu
        self.shared: list[str] = []
        """The lines before the kernel, which declare the arrays of a group."""

    def pointer(self, place: UOp) -> str:
        number = self.gpu.spaces["global" if place.op is Ops.PARAM else _SPACES[place.space]]
        return f"ptr addrspace({number})" if number else "ptr"

    def arrays(self) -> None:
        """Name the arguments, and declare the arrays of the group and of the work-item."""
        for param in self.plan.params:
            name = self.text.unique(f"p{param.slot}")
            self.operands.values[param] = "%" + name
        for define in self.plan.scratch:
            kind = f"[{size_of(define)} x {memory_type(define.dtype.scalar)}]"
            align = f"align {_VECTOR_BYTES}"
            name = self.text.unique(define.name)
            number = self.gpu.spaces[_SPACES[define.space]]
            if define.space == "shared":
                space = f"internal addrspace({number}) global {kind} poison"
                self.shared.append(f"@{name} = {space}, {align}")
                self.operands.values[define] = f"@{name}"
            else:
                space = f", addrspace({number})" if number else ""
                address = self.text.emit(f"alloca {kind}, {align}{space}", name)
                self.operands.values[define] = address
                if define in self.plan.padded:
                    pointer = f"ptr addrspace({number})" if number else "ptr"
                    self.text.put(f"store {kind} zeroinitializer, {pointer} {address}")

    def alignment(self, address: UOp) -> int:
        return alignment(address, _VECTOR_BYTES)

    def conditional_load(self, node: UOp, test: str, kind: str) -> str:
        return self.load_in_branch(node, test, kind)

    # without masks the lanes are loaded and stored one by one, in branches

    def masked_load(self, load: UOp, test: str, place: str) -> str:
        if self.gpu.has_masks:
            return super().masked_load(load, test, place)
        count, kind = load.dtype.count, memory_type(load.dtype)
        element = memory_type(load.dtype.scalar)
        whole, step = "zeroinitializer", ""
        for lane in range(count):
            before = self.text.block
            inside, after = self._begin_lane(load.src[1], test, lane)
            pointer = self._lane(load.src[0], lane)
            value = self.text.step(f"load {element}, {pointer}")
            self.text.put(f"br label %{after}")
            self.text.begin(after)
            zero = constant(0, dtypes.uint8 if load.dtype.is_bool else load.dtype.scalar)
            value = self.text.step(f"phi {element} [ {value}, %{inside} ], [ {zero}, %{before} ]")
            step = f"insertelement {kind} {whole}, {element} {value}, i64 {lane}"
            whole = self.text.step(step) if lane < count - 1 else ""
        return step

    def every_lane(self, condition: UOp, test: str) -> str:
        if self.gpu.has_masks:
            return super().every_lane(condition, test)
        lanes = [self._test(condition, test, i) for i in range(condition.dtype.count)]
        return reduce(lambda a, b: self.text.step(f"and i1 {a}, {b}"), lanes)

    def masked_store(self, store: UOp, text: str, test: str, place: str) -> None:
        if self.gpu.has_masks:
            super().masked_store(store, text, test, place)
            return
        address, value, condition = store.src
        kind, element = memory_type(value.dtype), memory_type(value.dtype.scalar)
        for lane in range(value.dtype.count):
            _, after = self._begin_lane(condition, test, lane)
            each = self.text.step(f"extractelement {kind} {text}, i64 {lane}")
            self.text.put(f"store {element} {each}, {self._lane(address, lane)}")
            self.text.put(f"br label %{after}")
            self.text.begin(after)

    def _begin_lane(self, condition: UOp, test: str, lane: int) -> tuple[str, str]:
        """Begin a block that runs if a lane of a test holds; return its name, and that of the block
        after it."""
        inside, after = self.text.unique("lane"), self.text.unique("after_lane")
        holds = self._test(condition, test, lane)
        self.text.put(f"br i1 {holds}, label %{inside}, label %{after}")
        self.text.begin(inside)
        return inside, after

    def _test(self, condition: UOp, test: str, lane: int) -> str:
        mask = type_of(condition.dtype)
        return self.text.step(f"extractelement {mask} {test}, i64 {lane}")

    def _lane(self, address: UOp, lane: int) -> str:
        """Return a pointer to a lane's element in memory, with its alignment."""
        where, pointer = self.pointer(address.param), self.operands.operand(address)
        element = element_type(address)
        kind = memory_type(element)
        at = self.text.step(f"getelementptr {kind}, {where} {pointer}, i32 {lane}")
        return f"{where} {at}, align {element.itemsize}"


class _WorkItemWalker(LLVMWalker):
    """Writes the program of a work-item: also its numbers, barriers, shuffles and tensor cores."""

    def __init__(self, gpu: GpuTarget, text: LLVMWriter, operands: Operands, memory: LLVMMemory):
        super().__init__(text, operands, memory)
        self.gpu = gpu

    def number(self, node: UOp) -> str:
        assert node.role is not None
        words = self.gpu.number(node.role, node.dimension)
        name, kind = self.text.unique(node.axis.axis_name), type_of(dtypes.index)
        bits = 64 if " i64 @" in words else 32
        if kind == f"i{bits}":
            return self.text.emit(words, name)
        value = self.text.step(words)
        step = "trunc" if bits > 32 else "zext"
        return self.text.emit(f"{step} i{bits} {value} to {kind}", name)

    def barrier(self) -> None:
        for instruction in self.gpu.barrier():
            self.text.put(instruction)

    def function(self, node: UOp) -> str | None:
        if node.op is Ops.WMMA:
            values = [self.operands.operand(s) for s in node.src]
            kinds = [s.dtype for s in node.src]
            return self.gpu.product(node.arg, kinds, values, self.text.step)
        if node.op is Ops.WARP_SHUFFLE:
            step, value = self.text.step, self.operands.operand(node.src[0])

            def exchange(word: str) -> str:
                return step(self.gpu.exchange(word, node.arg, step))

            return shuffled(node.dtype, value, exchange, step)
        name = self.gpu.functions.get(node.op)
        if name is None:
            return None
        dtype = node.dtype
        if dtype.bits == 64 and node.op not in self.gpu.doubles:
            because = f"{self.gpu.name} has no {name} of {dtype.scalar.name}"
            raise CompileError("render", because)
        arguments: Sequence[str] = self.operands.operands(node)
        return call(name, dtype, arguments).replace("call ", "call afn ", 1)
