"""The text of a program, edited by a user, runs on the emulator: what is wrong with it is named, or
refused in words."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.assembly import GPU, Assembly
from tests.emulator.test_machine import product
from tests.support import count
from workbench import Device, Kernel, Tensor, emulate, explore
from workbench.base.errors import DeviceError, ParseError, VerifyError, WorkbenchError
from workbench.emulator.program import emulated
from workbench.emulator.steps import Trace


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return product(32)[0]


@pytest.fixture(scope="module")
def code(kernel: Kernel) -> str:
    return emulate(kernel).code


def test_the_text_as_it_is(kernel: Kernel, code: str) -> None:
    trace = emulate(kernel, code=code)
    assert not trace.findings
    np.testing.assert_array_equal(trace.outputs[0], emulate(kernel).outputs[0])
    assert emulate(kernel, code=trace.linear).code == code


def test_a_barrier_taken_away(kernel: Kernel, code: str) -> None:
    trace = emulate(kernel, code=code.replace("BARRIER\n", "", 1))
    assert {f.kind for f in trace.findings} == {"race"}
    text = str(trace)
    assert "writes As[0], and work-item (1, 0, 0) of group (0, 0, 0) reads it" in text
    assert "  STORE in  As[l0*16 + l1] = p1[" in text


def test_an_index_changed(kernel: Kernel, code: str) -> None:
    changed = code.replace("v33 = MUL.index r1, 16", "v33 = MUL.index r1, 15")
    (finding,) = emulate(kernel, code=changed).findings
    assert (finding.kind, finding.memory, finding.element) == ("wrong value", "p0", 0)
    assert "and " in finding.words and finding.words.endswith("is right")


def test_a_loop_cut_short(kernel: Kernel, code: str) -> None:
    changed = code.replace('RANGE.index 2 {"g1"', 'RANGE.index 1 {"g1"')
    (finding,) = emulate(kernel, code=changed).findings
    assert finding.kind == "unwritten" and finding.items == ()
    assert finding.words.startswith("no work-item writes p0[16]")


def test_a_barrier_put_into_an_if(kernel: Kernel, code: str) -> None:
    """It is named, and nothing waits for ever."""
    guard = "v900 = CMPLT.bool l1, 3:index\nIF v900\nBARRIER\nENDIF v900\n"
    (finding,) = emulate(kernel, code=code.replace("BARRIER\n", guard, 1)).findings[:1]
    assert finding.kind == "divergent barrier"
    assert [item.item for item in finding.items] == [(3, 0, 0), (0, 0, 0)]


def test_text_alone_runs_on_random_data(code: str) -> None:
    assert not emulate(code).findings
    trace = emulate(code.replace("BARRIER\n", "", 1))
    assert {f.kind for f in trace.findings} == {"race"}


def test_nothing_but_outputs_is_compared() -> None:
    x = Tensor(np.arange(64, dtype=np.float32)).realize()
    kernel = explore(x.cast("bfloat16") * 2).kernels[-1]
    assert not emulate(kernel, code=emulate(kernel).code).findings


REFUSALS = [
    (r"(?s).*", "hello", ParseError, "neither an op nor a value"),
    (r"LINEAR\n", "", ParseError, "no line LINEAR"),
    (r"(?s)BLOCK.*", "", VerifyError, "begins with"),
    (r"ENDLOOP r1\n", "", VerifyError, "is not innermost"),
    (r"v22 = LOAD.float32 v21", "v22 = LOAD.float32 v99", ParseError, "v99"),
    (r"v33 = MUL.index r1, 16", "v33 = MUL.float32 r1, 16.0", VerifyError, "MUL"),
    (r'"item", 0', '"item", 1', VerifyError, "number the dimensions 1, 1 of the item"),
    (r"\{1, 1024\}", "{1, 4096}", VerifyError, r"p1 as float32\[4096\]"),
    (r"\{2, 1024\}", "{7, 1024}", VerifyError, "no such argument"),
    (r'"As", \(16, 16\)', '"As", (160, 160)', DeviceError, "have 103,424 bytes"),
    (r'16 \{"l1"', '160 {"l1"', DeviceError, "has 2,560 work-items, and 256 fit"),
    (r'2 \{"g0"', '70000 {"g0"', DeviceError, "has 70,000 groups along y, and 65,536"),
    (r'16 \{"r1"', '9000000 {"r1"', DeviceError, "it would take about [0-9,]+ seconds"),
]  # fmt: skip


@pytest.mark.parametrize("pattern, words, error, message", REFUSALS)
def test_refusals(
    kernel: Kernel, code: str, pattern: str, words: str, error: type[WorkbenchError], message: str
) -> None:
    changed = re.sub(pattern, words, code, count=1)
    assert changed != code
    with pytest.raises(error, match=message):
        emulate(kernel, code=changed)


HINTS = [
    (r"(?s).*", "", "the text of emulate(kernel).code, edited"),
    (r"(?s).*", "hello", "the text of emulate(kernel).code, edited"),
    (r"ENDLOOP r1\n", "", "at line {0}, as it was: ENDLOOP r1"),
    (r"ENDLOOP r1\n", "ENDLOOP r1\nENDLOOP r1\n", "the text without line {1}"),
    (r"ENDLOOP r1\n", "END\0LOOP r1\n", "at line {0}, as it was: ENDLOOP r1"),
    (r"ENDLOOP r1(?s:.*)", "ENDL", "at line {0}, as it was: ENDLOOP r1, and the"),
    (r"(v33 = MUL.index r1), 16", r"\1, 99999999999999999999",
     "at line {0}, as it was: v33 = MUL.index r1, 16"),
    (r"(v33 = MUL.index r1), 16", r"\1", "at line {0}, as it was: v33 = MUL.index r1, 16"),
    (r"(v33 = MUL).index", r"\1.index33", "at line {0}, as it was: v33 = MUL.index r1, 16"),
    (r"\nBLOCK .*", "", "at line {1}, as it was: BLOCK"),
]  # fmt: skip


@pytest.mark.parametrize("pattern, words, hint", HINTS)
def test_an_edit_that_is_refused_is_said_undone(
    kernel: Kernel, code: str, pattern: str, words: str, hint: str
) -> None:
    """The program's own text is what to try, at the line where somebody changed it."""
    place = re.search(pattern, code)
    assert place is not None
    line = code.count("\n", 0, place.start()) + 1
    changed = re.sub(pattern, words, code, count=1)
    with pytest.raises((ParseError, VerifyError)) as raised:
        emulate(kernel, code=changed)
    assert raised.value.hint.startswith(hint.format(line, line + 1))
    assert f"\n  try      {raised.value.hint}" in str(raised.value)
    with pytest.raises((ParseError, VerifyError)) as raised:
        emulate(changed or "\n")
    is_near = words.endswith(".index33")  # without the program before: the dtype that is like it
    assert raised.value.hint == ("index" if is_near else "the text of emulate(kernel).code, edited")


