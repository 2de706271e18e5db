"""What the tests of kernels in a browser share: kernels, and a click on Run."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from tests.viz.record.support import plain
from workbench import Context, Opt, OptOps, Tensor, explore
from workbench.viz.record.record import Recorder

DEVICE = "WEBGPU:BROWSER"
Array = np.ndarray[Any, Any]
TILED = (
    Opt(OptOps.LOCAL, "g0", 8),
    Opt(OptOps.LOCAL, "g1", 8),
    Opt(OptOps.SPLIT, "r0", 8),
    Opt(OptOps.ORDER, "r0", "l0"),
    Opt(OptOps.STAGE, "r0", 1),
    Opt(OptOps.STAGE, "r0", 2),
)
RUN = "[data-key=run-here]"


def data(*shape: int) -> Array:
    """Return seeded numbers."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def tensor(values: Array) -> Tensor:
    return Tensor(values, device=DEVICE)


def tiled_product() -> tuple[Recorder, int]:
    """Return the record of a product of matrices, and the place of its variant with tiles."""
    recorder = Recorder(explore(tensor(data(32, 32)) @ tensor(data(32, 32).T.copy())))
    recorder.first()
    for _ in recorder.rest():
        pass
    kernel = recorder.exploration.kernels[0].apply(*TILED)
    tiled = recorder.add_variant(0, kernel, "tiled")
    recorder.add_compiled(tiled)
    return recorder, tiled


def answer(record: dict[str, Any], kernel: int = -1) -> Array:
    """Return what the record says is right, of the first output."""
    buffers = record["kernels"][kernel]["data"]["buffers"]
    row = next(b for b in buffers if b["written"])
    return np.frombuffer(base64.b64decode(row["data"]), row["dtype"])


def ran(page: Any, variant: int) -> str:
    """Return what the page says after a run of a variant."""
    page.click(f'[data-key="variant-{variant}"]')
    page.click(RUN)
    said = page.wait_for_selector(".wb-browser p, .wb-browser [role=alert]")
    assert said is not None
    return str(page.inner_text(".wb-browser"))


def record_of(*tensors: Tensor) -> dict[str, Any]:
    """Return the record of tensors, with the data of kernels, as a page gets it."""
    with Context(DEV=DEVICE):  # that of values without data
        recorder = Recorder(explore(*tensors))
    recorder.first()
    for _ in recorder.rest():
        pass
    return dict(plain(recorder.record))
