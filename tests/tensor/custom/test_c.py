"""Kernels written in C: run in a process of their own, whatever they do, and explored."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest

from tests.tensor.custom.kernels import numbers
from tests.tools.compiler import needs_c
from tests.viz.session.support import session_of
from workbench import Context, Opt, OptOps, Tensor, TinyJit, emulate, explore, load
from workbench.base.errors import (
    DeviceError,
    DTypeError,
    ParseError,
    ShapeError,
    VerifyError,
    WorkbenchError,
)
from workbench.viz.record.record import build
from workbench.viz.session.handlers.edits import edit
from workbench.viz.session.handlers.measurement import measure
from workbench.worker import sandbox
from workbench.worker.client import WorkerEnded

DOUBLED = """
#include <math.h>
static float twice(float x) { return 2 * x; }  // void helper(int) is not it
void doubled(float *out, const float *x) {
  for (int i = 0; i < 6; i++) out[i] = twice(x[i]);
}
"""
MOMENTS = """
#include <stdint.h>
void moments(double *restrict sum, long square[1], double const *x, const int32_t *n) {
  double total = 0, squares = 0;
  for (long i = 0; i < 6; i++) { total += x[i] * n[i]; squares += x[i] * x[i]; }
  *sum = total; *square = (long)squares;
}
"""
ADDED = "void added(int *total, const int *at) { for (int i = 0; i < 5; i++) total[at[i]] += 1; }"


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    with Context(DEV="C"):
        yield


def doubled(x: Tensor, text: str = DOUBLED) -> Tensor:
    return Tensor.custom_kernel(Tensor.empty(6), x, fxn=text)[0]


def test_it_computes_in_the_middle_of_an_expression() -> None:
    x = numbers(2, 3)
    y = (doubled(Tensor(x) + 1) * 10).relu()
    assert [i.kernel.arg.name for i in y.schedule() if i.kernel][1] == "doubled"
    np.testing.assert_allclose(y.numpy(), np.maximum((x + 1).reshape(6) * 20, 0), rtol=1e-6)


def test_several_outputs_of_several_dtypes() -> None:
    x, n = numbers(6, dtype="float64"), np.arange(6, dtype="int32")
    memory = Tensor.empty(1, dtype="float64"), Tensor.empty(1, dtype="int64")
    results = memory[0].custom_kernel(memory[1], Tensor(x), Tensor(n), fxn=MOMENTS)
    np.testing.assert_allclose(results[0].item(), (x * n).sum())
    assert results[1].item() == int((x * x).sum())


def test_atan2_of_the_machines_library() -> None:
    text = """
    #include <math.h>
    void angles(float *out, const float *y, const float *x) {
      for (int i = 0; i < 6; i++) out[i] = atan2f(y[i], x[i]);
    }"""
    y, x = numbers(6), numbers(2, 3).reshape(6)
    result = Tensor.empty(6).custom_kernel(Tensor(y), Tensor(x), fxn=text)[0]
    np.testing.assert_allclose(result.numpy(), np.arctan2(y, x), rtol=1e-6)


def test_what_it_writes_begins_with_the_value_of_the_tensor() -> None:
    counts = Tensor([10, 20, 30])
    at = Tensor([0, 2, 2, 2, 0])
    first = counts.custom_kernel(at, fxn=ADDED)[0]
    assert first.tolist() == [12, 20, 33] and counts.tolist() == [10, 20, 30]
    again = first.custom_kernel(at, fxn=ADDED)[0]
    assert again.tolist() == [14, 20, 36]


def test_a_captured_function_runs_it_again() -> None:
    step = TinyJit(lambda x: (doubled(x + 1) - 1).realize())
    for seed in range(4):
        x = numbers(6) + seed
        result = step(Tensor(x).realize()).numpy()
        np.testing.assert_allclose(result, (x + 1) * 2 - 1, rtol=1e-6)


def test_it_may_have_a_gradient() -> None:
    x = Tensor(numbers(6), requires_grad=True)
    memory = Tensor.empty(6)
    y = memory.custom_kernel(x, fxn=DOUBLED, grad_fxn=lambda g, call: (None, g * 2))[0]
    (y * y).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), x.numpy() * 8, rtol=1e-6)


def test_it_is_explored(tmp_path: Path) -> None:
    x = Tensor(numbers(6)).realize()
    y = doubled(x) * 3
    ex = explore(y)
    kernel = ex.kernels[0]
    assert kernel.title == "doubled: in C" and kernel.line is not None
    assert kernel.run()[0].tolist() == (x * 2).tolist()
    assert "twice(x[i])" in kernel.compile().source and kernel.compile().assembly
    assert 0 < kernel.time(budget_s=0.02).median_s < 0.01, "its own time, not the messages'"
    with pytest.raises(VerifyError, match="cannot run the kernel doubled"):
        kernel.check()
    with pytest.raises(WorkbenchError, match="no predicted cost"):
        kernel.bound()
    record = build(ex)
    row = next(r for r in record.variants if r.kernel == 0)
    assert row.error is None and not row.offers
    (code,) = [c for c in row.code if c.language == "C"]
    assert any("twice(x[i])" in line for line in code.lines)
    assert any(c.language == "asm" and len(c.lines) > 3 for c in row.code)
    path = tmp_path / "doubled.json"
    ex.save(path)
    other = load(path)
    assert "scheduled otherwise" not in other.origin.words
    assert "twice(x[i])" in str(other.pane("code"))
    for use in (other.kernels[0].time, lambda: other.kernels[0].launch()()):
        with pytest.raises(DeviceError, match="came with a file"):
            use()


@needs_c
def test_the_page_times_it_and_runs_an_edit_of_it() -> None:
    ex = explore(doubled(Tensor(numbers(6)).realize()))
    with session_of(ex, prefetches=False) as session:
        measure(session, [0], False)
        first = session.record.variants[0]
        assert first.timing is not None and first.timing.median_s < 1e-3
        text = ex.kernels[0].compile().source.replace("2 * x", "x + x")
        row = session.record.variants[edit(session, 0, "C", text).variant]
        assert row.error is None and row.timing is not None
        broken = edit(session, 0, "C", text.replace("i < 6", "i < 1L << 40"))
        words = session.record.variants[broken.variant].error
        assert words is not None and "crashed" in words.what


def test_the_emulator_says_that_it_has_no_steps() -> None:
    kernel = explore(doubled(Tensor(numbers(6)))).kernels[-1]
    with pytest.raises(DeviceError, match="cannot emulate the kernel doubled"):
        emulate(kernel)
    with pytest.raises(DeviceError, match="it is written in C"):
        emulate(kernel, "H100", history=True)


def test_it_is_pickled() -> None:
    y = doubled(Tensor(numbers(6)))
    assert pickle.loads(pickle.dumps(y)).tolist() == y.tolist()


BODY = "void bad(float *out, const float *x) { %s }"
HARMFUL: dict[str, tuple[str, type[WorkbenchError], str]] = {
    "a null pointer": ("*(volatile float *)0 = 1;", WorkerEnded, "crashed"),
    "memory far away": ("out[1L << 40] = 1;", WorkerEnded, "crashed"),
    "one element too many": ("for (int i = 0; i <= 6; i++) out[i] = 1;", WorkbenchError, "outside"),
    "one before": ("out[-1] = 1;", WorkbenchError, "kernel bad: it writes outside of buffer out"),
    "an input": ("((float *)x)[0] = 7;", WorkbenchError, "changes buffer x, an input"),
    "endless": ("for (;;) { volatile int i = 0; i++; }", WorkerEnded, "did not end"),
    "the end": ("extern void exit(int); exit(3);", WorkerEnded, "status 3"),
    "not C": ("out[0] = ;", WorkbenchError, "expected expression.*line 1 is .*\n.*1 written"),
    "an unknown function": ("other(out);", WorkbenchError, "declar.*other.*line 1 is"),
    "an absent function": ("void other(float *); other(out);", WorkbenchError, "does not have"),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMFUL)
def test_nothing_that_it_does_harms_this_process(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "LIMIT_S", 0.3)
    body, kind, words = HARMFUL[name]
    x = Tensor(numbers(6)).realize()
    with pytest.raises(kind, match=words):
        doubled(x, BODY % body).realize()
    assert doubled(x + 0).tolist() == (x * 2).tolist(), "the next one runs"


FORKS = "extern int fork(void); extern unsigned sleep(unsigned); if (!fork()) for (;;) sleep(9);"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize("end", ["*(volatile float *)0 = 1;", ""])
def test_a_child_that_it_leaves_delays_nothing(end: str) -> None:
    """It has the pipes of the worker open: their end says nothing of the worker's."""
    x = Tensor(numbers(6)).realize()
    if end:
        with pytest.raises(WorkerEnded, match="crashed"):
            doubled(x, BODY % (FORKS + end)).realize()
    else:
        doubled(x, BODY % FORKS).realize()
        os.kill(sandbox._worker.pid or 0, signal.SIGKILL)
        with contextlib.suppress(WorkerEnded):  # it may not have ended yet
            doubled(x + 1).realize()
    assert doubled(x + 0).tolist() == (x * 2).tolist(), "the next one runs"


