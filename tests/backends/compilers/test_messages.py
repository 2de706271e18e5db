"""What compilers say, read in one place: real logs of each, and what an error makes of them."""

from __future__ import annotations

import pytest

from workbench.backends.compilers.refusal import (
    Message,
    about_line,
    first_error,
    messages,
    missing_kernel,
    refusal,
    require_arguments,
    require_kernel,
)
from workbench.backends.program.text import Source
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError

CLANG = """\
<stdin>:3:9: warning: unused variable 'x' [-Wunused-variable]
    3 |   float x;
      |         ^
<stdin>:4:13: error: expected ';' after expression
    4 |   p0[0] = 1
      |             ^
      |             ;
<stdin>:9:2: error: expected '}'
    9 | }
      |  ^
<stdin>:2:26: note: to match this '{'
    2 | void k(__global float *p) {
      |                           ^
2 errors generated.
"""
GCC = """\
<stdin>: In function ‘k’:
<stdin>:4:12: error: expected ‘;’ before ‘}’ token
    4 |   p0[0] = 1
      |            ^
      |            ;
    5 | }
      | ~
"""
GCC_TYPE = """\
t.c: In function ‘f’:
t.c:4:12: error: incompatible type for argument 1 of ‘g’
    4 |   return g(p);
      |            ^
      |            |
      |            float *
"""
ZIG = """\
/root/.cache/zig/tmp/776b07-stdin.c:1:15: error: call to undeclared function 'f'
    1 | void k(void){ f(1); }
      |               ^
1 error generated.
"""
LLVM = """\
LLVM IR parsing error
<string>:9:26: error: expected ',' after store operand
      store float %max0  ptr %p0_at0, align 4
                         ^
"""
POCL = (
    "clBuildProgram failed: BUILD_PROGRAM_FAILURE\n\nBuild on <pyopencl.Device>:\n\n"
    "warning: /tmp/t_Wu9Zuz.cl:2:1: this says little\n"
    "error: /tmp/t_Wu9Zuz.cl:19:6 <Spelling=<c...nd line>:5:17>: redefinition of 'k'\n"
    "error: /tmp/t_Wu9Zuz.cl:20:7: use of undeclared identifier 'y'\n"
)
NVRTC = """\
kernel.cu(3): warning #177-D: variable "x" was declared but never referenced
    float x;
          ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

kernel.cu(12): error: identifier "x" is undefined
    p0[0] = x;
            ^

1 error detected in the compilation of "kernel.cu".
"""
NVRTC_END = """\
At end of source: error: expected a "}"
kernel.cu(16): note #3196-D: to match this "{"
  k(float *p0) {
               ^

1 error detected in the compilation of "kernel.cu".
"""
NVRTC_COMMENT = """\
kernel.cu(24): catastrophic error: comment unclosed at end of file
  /* open
  ^
"""
PTXAS = (
    "ptxas info    : Used 9 registers\n\0ptxas error   : Entry function 'k' uses too much"
    " shared data (0x1ab40 bytes, 0xc000 max)"
)
NAGA = """\
error: no definition in scope for identifier: `undefined_name`
  ┌─ wgsl:3:16
  │
3 │   let x: f32 = undefined_name;
  │                ^^^^^^^^^^^^^^ unknown identifier
"""
HIPRTC = "/tmp/comgr-1/input/CompileSource:3:5: error: no matching function\n"
DRIVER = "clang: error: unknown target CPU 'gfx1'\n"
BACK_END = "warning: w\nfatal error: error in backend: no such shuffle\n"


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (CLANG, Message("error", "expected ';' after expression", 4, 13, ";")),
        (GCC, Message("error", "expected ‘;’ before ‘}’ token", 4, 12, ";")),
        (GCC_TYPE, Message("error", "incompatible type for argument 1 of ‘g’", 4, 12)),
        (ZIG, Message("error", "call to undeclared function 'f'", 1, 15)),
        (LLVM, Message("error", "expected ',' after store operand", 9, 26)),
        (POCL, Message("error", "redefinition of 'k'", 19, 6)),
        (NVRTC, Message("error", 'identifier "x" is undefined', 12)),
        (NVRTC_END, Message("error", 'expected a "}"', is_at_end=True)),
        (NVRTC_COMMENT, Message("error", "comment unclosed at end of file", 24)),
        (
            NAGA,
            Message(
                "error", "no definition in scope for identifier: `undefined_name`", 3, 16
            ),
        ),
        (HIPRTC, Message("error", "no matching function", 3, 5)),
        (DRIVER, Message("error", "unknown target CPU 'gfx1'")),
        (BACK_END, Message("error", "error in backend: no such shuffle")),
    ],
)  # fmt: skip
def test_the_first_error(log: str, error: Message) -> None:
    first = first_error(log)
    assert first is not None and first[0] == error


