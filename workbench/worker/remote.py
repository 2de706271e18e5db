"""Racing a form in another process that somebody else runs: text in, text out.

An executor (of processes, of threads, or Dask's) is given `race_text` and a JSON text.
"""

from __future__ import annotations

import json
from functools import lru_cache

from workbench.backends.native.host_memory import HOST
from workbench.base.trace import unobserved
from workbench.kernel.inputs import Seeded
from workbench.worker.benchmark import BenchmarkSettings, race
from workbench.worker.candidate import parsed, told
from workbench.worker.kernel_data import KernelData


def race_text(task: str) -> str:
    """Return what comes of a race on seeded data (see `race`).

    The task has the un-optimised "kernel" as text, the "form", what it is "against", and the
    "rules".
    """
    request = json.loads(task)
    rules = BenchmarkSettings(
        **request["rules"] | {"known": tuple(request["rules"]["known"])}
    )
    try:
        data, slots = _data(request["kernel"])
        with unobserved():
            row = race(request["form"], request["against"], data, slots, rules)
    except Exception as error:  # it must come back as text
        row = {"error": told(error)}
    return json.dumps(row)


@lru_cache(maxsize=2)
def _data(kernel: str) -> tuple[KernelData, tuple[int, ...]]:
    original = parsed(kernel)
    return KernelData(Seeded(0).buffers(original, HOST)), original.outputs