def test_ctrl_c_ends_an_endless_one() -> None:
    x = Tensor(numbers(6)).realize()
    assert doubled(x + 1).tolist()
    timer = Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        doubled(x, BODY % HARMFUL["endless"][0]).realize()
    timer.join()
    assert doubled(x).tolist() == (x * 2).tolist()


WRONG: dict[str, tuple[str, type[WorkbenchError], str]] = {
    "another dtype": ("void f(double *o, const float *x) {}", DTypeError, "slot 0 holds float64"),
    "too few arguments": ("void f(float *o) {}", ShapeError, "its function has 1 argument$"),
    "not memory": ("void f(float *o, int n) {}", ParseError, "`int n` is not the memory"),
    "an unknown type": ("void f(float *o, const vec4 *x) {}", ParseError, "`const vec4"),
    "no output": ("void f(const float *o, const float *x) {}", ShapeError, "writes nothing"),
    "two functions": ("void f(float *o) {}\nvoid g(float *o) {}", ParseError, "there is f, g"),
    "a declaration": ("void f(float *o, const float *x);", ParseError, "there is none"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_is_refused_in_words(name: str) -> None:
    text, kind, words = WRONG[name]
    with pytest.raises(kind) as error:
        doubled(Tensor(numbers(6)), text)
    assert any(_matches(words, part) for part in (error.value.what, error.value.because)), str(
        error.value
    )
    assert "test_c.py" in error.value.where


@pytest.mark.parametrize("name", ["LLVM", "PYTHON"])
def test_other_devices_say_which_one_runs_it(name: str) -> None:
    with Context(DEV=name), pytest.raises(DeviceError, match=name) as error:
        doubled(Tensor(numbers(6)))
    assert '.to("C")' in error.value.hint


def test_its_loops_take_no_opts() -> None:
    with Context(DEV="C"), pytest.raises(DTypeError, match="has no axes for opts"):
        Tensor.empty(6).custom_kernel(
            Tensor(numbers(6)), fxn=DOUBLED, opts=[Opt(OptOps.UPCAST, "g0", 2)]
        )


def _matches(words: str, text: Any) -> bool:
    return re.search(words, str(text)) is not None
