"""Language x defect: what is said of a text that somebody edited, on each device that compiles one.

An error says what is wrong, why, what to try, and the line; where the line is one of the kernel's,
the operation that it is the code of. No text ends this process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from workbench import Tensor, explore
from workbench.backends.compilers.compilers import clang_for
from workbench.backends.cuda import nvrtc
from workbench.backends.device import Device
from workbench.backends.program.text import MOST_CHARACTERS, Source, require_readable
from workbench.base.errors import CompileError, WorkbenchError
from workbench.base.installation import install_command
from workbench.pipeline import stages
from workbench.worker.candidate import row_of
from workbench.worker.client import Worker, WorkerEnded
from workbench.worker.server import WorkerServer

TOOLS = nvrtc.toolkit()
HAS_NVIDIA = TOOLS is not None and bool(TOOLS.nvdisasm)
HAS_CLANG = bool(clang_for("amdgcn", "gfx942") and clang_for("spirv64"))


@dataclass(frozen=True)
class Row:
    """A device that takes edited text, whether that is like C, whether it runs it, and what is
    missing here ("": nothing)."""

    device: str
    is_like_c: bool
    runs: bool
    missing: str = ""


def here(device: str, is_like_c: bool) -> Row:
    missing = "" if Device.available(device) else Device[device].how_to_get
    return Row(device, is_like_c, True, missing)


ROWS = [
    here("C", True),
    here("LLVM", False),
    here("WASM", False),
    here("OPENCL", True),
    here("OCLGRIND", True),
    Row("LLVM:Graviton4", False, False),
    Row("CUDA:H100", True, False, "" if HAS_NVIDIA else nvrtc.how_to_get()),
    Row("HIP:MI300X", True, False, "" if HAS_CLANG else install_command("c")),
    Row("OPENCL:Iris Xe", True, False, "" if HAS_CLANG else install_command("c")),
]


def row(each: Row) -> Any:
    missing = pytest.mark.skipif(bool(each.missing), reason=each.missing)
    return pytest.param(each, marks=missing, id=each.device)


ALL = pytest.mark.parametrize("language", [row(each) for each in ROWS])
LIKE_C = pytest.mark.parametrize("language", [row(each) for each in ROWS if each.is_like_c])
RUN = pytest.mark.parametrize("language", [row(each) for each in ROWS if each.runs])


@cache
def source_of(device: str) -> Source:
    x, y = (Tensor(np.ones((8, 8), np.float32)) for _ in range(2))
    kernel = explore((x @ y).relu(), device=device).kernels[0]
    source = stages(kernel.ast, device, upto="source").source
    assert source is not None
    return source


def lines_of(language: Row) -> list[str]:
    return source_of(language.device).text.split("\n")


def store_in(language: Row) -> int:
    """Return the place of the line that stores the answer."""
    pattern = r"\s*p0\[.*\] = " if language.is_like_c else r"\s*store float "
    (place,) = (i for i, line in enumerate(lines_of(language)) if re.match(pattern, line))
    return place


def with_store(language: Row, *store: str) -> str:
    """Return the text with other lines where the answer is stored."""
    lines, place = lines_of(language), store_in(language)
    return "\n".join([*lines[:place], *store, *lines[place + 1 :]])


def candidate(language: Row, text: str) -> dict[str, Any]:
    x, y = (Tensor(np.ones((8, 8), np.float32)) for _ in range(2))
    kernel = explore((x @ y).relu(), device=language.device).kernels[0]
    return row_of(kernel.ast, language.device, ()) | {"source": text}


def compile_as_typed(language: Row, text: str) -> dict[str, Any]:
    server = WorkerServer(lambda progress: None, lambda: False)
    return server.compile({"kernel": candidate(language, text)})


def refusal_of(language: Row, text: str) -> WorkbenchError:
    """Return the error of a text: it says all that an error says."""
    assert text != source_of(language.device).text
    with pytest.raises(CompileError) as error:
        compile_as_typed(language, text)
    assert error.value.what and error.value.because.strip() and error.value.hint.strip()
    return error.value


@ALL
def test_the_text_itself_compiles(language: Row) -> None:
    text = with_store(language, lines_of(language)[store_in(language)], "")
    answer = compile_as_typed(language, text)
    assert answer["assembly"] or not Device[language.device].has_machine_code


C_STORES: dict[str, Callable[[str], str]] = {
    "an undeclared name": lambda s: re.sub(r" = .*;", " = undefined_name;", s),
    "a wrong type": lambda s: re.sub(r" = .*;", ' = "text";', s),
    "no semicolon": lambda s: s.replace(";", ""),
    "an open parenthesis": lambda s: s.replace(" = ", " = (", 1),
}
LLVM_STORES: dict[str, Callable[[str], str]] = {
    "an undeclared name": lambda s: re.sub(r"%\w+,", "%undefined_name,", s, count=1),
    "a wrong type": lambda s: s.replace("store float", "store i7"),
    "no comma": lambda s: s.replace(",", " ", 1),
}


@ALL
def test_a_wrong_line_is_named_with_its_operation(language: Row) -> None:
    place = store_in(language)
    store = lines_of(language)[place]
    for name, edit in (C_STORES if language.is_like_c else LLVM_STORES).items():
        error = refusal_of(language, with_store(language, edit(store)))
        assert error.line == place + 1, (name, str(error))
        assert f"before the edit {store.strip()}, the code of STORE" in error.because, name
        mended = f"line {place + 1} as it was: {store.strip()}"
        assert error.hint in (mended, f"; at column {len(store)} of line {place + 1}"), name


C_INSERTIONS = {
    "an open comment": "/* for ever",
    "an open string": 'const char *words = "for ever;',
    "an open brace": "if (1) {",
    "an undeclared function": "undefined_name(1);",
}


@LIKE_C
@pytest.mark.parametrize("name", C_INSERTIONS)
def test_what_is_inserted_and_not_closed_is_named(name: str, language: Row) -> None:
    """Also where the compiler comes to the end of the text before it says so."""
    place = store_in(language)
    text = with_store(language, C_INSERTIONS[name], lines_of(language)[place])
    error = refusal_of(language, text)
    assert error.line == place + 1, str(error)
    assert error.hint == f"the text without line {place + 1}", str(error)


@LIKE_C
def test_a_brace_that_is_gone_is_named(language: Row) -> None:
    lines = lines_of(language)
    last = max(i for i, line in enumerate(lines) if line.strip() == "}")
    error = refusal_of(language, "\n".join([*lines[:last], *lines[last + 1 :]]))
    assert error.line in (last, last + 1), str(error)
    error = refusal_of(language, "\n".join([*lines[:last], "", *lines[last + 1 :]]))
    assert error.line == last + 1, str(error)


@ALL
@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_what_no_compiler_reads_is_refused(character: str, language: Row) -> None:
    """In the code, and in a comment: a compiler may stop there, and say nothing."""
    place = store_in(language)
    store = lines_of(language)[place]
    comment = f"// {character}" if language.is_like_c else f"; {character}"
    for inserted in (character, comment):
        error = refusal_of(language, with_store(language, store, inserted))
        assert error.line == place + 2 and "the one shown" in error.because
        assert character not in str(error)


@ALL
def test_a_byte_order_mark_is_refused(language: Row) -> None:
    """At the beginning, where nobody sees it; within a comment it is a character as others."""
    text = source_of(language.device).text
    error = refusal_of(language, f"\ufeff{text}")
    assert error.line == 1 and "line 1 begins with a byte order mark" in error.because
    assert error.hint == "line 1 without it"
    require_readable(f"// \ufeff\n{text}")


@ALL
def test_megabytes_are_refused(language: Row) -> None:
    mark = "//" if language.is_like_c else ";"
    text = f"{source_of(language.device).text}\n{mark}{'x' * MOST_CHARACTERS}"
    assert "characters" in refusal_of(language, text).because


@ALL
@pytest.mark.parametrize("text", ["", " \n\n", "{comment} nothing"])
def test_a_text_without_the_kernel_is_refused(text: str, language: Row) -> None:
    comment = "//" if language.is_like_c else ";"
    error = refusal_of(language, text.format(comment=comment))
    name = source_of(language.device).name
    assert "the text has no kernel" in error.because and name in error.hint


@ALL
def test_a_kernel_with_another_name_is_refused(language: Row) -> None:
    source = source_of(language.device)
    renamed = re.sub(rf"\b{source.name}\(", "another_name(", source.text)
    error = refusal_of(language, renamed)
    assert source.name in error.because and source.name in error.hint
    assert error.line == next(
        n for n, line in enumerate(lines_of(language), 1) if f"{source.name}(" in line
    )


def second_kernel(language: Row) -> str:
    """Return another kernel, without what stands before it in the text."""
    source = source_of(language.device)
    lines = source.text.split("\n")
    head = next(i for i, line in enumerate(lines) if f"{source.name}(" in line)
    if "__" in lines[head - 1]:  # its attributes
        head -= 1
    end = next(i for i, line in enumerate(lines) if i > head and line == "}")
    return "\n".join(lines[head : end + 1]).replace(source.name, "second_kernel")


@ALL
def test_a_second_kernel_is_not_taken_for_it(language: Row) -> None:
    source = source_of(language.device)
    text = f"{source.text}\n{second_kernel(language)}"
    if language.runs:
        compile_as_typed(language, text)
        return
    error = refusal_of(language, text)
    assert f"the text has the kernels {source.name}, second_kernel" in error.because
    assert "second_kernel as a function" in error.hint


@ALL
def test_the_kernel_twice_is_refused(language: Row) -> None:
    source = source_of(language.device)
    again = second_kernel(language).replace("second_kernel", source.name)
    error = refusal_of(language, f"{source.text}\n{again}")
    assert error.line is not None and error.line > len(lines_of(language))


def without_argument(language: Row) -> str:
    """Return a kernel that takes an argument less, and compiles."""
    source, last = source_of(language.device), "p2"
    text = re.sub(rf",[^,()]*\b{last}\)", ")", source.text)
    assert text != source.text
    return re.sub(rf"(?<!%)\b{last}\[", "p1[", text).replace(f"%{last},", "%p1,")


@pytest.mark.parametrize(
    "language", [row(each) for each in ROWS if each.device in ("OPENCL", "OCLGRIND", "WASM")]
)
def test_an_argument_less_is_refused(language: Row) -> None:
    """On devices whose kernels have a list of arguments; others get one pointer to all of them."""
    error = refusal_of(language, without_argument(language))
    assert "takes 2 arguments, and is launched with 3" in error.because
    assert error.hint == "its arguments: p0, p1, p2"


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as process:
        yield process


def checked(worker: Worker, language: Row, text: str) -> dict[str, Any]:
    x, y = (Tensor(np.ones((8, 8), np.float32)) for _ in range(2))
    kernel = explore((x @ y).relu(), device=language.device).kernels[0]
    buffers = kernel.data.buffers(kernel.original, language.device)
    outputs = kernel.original.outputs
    worker.hold("x", lambda: [(b, i in outputs) for i, b in enumerate(buffers)])
    task = {
        "do": "check", "kernel": candidate(language, text), "data": "x",
        "original": row_of(kernel.original, language.device, ())["ast"], "silent_s": 1.0,
    }  # fmt: skip
    return worker.ask(task)


@RUN
def test_a_second_kernel_changes_no_answer(worker: Worker, language: Row) -> None:
    source = source_of(language.device)
    second = re.sub(r"(?:0\.0f|float 0\.0)", "float 9.0", second_kernel(language))
    texts = [f"{source.text}\n{second_kernel(language)}"]
    if not language.is_like_c:  # also where it stands before the kernel
        texts.append(f"{second}\n{source.text}")
    for text in texts:
        answer = checked(worker, language, text)
        assert answer["ok"], answer["text"]


@RUN
def test_a_wrong_answer_is_said(worker: Worker, language: Row) -> None:
    store = lines_of(language)[store_in(language)]
    zero = (
        re.sub(r" = .*;", " = 1.0f;", store)
        if language.is_like_c
        else re.sub(r"float %\w+,", "float 1.0,", store)
    )
    answer = checked(worker, language, with_store(language, zero))
    assert not answer["ok"] and "WRONG" in answer["text"]


@pytest.mark.parametrize("language", [row(each) for each in ROWS if each.runs and each.is_like_c])
def test_an_endless_loop_costs_the_worker_alone(worker: Worker, language: Row) -> None:
    store = lines_of(language)[store_in(language)]
    loop = "for (volatile int endless = 1; endless;) {}"
    with pytest.raises(WorkerEnded, match="did not end") as error:
        checked(worker, language, with_store(language, loop, store))
    assert error.value.hint
    assert checked(worker, language, source_of(language.device).text + "\n")["ok"]


@pytest.mark.parametrize(
    "language", [row(each) for each in ROWS if each.runs and not each.is_like_c]
)
def test_an_endless_branch_costs_the_worker_alone(worker: Worker, language: Row) -> None:
    branch = "br label %endless\nendless:\n  br i1 true, label %endless, label %entry"
    text = source_of(language.device).text
    endless = re.sub(r"^entry:$", f"start:\n  {branch}\nentry:", text, flags=re.MULTILINE)
    assert endless != text
    with pytest.raises(WorkerEnded, match="did not end"):
        checked(worker, language, endless)
    assert checked(worker, language, text + "\n")["ok"]
