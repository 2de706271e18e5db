"""`workbench tune --cluster`: the command, on a cluster of which a process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

from tests.support import PATIENCE_S, eventually
from workbench.search.tuning_file import FILE_NAME, TuningFile

SCRIPT = """
import numpy as np
from workbench import Tensor

a, b = (Tensor(np.ones(shape, np.float32)).realize() for shape in ((97, 65), (65, 67)))
if __name__ == "__main__":
    (((a @ b).contiguous() @ b.T).contiguous().exp() * 2).sum(1).realize()
"""
OPTS = """
import runpy, sys
from workbench.counters import counting_kernels
from workbench.search.realization import choose_opts

with counting_kernels() as ran:
    runpy.run_path(sys.argv[1], run_name="__main__")
for plain, _, device in ran:
    chosen = choose_opts(plain, device)
    print(chosen.origin, *chosen.opts, sep=", ")
"""


@pytest.fixture(scope="module", autouse=True)
def tracker() -> None:
    """The process that Python keeps beside others is there before a test counts what stays."""
    resource_tracker.ensure_running()


def test_a_script_is_tuned_on_a_cluster_that_loses_a_process(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    script = tmp_path / "net.py"
    script.write_text(SCRIPT)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        command = ["-m", "workbench", "tune", str(script), "--budget", "12"]
        command += ["--cluster", cluster.scheduler_address]
        with subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            _kill_a_busy_one(client, process)
            out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    lines = [line for line in out.splitlines() if line.startswith("  ")]
    assert len(lines) == int(out.split()[0]) >= 3, out
    assert not any(word in out for word in ("executor", "not searched", "no answer")), out
    path = tmp_path / FILE_NAME
    found = [*TuningFile.read(path).rows.values()] if path.exists() else []
    assert sum(" times as fast: " in line for line in lines) == len(found), out
    fresh = subprocess.run(
        [sys.executable, "-c", OPTS, str(script)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    used = [line for line in fresh if line.startswith("tuning file")]
    assert sorted(used) == sorted(f"tuning file, {row.opts}".rstrip(", ") for row in found)


def _kill_a_busy_one(client: Any, process: Any) -> None:
    """Kill a worker of the cluster that has a task."""
    pids = client.run(os.getpid)

    def is_killed() -> bool:
        busy = next((w for w, tasks in client.processing().items() if tasks), None)
        if busy not in pids:
            return process.poll() is not None
        os.kill(pids[busy], signal.SIGKILL)
        return True

    eventually(is_killed)
    assert process.poll() is None, "it was not over before a worker was killed"
