"""A device with work-groups on a machine that has it: right answers first, then times.

    python bench/gpu_device.py [DEVICE] [--programs N] [--seconds S]

DEVICE is CUDA, OPENCL, WEBGPU, or any other that is available. N random programs are compared
with numpy, with default opts and drawn ones; then each kernel of the set is checked against the
reference interpreter, and timed for S seconds, beside torch where that uses the same GPU. The
exit status is 1 where an answer was wrong.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.agreement.hunt import attempts, report
from workbench import Tensor, TinyJit, explore
from workbench.backends.device import Device

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "a * b + a": (lambda a, b: a * b + a, ((1 << 22,), (1 << 22,))),
    "sum": (lambda a: a.sum(), ((1 << 22,),)),
    "softmax": (lambda a: a.softmax(-1), ((4096, 1024),)),
    "transpose": (lambda a: a.T.contiguous(), ((2048, 2048),)),
    "matmul 512": (lambda a, b: a @ b, ((512, 512), (512, 512))),
    "matmul 2048": (lambda a, b: a @ b, ((2048, 2048), (2048, 2048))),
}
"""Functions of workbench's tensors and of torch's, and the shapes of their arguments."""


def random_programs(device: str, count: int) -> int:
    """Print how many random programs are right; return how many are wrong."""
    outcomes: Counter[str] = Counter()
    for attempt in attempts(range(count), device, "mixed"):
        outcome = "wrong" if attempt.verdict else "refused"
        outcomes[outcome if attempt.verdict or attempt.refusal else "right"] += 1
        if attempt.verdict:
            print(report(attempt))
    print(f"random programs on {device}: {dict(outcomes)}")
    return outcomes["wrong"]


def kernels(device: str, seconds: float) -> int:
    """Print a row for each function of the set; return how many are wrong."""
    wrong = 0
    for name, (function, shapes) in CASES.items():
        generator = np.random.default_rng(0)
        arrays = [generator.standard_normal(s, dtype=np.float32) for s in shapes]
        tensors = [Tensor(a, device=device).realize() for a in arrays]
        checks = [k.optimized().check() for k in explore(function(*tensors)).kernels]
        wrong += sum(not check for check in checks)
        verdict = "right" if all(checks) else "WRONG"
        jitted = TinyJit(lambda *xs, f=function: f(*xs).realize())
        own = median(lambda j=jitted, t=tensors: j(*t), seconds)
        theirs = beside_torch(function, arrays, seconds) if device == "CUDA" else None
        peer = "" if theirs is None else f"  torch {theirs * 1e6:,.1f} us"
        print(f"{name:12} {verdict}  {own * 1e6:,.1f} us{peer}")
    return wrong


def beside_torch(
    function: Callable[..., Any], arrays: list[Any], seconds: float
) -> float | None:
    """Return the seconds of a call of torch on the GPU; None without it."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    tensors = [torch.from_numpy(a).cuda() for a in arrays]

    def call() -> None:
        function(*tensors)
        torch.cuda.synchronize()

    return median(call, seconds)


def median(call: Callable[[], object], seconds: float) -> float:
    """Return the median seconds of a call, after three that are not counted."""
    for _ in range(3):
        call()
    samples, end = [], time.perf_counter() + seconds
    while not samples or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        samples.append(time.perf_counter() - begin)
    return statistics.median(samples)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", nargs="?", help="by default each that is available")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    here = [d for d in Device if d.is_available and d.target.has_groups]
    wrong = 0
    for info in [Device[arguments.device]] if arguments.device else here:
        print(f"{info!r}\n{info.target}")
        wrong += random_programs(info.name, arguments.programs)
        wrong += kernels(info.name, arguments.seconds)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
