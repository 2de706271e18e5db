"""Edited IR: the text of each level parses back, and an edit is refused, named, or what runs."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.agreement.programs import whole_program
from tests.support import count
from tests.tools.kernels import EXAMPLES, Array, Example, param_dtype, random_form
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.errors import CompileError, DeviceError, ParseError, VerifyError
from workbench.edited import EditedIR, IRLevel, edited_ir, ir_text
from workbench.emulator.checks import emulation_s
from workbench.emulator.program import emulated
from workbench.execution.realize import planned
from workbench.ir.meaning import closeness
from workbench.ir.node.uop import UOp
from workbench.ir.text.parser import parse
from workbench.pipeline import Stages, stages
from workbench.search.realization import tuned

DEVICES = "LLVM", "PYTHON", "CUDA:H100"
MOST_S = 0.5
"""Most seconds of an edit that is run."""
TREE: IRLevel = "tree"
LINEAR: IRLevel = "linear"


def kernels(seed: int, device: str) -> Iterator[UOp]:
    """Yield kernels: of an example with random opts, of a random expression, or program."""
    if seed % 3 == 0:
        example = random.Random(seed).choice([*EXAMPLES.values()])
        yield random_form(example, seed, 4, Device[device].target).graph
        return
    sample = whole_program(seed) if seed % 3 == 1 else case(seed)
    schedule, _ = planned([sample.run("LLVM")[0].uop])
    for item in schedule.items:
        if item.kernel is not None:
            yield tuned(item.kernel, device)


def test_the_text_of_each_level_is_the_same_program_again() -> None:
    compared = 0
    for seed in range(count(120)):
        device = DEVICES[seed // 3 % 3]
        for kernel in kernels(seed, device):
            try:
                own = stages(kernel, device, "source")
            except (CompileError, DeviceError):  # larger than the device
                continue
            assert parse(ir_text(own, TREE)) is own.lowered
            assert parse(ir_text(own, LINEAR)) == own.linear
            for level in (TREE, LINEAR):
                edited = edited_ir(kernel, device, f"# mine\n{ir_text(own, level)}\n")
                assert edited.level == level and edited.stages.linear == own.linear, seed
                if level == TREE:
                    assert edited.stages.source.text == own.source.text, seed
                compared += 1
    assert compared > count(120)


# edits

NAME = re.compile(r"\b(?:v|s|p|g|r|l|u|acc)\d+\b")
NUMBER = re.compile(r"\b\d+\b")
DTYPE = re.compile(r"\b(?:float32|index|bool|int32)\b")
OP = re.compile(r"\b(?:ADD|MUL|MAX|MIN|FMA|CMPLT|SET|LOAD|STORE|LOOP|ENDLOOP|WHERE|AND)\b")


def mutant(text: str, dice: random.Random) -> str:
    """Return a text with one random edit."""
    lines = text.split("\n")
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    line = lines[at]
    match dice.randrange(9):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, line)
        case 2:
            lines[at], lines[other] = lines[other], line
        case 3:
            lines[at] = _replaced(NAME, line, text, dice)
        case 4:
            lines[at] = _replaced(DTYPE, line, "float64 int8 float32x4 bool index void x", dice)
        case 5:
            lines[at] = _replaced(NUMBER, line, "0 1 2 3 7 1000 4294967296 -1", dice)
        case 6:
            lines[at] = _replaced(OP, line, text, dice)
        case 7:
            place = dice.randrange(len(line) + 1)
            lines[at] = line[:place] + dice.choice("{}(),.:= \t\"'\\#\0é") + line[place:]
        case 8:
            lines[at] = line[: dice.randrange(len(line) + 1)]
    return "\n".join(lines)


def _replaced(pattern: re.Pattern[str], line: str, words: str, dice: random.Random) -> str:
    """Return a line with another word of a kind in place of one."""
    old = [*pattern.finditer(line)]
    new = pattern.findall(words) or words.split()
    if not old:
        return line
    place = dice.choice(old)
    return line[: place.start()] + dice.choice(new) + line[place.end() :]


def ran(edited: EditedIR, example: Example, device: str) -> Array:
    """Return the output of an edited program on a device."""
    arrays = example.arrays()
    buffers = [Buffer(device, param_dtype(example.graph, i), a.size) for i, a in enumerate(arrays)]
    for buffer, array in zip(buffers, arrays, strict=True):
        buffer.array[:] = array
    stages(edited.stages, device).program(buffers)
    return np.array(buffers[0].array)


def on_python(edited: EditedIR, example: Example) -> Array:
    """Return what the tree of an edited program computes."""
    own = edited.stages
    tree = Stages(own.kernel, own.lowered, own.lowered, own.linear)
    return ran(EditedIR(edited.text, TREE, edited.listing, tree), example, "PYTHON")


def outcome(example: Example, kernel: UOp, text: str) -> str:
    """Return how an edit ends: refused, named by the emulator, or as what all ways compute."""
    try:
        edited = edited_ir(kernel, "LLVM", text)
    except (ParseError, VerifyError, CompileError) as error:
        has_place = error.line is not None or not text.strip() or isinstance(error, CompileError)
        assert error.because and error.hint or isinstance(error, CompileError), error
        assert has_place or "argument" in error.what or "special" in error.what, error
        return type(error).__name__
    linear, arrays, target = edited.stages.linear, example.arrays(), Device["LLVM"].target
    if emulation_s(linear) > MOST_S:
        return "long"
    trace = emulated(linear, arrays, target, fresh={0})
    if trace.findings:
        return "named"
    right = arrays[0]
    with np.errstate(all="ignore"):
        own = ran(edited, example, "LLVM")
        assert _alike(own, right), "the compiled code is another program"
        if edited.level == TREE:
            assert _alike(on_python(edited, example), right), "the tree is another program"
    return "run"


def _alike(a: Array, b: Array) -> bool:
    errors = closeness.errors(a, b)
    return bool(np.all(errors <= 4 * closeness.limit_of(a, b)))


@pytest.mark.parametrize("level", (TREE, LINEAR))
def test_an_edit_is_refused_or_named_or_what_runs(level: IRLevel) -> None:
    """Nothing else: no crash, and no program that the text does not say."""
    outcomes: dict[str, int] = {}
    names = ["softmax", "sum_of_columns", "transpose", "convolution", "matmul_bias_relu"]
    for seed in range(count(400)):
        dice = random.Random(seed)
        example = EXAMPLES[names[seed % len(names)]]
        kernel = random_form(example, seed, 2, Device["LLVM"].target).graph
        text = ir_text(stages(kernel, "LLVM", "linear"), level)
        for _ in range(dice.choice((1, 1, 2))):
            text = mutant(text, dice)
        try:
            how = outcome(example, kernel, text)
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{text}")
        outcomes[how] = outcomes.get(how, 0) + 1
    assert {"ParseError", "VerifyError", "run"} <= set(outcomes), outcomes


def test_a_text_of_another_kernel_is_refused() -> None:
    first, second = (EXAMPLES[name].graph for name in ("transpose", "softmax"))
    for level in (TREE, LINEAR):
        text = ir_text(stages(first, "LLVM", "linear"), level)
        with pytest.raises(VerifyError, match="other arguments than the kernel"):
            edited_ir(second, "LLVM", text)


def test_faults_of_a_kernel_have_their_places() -> None:
    example = EXAMPLES["sum_of_columns"]
    tree = ir_text(stages(example.graph, "LLVM", "linear"), TREE)
    store = next(line for line in tree.split("\n") if "STORE" in line and "0.0" not in line)
    outside = re.sub(r"(BLOCK v\d+)", rf"\1, {store.split()[0]}", tree)
    outside = outside.replace(' {"chunked"}', "")
    with pytest.raises(VerifyError, match="outside of its loop") as raised:
        edited_ir(example.graph, "LLVM", outside)
    assert raised.value.line == 1 + tree.split("\n").index(store) and raised.value.column
    unused = re.sub(r"(BLOCK) v\d+", r"\1", tree)
    with pytest.raises(ParseError, match="is not in the tree"):
        edited_ir(example.graph, "LLVM", unused)
    inward = tree.replace("PARAM.float32 {1,", "PARAM.float32 {0,", 1)
    with pytest.raises(VerifyError):
        edited_ir(example.graph, "LLVM", inward)


def test_an_index_that_is_none_is_told_the_form_of_one() -> None:
    """A number without a dtype has that of its line: an INDEX of floats reads `0` as 0.0."""
    kernel = EXAMPLES["sum_of_columns"].graph
    for level in (TREE, LINEAR):
        text = ir_text(stages(kernel, "LLVM", "linear"), level)
        edit = re.sub(r"(= INDEX\.float32 p0, )\S+", r"\g<1>0", text, count=1)
        assert edit != text
        with pytest.raises(VerifyError, match="an index is float32, not .*, or .* as 0:index"):
            edited_ir(kernel, "LLVM", edit)
        with contextlib.suppress(VerifyError):  # of another rule: all write to one element
            edited_ir(kernel, "LLVM", edit.replace("p0, 0", "p0, 0:index"))


def test_source_in_place_of_ir_is_told_what_takes_it() -> None:
    kernel = EXAMPLES["sum_of_columns"].graph
    for source_device, device, language, call in (
        ("C", "LLVM", "C", "Source pane"),
        ("C", "CUDA:H100", "C", "Source pane"),
        ("LLVM", "LLVM", "LLVM", "Source pane"),
        ("CUDA:H100", "CUDA:H100", "CUDA", r"emulate\(kernel, code=text\)"),
        ("CUDA:H100", "LLVM", "CUDA", r"emulate\(kernel, code=text\)"),
        ("WEBGPU:BROWSER", "LLVM", "WGSL", r"emulate\(kernel, code=text\)"),
        ("OPENCL:Iris Xe", "LLVM", "OpenCL C", r"emulate\(kernel, code=text\)"),
    ):
        text = stages(kernel, source_device, "source").source.text
        with pytest.raises(ParseError, match=rf"this is {language}, not IR(?s:.*){call}"):
            edited_ir(kernel, device, text)
