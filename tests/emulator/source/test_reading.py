"""What a reader may type into a kernel's text: it runs, what is wrong with it is named, or it is
refused at its line and column."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from tests.emulator.test_machine import product
from tests.support import by_rows, count
from workbench import Device, Kernel, Opt, OptOps, Tensor, emulate, explore
from workbench.base.errors import DeviceError, ParseError, WorkbenchError
from workbench.emulator.emulate import emulate_for_steps, read_text
from workbench.emulator.source.tokens import SourceError
from workbench.emulator.steps import Trace

CUDA, WGSL = "CUDA:H100", "WEBGPU:BROWSER"
SIZE = 256
COPY = "cp.async.ca.shared.global [%0], [%1], 4, %2;"


@pytest.fixture(scope="module")
def doubled() -> Kernel:
    """p0[i] = p1[i] * 2, with 4 groups of 64 work-items."""
    x = Tensor(np.arange(SIZE, dtype=np.float32)).realize()
    kernel = explore(x * 2).kernels[-1].on(CUDA).kernel
    return kernel.apply(Opt(OptOps.LOCAL, "g0", 64))


def written(body: str, outside: str = "") -> str:
    """Return a kernel of CUDA C++ with a body."""
    head = 'extern "C" __global__ void r_256(float *p0, const float *p1) {'
    return f"{outside}\n{head}\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n}}\n"


def require_right(kernel: Kernel, machine: str, code: str, name: str) -> None:
    """Require a text, the row `name` of a table, to run without a finding."""
    trace = emulate(kernel, machine, code=code)
    assert not trace.findings, (name, trace.with_lines(trace.findings[0]))


RIGHT = {
    "plain": "p0[i] = p1[i] * 2.0f;",
    "a loop that runs twice": "float s = 0; for (int k = 0; k < 2; k++) s += p1[i];\n p0[i] = s;",
    "downwards": "float s = 0; for (int k = 2; k > 0; --k) { s += p1[i]; } p0[i] = s;",
    "by halves": "float s = 0; for (int k = 2; k; k >>= 1) s += p1[i]; p0[i] = s;",
    "powers": "float s = 0; for (int k = 1; k < 4; k *= 2) s += p1[i]; p0[i] = s;",
    "while": "float s = 0; int k = 0; while (k < 2) { s += p1[i]; k++; } p0[i] = s;",
    "do": "float s = 0; int k = 0; do { s += p1[i]; } while (++k < 2); p0[i] = s;",
    "while it steps": "float s = 0; int k = 2; while (k--) s += p1[i]; p0[i] = s;",
    "an index that steps": "float t[2]; int n = 0; t[n++] = p1[i]; t[n++] = p1[i];\n"
    "p0[i] = t[0] + t[--n];",
    "assignments in expressions": "float a, b; a = b = p1[i]; if ((a = a + b) >= 0) p0[i] = a;",
    "a step that is not taken": "int n = 0; bool b = i < 999 || n++ > 0, c = i > 999 && n++ > 0;\n"
    "p0[i] = p1[i] * (2 + n + (c && !b));",
    "sizes": "float t[2][3]; p0[i] = p1[i] * (sizeof(t) / sizeof(t[0])) * sizeof(float4) / 16\n"
    "* sizeof i / 4 * (sizeof(p1) >> 3);",
    "a switch": "float s = 0; switch (i & 3) { case 0: s = 2; break; default: s = 1;\n"
    "case 2: s += 1; } p0[i] = p1[i] * (i % 4 == 2 ? 2 : s);",
    "a switch in a loop": "float s = 0; for (int k = 0; k < 4; k++) switch (k) {\n"
    "case 0: continue; case 3: break; default: s += p1[i]; } p0[i] = s;",
    "a switch that returns": "switch (i & 1) { case 0: p0[i] = p1[i] * 2; return;\n"
    "case 1: p0[i] = p1[i] + p1[i]; }",
    "an attribute of a loop": "__attribute__((opencl_unroll_hint(2)))\n"
    "for (int k = 0; k < 1; k++) p0[i] = p1[i] * 2;",
    "letters and bits": "p0[i] = p1[i] * ('c' - 'a') * 0b1;",
    "break": "float s = 0; for (int k = 0; ; k++) { if (k == 2) break; s += p1[i]; } p0[i] = s;",
    "continue": "float s = 0;\nfor (int k = 0; k < 4; k++) { if (k & 1) continue; s += p1[i]; }\n"
    "p0[i] = s;",
    "rounds by work-item": "float s = 0; for (int k = 0; k < (int)threadIdx.x; k++) s += 1;\n"
    "p0[i] = p1[i] * 2 + s - threadIdx.x;",
    "return": "if (i >= 256) return;\np0[i] = p1[i] * 2;",
    "early": "if (i & 1) { p0[i] = p1[i] * 2; return; }\np0[i] = p1[i] + p1[i];",
    "else": "if (i < 7) p0[i] = p1[i] * 2; else if (i < 9) p0[i] = p1[i] / 0.5f; else\n"
    "p0[i] = p1[i] + p1[i];",
    "choice": "p0[i] = i < 300 ? p1[i] * 2 : p1[i + 1000];",
    "and": "if (i < 300 && p1[i] >= 0) p0[i] = 2 * p1[i];",
    "or": "if (i >= 0 || p1[i + 100000] > 0) p0[i] = 2 * p1[i];",
    "vectors": "if (i < 64) { float4 v = ((const float4 *)p1)[i]; v.x *= 2; v.y = v.y + v.y;\n"
    "v.z += v.z; v.w *= 2.0; ((float4 *)p0)[i] = v; }",
    "pointers": "const float *q = p1 + i; *(p0 + i) = *q * 2;",
    "steps": "int n = 0, *q = &n; (*q)++; ++n; p0[i] = p1[i] * n;",
    "arrays": "float t[2][3] = {}; t[1][2] = p1[i]; t[0][0] = p1[i]; p0[i] = t[1][2] + t[0][0];",
    "shared": "__shared__ float t[4][16];\n t[threadIdx.x / 16][threadIdx.x % 16] = p1[i];\n"
    "__syncthreads();\n int j = 63 - threadIdx.x;\n"
    "p0[i - threadIdx.x + j] = 2 * t[j / 16][j % 16];",
    "shuffles": "float s = p1[i];\nfor (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);\n"
    "p0[i] = p1[i] * 2 + s - s;",
    "names": "const int n = 2; float s = 0; for (int k = 0; k < n; k++) s += p1[i]; p0[i] = s;",
    "narrow": "unsigned char c = 255; c += 1; p0[i] = p1[i] * (2 + c);",
    "unsigned": "unsigned a = 0; a -= 1; p0[i] = p1[i] * (a == 4294967295u ? 2 : 0);",
    "comments": "p0[i] = /* twice */ p1[i] * 2; // as it was",
}  # fmt: skip


@by_rows("name, body", list(RIGHT.items()))
def test_right_texts(doubled: Kernel, name: str, body: str) -> None:
    require_right(doubled, CUDA, written(body), name)


OUTSIDE = {
    "a macro": ("#define TWO 2", "p0[i] = p1[i] * TWO;"),
    "a macro with arguments": (
        "#define ADD(a, b) ((a) + (b))", "p0[i] = ADD(ADD(p1[i], 0), ADD(\n p1[i], 0));",
    ),
    "macros in macros": (
        "#define W 64\n#define AT(r, c) ((r) * W + (c))",
        "p0[i] = 2 * p1[AT(blockIdx.x, threadIdx.x)];",
    ),
    "a name that hides one": ("__device__ const int i = 3, two = 2;", "p0[i] = p1[i] * two;"),
    "a constant": ("__device__ const int two = 2;", "p0[i] = p1[i] * two;"),
    "a function": ("__device__ float twice(float x) { return x * 2; }", "p0[i] = twice(p1[i]);"),
    "one that returns early": (
        "__device__ float twice(float x) { if (x > 9) { return x + x; } float y = x; return y*2; }",
        "p0[i] = twice(p1[i]);",
    ),
    "a loop in one": (
        "__device__ float times(float x, int n) { float s = 0;\nwhile (n-- > 0) s += x; return s; }"
        .replace("n-- > 0", "n > 0").replace("s += x;", "{ s += x; n--; }"),
        "p0[i] = times(p1[i], 1) + (i < 300 ? times(p1[i], 1) : times(p1[i], 1000000000));",
    ),
    "one of memory": (
        "__device__ void put(float *to, int at, float x) { to[at] = x; }",
        "put(p0, i, p1[i] * 2);",
    ),
}  # fmt: skip


@by_rows("name, outside, body", [(name, *texts) for name, texts in OUTSIDE.items()])
def test_what_stands_outside(doubled: Kernel, name: str, outside: str, body: str) -> None:
    require_right(doubled, CUDA, written(body, outside), name)


WRONG = {
    "a changed number": ("p0[i] = p1[i] * 3;", "wrong value", 4),
    "another index": ("p0[i] = p1[i + 1] * 2;", "out of bounds", 4),
    "half of them": ("if (i & 1) p0[i] = p1[i] * 2;", "unwritten", 0),
    "one element": ("p0[0] = p1[i] * 2;", "race", 4),
    "no value": ("float s; p0[i] = s + p1[i];", "unwritten", 4),
    "a barrier in an if": ("p0[i] = p1[i] * 2;\nif (i & 1) __syncthreads();",
                           "divergent barrier", 5),
    "an odd address": ("if (i < 63) *(float4 *)&p0[i * 4 + 1] = *(const float4 *)&p1[i * 4 + 1];",
                       "misaligned", 4),
    "no barrier": ("__shared__ float t[64]; t[threadIdx.x] = p1[i];\n"
                   "p0[i] = t[threadIdx.x ^ 1] * 2;", "race", 4),
    "a shuffle in an if": ("float s = 0; if (i & 1) s = __shfl_xor_sync(~0u, p1[i], 1);\n"
                           "p0[i] = s;", "inactive lane", 4),
    "unsigned below 0": ("p0[i] = p1[threadIdx.x - 1u] * 2;", "out of bounds", 4),
    "a division by 0": ("p0[i] = p1[i] * 2 + 0 * (4 / (i - 5));", "division by 0", 4),
    "a rest by 0": ("int k = 4; k %= i - 5; p0[i] = p1[i] * 2;", "division by 0", 4),
    "nothing": ("", "unwritten", 0),
}  # fmt: skip


@by_rows("name, body, kind, line", [(name, *row) for name, row in WRONG.items()])
def test_wrong_texts(doubled: Kernel, name: str, body: str, kind: str, line: int) -> None:
    trace = emulate(doubled, CUDA, code=written(body))
    first = trace.findings[0]
    assert first.kind == kind, (name, str(first))
    assert trace.numbers(first)[:1] == ([line] if line else []), (name, trace.with_lines(first))


def test_work_items_that_have_returned_are_not_awaited_by_cuda(doubled: Kernel) -> None:
    """NVIDIA: a barrier waits for all threads that have not exited; WGSL has no such barrier."""
    body = "if (i & 1) { p0[i] = p1[i] * 2; return; }\n__syncthreads();\np0[i] = p1[i] * 2;"
    assert not emulate(doubled, CUDA, code=written(body)).findings
    text = doubled.code_for(WGSL)
    place = text.rindex("p0[")
    early = "if ((item.x & 1u) == 1u) { return; }\n  workgroupBarrier();\n  "
    kinds = {
        f.kind for f in emulate(doubled, WGSL, code=text[:place] + early + text[place:]).findings
    }
    assert "divergent barrier" in kinds


def test_a_read_outside_in_wgsl_is_a_defect_only_if_it_is_used(doubled: Kernel) -> None:
    text = doubled.code_for(WGSL)
    (load,) = set(re.findall(r"p1\[[^\]]*\]", text))
    unused = f"select({load}, p1[100000], 1 > 2)"
    assert not emulate(doubled, WGSL, code=text.replace(load, unused)).findings
    used = f"select({load}, p1[100000], 1 < 2)"
    assert emulate(doubled, WGSL, code=text.replace(load, used)).findings[0].kind == "out of bounds"


REFUSED = [
    ("p0[i] = p1[i] * 2", 5, "`;` is expected"),
    ("p0[i] = q[i];", 4, "there is no q"),
    ("p0[i] = p1[i] *;", 4, "a value is expected"),
    ("p0[i] = twice(p1[i]);", 4, "the function twice is not known"),
    ("atomicAdd(&p0[i], 1.0f);", 4, "does not support atomicAdd"),
    ("for (int k = 0; k < 2; k++ p0[i] = 1;", 4, "is expected here"),
    ("p0[i] = p1[i]; }", 5, "is expected here"),
    ("float t[i]; p0[i] = 1;", 4, "fixed whole number"),
    ("float s = 1; float s = 2;", 4, "a s in this block already"),
    ("const float s = p1[i]; s = 2;", 4, "a value that does not change"),
    ("float t[2]; t = 1;", 4, "an array or an address"),
    ("p0[i] = p1[i] * (2 / 0);", 4, "divides a whole number by 0"),
    ("switch (i) { case 1: case 1: break; }", 4, "two cases are of 1"),
    ("switch (i) { p0[i] = 1; }", 4, "`case` or `default` is expected"),
    ("switch (i) { case 1: continue; }", 4, "outside of a loop"),
    ("switch (p1[i]) { case 1: break; }", 4, "a switch is of a whole number"),
    ("p0[i] = sizeof(i + 1);", 4, "the size of this expression"),
    ("float *q = p0; *q++;", 4, "after `*` steps what"),
    ("p0[i] = p1[i] @ 2;", 4, "is expected here"),
    ("goto end;", 4, "is not supported"),
    ("p0[i] = p1;", 4, "an address stands here"),
    ("float x = 1; x.y = 2;", 4, "has no part"),
    ("p0[i] = 99999999999999999999;", 4, "does not fit"),
    ("p0[i] = 'ab';", 4, "begins nothing"),
    ('asm("bar.sync 0;");', 4, "is not supported"),
    ("__syncwarp();", 4, "is not supported"),
    ("break;", 4, "outside of a loop"),
    ("return 1;", 4, "returns nothing"),
    ("p0[i] = " + "(" * 500 + "1" + ")" * 500 + ";", 4, "more than 100"),
    ("{" * 400 + "}" * 400, 4, "more than 100"),
    ("p0[i] = " + "-" * 5000 + "1;", 4, ""),
]


@by_rows("body, line, because", REFUSED)
def test_refusals(doubled: Kernel, body: str, line: int, because: str) -> None:
    with pytest.raises(SourceError) as raised:
        emulate(doubled, CUDA, code=written(body))
    error = raised.value
    assert because in error.because, (body, str(error))
    assert error.line == line and error.column >= 1, (body, str(error))
    assert error.what.startswith(f"line {error.line}, column {error.column}: ")


def test_wgsl_converts_nothing_by_itself(doubled: Kernel) -> None:
    text = doubled.code_for(WGSL)
    with pytest.raises(SourceError, match="converts nothing"):
        emulate(doubled, WGSL, code=text.replace("* 2.0f", "* 2i"))
    assert not emulate(doubled, WGSL, code=text.replace("* 2.0f", "* 2")).findings


def test_other_arguments_and_groups(doubled: Kernel) -> None:
    text = doubled.code_for(CUDA)
    with pytest.raises(SourceError, match="has 3 arrays as arguments"):
        emulate(doubled, CUDA, code=text.replace("(float *p0", "(float *p9, float *p0"))
    with pytest.raises(SourceError, match="launched with groups of 64, and the text allows 32"):
        emulate(doubled, CUDA, code=text.replace("__launch_bounds__(64)", "__launch_bounds__(32)"))
    with pytest.raises(SourceError, match="has no kernel"):
        emulate(doubled, CUDA, code="void f() {}  // __global__")
    with pytest.raises(ParseError):
        emulate(doubled, CUDA, code="hello")
    wide = doubled.code_for(WGSL).replace("@workgroup_size(64", "@workgroup_size(32")
    assert {f.kind for f in emulate(doubled, WGSL, code=wide).findings} == {"unwritten"}


COPIES = {
    "its own copy, after its own wait": ("COMMIT WAIT 0", 0, set()),
    "one of two batches": ("COMMIT COMMIT WAIT 1", 0, set()),
    "another's copy, after a wait and a barrier": ("COMMIT WAIT 0 BARRIER", 1, set()),
    "another's copy, after its own wait": ("COMMIT WAIT 0", 1, {"race"}),
    "another's copy, with the barrier first": ("COMMIT BARRIER WAIT 0", 1, {"unfinished copy"}),
    "a barrier without a wait": ("COMMIT BARRIER", 1, {"unfinished copy"}),
    "no wait": ("COMMIT", 0, {"unfinished copy"}),
    "no commit": ("WAIT 0 BARRIER", 0, {"unfinished copy"}),
    "a wait that leaves the batch": ("COMMIT WAIT 1 BARRIER", 1, {"unfinished copy"}),
}
"""By name: the steps after a copy, the distance to the work-item whose copy is read, and the kinds
of the findings."""


@pytest.mark.parametrize("name", COPIES)
def test_who_sees_an_asynchronous_copy(doubled: Kernel, name: str) -> None:
    """A work-item its own after its wait; others only after a barrier behind that."""
    steps, distance, kinds = COPIES[name]
    asm = re.sub(r"WAIT (\d)", r'asm volatile("cp.async.wait_group \1;" ::: "memory");\n', steps)
    asm = asm.replace("COMMIT", 'asm volatile("cp.async.commit_group;");\n')
    asm = asm.replace("BARRIER", "__syncthreads();\n")
    to = '"r"((unsigned)__cvta_generic_to_shared(&s[threadIdx.x]))'
    copy = f'asm volatile("{COPY}" :: {to}, "l"(&p1[i]), "r"(4) : "memory");'
    value = f"s[threadIdx.x ^ {distance}]"
    result = f"p0[i] = {value} + p1[i]" + (f" + p1[i] - p1[i ^ {distance}];" if distance else ";")
    trace = emulate(doubled, CUDA, code=written(f"__shared__ float s[64];\n{copy}\n{asm}{result}"))
    assert {finding.kind for finding in trace.findings} == kinds
    shown = [line.text for line in trace.lines]
    assert sum("wait_group" in text for text in shown) == steps.count("WAIT")
    assert sum("commit_group" in text for text in shown) == steps.count("COMMIT")


def test_a_loop_that_does_not_end_is_stopped(
    doubled: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.emulator.program.MOST_TEXT_S", 0.2)
    for body in ("while (true) { p0[i] = 1; }", "for (int k = 0; k < 2; k--) p0[i] = 1;"):
        with pytest.raises(
            DeviceError, match=r"stopped on the emulator\n.*loop of line 5"
        ) as raised:
            emulate(doubled, CUDA, code=written(f"for (int j = 0; j < 3; j++)\n{body}"))
        assert raised.value.line == 5


def test_a_long_text_is_refused_soon(doubled: Kernel) -> None:
    for part in (
        "p0[i] = 1;\n",
        "/* ",
        "{ ",
        "a + ",
        "if (i) return;\n",
        "\n#define A p0[i] = 1;\nA\n",
    ):
        with pytest.raises(WorkbenchError) as raised:
            emulate(doubled, CUDA, code=written(part * (500_000 // len(part))))
        assert raised.value.because, part


def test_random_edits() -> None:
    """Whatever is typed, there is a Trace, or an error in words."""
    kernel, _ = product(32)
    texts = [kernel.code_for(machine) for machine in (CUDA, WGSL)]
    outcomes = [0, 0]
    for seed in range(count(400, 30)):
        dice = random.Random(seed)
        edited = _edited(dice.choice(texts), dice)
        machine = WGSL if "@compute" in edited else CUDA
        try:
            assert isinstance(emulate(kernel, machine, code=edited), Trace)
            outcomes[0] += 1
        except WorkbenchError as error:
            assert error.what and error.because, (seed, repr(error))
            outcomes[1] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {edited}") from error
    assert min(outcomes) > count(400, 30) // 10, outcomes


def _edited(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(dice.randint(1, 2)):
        place = dice.randrange(len(lines))
        match dice.randrange(4):
            case 0:
                del lines[place]
            case 1:
                lines.insert(dice.randrange(len(lines)), lines.pop(place))
            case 2:
                number = str(dice.choice([0, 1, 3, 17, 1000]))
                lines[place] = re.sub(r"\b\d+\b", number, lines[place], count=1)
            case 3:
                at = dice.randrange(len(lines[place]) + 1)
                lines[place] = (
                    lines[place][:at] + dice.choice("(){};=+x1 ") + lines[place][at + 1 :]
                )
    return "\n".join(lines)


LANGUAGE_CASES = {
    "words of other languages": "int local = i, device = 2; p0[local] = p1[i] * device;",
    "a cast by name": "p0[i] = p1[i] * static_cast<float>(2);",
    "fewer values than lanes": "float4 v = {1, 2}; p0[i] = p1[i] * v.y + v.z;",
    "a negative number beside an unsigned one":
        "float s = 2; for (int k = -1; k < 5u; k++) s += 1; p0[i] = p1[i] * s;",
    "an unsigned number from below 0":
        "int s = 0; for (unsigned k = -1; k > 0; k >>= 1) s++; p0[i] = p1[i] * (s / 16);",
    "a step by a variable of an outer name":
        "const int k = 2; int s = 0; for (int k = 1; k < 64; k += k) s++; p0[i] = p1[i] * (s / 3);",
    "the size of the least char": "char c = -128; p0[i] = p1[i] * (abs(c) / 64);",
    "a double of a name with f": "p0[i] = p1[i] * 2 + (erf(1) != erf(1.0));",
    "a pointer minus a number": "const float *q = p1 + i + 4; p0[i] = *(q - 4) * 2;",
    "a shared variable": "__shared__ int s; if (threadIdx.x == 0) s = 2;\n__syncthreads();\n"
        "p0[i] = p1[i] * s;",
    "a value for nothing": "(void)0; p0[i] = p1[i] * 2;",
}  # fmt: skip


@by_rows("name, body", list(LANGUAGE_CASES.items()))
def test_what_c_means(doubled: Kernel, name: str, body: str) -> None:
    require_right(doubled, CUDA, written(body), name)


def test_the_preprocessor(doubled: Kernel) -> None:
    body = "p0[i] = N * p1[i];"
    for outside in (
        "#define N M\n#define M 2",
        "#define N \\\n  2",
        "#if 0\n#define N 3\n#else\n#define N 2\n#endif",
        "#ifdef A\n#define N 3\n#elif 1\n#define N 2\n#elif 1\n#else\n#define N 5\n#endif",
        "#define A 1\n#if !defined(A)\n#elif A >= 1\n#define N 2\n#endif",
    ):
        assert not emulate(doubled, CUDA, code=written(body, outside)).findings, outside
    for outside, because in (
        ("#define N(a, b) a + b", "there is no N here"),
        ("#define N M(1)\n#define M(a, b) a + b", "the macro M takes 2 arguments, and gets 1"),
        ("#define N(a) a##b", "in the macro N is not supported"),
        ("#define N(1) 2", "has no list of names"),
        ("#error no", "#error: no"),
    ):
        with pytest.raises(SourceError, match=because):
            emulate(doubled, CUDA, code=written(body, outside))
    with pytest.raises(SourceError, match="has no preprocessor"):
        emulate(doubled, WGSL, code=f"#define N 2\n{doubled.code_for(WGSL)}")


def test_a_function_knows_no_arguments_of_the_kernel(doubled: Kernel) -> None:
    outside = "__device__ float twice(int i) { return p1[i] * 2; }"
    with pytest.raises(SourceError, match="there is no p1 here"):
        emulate(doubled, CUDA, code=written("p0[i] = twice(i);", outside))


def test_references_and_masks_that_are_not_supported(doubled: Kernel) -> None:
    outside = "__device__ void add(float &x) { x += x; }"
    body = "float s = p1[i]; add(s); p0[i] = s;"
    assert not emulate(doubled, CUDA, code=written(body, outside)).findings
    with pytest.raises(SourceError, match="refers to what is no variable"):
        emulate(doubled, CUDA, code=written("p0[i] = p1[i]; add(p0[i]);", outside))
    with pytest.raises(SourceError, match="some lanes"):
        emulate(doubled, CUDA, code=written("p0[i] = __shfl_xor_sync(1, p1[i], 1);"))


STRUCT = "struct Pair { float sum; int n; };"
OF_STRUCTS = {
    "parts": "Pair a; a.sum = p1[i]; a.n = 2; p0[i] = a.sum * a.n;",
    "braces": "struct Pair a = {p1[i]}; a.n += 2; p0[i] = a.sum * a.n;",
    "a copy": "const Pair a = {p1[i], 1}; Pair b = a; b.n++; p0[i] = b.sum * b.n;",
    "all parts at once": "Pair a = {1, 2}; a = Pair{p1[i] + a.n - 2, a.n}; p0[i] = a.sum * a.n;",
}
STRUCTS_REFUSED = {
    "Pair a; p0[i] = a.m;": "the struct Pair has no part `m`",
    "const Pair a = {1, 2}; a.n = 3;": "a.n is declared as a value that does not change",
    "Pair a; p0[i] = a;": "a is a struct, and one value is expected",
    "Pair a = {1, 2, 3};": "has 2 parts, and gets 3",
    "__shared__ Pair a[4];": "the struct Pair in memory is not supported",
    "p0[i] = ((const Pair *)p1)[i].sum;": "a pointer to a struct is not supported",
    "p0[i] = sizeof(Pair);": "the size of a struct is not supported",
    "p0[i] = twice(Pair{1, 2});": "takes or returns a struct",
}


@by_rows("name, body", list(OF_STRUCTS.items()))
def test_structs(doubled: Kernel, name: str, body: str) -> None:
    require_right(doubled, CUDA, written(body, STRUCT), name)
    typed = STRUCT.replace("struct Pair", "typedef struct").replace("};", "} Pair;")
    require_right(doubled, CUDA, written(body.replace("struct Pair", "Pair"), typed), name)


@by_rows("body, because", list(STRUCTS_REFUSED.items()))
def test_structs_that_are_not_supported(doubled: Kernel, body: str, because: str) -> None:
    outside = f"{STRUCT}\n__device__ float twice(Pair a) {{ return a.sum * a.n; }}"
    with pytest.raises(SourceError, match=because):
        emulate(doubled, CUDA, code=written(body, outside))


def test_arguments_that_have_no_elements(doubled: Kernel) -> None:
    for kind, outside in (("void", ""), ("Pair", STRUCT)):
        text = written("p0[i] = 1;", outside).replace("const float *p1", f"const {kind} *p1")
        with pytest.raises(SourceError, match="p1 is a pointer to"):
            emulate(doubled, CUDA, code=text)


def test_the_hint_at_a_part_that_does_not_change_names_its_struct(doubled: Kernel) -> None:
    for machine, text, hint in (
        (CUDA, written("const Pair a = {1, 2}; a.n = 3;", STRUCT), "a without const"),
        (WGSL, "struct Pair { n: f32 }\n" + wgsl("let a = Pair(1); a.n = 3;"), "var a"),
    ):
        with pytest.raises(SourceError, match="a.n is declared as") as raised:
            emulate(doubled, machine, code=text)
        assert raised.value.hint == hint


def test_structs_of_wgsl(doubled: Kernel) -> None:
    text = doubled.code_for(WGSL)
    numbers = re.sub(r"\(@builtin.*?\) \{", "(from: In) {", text)
    numbers = numbers.replace("= i32(group", "= i32(from.group").replace(
        "i32(item", "i32(from.item"
    )
    begin = numbers.index("@compute")
    struct = "struct In { @builtin(workgroup_id) group: vec3<u32>,\n"
    struct += "@builtin(local_invocation_id) item: vec3<u32> }\n"
    code = numbers[:begin] + struct + numbers[begin:]
    assert not emulate(doubled, WGSL, code=code).findings
    body = "var a = Pair(1, vec2<f32>(p1[i])); a = Pair(a.all.x, a.all * 2);\np0[i] = a.all.y;"
    struct = "struct Pair { n: f32, all: vec2<f32>, }\n"
    assert not emulate(doubled, WGSL, code=struct + wgsl(body)).findings


def test_a_text_that_writes_to_an_input_leaves_the_data(doubled: Kernel) -> None:
    text = written("p0[i] = p1[i] * 2; p1[i] = 0;").replace("const float *p1", "float *p1")
    for _ in range(2):
        assert not emulate(doubled, CUDA, code=text).findings
    right = doubled.code_for(CUDA).replace("2.0f", "3.0f")
    assert emulate(doubled, CUDA, code=right).findings


OPENCL = {
    "narrow vectors": "uchar4 c = (uchar4)(0x81); c = (c << 1) >> 1; p0[i] = p1[i] * (c.x + 1);",
    "a vector and a number": "uchar4 c = (uchar4)(200);\n"
    "p0[i] = p1[i] * (((c + 100) / (uchar)22).x);",
    "a comparison": "float4 a = (float4)(1.0f); p0[i] = p1[i] * -2 * convert_float4(a < 2.0f).x;",
    "halves": "float4 v = (float4)(1, 2, 3, 4); float2 a = v.hi - v.odd + v.lo - v.even;\n"
    "p0[i] = p1[i] * (a.x + 1) * (v.hi.y - 3);",
    "a wide shift": "int k = 33; p0[i] = p1[i] * (1 << k);",
}


@by_rows("name, body", list(OPENCL.items()))
def test_what_opencl_means(doubled: Kernel, name: str, body: str) -> None:
    head = "__kernel void r(__global float *p0, __global const float *p1) {"
    text = f"{head} int i = get_group_id(0) * 64 + get_local_id(0);\n{body}\n}}"
    require_right(doubled, "OPENCL:Iris Xe", text, name)


def test_opencl_conversions_that_are_not_supported(doubled: Kernel) -> None:
    head = (
        "__kernel void r(__global float *p0, __global const float *p1) { int i = get_local_id(0);"
    )
    for name in ("convert_uchar_sat", "convert_int_rte"):
        with pytest.raises(SourceError, match=f"{name} is not known"):
            code = f"{head} p0[i] = {name}(p1[i]); }}"
            emulate(doubled, "OPENCL:Iris Xe", code=code)


WGSL_CASES = {
    "literals": "p0[i] = p1[i] * (1 + 4 / 4);",
    "a constant of no type": "let k = item.x * (2 * 1); p0[i] = p1[i] * 2 + f32(k - 2u * item.x);",
    "a size": "var a: array<f32, TILE * 2>; a[31] = 2; p0[i] = p1[i] * a[31];",
    "the length of an array": "p0[i] = p1[i] * f32(arrayLength(&p1) / 128u);",
    "an array": "var a = array<f32, 2>(1, 2); p0[i] = p1[i] * a[1];",
    "a division by 0": "p0[i] = p1[i] * f32(2 / (i - i));",
    "a switch": "var n = 0; switch item.x & 3u { case 0u, 1u { n = 2; }\n"
    "case 2u: { n = 2; break; } default: { n = 2; } } p0[i] = p1[i] * f32(n);",
    "memory that begins as 0": "p0[i] = p1[i] * 2 + t[item.x];",
    "an atomic": "atomicAdd(&c, 1u); workgroupBarrier();\n"
    "p0[i] = p1[i] * f32(atomicLoad(&c) / 32);",
}


@by_rows("name, body", list(WGSL_CASES.items()))
def test_what_wgsl_means(doubled: Kernel, name: str, body: str) -> None:
    require_right(doubled, WGSL, wgsl(body), name)


def test_arguments_that_are_only_read(doubled: Kernel) -> None:
    for machine, text in ((CUDA, written("p1[i] = 2;")), (WGSL, wgsl("p1[i] = 2;"))):
        with pytest.raises(SourceError, match="read-only"):
            emulate(doubled, machine, code=text)


def test_numbers_that_do_not_fit_in_wgsl(doubled: Kernel) -> None:
    for body, because in (
        ("let x: u32 = -1;", "-1 does not fit uint32"),
        ("let x = 2; p0[i] = p1[i] * x;", "converts nothing"),
        ("let x = 1 / 0;", "has no value"),
    ):
        with pytest.raises(SourceError) as raised:
            emulate(doubled, WGSL, code=wgsl(body))
        assert because in raised.value.because, body


def test_arrays_come_in_the_order_of_their_numbers(doubled: Kernel) -> None:
    text = wgsl("p0[i] = p1[i] * 2;").split("\n")
    assert not emulate(doubled, WGSL, code="\n".join([text[1], text[0], *text[2:]])).findings
    metal = doubled.code_for("METAL:M3")
    swapped = metal.replace("(0)", "(9)").replace("(1)", "(0)").replace("(9)", "(1)")
    assert emulate(doubled, "METAL:M3", code=swapped).findings


def wgsl(body: str) -> str:
    """Return a kernel of WGSL with a body."""
    return (
        "@group(0) @binding(0) var<storage, read_write> p0: array<f32>;\n"
        "@group(0) @binding(1) var<storage, read> p1: array<f32>;\n"
        "const TILE = 16; var<workgroup> t: array<f32, 64>; var<workgroup> c: atomic<u32>;\n"
        "@compute @workgroup_size(64, 1, 1) fn r("
        "@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {"
        f"\nlet i = i32(group.x * 64 + item.x);\n{body}\n}}\n"
    )


def test_of_a_launch_that_takes_too_long_one_group_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prediction is of a machine at rest: on a busy one a launch may not end in time."""
    a, b = (Tensor(np.ones((64, 64), np.float32)).realize() for _ in range(2))
    kernel = explore(a @ b).kernels[-1].on(CUDA).kernel.optimized()
    target, text = Device[CUDA].target, kernel.code_for(CUDA)
    monkeypatch.setattr("workbench.emulator.program.emulation_s", lambda *_, **__: -2.0)
    for code, kinds in ((text, set()), (text.replace("__syncthreads();", ""), {"race"})):
        program = read_text(kernel, target, "CUDA", code)
        trace = emulate_for_steps(kernel, target, (0, 1, 0), most_s=-1.0, edited=program)
        assert not trace.is_whole and kinds <= {f.kind for f in trace.findings}, trace
        assert bool(trace.findings) == bool(kinds)
        assert trace.history is not None and trace.history.group == 4
