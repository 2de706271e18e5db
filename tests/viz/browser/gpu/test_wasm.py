"""Kernels run as WebAssembly in the browser that shows an exported page, without Python."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.browser.browser import leave, opened
from tests.viz.browser.gpu.support import data, ran
from tests.viz.record.support import exported, plain
from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.device import Device
from workbench.backends.wasm.wasm_module import render
from workbench.base.target import Target
from workbench.kernel.kernel import Kernel
from workbench.pipeline import stages
from workbench.viz.record.page_run import page_launch
from workbench.viz.record.record import Recorder
from workbench.viz.record.variants import code_row

pytest.importorskip("llvmlite")
X = data(16, 50)
CASES: dict[str, Callable[[], Tensor]] = {
    "product": lambda: Tensor(data(24, 20)) @ Tensor(data(20, 24)),
    "softmax": lambda: Tensor(X).softmax(),
    "float64": lambda: Tensor(X.astype(np.float64)) * 3 + 1,
    "int64": lambda: Tensor((X * 9).astype(np.int64)) // 4,
    "bytes": lambda: Tensor((X * 99).astype(np.int32).astype(np.uint8)) * 3 + 1,
    "halves": lambda: Tensor(X.astype(np.float16)) * 3,
}


def record_of(kernel: Kernel, recorder: Recorder) -> dict[str, Any]:
    """Return the record with the kernel as the device of WebAssembly compiles it: wasmtime, which
    runs it in Python, need not be here."""
    device = Device["WASM"]
    target = Target(device.name, vector_bytes=16, vector_registers=16)
    source = render(stages(kernel.ast, target, "linear").linear, target)
    row = code_row(device, source.text.split("\n"))
    row.launch = page_launch(source, device)
    recorder.record.variants[-1].code.append(row)
    recorder.add_data(0)
    return dict(plain(recorder.record))


def shows(browser: Any, folder: Path, record: dict[str, Any]) -> Any:
    html = exported(record).replace("view: {}", "view: { mode: 'tune' }")
    (folder / "page.html").write_text(html, encoding="utf-8")
    return opened(browser, folder / "page.html")


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_in_the_page_computes_what_is_right(
    name: str, browser: Any, tmp_path: Path
) -> None:
    recorder = Recorder(explore(CASES[name]()))
    recorder.first()
    record = record_of(recorder.exploration.kernels[0], recorder)
    page = shows(browser, tmp_path, record)
    words = ran(page, 0)
    assert "✓ right" in words and "by the clock of the page" in words
    assert "on WebAssembly" in words
    leave(browser, page)


@pytest.mark.parametrize(("rows", "steps", "has_scratch"), [(24, 20, False), (60, 500, True)])
def test_a_tile_is_on_the_stack_or_has_memory_of_its_own(
    rows: int, steps: int, has_scratch: bool, browser: Any, tmp_path: Path
) -> None:
    product = explore(Tensor(data(rows, steps)) @ Tensor(data(steps, rows)))
    recorder = Recorder(product)
    recorder.first()
    opts = Opt(OptOps.STAGE, "g0", 2), Opt(OptOps.UPCAST, "g1", 4)
    kernel = product.kernels[0].apply(*opts)
    recorder.add_variant(0, kernel, "packed")
    record = record_of(kernel, recorder)
    launch = record["variants"][1]["code"][-1]["launch"]
    assert (launch["scratch_bytes"] > 0) == has_scratch
    page = shows(browser, tmp_path, record)
    assert "✓ right" in ran(page, 1)
    leave(browser, page)


def test_a_wrong_answer_is_said(browser: Any, tmp_path: Path) -> None:
    recorder = Recorder(explore(Tensor(X) * 2))
    recorder.first()
    record = record_of(recorder.exploration.kernels[0], recorder)
    (right,) = [b for b in record["kernels"][0]["data"]["buffers"] if b["written"]]
    values = np.frombuffer(base64.b64decode(right["data"]), np.float32).copy()
    values[7] += 1
    right["data"] = base64.b64encode(values.tobytes()).decode()
    page = shows(browser, tmp_path, record)
    words = ran(page, 0)
    assert "✗ WRONG in 1 element" in words and " run" not in words
    leave(browser, page)
