"""Machine code beside libraries that use up addresses."""

from __future__ import annotations

import subprocess
import sys

BESIDE_V8 = """
import os
import numpy as np
from py_mini_racer import MiniRacer
from workbench.backends.native.jit import compile_object, load_object

engines = [MiniRacer() for _ in range(3)]
assert [engine.eval("1 + 1") for engine in engines] == [2, 2, 2]
image = compile_object('''define void @f(ptr %a) {
  %v = load <4 x float>, ptr %a
  %w = fmul <4 x float> %v, <float 1.5, float 2.5, float 3.5, float 4.5>
  store <4 x float> %w, ptr %a
  ret void
}''')
kept = []
for n in range(1500):
    kept.append(load_object(image, "f"))
    kept.append(np.empty(200_000 + n * 100, np.uint8))
print(len(kept), flush=True)
os._exit(0)  # several engines of V8 hang at the end of Python 3.13
"""


def test_it_is_loaded_wherever_there_is_room() -> None:
    """V8 reserves a terabyte: constants far from their code once ended the process."""
    run = subprocess.run(
        [sys.executable, "-c", BESIDE_V8], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, "3000\n"), run.stderr[-500:]
