"""The workbench in a real Python session of Jupyter, without a browser."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.viz.session.test_saved_output import record_in
from workbench.cli.tour import listening_at

CELLS = [
    """import numpy as np, time
from workbench import Tensor, explore
a = np.ones((32, 32), np.float32)
ex = explore((Tensor(a) @ Tensor(a)).relu()).baseline("numpy", lambda: a @ a)
ex""",
    """session = ex.display.session
while not all(  # a cell that runs does not keep the background from working
    [v.timing for v in session.record.variants]
    + [b.timing for b in session.record.baselines]
    + [any(o.measured for o in session.record.variants[0].offers)]
): time.sleep(0.05)
len(session.record.variants), [b.error for b in session.record.baselines]""",
    """from workbench import Opt, OptOps
ex.add(ex.kernels[0].apply(Opt(OptOps.UNROLL, "r0", 2)), "by hand")""",
    "with __import__('workbench').Context(LIVE=0): display(ex)",
]
VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_cell_shows_the_workbench(tmp_path: Any) -> None:
    notebook = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    # The path of a socket has to be short, and that of a test's folder is not.
    with tempfile.TemporaryDirectory() as short:
        client = nbclient.NotebookClient(
            notebook, timeout=240, kernel_name="python3",
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
            resources={"metadata": {"path": str(tmp_path)}},
            config=listening_at(Path(short) / "session"),
        )  # fmt: skip
        client.execute(env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "LIVE": "2"})
    bundle, measured, _, still = (cell.outputs[-1].data for cell in notebook.cells)
    assert set(bundle) == {VIEW, "text/html", "text/plain"}
    assert bundle["text/plain"].startswith("ex = explore")
    state = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]
    assert bundle[VIEW]["model_id"] in state["state"], "a saved notebook can keep it"
    models = [model["state"] for model in state["state"].values()]
    assert sum("record" in model for model in models) == 1
    assert sum("script" in model for model in models) == 1
    saved = notebook.cells[0].outputs[0].data["text/html"]
    assert "by hand" in saved, "a cell adds it, and there is no browser"
    names = [row["name"] for row in record_in(saved)["variants"]]
    assert "by hand" in names and "<iframe hidden" in saved
    assert measured["text/plain"] == "(2, [None])"
    assert set(still) == {"text/html", "text/plain"}
