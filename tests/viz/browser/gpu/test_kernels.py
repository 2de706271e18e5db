"""Kernels run in the browser that shows an exported page, by WebGPU without a GPU (SwiftShader)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.agreement.programs import program
from tests.support import count
from tests.viz.browser.browser import leave, opened
from tests.viz.browser.gpu.support import (
    DEVICE,
    Array,
    answer,
    data,
    ran,
    record_of,
    tensor,
    tiled_product,
)
from tests.viz.record.support import exported, plain
from workbench import Tensor

X = data(16, 50)
BYTES = (X * 99).astype(np.int32).astype(np.uint8)
HALVES = X.astype(np.float16)
LONG = (X * 2.0**60).astype(np.int64)
UNSIGNED = LONG.view(np.uint64)
OURS = Tensor.maximum, Tensor.minimum
NUMPYS = np.maximum, np.minimum


def all_operations(x: Any, maximum: Any, minimum: Any) -> Any:
    """Return integers of 64 bits, of tensors or arrays, that each operation on them decides."""
    y, n = x * 12_345_677 + 1, (x & 31) + 1
    quotients = (y // n) ^ (y % n) ^ (y // (x | 1)) ^ (y % (x | 1))
    compared = (x < y) * y + (x <= n) * n + (x != y) * x
    return quotients ^ (x << n) ^ (y >> n) ^ compared ^ (maximum(x, y) - minimum(-x, n))


CASES: dict[str, tuple[Array, Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "elementwise": (X, lambda x: (x * 2 + 1).relu(), lambda x: np.maximum(x * 2 + 1, 0)),
    "sum": (X, lambda x: x.sum(axis=1), lambda x: x.sum(axis=1)),
    "softmax": (
        X,
        lambda x: x.softmax(),
        lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
    ),
    "waves": (X, lambda x: (x * 30).sin(), lambda x: np.sin(x * 30)),
    "integers": ((X * 9).astype(np.int32), lambda x: x // 4, lambda x: x // 4),
    "long integers": (
        LONG,
        lambda x: all_operations(x, *OURS),
        lambda x: all_operations(x, *NUMPYS),
    ),
    "unsigned long integers": (
        UNSIGNED,
        lambda x: all_operations(x, *OURS),
        lambda x: all_operations(x, *NUMPYS),
    ),
    "long integers as floats": (LONG, lambda x: x.float(), lambda x: x.astype(np.float32)),
    "unsigned long integers as floats": (
        UNSIGNED,
        lambda x: x.float(),
        lambda x: x.astype(np.float32),
    ),
    "floats as long integers": (
        X,
        lambda x: (x * 2.0**60).long(),
        lambda x: (x * np.float32(2.0**60)).astype(np.int64),
    ),
    "bytes": (BYTES, lambda x: x * 3 + 1, lambda x: x * 3 + 1),
    "halves": (HALVES, lambda x: x * 3, lambda x: x * 3),
    "remainders": (X, lambda x: x % 0.3, lambda x: x % np.float32(0.3)),
}
SUBNORMAL = re.compile(r"e-(?:3[89]|4\d|3\d\d)\b")
"""Numbers below the normal ones, for which an implementation may take 0."""


def shows(browser: Any, folder: Path, record: dict[str, Any]) -> Any:
    path = folder / "page.html"
    path.write_text(
        exported(record).replace("view: {}", "view: { mode: 'tune' }"), encoding="utf-8"
    )
    return opened(browser, path)


def store_of(record: dict[str, Any]) -> tuple[list[str], int]:
    """Return the lines of the first program, and the place of the one that stores."""
    lines = record["variants"][0]["code"][1]["lines"]
    return lines, next(i for i, line in enumerate(lines) if re.match(r" +p0\[", line))


def answers(record: dict[str, Any]) -> list[Array]:
    """Return what the record says is right, of every kernel."""
    return [
        np.frombuffer(base64.b64decode(buffer["data"]), buffer["dtype"])
        for kernel in record["kernels"]
        for buffer in kernel["data"]["buffers"]
        if buffer["written"]
    ]


def is_close(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, 1e-4, 1e-5))


@pytest.mark.parametrize("is_long", [False, True])
def test_kernels_in_the_page_compute_what_numpy_does(
    is_long: bool, browser: Any, tmp_path: Path
) -> None:
    """Each case has shapes of its own, so that no kernel computes two of them."""
    cases = {
        name: (values[: 4 + place], ours, numpys)
        for place, (name, (values, ours, numpys)) in enumerate(CASES.items())
        if ("long" in name) == is_long
    }
    record = record_of(*[ours(tensor(values)) for values, ours, _ in cases.values()])
    assert len(record["kernels"]) >= len(cases)
    right = answers(record)
    for name, (values, _, numpys) in cases.items():
        assert any(is_close(each, numpys(values).ravel()) for each in right), name
    page = shows(browser, tmp_path, record)
    for variant, row in enumerate(record["variants"]):
        page.click(f'[data-key="kernel-{row["kernel"]}"]')
        words = ran(page, variant)
        assert "✓ right" in words and " run" in words, words
        assert re.search(r"[\d.]+ (?:s|ms|µs) ", words), words
    leave(browser, page)


def test_sort(browser: Any, tmp_path: Path) -> None:
    """By keys of 64 bits, each of which decides: all of a kernel's bits are compared."""
    values = np.random.default_rng(3).integers(-9, 9, (2, 100)).astype(np.float32)
    values[:, ::7] = np.nan
    record = record_of(*tensor(values).sort())
    order = np.argsort(values, axis=1, kind="stable")
    np.testing.assert_array_equal(answer(record), order.ravel())
    page = shows(browser, tmp_path, record)
    variants = record["variants"]
    for place, row in enumerate(variants):
        page.click(f'[data-key="kernel-{row["kernel"]}"]')
        assert "✓ right" in ran(page, place), row["kernel"]
    assert any("vec2<u32>" in line for line in variants[0]["code"][1]["lines"])
    leave(browser, page)