@pytest.mark.parametrize("rows", [8, 12])
def test_an_output_that_gets_the_slot_of_another_argument(rows: int) -> None:
    """Of another length, or of the same: then nothing is left to be compared."""
    a = np.arange(8 * rows, dtype=np.float32).reshape(8, rows)
    x = Tensor(a, device="CUDA:H100").realize()
    kernel = explore(x @ x.T).kernels[-1].optimized()
    changed = emulate(kernel).code.replace("{0, 64}", "{1, 64}")
    because = "it has no p0" if rows == 8 else r"p1 is float32\[96\], and float32\[64\]"
    with pytest.raises(VerifyError, match=because) as raised:
        emulate(kernel, code=changed)
    assert "PARAM.float32 {0, 64}" in raised.value.hint
    if rows == 12:
        with pytest.raises(VerifyError, match=because):
            emulate(changed)


def test_accesses_of_a_space_that_there_is_not(kernel: Kernel) -> None:
    with pytest.raises(WorkbenchError, match="no space 'x'") as raised:
        emulate(kernel).total("x")
    assert raised.value.hint == "'global' or 'shared'"


def test_a_program_made_of_steps_is_refused_too() -> None:
    p = Assembly(grid=(2, 2, 2, 2), group=(4,))
    p.store(p.param(0, 4), p.items[0], 1.0)
    with pytest.raises(DeviceError, match="has 4 dimensions, and there are 3"):
        emulated(p.steps, [np.zeros(4, np.float32)], GPU)
    q = Assembly(grid=(2,), group=(64,))
    q.store(q.param(0, 64), q.items[0], 1.0)
    small = replace(GPU, group_items=32)
    with pytest.raises(DeviceError, match="has 64 work-items, and 32 fit"):
        emulated(q.steps, [np.zeros(64, np.float32)], small)


def test_random_edits(kernel: Kernel, code: str) -> None:
    """Whatever is edited, there is a Trace, or an error in words."""
    lines, outcomes = code.split("\n"), [0, 0]
    for seed in range(count(600)):
        edited = _edited(lines, random.Random(seed))
        try:
            assert isinstance(emulate(kernel, code=edited), Trace)
            outcomes[0] += 1
        except WorkbenchError as error:
            assert error.what and error.because and error.hint, (seed, repr(error))
            outcomes[1] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {edited}") from error
    assert min(outcomes) > count(600) // 10, outcomes


def _edited(lines: list[str], dice: random.Random) -> str:
    changed = [*lines]
    for _ in range(dice.randint(1, 2)):
        place = dice.randrange(1, len(changed))
        match dice.randrange(4):
            case 0:
                del changed[place]
            case 1:
                changed.insert(dice.randrange(1, len(changed)), changed.pop(place))
            case 2:
                other = str(dice.choice([0, 1, 3, 17, 1000]))
                changed[place] = re.sub(r"\b\d+\b", other, changed[place], count=1)
            case 3:
                changed[place] = re.sub(
                    r"\b[vrlg]\d+\b", f"v{dice.randrange(45)}", changed[place], count=1
                )
    return "\n".join(changed)


def test_a_target_is_a_device_or_a_machine(kernel: Kernel) -> None:
    for name in ("CUDA:H100", "h100", "H100"):
        assert emulate(kernel, target=name).target == Device["CUDA:H100"].target
    with pytest.raises(DeviceError, match="there is no machine 'H1000'"):
        emulate(kernel, target="H1000")


def test_memory_that_is_too_large_to_be_watched_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = explore(Tensor.empty(1 << 15, 1 << 15) * 2).kernels[0]

    def no_buffers(*_: object) -> None:
        raise AssertionError("memory is made")

    monkeypatch.setattr(type(kernel.data), "buffers", no_buffers)
    with pytest.raises(DeviceError, match="arguments have 2,147,483,648 elements"):
        emulate(kernel)
    code = "\n".join(
        [
            "LINEAR",
            'BLOCK {KernelInfo("copy", ())}',
            "p0 = PARAM.float32 {0, 1000000000000}",
            "v1 = INDEX.float32 p0, 0:index",
            "STORE v1, 1.0:float32",
        ]
    )
    with pytest.raises(DeviceError, match="arguments have 1,000,000,000,000 elements"):
        emulate(code)
