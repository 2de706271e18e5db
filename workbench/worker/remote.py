"""Measuring a candidate in a process of a user's executor: text in, text out.

An executor (of processes, of threads, or Dask's) is given `benchmark_text` and a JSON text.
"""

from __future__ import annotations

import json
from functools import lru_cache

from workbench.backends.native.host_memory import HOST
from workbench.base.trace import unobserved
from workbench.kernel.inputs import Seeded
from workbench.worker.benchmark import BenchmarkSettings, run_benchmark
from workbench.worker.kernel_data import KernelData
from workbench.worker.rows import error_row, parsed


def benchmark_text(task: str) -> str:
    """Return the result of a benchmark on seeded data (see `run_benchmark`).

    The task has the un-optimised "kernel" as text, the "candidate", the one it runs "against", and
    the "rules".
    """
    request = json.loads(task)
    rules = BenchmarkSettings(**request["rules"] | {"digests": tuple(request["rules"]["digests"])})
    try:
        data = _data(request["kernel"])
        with unobserved():
            row = run_benchmark(request["candidate"], request["against"], data, rules)
    except Exception as error:  # every error must be returned as text
        row = {"error": error_row(error)}
    return json.dumps(row)


@lru_cache(maxsize=2)
def _data(kernel: str) -> KernelData:
    return KernelData(Seeded(0).buffers(parsed(kernel), HOST))