def test_warnings_and_notes_are_told_apart() -> None:
    kinds = [(m.kind, m.line) for m in messages(CLANG)]
    assert kinds == [("warning", 3), ("error", 4), ("error", 9), ("note", 2)]
    assert [(m.kind, m.line) for m in messages(NVRTC)] == [("warning", 3), ("error", 12)]
    assert first_error("kernel.cu(3): warning #177-D: x\n") is None
    assert first_error("") is None
    words = "Entry function 'k' uses too much shared data (0x1ab40 bytes, 0xc000 max)"
    assert first_error(PTXAS) == (Message("error", words), [])


def test_notes_belong_to_the_error_before_them() -> None:
    first = first_error(NVRTC_END)
    assert first is not None
    assert [(n.words, n.line) for n in first[1]] == [('to match this "{"', 16)]


@pytest.mark.parametrize(
    ("log", "because", "hint", "line"),
    [
        (CLANG, "expected ';' after expression", "; at column 13 of line 4", 4),
        (NVRTC_END, 'expected a "}"; to match this "{" (line 16)', "", 3),
        ("killed\n", "killed", "", None),
        ("", "it says nothing", "", None),
    ],
)
def test_a_refusal(log: str, because: str, hint: str, line: int | None) -> None:
    error = refusal("a compiler", log, "one\ntwo\nthree\n\n")
    assert (error.because, error.hint, error.line) == (because, hint, line)


TEXT = "void k(\n  float *p0) {\n  a;\n  b;\n}\n"
SOURCE = Source("k", "a language", TEXT, ((dtypes.float32, 4),), lines=((),) * 6)


@pytest.mark.parametrize(
    ("text", "line", "shown", "hint"),
    [
        ("void k(\n  float *p0) {\n  a;\n  B;\n}\n", 4, 4, "line 4 as it was: b;"),
        ("void k(\n  float *p0) {\n  a;\n  x;\n  b;\n}\n", 4, 4, "the text without line 4"),
        ("void k(\n  float *p) {\n  a;\n  b;\n}\n", 4, 4, "which begins at line 2"),
        ("void k(\n  float *p0) {\n  {\n  a;\n  b;\n}\n", 6, 3, "the text without line 3"),
        ("void k(\n  float *p0) {\n  a;\n  b;\n\n", 4, 5, "} before line 5, as before the edit"),
        ("void k(\n  float *p0) {\n  A;\n  b;\n}}\n", 5, 5, "line 5 as it was: }"),
        ("void k(\n  float *p0) {\n  A;\n  b;\n}\n", 99, 3, "line 3 as it was: a;"),
        ("void k(\n  float *p0) {\n  A;\n  b;\n}\n", None, None, "begins at line 3"),
    ],
)  # fmt: skip
def test_an_error_of_an_edited_text_leads_to_the_edit(
    text: str, line: int | None, shown: int | None, hint: str
) -> None:
    error = about_line(CompileError("c", "wrong", line=line), SOURCE.edited(text))
    assert error.line == shown and error.hint.endswith(hint), str(error)


def test_what_nobody_edited_is_no_fault_of_the_reader() -> None:
    error = about_line(CompileError("c", "wrong", line=3), SOURCE)
    assert error.because == "wrong; line 3 is a;" and "other opts" in error.hint
    own = Source("k", "C", TEXT, (), is_handwritten=True)
    assert about_line(CompileError("c", "wrong", line=3), own).hint == ("line 3 written otherwise")
    kept = about_line(CompileError("c", "wrong", hint="do that", line=3), SOURCE)
    assert kept.hint == "do that"


def test_a_text_has_its_kernel_alone() -> None:
    edited = SOURCE.edited(TEXT.replace("k(", "other("))
    require_kernel("c", ["k"], SOURCE)
    with pytest.raises(CompileError, match="has no kernel, and k is run") as error:
        require_kernel("c", [], edited)
    assert error.value.line == 1 and error.value.hint == "as before: void k("
    with pytest.raises(CompileError, match="has the kernels other, and k is run"):
        require_kernel("c", ["other"], edited)
    with pytest.raises(CompileError, match="has the kernels k, a, and one is run"):
        require_kernel("c", ["a", "k"], edited)
    own = missing_kernel("c", Source("k", "C", "", ()))
    assert own.hint == "a kernel with the name k"


def test_a_kernel_takes_what_it_is_launched_with() -> None:
    require_arguments("c", 1, SOURCE)
    require_arguments("c", 2, SOURCE, more=1)
    with pytest.raises(CompileError, match="takes 0 arguments, and is launched with 1"):
        require_arguments("c", 0, SOURCE)


@pytest.mark.parametrize("character", ["\0", "\ud800", "\udfff"])
def test_a_source_is_what_a_compiler_reads(character: str) -> None:
    for text in (f"a\nb{character}\nc", f"é\nb{character}"):
        with pytest.raises(CompileError) as error:
            SOURCE.edited(text)
        assert error.value.line == 2 and error.value.hint == "line 2 without it"
        assert character not in str(error.value)
    assert SOURCE.edited("é ‘x’ \U0001f600").original is SOURCE
