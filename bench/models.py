"""Whole models with random weights, beside torch: what a forward takes, and which kernels take it.

    python bench/models.py [--threads N] [--seconds S] [--kernels K] [--smoke] [MODEL ...]

Each model is written once, for the methods that both libraries have, and run in turn in one
process on the same weights; the answers are compared first. `--kernels` prints the slowest ones
of ours, each timed alone. Without torch the times of ours are all there is.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from workbench.bench.answer import fault
from workbench.ir.meaning.closeness import LONG_STEPS
from workbench.measure.timing import in_turn, seconds_of

Array = np.ndarray[Any, Any]
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""ResNet-18: channels and stride of each pair of blocks."""
LAYERS, HEADS = 6, 8
MOST = 1000
"""Samples."""


class Ours:
    """What the models need and the libraries write differently, in Workbench."""

    def __init__(self) -> None:
        from workbench import Tensor

        self.tensor = lambda array: Tensor(array).realize()

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
        return x.conv2d(w, stride=stride, padding=padding)

    def pool(self, x: Any) -> Any:
        return x.max_pool2d((3, 3), stride=2, padding=1)

    def normed(self, x: Any, scale: Any, shift: Any) -> Any:
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        apart = x - x.mean(-1, keepdim=True)
        variance = (apart * apart).mean(-1, keepdim=True)
        return apart * (variance + 1e-5).rsqrt() * scale + shift

    def gelu(self, x: Any) -> Any:
        return x.gelu()

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(-1, -2) * (1 / q.shape[-1] ** 0.5)
        return scores.softmax(-1) @ v

    def captured(self, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        from workbench import TinyJit

        return TinyJit(call)


class Torch:
    """The same in torch, eager, by its own functions."""

    def __init__(self, threads: int) -> None:
        torch: Any = import_module("torch")
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.f, self.tensor = torch.nn.functional, torch.from_numpy
        self.one = torch.ones

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
        return self.f.conv2d(x, w, stride=stride, padding=padding)

    def pool(self, x: Any) -> Any:
        return self.f.max_pool2d(x, 3, 2, 1)

    def normed(self, x: Any, scale: Any, shift: Any) -> Any:
        return self.f.batch_norm(
            x, shift * 0, scale * 0 + 1, scale, shift, False, 0.0, 0.0
        )

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return self.f.layer_norm(x, x.shape[-1:], scale, shift, 1e-5)

    def gelu(self, x: Any) -> Any:
        return self.f.gelu(x, approximate="tanh")

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.f.scaled_dot_product_attention(q, k, v)

    def captured(self, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return call


class Weights:
    """Random weights in the order in which a model asks for them: drawn at the first library,
    and the same for the next."""

    def __init__(self) -> None:
        self.drawn: list[Array] = []
        self._generator = np.random.default_rng(7)

    def handed(self, lib: Any) -> Callable[..., Any]:
        """Return the function that gives a model its next weight; it keeps them."""
        place = iter(range(1 << 20))

        def weight(*shape: int, mean: float = 0.0) -> Any:
            number = next(place)
            if number == len(self.drawn):
                spread = (1.0 / max(1, int(np.prod(shape[1:])))) ** 0.5
                if len(shape) == 1:
                    spread = 0.1
                drawn = self._generator.standard_normal(shape) * spread + mean
                self.drawn.append(drawn.astype(np.float32))
            return lib.tensor(self.drawn[number])

        return weight


def resnet18(lib: Any, w: Callable[..., Any], smoke: bool) -> Callable[[Any], Any]:
    """Return the forward of ResNet-18 (He et al. 2015) in inference: an image to 1000 numbers."""

    def norm(channels: int) -> Callable[[Any], Any]:
        scale, shift = w(channels, mean=1.0), w(channels)
        return lambda x: lib.normed(x, scale, shift)

    def block(inputs: int, channels: int, stride: int) -> Callable[[Any], Any]:
        first, one = w(channels, inputs, 3, 3), norm(channels)
        second, two = w(channels, channels, 3, 3), norm(channels)
        if stride == 1 and inputs == channels:
            side = None
        else:
            side, three = w(channels, inputs, 1, 1), norm(channels)

        def run(x: Any) -> Any:
            output = one(lib.conv(x, first, stride, 1)).relu()
            output = two(lib.conv(output, second, 1, 1))
            shortcut = x if side is None else three(lib.conv(x, side, stride))
            return (output + shortcut).relu()

        return run

    stem, norm_0 = w(64, 3, 7, 7), norm(64)
    blocks, channels = [], 64
    for width, stride in STAGES[: 2 if smoke else 4]:
        blocks += [block(channels, width, stride), block(width, width, 1)]
        channels = width
    head, bias = w(1000, channels), w(1000)

    def forward(x: Any) -> Any:
        x = lib.pool(norm_0(lib.conv(x, stem, 2, 3)).relu())
        for run in blocks:
            x = run(x)
        return x.mean((2, 3)) @ head.transpose(0, 1) + bias

    return forward


def transformer(lib: Any, w: Callable[..., Any], smoke: bool) -> Callable[[Any], Any]:
    """Return the forward of a transformer's encoder: (1, tokens, width) -> the same."""
    width = 64 if smoke else 512

    def layer() -> Callable[[Any], Any]:
        norms = [(w(width, mean=1.0), w(width)) for _ in range(2)]
        joint, joint_bias = w(3 * width, width), w(3 * width)
        out, out_bias = w(width, width), w(width)
        up, up_bias = w(4 * width, width), w(4 * width)
        down, down_bias = w(width, 4 * width), w(width)

        def run(x: Any) -> Any:
            batch, tokens = x.shape[0], x.shape[1]
            qkv = lib.layer_norm(x, *norms[0]) @ joint.transpose(0, 1) + joint_bias
            parts = qkv.reshape(batch, tokens, 3, HEADS, width // HEADS)
            parts = parts.permute(2, 0, 3, 1, 4)
            output = lib.attention(parts[0], parts[1], parts[2])
            output = output.transpose(1, 2).reshape(batch, tokens, width)
            x = x + output @ out.transpose(0, 1) + out_bias
            hidden = lib.layer_norm(x, *norms[1]) @ up.transpose(0, 1) + up_bias
            return x + lib.gelu(hidden) @ down.transpose(0, 1) + down_bias

        return run

    layers = [layer() for _ in range(1 if smoke else LAYERS)]

    def forward(x: Any) -> Any:
        for run in layers:
            x = run(x)
        return x

    return forward


MODELS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "resnet18": (resnet18, (1, 3, 224, 224), (1, 3, 32, 32)),
    "transformer": (transformer, (1, 256, 512), (1, 16, 64)),
}
"""What makes a forward, and the shape of its input, also for a smoke test."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--threads", type=int, default=0, help="all cores unless given")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--kernels", type=int, default=0, metavar="K")
    parser.add_argument("--smoke", action="store_true", help="small: for the answers")
    options = parser.parse_args(arguments)
    unknown = set(options.models) - set(MODELS)
    if unknown:
        parser.error(f"no model {', '.join(unknown)}: there are {', '.join(MODELS)}")
    if options.threads and hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))[: options.threads]
        os.sched_setaffinity(0, allowed)
    chosen = options.models or list(MODELS)
    wrong = [name for name in chosen if not compared(name, options)]
    return int(bool(wrong))


def compared(name: str, options: argparse.Namespace) -> bool:
    """Print what a model takes in each library; return whether the answers agree."""
    from workbench.backends.native.thread_pool import cores

    build, shape, small = MODELS[name]
    data = np.random.default_rng(3).standard_normal(small if options.smoke else shape)
    libs: dict[str, Any] = {"workbench": Ours()}
    if find_spec("torch"):
        libs["torch"] = Torch(cores())
    weights, answers = Weights(), {}
    runs: dict[str, Callable[[], object]] = {}
    for label, lib in libs.items():
        forward = build(lib, weights.handed(lib), options.smoke)
        x = lib.tensor(data.astype(np.float32))
        if label == "workbench" and options.kernels:
            print("\n".join(slowest(forward(x), options.kernels)))
        call = lib.captured(forward)
        first = time.perf_counter()
        for _ in range(2):
            call(x)
        first = time.perf_counter() - first
        answers[label] = call(x).numpy()
        runs[label] = lambda call=call, x=x: call(x)
        print(f"{name}: {label}, first two runs {first:.2f} s", flush=True)
    right = True
    if "torch" in answers:
        problem = fault(answers["workbench"], answers["torch"], LONG_STEPS)
        right = problem is None
        print(f"{name}: answers {'agree' if right else f'DIFFER: {problem}'}")
    samplers = {label: settled(run) for label, run in runs.items()}
    times = in_turn(samplers, options.seconds, least=1, most=MOST, settle_s=0.05)
    for label, samples in times.items():
        middle, least = statistics.median(samples) * 1e3, min(samples) * 1e3
        text = f"{name}: {label:10} median {middle:7.2f} ms, least {least:7.2f} ms"
        print(f"{text}, {len(samples)} runs on {cores()} cores")
    if "torch" in times:
        pairs = zip(times["workbench"], times["torch"], strict=True)
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"{name}: workbench takes {ratio:.2f} of torch's time (median of pairs)")
    return right


def settled(run: Callable[[], object]) -> Callable[[], float]:
    """Return what takes a sample: the least of a few runs, of which the first is not counted,
    since threads that the other library left spinning disturb it."""

    def sample() -> float:
        run()
        return min(seconds_of(run) for _ in range(3))

    return sample


def slowest(result: Any, count: int) -> Iterator[str]:
    """Yield a line for each of the slowest kernels, and one for all of them."""
    from workbench import explore
    from workbench.backends.native.thread_pool import cores
    from workbench.measure.peak import run_peak
    from workbench.measure.timing import measure

    peak = run_peak(threads=cores())
    best = peak.gflops(measure(peak.run).min_s)
    rows = []
    for number, kernel in enumerate(explore(result).kernels, 1):
        formed = kernel.optimized()
        seconds = measure(formed.launch(), 0.1).min_s
        speed = kernel.estimates.flops / seconds / 1e9
        applied = " ".join(map(str, formed.applied_opts))
        rows.append((seconds, number, kernel.ast.arg.name, speed, applied))
    total = sum(row[0] for row in rows)
    yield f"{len(rows)} kernels, {total * 1e3:.2f} ms; the multiply-add peak is {best:.0f} GFLOP/s"
    for seconds, number, title, speed, applied in sorted(rows, reverse=True)[:count]:
        share = seconds / total
        yield (
            f"{seconds * 1e3:8.3f} ms {share:4.0%} {speed:6.1f} GFLOP/s"
            f"  kernel {number} {title}: {applied}"
        )


if __name__ == "__main__":
    sys.exit(main())
