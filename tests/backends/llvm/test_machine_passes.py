"""The passes of LLVM's code generator, as LLVM prints them."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.backends.llvm import machine_passes
from workbench.base.errors import DeviceError
from workbench.tensor.tensor import Tensor
from workbench.viz import explore

DUMP = """*** IR Dump After Some Selection (some-isel) on f ***
# Machine code for function f: IsSSA
Function Live Ins: $rdi

bb.0.entry:
; predecessors: %bb.1
  %1 = COPY $rdi

  RET

# End machine code for function f.
*** IR Dump After Nothing Much (nothing) on f ***
bb.0.entry:
  %1 = COPY $rdi
  RET
*** IR Dump After A Pass Without a Name () on f ***
bb.0.entry:
  RET
"""


def test_passes_are_read_from_what_llvm_prints() -> None:
    first, last = machine_passes.passes_of(DUMP)
    assert first.name == "some-isel" and first.title == "Some Selection"
    assert first.lines == ["bb.0.entry:", "  %1 = COPY $rdi", "  RET"]
    assert last.name == "A Pass Without a Name" and last.lines == [
        "bb.0.entry:",
        "  RET",
    ]
    assert machine_passes.passes_of("") == []


def test_the_passes_of_a_kernel() -> None:
    kernel = explore(Tensor(np.ones((8, 6), np.float32), device="LLVM").sum(1)).kernels[
        0
    ]
    source = kernel.compile("LLVM").source
    passes = machine_passes.machine_passes(source)
    assert len(passes) > 5 and all(p.name and p.lines for p in passes)
    assert passes[0].lines != passes[-1].lines


def test_text_that_llvm_refuses_has_no_passes() -> None:
    with pytest.raises(DeviceError, match="cannot be shown"):
        machine_passes.machine_passes("no program")
