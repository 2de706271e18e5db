"""The passes of LLVM's code generator, as LLVM prints them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from workbench.backends.llvm import machine_passes
from workbench.base.errors import DeviceError
from workbench.tensor.tensor import Tensor
from workbench.viz import explore

DUMP = """*** IR Dump After The program as LLVM reads it (source) ***
; ModuleID = '<string>'
define void @f(ptr %a) #0 {
entry:                                            ; preds = %never
  ret void
}

attributes #0 = { "x" }
*** IR Dump After Some Loops (some-loops) *** (loop: %for_g0)
define void @f(ptr %a) #0 {
entry:
  ret void
}
declare void @g()
# *** IR Dump After Some Selection (some-isel) ***:
# Machine code for function f: IsSSA
Function Live Ins: $rdi

bb.0.entry:
; predecessors: %bb.1
  %1 = COPY $rdi

  RET

# End machine code for function f.
# *** IR Dump After Slot index numbering (slotindexes) ***:
0B\tbb.0.entry:
16B\t  %1 = COPY $rdi
\t  RET
# *** IR Dump After A Pass Without a Name () ***:
bb.0.entry:
  RET
"""


def test_passes_are_read_from_what_llvm_prints() -> None:
    source, first, last = machine_passes.passes_of(DUMP)
    assert source.name == "source"
    assert source.lines == ["define void @f(ptr %a) #0 {", "entry:", "  ret void", "}"]
    assert first.name == "some-isel" and first.title == "Some Selection"
    assert first.lines == ["bb.0.entry:", "  %1 = COPY $rdi", "  RET"]
    assert last.name == "A Pass Without a Name" and last.lines == ["bb.0.entry:", "  RET"]
    assert machine_passes.passes_of("") == []


def test_the_passes_of_a_kernel() -> None:
    """Those on LLVM IR, then on the machine's instructions; no two in a row are the same."""
    x = Tensor(np.ones((64, 64), np.float32), device="LLVM")
    kernel = explore((x @ x).relu()).kernels[0]
    source = kernel.compile("LLVM").source
    passes = machine_passes.machine_passes(source)
    assert len(passes) > 5 and all(p.name and p.lines for p in passes)
    is_ir = [p.lines[0].startswith("define ") for p in passes]
    assert passes[0].name == "source" and is_ir[0]
    assert "loop-reduce" in [p.name for p in passes], "strength reduction of loops"
    assert any("loop r_" in p.title or "loop for_" in p.title for p in passes)
    assert is_ir == sorted(is_ir, reverse=True) and not is_ir[-1]
    for before, after in pairwise(passes):
        assert before.lines != after.lines


def test_text_that_llvm_refuses_has_no_passes() -> None:
    with pytest.raises(DeviceError, match="cannot be shown"):
        machine_passes.machine_passes("no program")
