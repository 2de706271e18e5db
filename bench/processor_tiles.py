"""Products of bfloat16 on a processor that multiplies small matrices in one instruction.

    python bench/processor_tiles.py [--size N] [--seconds S]

For each of its tensor cores a product of N x N is compared with numpy, and timed with tiles, also
several at a time, beside the default opts. Without one it says what the processor lacks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.backends.device import Device
from workbench.base.errors import KernelOptError

SEVERAL = (
    [],
    [Opt(OptOps.UPCAST, "g0", 2)],
    [Opt(OptOps.UPCAST, "g0", 2), Opt(OptOps.UPCAST, "g1", 2)],
    [Opt(OptOps.UPCAST, "g0", 4)],
)
"""Opts after TC: tiles that share what they read."""


def row(name: str, kernel: Kernel, expected: Any, seconds: float) -> bool:
    """Print a line for a kernel; return whether it is right."""
    (actual,) = kernel.run()
    error = float(np.abs(actual - expected).max() / np.abs(expected).max())
    time_s = kernel.time(budget_s=seconds).median_s
    speed = 2 * expected.size * expected.shape[0] / time_s
    verdict = "right" if error < 1e-3 else "WRONG"
    print(f"{name:50} {verdict} {error:.1e} {time_s * 1e6:11,.1f} us", end="  ")
    print(f"{speed * 1e-9:,.1f} GFLOP/s", flush=True)
    return error < 1e-3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=0.5)
    arguments = parser.parse_args()
    target = Device["LLVM"].target
    dice, n = np.random.default_rng(0), arguments.size
    floats = [dice.uniform(-1, 1, (n, n)).astype(np.float32) for _ in range(2)]
    a, b = (Tensor(x, device="LLVM").cast("bfloat16").realize() for x in floats)
    product = a.cast("float32") @ b.cast("float32")
    x, y = (t.cast("float32").numpy() for t in (a, b))
    expected, kernel = x @ y, explore(product).kernels[-1]
    is_right = row("default opts", kernel.optimized(), expected, arguments.seconds)
    if not target.tensor_cores:
        print(f"no tensor cores: {target.no_tensor_cores}")
    for core in target.tensor_cores:
        for more in SEVERAL:
            name = " ".join([f"{core.instruction} {core.shape}", *map(str, more)])
            try:
                tiled = kernel.apply(Opt(OptOps.TC, 0, core.shape), *more)
            except KernelOptError as error:
                print(f"{name:50} refused: {error.because}")
                continue
            is_right &= row(name, tiled, expected, arguments.seconds)
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main())
