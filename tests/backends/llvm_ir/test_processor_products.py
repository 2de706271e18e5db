"""Products of tiles on processors: the instruction stands in what LLVM writes; the LLVM IR computes
what numpy does where functions after the makers' manuals stand for the instructions; and where this
processor has one, it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.tools.tensor_cores import PROCESSOR_CORES, target_with
from workbench import Opt, OptOps, Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.backends.llvm_ir.products import processor_product
from workbench.backends.memory import Buffer
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.base.tensor_cores import TensorCore
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.pipeline import stages

NAME = "LLVM"
Array = np.ndarray[Any, Any]
Sizes = tuple[int, int, int]
WORDS = "<256 x i32>"
"""A register of AMX."""


@dataclass(frozen=True)
class Loops:
    """What an instruction computes, after its manual: for i, j, r, h: c[..] += a[..] * b[..]; the
    extents of the loops, and for each operand how far a step of each loop is."""

    name: str
    kinds: tuple[str, str, str]
    extents: tuple[int, int, int, int]
    c: tuple[int, int, int, int]
    a: tuple[int, int, int, int]
    b: tuple[int, int, int, int]


MANUALS = {
    # Arm ARM, BFMMLA: c[i, j] += a[i, h] * b[j, h]
    "bfmmla": Loops(
        "llvm.aarch64.neon.bfmmla", ("<4 x float>", "<8 x bfloat>", "<8 x bfloat>"),
        (2, 2, 1, 4), (2, 1, 0, 0), (4, 0, 0, 1), (0, 4, 0, 1),
    ),
    # Intel SDM, VDPBF16PS: c[j] += a[2 j + h] * b[2 j + h]
    "dpbf16ps": Loops(
        "llvm.x86.avx512bf16.dpbf16ps.512",
        ("<16 x float>", "<32 x bfloat>", "<32 x bfloat>"),
        (1, 16, 1, 2), (0, 1, 0, 0), (0, 2, 0, 1), (0, 2, 0, 1),
    ),
    # Intel SDM, TDPBF16PS: c[i][j] += a[i][2 r + h] * b[r][2 j + h], rows of 16 words
    "tdpbf16ps": Loops(
        "llvm.x86.tdpbf16ps.internal", (WORDS,) * 3,
        (16, 16, 16, 2), (16, 1, 0, 0), (32, 0, 2, 1), (0, 2, 32, 1),
    ),
}  # fmt: skip


def matmul(shape: Sizes) -> UOp:
    m, n, k = shape
    a, b = (Tensor.empty(*s, dtype=dtypes.bfloat16) for s in ((m, k), (k, n)))
    product = a.cast(dtypes.float32) @ b.cast(dtypes.float32)
    return explore(product).kernels[-1].ast


def source_of(shape: Sizes, core: TensorCore, target: Target, *opts: Opt) -> Source:
    graph = matmul(shape)
    for opt in (Opt(OptOps.TC, 0, core.shape), *opts):
        graph, _ = apply_opt(graph, opt, target)
    linear = stages(graph, target, "linear").linear
    return Device[NAME].render_for(target, graph, linear)


def times(core: TensorCore, m: int, n: int, k: int) -> Sizes:
    return m * core.m, n * core.n, k * core.k


@pytest.mark.parametrize("core", PROCESSOR_CORES, ids=str)
def test_the_machine_code_has_the_instruction(core: TensorCore) -> None:
    target = target_with(core)
    opts = [] if core.m == 16 else [Opt(OptOps.UPCAST, "g0", 2)]
    source = source_of(times(core, 2, 2, 4), core, target, *opts)
    code = Device[NAME].compile_for(target, source)
    assert code is not None
    lines = [x for x in code.lines if re.search(rf"\b[tv]?{core.instruction}\b", x.text)]
    rows = core.m if core.instruction == "dpbf16ps" else 1
    assert len(lines) == rows * (1 + len(opts))
    assert all(line.source_line for line in lines), "each leads to its line"


@pytest.mark.parametrize("core", PROCESSOR_CORES, ids=str)
@pytest.mark.parametrize("factors", [(1, 1, 1), (2, 3, 2)])
def test_it_computes_what_numpy_does(core: TensorCore, factors: Sizes) -> None:
    shape = times(core, *factors)
    source = source_of(shape, core, target_with(core))
    played = replace(source, text=without_instruction(source.text, core))
    check(played, shape)


@pytest.mark.parametrize("core", PROCESSOR_CORES, ids=str)
def test_odd_sizes(core: TensorCore) -> None:
    shape = core.m + 1, 2 * core.n - 1, core.k + 1
    source = source_of(shape, core, target_with(core))
    check(replace(source, text=without_instruction(source.text, core)), shape)


@pytest.mark.parametrize("core", PROCESSOR_CORES, ids=str)
def test_on_this_processor(core: TensorCore) -> None:
    target = Device[NAME].target
    if core not in target.tensor_cores:
        pytest.skip(f"no {core.instruction} here: {target.no_tensor_cores}")
    for factors in ((1, 1, 1), (4, 3, 5)):
        shape = times(core, *factors)
        check(source_of(shape, core, target), shape)
    odd = 3 * core.m + 1, 2 * core.n - 1, 5 * core.k + 1
    check(source_of(odd, core, target), odd)


def test_an_instruction_of_other_machines_is_refused() -> None:
    other = PROCESSOR_CORES[0]._replace(instruction="mma.sync")
    with pytest.raises(CompileError, match="no processor has an instruction for 2x2x4"):
        processor_product(other, ["%a", "%b", "%c"], str)


def check(source: Source, shape: Sizes) -> None:
    """Fail unless a program computes A @ B."""
    m, n, k = shape
    dice = np.random.default_rng(sum(shape))
    a, b = (dice.uniform(-1.5, 1.5, s).astype(dtypes.bfloat16.numpy) for s in ((m, k), (k, n)))
    buffers = [Buffer(NAME, dtypes.float32, m * n)]
    for array in (a, b):
        buffers.append(Buffer(NAME, dtypes.bfloat16, array.size))
        buffers[-1].copy_in(array.reshape(-1))
    Device[NAME].load(source)(buffers)
    actual = buffers[0].to_numpy().reshape(m, n)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(actual, expected, 1e-3, 3e-2)


def without_instruction(text: str, core: TensorCore) -> str:
    """Return LLVM IR with a function in the place of the instruction of a core."""
    loops = MANUALS[core.instruction]
    assert loops.name in text
    text = text.replace("x86_amx", WORDS).replace(loops.name, "played")
    functions = [played(loops)]
    for word, way in (("vector", "vector.to.tile"), ("tile", "tile.to.vector")):
        text = text.replace(f"llvm.x86.cast.{way}.v256i32", f"from_{word}")
        functions.append(
            f"define internal {WORDS} @from_{word}({WORDS} %x) {{\n  ret {WORDS} %x\n}}"
        )
    return "\n".join([text, *functions, ""])


def played(loops: Loops) -> str:
    """Return a function of the arguments of an instruction."""
    c, a, b = loops.kinds
    sizes = "i16, i16, i16, " if c == WORDS else ""
    lines = [f"define internal {c} @played({sizes}{c} %c, {a} %a, {b} %b) {{", "entry:"]
    for name, kind in zip("cab", loops.kinds, strict=True):
        lines.append(f"  %{name}_at = alloca {kind}")
        lines.append(f"  store {kind} %{name}, ptr %{name}_at")
    lines.append("  br label %body")
    total = int(np.prod(loops.extents))
    lines += ["body:", "  %s = phi i64 [ 0, %entry ], [ %next, %body ]"]
    rest = "%s"
    for place in (3, 2, 1, 0):  # the innermost loop is the last
        extent = loops.extents[place]
        lines.append(f"  %l{place} = urem i64 {rest}, {extent}")
        lines.append(f"  %q{place} = udiv i64 {rest}, {extent}")
        rest = f"%q{place}"
    strides: Mapping[str, tuple[int, ...]] = {"c": loops.c, "a": loops.a, "b": loops.b}
    for operand, steps in strides.items():
        at = "0"
        for place, stride in enumerate(steps):
            lines.append(f"  %{operand}_m{place} = mul i64 %l{place}, {stride}")
            lines.append(f"  %{operand}_i{place} = add i64 {at}, %{operand}_m{place}")
            at = f"%{operand}_i{place}"
        kind = "float" if operand == "c" else "i16"
        lines.append(f"  %{operand}_p = getelementptr {kind}, ptr %{operand}_at, i64 {at}")
        lines.append(f"  %{operand}_v = load {kind}, ptr %{operand}_p")
        if operand != "c":
            lines.append(f"  %{operand}_w = zext i16 %{operand}_v to i32")
            lines.append(f"  %{operand}_h = shl i32 %{operand}_w, 16")
            lines.append(f"  %{operand}_f = bitcast i32 %{operand}_h to float")
    lines += [
        "  %product = fmul float %a_f, %b_f",
        "  %sum = fadd float %c_v, %product",
        "  store float %sum, ptr %c_p",
        "  %next = add i64 %s, 1",
        f"  %more = icmp ult i64 %next, {total}",
        "  br i1 %more, label %body, label %done",
        "done:",
        f"  %result = load {c}, ptr %c_at",
        f"  ret {c} %result",
        "}",
    ]
    return "\n".join(lines)
