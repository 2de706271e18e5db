"""A device with work-groups on a machine that has it: right answers first, then times.

    python bench/gpu_device.py [DEVICE] [--programs N] [--seconds S] [--compile] [--search S]
        [--models]

DEVICE is CUDA, OPENCL, WEBGPU, or any other that is available. N random programs are compared
with numpy, with default opts and drawn ones. Then each function of the set is compared with
torch in float64, and timed for S seconds; beside torch eager, and torch.compile with `--compile`,
where torch uses the same GPU. `--search S` times each product also after a search of S seconds. The
exit status is 1 where an answer was wrong.

A time is that of many calls that are queued, divided by their number: what a GPU needs for one, or
the host where that is slower.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.agreement.hunt import attempts, report
from workbench import Context, Kernel, Tensor, TinyJit, explore
from workbench.backends.device import Device
from workbench.base.dtypes import dtypes
from workbench.bench.models import MODELS, WIDE_MODELS, step_of

try:
    import torch
    from torch.nn import functional
except ImportError:
    torch = None  # type: ignore[assignment]


class GpuCase(NamedTuple):
    """A function of workbench's tensors, the same of torch's, and the shapes of the arguments."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float32"

    @property
    def multiply_adds(self) -> int:
        """Those of a matrix product; 0 for anything else."""
        if not self.name.startswith("matmul"):
            return 0
        return int(np.prod(self.shapes[0])) * self.shapes[1][-1]

    def arrays(self) -> list[Any]:
        """Return arguments, float32, that the dtype holds exactly."""
        generator = np.random.default_rng(0)
        kind = {"float32": np.float32, "float16": np.float16}.get(self.dtype)
        arrays = [generator.standard_normal(s, dtype=np.float32) for s in self.shapes]
        if kind is None:  # bfloat16: the upper half of a float32
            return [(a.view(np.uint32) & 0xFFFF0000).view(np.float32) for a in arrays]
        return [a.astype(kind).astype(np.float32) for a in arrays]


def _product(a: Any, b: Any) -> Any:
    return a @ b


def _products() -> list[GpuCase]:
    """Matrix products: of full tiles, and of sizes that no tile divides."""
    kinds = ("float32", "float16", "bfloat16")
    sizes = [(512, "float32"), (1000, "float32"), *((SIDE, kind) for kind in kinds)]
    sizes += [(4095, "float16"), (4095, "float32")]
    return [
        GpuCase(f"matmul {n} {kind}", _product, _product, ((n, n),) * 2, kind) for n, kind in sizes
    ]


SIDE = 1 << 12
VECTOR = (1 << 26,)  # several times the caches of a GPU
SQUARE = (2 * SIDE, 2 * SIDE)
CASES = (
    GpuCase("a * b + a", lambda a, b: a * b + a, lambda a, b: a * b + a, (VECTOR, VECTOR)),
    GpuCase(
        "gelu", lambda a: a.gelu(),
        lambda a: functional.gelu(a, approximate="tanh"), (VECTOR,),
    ),
    GpuCase("sum", lambda a: a.sum(), lambda a: a.sum(), (VECTOR,)),
    GpuCase("sum of rows", lambda a: a.sum(1), lambda a: a.sum(1), (SQUARE,)),
    GpuCase("sum of columns", lambda a: a.sum(0), lambda a: a.sum(0), (SQUARE,)),
    GpuCase("softmax", lambda a: a.softmax(-1), lambda a: a.softmax(-1), ((4 * SIDE, 1000),)),
    GpuCase(
        "layernorm", lambda a: a.layernorm(),
        lambda a: functional.layer_norm(a, a.shape[-1:]), ((4 * SIDE, 1024),),
    ),
    GpuCase("transpose", lambda a: a.T.contiguous(), lambda a: a.T.contiguous(), (SQUARE,)),
    GpuCase("cumsum", lambda a: a.cumsum(1), lambda a: a.cumsum(1), ((4 * SIDE, 1000),)),
    GpuCase(
        "conv 3x3", lambda a, w: a.conv2d(w, padding=1),
        lambda a, w: functional.conv2d(a, w, padding=1), ((16, 64, 56, 56), (64, 64, 3, 3)),
    ),
    GpuCase(
        "attention", lambda q, k, v: q.scaled_dot_product_attention(k, v),
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v),
        ((8, 16, 1024, 64),) * 3, "float16",
    ),
    *_products(),
)  # fmt: skip
BOUNDS = {"float32": 1e-4, "float16": 3e-3, "bfloat16": 2e-2}
"""The norm of the error for the norm of the answer, at most."""


def random_programs(device: str, count: int) -> int:
    """Print how many random programs are right; return how many are wrong."""
    outcomes: Counter[str] = Counter()
    for attempt in attempts(range(count), device, "mixed"):
        outcome = "wrong" if attempt.verdict else "refused"
        outcomes[outcome if attempt.verdict or attempt.refusal else "right"] += 1
        if attempt.verdict and outcomes["wrong"] <= 10:
            print(report(attempt), flush=True)
    print(f"random programs on {device}: {dict(outcomes)}", flush=True)
    return outcomes["wrong"]


def on_gpu(array: Any, dtype: str) -> Any:
    """Return a torch tensor beside the device: on the GPU where torch has one."""
    place = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.from_numpy(array).to(place).to(getattr(torch, dtype))


def error_of(case: GpuCase, arrays: list[Any], actual: Any) -> float:
    """Return the norm of the error for the norm of the answer."""
    if torch is None:
        raise SystemExit("this comparison needs torch: pip install torch")
    exact = case.theirs(*(on_gpu(a, "float64") for a in arrays)).cpu().numpy()
    error = np.linalg.norm(actual.astype(np.float64) - exact)
    return float(error / np.linalg.norm(exact))


