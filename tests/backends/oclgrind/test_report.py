"""What Oclgrind writes is read as findings; without it the device says how to get it."""

from __future__ import annotations

import re

import pytest

from workbench.backends.compilers.child import ended_error
from workbench.backends.device import Device
from workbench.backends.oclgrind import oclgrind_device as device
from workbench.backends.oclgrind.oclgrind_device import findings
from workbench.backends.program.text import Source
from workbench.base.errors import DeviceError
from workbench.base.installation import install_command

REPORT = """
Read-write data race at local memory address 0x1000000000004
\tKernel: k
\t
\tFirst entity:  Global(33,2,0) Local(1,2,0) Group(1,0,0)
\t  store float %0, float addrspace(3)* %1, align 4, !dbg !28
\tAt line 5 (column 7) of input.cl:
\t  t[l] = a[l];
\t
\tSecond entity: Global(32,0,0) Local(0,0,0) Group(1,0,0)
\t  %2 = load float, float addrspace(3)* %3, align 4, !dbg !29
\tAt line 7 (column 9) of input.cl:
\t  o[l] = t[l + 1];
\t

Read-write data race at local memory address 0x1000000000008
\tKernel: k
\t
\tFirst entity:  Global(34,2,0) Local(2,2,0) Group(1,0,0)
\tAt line 5 (column 7) of input.cl:
\tSecond entity: Global(33,0,0) Local(1,0,0) Group(1,0,0)
\tAt line 7 (column 9) of input.cl:

Work-group divergence detected (barrier)
\tKernel:     k
\tWork-group: (1,0,0)
\tOnly 3 out of 64 work-items executed barrier
\t  call spir_func void @_Z7barrierj(i32 noundef 1) #5, !dbg !28
\tAt line 4 (column 2) of input.cl:
\t  barrier(CLK_LOCAL_MEM_FENCE);
\t
"""


def test_a_report() -> None:
    race, divergent = findings(REPORT)
    assert (race.kind, race.lines) == ("race", (5, 7))
    assert race.items == (
        "work-item (1, 2, 0) of group (1, 0, 0)",
        "work-item (0, 0, 0) of group (1, 0, 0)",
    )
    assert race.words == (
        "read-write data race at local memory: work-item (1, 2, 0) of group (1, 0, 0) and"
        " work-item (0, 0, 0) of group (1, 0, 0) at line 5 and line 7"
    )
    assert (divergent.kind, divergent.lines) == ("divergent barrier", (4,))
    assert "group (1, 0, 0): Only 3 out of 64" in divergent.words


def test_a_race_stands_before_the_reads_of_what_it_left_unwritten() -> None:
    read = "Controlflow depends on uninitialized value\n\tAt line 7 (column 9) of input.cl:\n"
    assert [f.kind for f in findings(read + REPORT)] == ["race", "divergent barrier", "unwritten"]


def test_the_end_of_the_process_is_no_refused_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*arguments: object) -> None:
        raise ended_error("oclgrind", -11, "")

    monkeypatch.setattr(device._process, "call", ended)
    with pytest.raises(DeviceError, match="cannot be simulated"):
        device.simulated(device.Simulation("", "k", [], (1,), (1,)))


def test_nothing_is_said_of_right_kernels() -> None:
    assert findings("") == findings("warning: unused variable\n") == []


def test_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    missing = Device["OCLGRIND"]
    assert not missing.is_available
    with pytest.raises(DeviceError, match=re.escape(install_command("oclgrind"))):
        missing.load(Source("k", "OpenCL C", "", ()))
