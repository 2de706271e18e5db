"""What the record of an exploration costs: time to a first picture, time in full, and bytes.

    python bench/record.py               the table
    python bench/record.py --fields      and where the bytes of each record go

`first` is what a page opens with, `full` is all of it; bytes are those of the JSON, and those
that travel: compressed, in base64. `page` is the exported file. Budget: 400 kB, but for graphs of
thousands of nodes; exit status 1 where a file is larger.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import to_builtins

from workbench import Tensor
from workbench.bench.graphs import blurred, digits
from workbench.viz import explore
from workbench.viz.page import document as page
from workbench.viz.record.record import Recorder

MOST_BYTES = 400_000
GENERATOR = np.random.default_rng(0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure records.")
    parser.add_argument("--fields", action="store_true", help="bytes by field")
    options = parser.parse_args()
    print(
        f"{'expression':22} {'explore':>9} {'first':>9} {'rest':>9} "
        f"{'first JSON':>16} {'full JSON':>16} {'page':>8} {'nodes':>7}"
    )
    large = []
    for name, make in EXPRESSIONS.items():
        page_bytes = measure(name, make, options.fields)
        if page_bytes > MOST_BYTES and not name.startswith("graph of"):
            large.append(name)
    if large:
        print(f"over the budget of {MOST_BYTES / 1e3:,.0f} kB: {', '.join(large)}")
    return 1 if large else 0


def measure(name: str, make: Callable[[], Tensor], fields: bool) -> int:
    """Print a row of the table; return the bytes of the exported file."""
    tensor = make()
    times = [time.perf_counter()]
    exploration = explore(tensor)
    times.append(time.perf_counter())
    recorder = Recorder(exploration)
    recorder.first()
    opening = packed(recorder.record)
    times.append(time.perf_counter())
    for _ in recorder.rest():
        pass
    times.append(time.perf_counter())
    whole = packed(recorder.record)
    took = " ".join(f"{1e3 * (b - a):6.0f} ms" for a, b in zip(times, times[1:], strict=False))
    nodes = len(recorder.record.nodes.op)
    page_bytes = len(page.export_html(recorder.record).encode())
    file = f"{page_bytes / 1e3:,.0f} kB"
    print(f"{name:22} {took} {sizes(opening):>16} {sizes(whole):>16} {file:>8} {nodes:7,}")
    if fields:
        for label, value in parts(to_builtins(recorder.record)):
            print(f"    {label:20} {sizes(packed(value)):>16}")
    return page_bytes


def packed(value: Any) -> tuple[int, int]:
    """Return the bytes of a value as JSON, plain and as it travels."""
    text = json.dumps(to_builtins(value), separators=(",", ":")).encode()
    return len(text), len(page.packed(value))


def sizes(both: tuple[int, int]) -> str:
    return f"{both[0] / 1e3:,.0f} -> {both[1] / 1e3:,.1f} kB"


def parts(record: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields of a record, the large ones taken apart."""
    columns = [(k, v) for k, v in record.items() if k not in ("nodes", "variants")]
    columns += [(f"nodes.{k}", v) for k, v in record["nodes"].items()]
    for field in record["variants"][0] if record["variants"] else ():
        columns.append((f"variants.{field}", [v[field] for v in record["variants"]]))
    return sorted(columns, key=lambda part: -packed(part[1])[1])[:16]


def array(*shape: int) -> Tensor:
    return Tensor(GENERATOR.standard_normal(shape, dtype=np.float32))


def matmul() -> Tensor:
    return (array(512, 512) @ array(512, 512) + array(512)).relu()


def one_large_kernel(nodes: int = 480) -> Tensor:
    """Return elementwise arithmetic that becomes one kernel of about `nodes` nodes."""
    x = y = array(64, 64)
    for step in range(nodes // 5):
        y = (y * (0.5 + step) + x).relu()
    return y


def chain(nodes: int) -> Tensor:
    """Return an expression of about `nodes` tensor-level nodes, cut into several kernels."""
    x = y = array(16, 16)
    while sum(n.op.name != "DETACH" for n in y.uop.toposort()) < nodes:
        for step in range(40):
            y = (y * 0.5 + x).relu()
            if step % 20 == 0:
                y = y.permute(1, 0) + y.sum(axis=0)
    return y


EXPRESSIONS: dict[str, Callable[[], Tensor]] = {
    "warming up": lambda: array(4) + 1,
    "matmul+bias+relu": matmul,
    "softmax": lambda: array(512, 512).softmax(1),
    "tour: digits": digits,
    "tour: blurred": blurred,
    "one kernel, 480 nodes": one_large_kernel,
    "graph of 2,000 nodes": lambda: chain(2000),
    "graph of 10,000 nodes": lambda: chain(10_000),
}

if __name__ == "__main__":
    sys.exit(main())