def run_models(device: str, seconds: float) -> int:
    """Print a row for each model that is trained; return how many have another loss than on the
    processor."""
    wrong = 0
    for model in (*MODELS.values(), *WIDE_MODELS.values()):
        losses = {}
        for name in ("LLVM", device):
            with Context(DEV=name):
                Tensor.manual_seed(0)
                step, kernels = step_of("workbench", model)
                losses[name] = [step() for _ in range(4)]
                ours = queued(step, Device[name].synchronize, seconds)
        is_right = np.allclose(losses["LLVM"], losses[device], rtol=1e-2)
        wrong += not is_right
        words = f"{model.name:22} {'right' if is_right else 'WRONG'}   {ours * 1e6:9,.1f} us"
        if device == "CUDA" and torch is not None and torch.cuda.is_available():
            torch.set_default_device("cuda")
            theirs, _ = step_of("torch", model)
            eager = queued(theirs, torch.cuda.synchronize, seconds)
            torch.set_default_device("cpu")
            share = eager / ours
            words += f"  eager {eager * 1e6:9,.1f} us, {share:5.2f} of its speed"
        print(f"{words}  {kernels()} kernels, losses {losses[device]}", flush=True)
    return wrong


class GpuTimes(NamedTuple):
    """What a case took, in seconds; None where it was not run."""

    ours: float
    eager: float | None
    compiled: float | None


def run_case(case: GpuCase, device: str, arguments: argparse.Namespace) -> int:
    """Print a row for a case; return 1 where its answer is wrong."""
    arrays = case.arrays()
    tensors = [Tensor(a, device=device).cast(getattr(dtypes, case.dtype)).realize() for a in arrays]
    call = TinyJit(lambda *xs: case.ours(*xs).realize())
    for _ in range(3):  # it runs plainly, is captured, is replayed
        result = call(*tensors)
    error = error_of(case, arrays, result.cast(dtypes.float32).numpy())
    is_right = error <= BOUNDS[case.dtype]
    ours = queued(lambda: call(*tensors), Device[device].synchronize, arguments.seconds)
    eager = compiled = None
    if device == "CUDA" and torch is not None and torch.cuda.is_available():
        peers = [on_gpu(a, case.dtype) for a in arrays]
        wait = torch.cuda.synchronize
        eager = queued(lambda: case.theirs(*peers), wait, arguments.seconds)
        if arguments.compile:
            fast = torch.compile(case.theirs)
            compiled = queued(lambda: fast(*peers), wait, arguments.seconds)
    print(line(case, GpuTimes(ours, eager, compiled), error, is_right), flush=True)
    kernels = explore(case.ours(*tensors)).kernels
    for kernel in kernels:
        print(f"    {kernel_line(kernel.optimized())}", flush=True)
    if case.multiply_adds and arguments.search:
        kernel = kernels[-1]
        search = kernel.search(budget_s=arguments.search, progress=False)
        seconds = search.kernel.time().median_s
        share = f", {eager / seconds:.2f} of eager's speed" if eager else ""
        opts = search.tried[search.best].opts
        print(f"    after a search {seconds * 1e6:,.1f} us{share}: {opts}", flush=True)
    return int(not is_right)


def kernel_line(kernel: Kernel) -> str:
    """Return the text of a kernel: its time, measured and predicted, and what is to blame."""
    measured = kernel.time(budget_s=0.1).median_s
    words = f"{measured * 1e6:9,.1f} us  {kernel.name}"
    if not Device[kernel.device].has_hardware:
        return words
    predicted, bound = kernel.cost.predicted_s, kernel.bound()
    return f"{words}, predicted {predicted * 1e6:,.1f} us ({bound})"


def line(case: GpuCase, row: GpuTimes, error: float, is_right: bool) -> str:
    """Return the text of a row."""
    words = [
        f"{case.name:22} {'right' if is_right else 'WRONG'} {error:.1e}",
        f"{row.ours * 1e6:9,.1f} us",
    ]
    for peer, seconds in (("eager", row.eager), ("compiled", row.compiled)):
        if seconds is not None:
            share = seconds / row.ours
            words.append(f"{peer} {seconds * 1e6:9,.1f} us, {share:5.2f} of its speed")
    if case.multiply_adds:
        words.append(f"{2e-12 * case.multiply_adds / row.ours:,.1f} TFLOP/s")
    return "  ".join(words)


def queued(call: Callable[[], object], wait: Callable[[], object], seconds: float) -> float:
    """Return the median seconds of a call among many that are queued, after some that are not
    counted."""
    for _ in range(3):
        call()
    wait()
    begin = time.perf_counter()
    call()
    wait()
    count = max(1, min(100, int(5e-3 / (time.perf_counter() - begin))))
    samples, end = [], time.perf_counter() + seconds
    while not samples or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        samples.append((time.perf_counter() - begin) / count)
    return statistics.median(samples)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", nargs="?", help="by default each that is available")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--models", action="store_true", help="steps of training, too")
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    parser.add_argument("--search", type=float, default=0.0)
    parser.add_argument("--cases", default="", help="only those whose name has this")
    arguments = parser.parse_args()
    here = [d for d in Device if d.is_available and d.target.has_groups]
    if torch is not None:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    wrong = 0
    for info in [Device[arguments.device]] if arguments.device else here:
        print(f"{info!r}\n{info.target}")
        wrong += random_programs(info.name, arguments.programs)
        for case in CASES:
            if arguments.cases not in case.name:
                continue
            try:
                wrong += run_case(case, info.name, arguments)
            except Exception:  # the rest of the table is worth having
                wrong += 1
                print(f"{case.name:22} FAILED\n{traceback.format_exc(limit=-8)}")
        if arguments.models:
            wrong += run_models(info.name, arguments.seconds)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