def test_sums_of_integers(browser: Any, tmp_path: Path) -> None:
    """They are of 64 bits, as numpy's are, and the browser adds words."""
    values = np.random.default_rng(5).integers(-(2**31), 2**31, (6, 37)).astype(np.int32)
    x = tensor(values)
    cases = {
        "sum": (x.sum(1), values.sum(1, dtype=np.int64)),
        "running sum": (x.cumsum(1), values.cumsum(1, dtype=np.int64)),
        "product": (x.cast("int64").prod(1), values.astype(np.int64).prod(1)),
        "count": ((x > 0).sum(0), (values > 0).sum(0)),
        "all": (x.cast("int64").sum() * 3, values.sum(dtype=np.int64) * 3),
    }
    record = record_of(*[ours for ours, _ in cases.values()])
    right = answers(record)
    for name, (_, theirs) in cases.items():
        assert any(np.array_equal(theirs.ravel(), each) for each in right), name
    page = shows(browser, tmp_path, record)
    for place, row in enumerate(record["variants"]):
        page.click(f'[data-key="kernel-{row["kernel"]}"]')
        assert "✓ right" in ran(page, place), row["kernel"]
    leave(browser, page)


def test_the_last_bit_of_a_long_integer_is_compared(browser: Any, tmp_path: Path) -> None:
    record = record_of(tensor(LONG) + 1)
    lines, at = store_of(record)
    lines[at] = lines[at].replace("1u, 0u", "0u, 0u")
    page = shows(browser, tmp_path, record)
    assert "✗ WRONG in 800 elements" in ran(page, 0)
    leave(browser, page)


def test_a_tiled_product(browser: Any, tmp_path: Path) -> None:
    recorder, tiled = tiled_product()
    record = plain(recorder.record)
    code = "\n".join(record["variants"][tiled]["code"][1]["lines"])
    assert code.count("workgroupBarrier();") == 2 and code.count("var<workgroup>") == 2
    a, b = data(32, 32), data(32, 32).T
    np.testing.assert_allclose(answer(record), (a @ b).ravel(), 1e-4, 1e-4)
    page = shows(browser, tmp_path, record)
    words = ran(page, tiled)
    assert "✓ right: 1024 elements" in words and "swiftshader" in words
    leave(browser, page)


def test_a_wrong_answer_is_said(browser: Any, tmp_path: Path) -> None:
    record = record_of(tensor(X) * 2 + 1)
    lines, at = store_of(record)
    lines[at] = lines[at].replace(";", " + 0.5f;")
    page = shows(browser, tmp_path, record)
    assert "✗ WRONG in 800 elements" in ran(page, 0)
    leave(browser, page)


def test_what_the_compiler_refuses_has_its_line(browser: Any, tmp_path: Path) -> None:
    record = record_of(tensor(X) * 2 + 1)
    lines, at = store_of(record)
    lines[at] = "  p0[0] = undefined_name;"
    page = shows(browser, tmp_path, record)
    words = ran(page, 0)
    assert "undefined_name" in words and f"line {at + 1}" in words
    leave(browser, page)


def test_a_browser_without_webgpu_says_so(browser: Any, tmp_path: Path) -> None:
    page = shows(browser, tmp_path, record_of(tensor(X).sum(axis=1)))
    page.evaluate("delete Navigator.prototype.gpu")
    assert "it has no WebGPU" in ran(page, 0)
    leave(browser, page)


def test_buffers_that_the_file_lacks(browser: Any, tmp_path: Path) -> None:
    record = record_of(tensor(X).sum(axis=1))
    record["kernels"][0]["data"] = None
    page = shows(browser, tmp_path, record)
    assert "this file has no buffers" in ran(page, 0)
    leave(browser, page)


def test_buffers_that_are_too_large(browser: Any, tmp_path: Path) -> None:
    record = record_of(tensor(data(300, 300)) + 1)
    page = shows(browser, tmp_path, record)
    assert "they have 703 KiB" in ran(page, 0)
    leave(browser, page)


def test_other_devices_have_no_such_pane(browser: Any, tmp_path: Path) -> None:
    record = record_of(Tensor(X, device="LLVM") + 1)
    assert record["kernels"][0].get("data") is None
    page = shows(browser, tmp_path, record)
    assert not page.is_visible(".wb-browser")
    leave(browser, page)


def test_random_programs(browser: Any, tmp_path: Path) -> None:
    """What the language lacks, such as float64, is refused before: it has no program to run."""
    seeds = iter(range(910_000, 910_000 + count(80)))
    runs = 0
    while together := list(islice(seeds, 8)):
        drawn = [program(seed) for seed in together]
        plain_numbers = [d for d in drawn if not SUBNORMAL.search("\n".join(d.lines))]
        record = record_of(*[d.tensor(DEVICE) for d in plain_numbers])
        page = shows(browser, tmp_path, record)
        for place, row in enumerate(record["variants"]):
            if any(code.get("launch") for code in row["code"]) and not row["error"]:
                page.click(f'[data-key="kernel-{row["kernel"]}"]')
                words = ran(page, place)
                assert "✓ right" in words, f"seeds {together}, variant {place}: {words}"
                runs += 1
        leave(browser, page)
    assert runs >= count(80)
