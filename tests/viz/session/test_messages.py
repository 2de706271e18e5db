"""A page that is told things by a thread while its Python session ends."""

from __future__ import annotations

import os
import queue
import tempfile
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from tests.support import PATIENCE_S
from workbench.cli.tour import listening_at

SHOWN = """import numpy as np, threading, time
from IPython.display import display
from workbench import Context, Tensor, explore
with Context(LIVE=1): display(ex := explore(Tensor(np.ones((8, 8), np.float32)).sum(1)))
*_, widget = ex.display.session.listeners()
def tell(widget=widget):  # Python's end clears the names of a module before its threads stop
    while True: widget.renew(str(time.time()) + "x" * 200_000); time.sleep(0.0005)
threading.Thread(target=tell, daemon=True).start()"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_messages_stay_whole_until_the_end(tmp_path: Any) -> None:
    with tempfile.TemporaryDirectory() as short, (tmp_path / "said").open("w+") as log:
        manager = KernelManager(config=listening_at(Path(short) / "session"))
        manager.shutdown_wait_time = 60.0  # it is to end by itself
        manager.start_kernel(
            stdout=log, stderr=log, extra_arguments=["--IPKernelApp.log_level=ERROR"],
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        )  # fmt: skip
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=PATIENCE_S)
            reply = client.execute_interactive(
                SHOWN, timeout=PATIENCE_S, output_hook=lambda m: None
            )
            assert reply["content"]["status"] == "ok", reply["content"]
            # a message that is not whole has no valid signature
            for _ in range(6):
                client.get_iopub_msg(timeout=PATIENCE_S)
        finally:
            manager.shutdown_kernel()
        with pytest.raises(queue.Empty):
            while True:
                client.get_iopub_msg(timeout=0.5)
        client.stop_channels()
        assert (tmp_path / "said").read_text() == ""
