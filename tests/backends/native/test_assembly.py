"""Assembly to read: directives gone, lines of source kept, loops found; texts as compilers write
them for x86 (LLVM, GCC) and ARM (Linux, macOS)."""

from __future__ import annotations

import pytest

from workbench.backends.native.program import AsmLine, code_loops, readable

LLVM_X86 = """\t.text
\t.file\t"kernel.ll"
\t.section\t.rodata,"a",@progbits
.LCPI0_0:
\t.long\t0x3f800000                      # float 1
\t.text
\t.globl\tk
k:                                      # @k
.Lfunc_begin0:
\t.loc\t1 1 0                           # kernel.ll:1:0
\t.cfi_startproc
# %bb.0:                                # %entry
\tvbroadcastss\t.LCPI0_0(%rip), %ymm0   # 4-byte Reload
\t.loc\t1 12 1 prologue_end
.LBB0_1:                                # =>This Inner Loop Header: Depth=1
\tvaddps\t(%rsi,%rax), %ymm0, %ymm1
.Ltmp0:
\t.loc\t1 0 1 is_stmt 0
\tincq\t%rax
\tjl\t.LBB0_1
\tretq
\t.section\t.debug_line,"",@progbits
.Lline_table_start0:
\tnop
"""
ARM_LINUX = """\t.text
k:                                      // @k
\t.loc\t1 3 1
.LBB0_1:
\tadd\tx8, x8, #16                     // =64
\tb.ne\t.LBB0_1
\tret
"""
ARM_MACOS = """\t.section\t__TEXT,__text,regular,pure_instructions
_k:                                     ; @k
\t.loc\t1 3 1
LBB0_1:
\tadd\tx8, x8, #16                      ; =64
\tb.ne\tLBB0_1
\tret
"""
GCC = """\t.file\t"<stdin>"
#APP
k:
.LFB1:
\t.loc 1 7 10 view .LVU0
\tmovq\t(%rdi), %rax
.L3:
\t.loc 1 9 23 discriminator 3
\tincq\t%rax
\tjne\t.L3
\tret
"""


def test_llvm_for_x86() -> None:
    assert readable(LLVM_X86) == (
        AsmLine("k:", None),
        AsmLine("  vbroadcastss .LCPI0_0(%rip), %ymm0", 1),
        AsmLine(".LBB0_1:", None),
        AsmLine("  vaddps (%rsi,%rax), %ymm0, %ymm1", 12),
        AsmLine("  incq %rax", None),
        AsmLine("  jl .LBB0_1", None),
        AsmLine("  retq", None),
    )


@pytest.mark.parametrize("text", [ARM_LINUX, ARM_MACOS], ids=["linux", "macos"])
def test_immediates_of_arm_are_no_comments(text: str) -> None:
    lines = readable(text)
    assert [line.text for line in lines[2:]] == [
        "  add x8, x8, #16",
        f"  b.ne {lines[1].text[:-1]}",
        "  ret",
    ]
    assert [line.source_line for line in lines] == [None, None, 3, 3, 3]


def test_gcc() -> None:
    assert readable(GCC) == (
        AsmLine("k:", None),
        AsmLine("  movq (%rdi), %rax", 7),
        AsmLine(".L3:", None),
        AsmLine("  incq %rax", 9),
        AsmLine("  jne .L3", 9),
        AsmLine("  ret", 9),
    )


def test_loops_are_found_outer_ones_first() -> None:
    text = ["k:", "  nop", ".L1:", ".L2:", "  inc %a", "  jl .L2", "  jmp .L1", "  jmp .L9"]
    lines = [AsmLine(line, None) for line in [*text, ".L9:", "  ret"]]
    assert code_loops(lines) == [range(2, 7), range(3, 6)]
