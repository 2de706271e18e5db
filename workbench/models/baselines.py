"""Runs of a model by its own framework, to be timed beside its kernels: whole, and by module.

A run takes the inputs of the exploration, so that both compute the same, and leaves the model and
its framework's random numbers as they were.

Sections: The framework's run of a source; PyTorch, eager and compiled; ONNX Runtime.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np

from workbench.base.errors import ModelError, kind_of, plural
from workbench.base.installation import is_installed
from workbench.models.sources import framework_of
from workbench.models.torch.values import to_torch
from workbench.tensor.tensor import Tensor

# --------------------------------------------------------------------------------------------------
# The framework's run of a source.

COMPILED = "torch.compile"
PACKAGES = {"torch eager": "torch", COMPILED: "torch", "onnxruntime": "onnxruntime"}
"""The packages of the baselines that have names of their own."""
RUNS = 15
"""Runs from which the times of modules are: each is a median."""
LIMIT_S, COMPILING_S = 30.0, 120.0
"""Seconds after which a first run, or one that compiles, is given up."""
Explored = Sequence[tuple[str, Tensor]]


@runtime_checkable
class FrameworkRun(Protocol):
    """A call of a model by its framework. `about` says how it runs, in words."""

    about: str
    limit_s: float

    def __call__(self) -> object: ...

    def module_times(self) -> Mapping[str, float]:
        """Return the seconds that a run takes in each module (of ONNX: in each node), without those
        of the modules that it calls; {} where the framework does not tell."""
        ...


def framework_run(
    name: str, source: object, inputs: Sequence[object], explored: Explored
) -> FrameworkRun | None:
    """Return the run of a torch.nn.Module, an exported program or an ONNX model on `inputs`, or
    without any on the inputs that were `explored`; None for a source of another kind, such as a
    function. A module runs eagerly unless `name` is "torch.compile".

    Errors: ModelError for inputs of other shapes than were explored, and where the framework is
    missing.
    """
    framework = framework_of(source)
    package = PACKAGES.get(name, "") if isinstance(name, str) else ""
    if not framework:
        if package and not callable(source):
            raise _no_source(name, package, source)
        return None
    values = list(inputs) or [tensor for _, tensor in explored]
    _require_same(name, values, explored)
    if framework == "onnx":
        return OnnxRun(source, values)
    if package == "onnxruntime":
        because = f"{kind_of(source)} is a model of PyTorch"
        hint = 'torch.onnx.export(module, inputs, "net.onnx"), and then "net.onnx"'
        raise ModelError("ONNX Runtime does not run this model", because, hint)
    return TorchRun(source, values, name == COMPILED)


def _no_source(name: str, package: str, source: object) -> ModelError:
    what = f"there is no baseline {name!r} of {kind_of(source)}"
    if not is_installed(package):
        return ModelError(what, f"the package {package} is not installed", _install(package))
    example = '"net.onnx"' if package == "onnxruntime" else "module"
    because = f"{package} runs models of its own"
    return ModelError(what, because, f'ex.baseline("{name}", {example})')


def _install(package: str) -> str:
    return f"pip install {package}"


def _require_same(name: str, values: Sequence[object], explored: Explored) -> None:
    """Errors: ModelError for arrays of other shapes than those that were explored."""
    shapes = [tuple(value.shape) for value in values if hasattr(value, "shape")]
    own = [tensor.shape for _, tensor in explored]
    if explored and shapes != own:
        words = ", ".join(f"{key} {list(tensor.shape)}" for key, tensor in explored)
        given = ", ".join(str(list(shape)) for shape in shapes) or "none"
        because = f"the kernels are for {words}, and these inputs are {given}"
        raise ModelError(f"the times of {name!r} could not be compared", because, "the same inputs")


# --------------------------------------------------------------------------------------------------
# PyTorch, eager and compiled.


class TorchRun:
    """A module of PyTorch's, which runs without gradients; in training mode, a copy of it."""

    def __init__(self, source: Any, inputs: Iterable[object], is_compiled: bool):
        import torch

        self._torch: Any = torch
        module = source if isinstance(source, torch.nn.Module) else source.module()
        self._is_training = module.training
        if self._is_training and next(module.buffers(), None) is not None:
            module = copy.deepcopy(module)  # a run writes its statistics
        self._module = module
        self._is_compiled = is_compiled
        self._call = torch.compile(module) if is_compiled else module
        self._inputs = [_in_torch(value) for value in inputs]
        threads = plural(torch.get_num_threads(), "thread")
        self.about = f"PyTorch {torch.__version__}, {threads}, without gradients"
        self.limit_s = COMPILING_S if is_compiled else LIMIT_S

    def __call__(self) -> object:
        torch = self._torch
        numbers = torch.random.fork_rng(devices=[]) if self._is_training else nullcontext()
        with torch.no_grad(), numbers:
            return self._call(*self._inputs)

    def module_times(self, clock: Callable[[], float] = perf_counter) -> Mapping[str, float]:
        """Return the seconds in each module, without those of the modules that it calls."""
        if self._is_compiled:  # its kernels are of many modules
            return {}
        calls = _ModuleCalls(clock)
        hooks = []
        try:
            for path, module in self._module.named_modules():
                hooks.append(module.register_forward_pre_hook(calls.before(path)))
                hooks.append(module.register_forward_hook(calls.after, always_call=True))
            for _ in range(RUNS):
                self()
                calls.end_run()
        finally:
            for hook in hooks:
                hook.remove()
        return calls.medians()


class _ModuleCalls:
    """The times of calls of modules, which call others."""

    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._open: list[tuple[str, float]] = []
        self._inner = [0.0]
        """Seconds of the calls inside of each open call, after those outside of all."""
        self._run: defaultdict[str, float] = defaultdict(float)
        self._runs: list[dict[str, float]] = []

    def before(self, path: str) -> Callable[..., None]:
        """Return the hook that begins a call of a module."""

        def begin(*_: object) -> None:
            self._inner.append(0.0)
            self._open.append((path, self._clock()))

        return begin

    def after(self, *_: object) -> None:
        """End the latest call."""
        path, began = self._open.pop()
        took = self._clock() - began
        self._run[path] += took - self._inner.pop()
        self._inner[-1] += took

    def end_run(self) -> None:
        """Begin another run of the whole model."""
        self._runs.append(dict(self._run))
        self._run.clear()

    def medians(self) -> dict[str, float]:
        """Return the median of each module over the runs; {} if no module calls another."""
        paths = dict.fromkeys(path for run in self._runs for path in run)
        if len(paths) < 2:
            return {}
        return {path: median(run.get(path, 0.0) for run in self._runs) for path in paths}


def _in_torch(value: object) -> object:
    import torch

    if isinstance(value, Tensor):
        return to_torch(value.realize())
    return torch.from_numpy(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value


# --------------------------------------------------------------------------------------------------
# ONNX Runtime.


class OnnxRun:
    """An ONNX model in ONNX Runtime, on as many threads as there are cores."""

    limit_s = LIMIT_S

    def __init__(self, source: Any, inputs: Iterable[object]):
        try:
            import onnxruntime as runtime
        except ImportError:
            because = "the package onnxruntime is not installed"
            what = "ONNX Runtime cannot be timed"
            raise ModelError(what, because, _install("onnxruntime")) from None
        self._runtime: Any = runtime
        self._threads = os.cpu_count() or 1
        if hasattr(os, "sched_getaffinity"):
            self._threads = len(os.sched_getaffinity(0))
        self._model = _model_of(source)
        self._session = self._session_with(self._options())
        names = [each.name for each in self._session.get_inputs()]
        values = [_in_numpy(value) for value in inputs]
        if len(names) != len(values):
            what = f"the model takes {plural(len(names), 'input')}: {', '.join(names)}"
            raise ModelError(what, f"there are {len(values)} for it", "an array for each")
        self._inputs = dict(zip(names, values, strict=True))
        self.about = f"ONNX Runtime {runtime.__version__}, {plural(self._threads, 'thread')}"

    def __call__(self) -> object:
        results: object = self._session.run(None, self._inputs)
        return results

    def module_times(self) -> Mapping[str, float]:
        """Return the seconds in each node, by its name in the profile. The runtime fuses some: then
        one has the time of several."""
        with TemporaryDirectory() as folder:
            options = self._options()
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(folder, "run"))
            session = self._session_with(options)
            for _ in range(RUNS):
                session.run(None, self._inputs)
            profile = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        return node_times(profile, RUNS)

    def _options(self) -> Any:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = self._threads
        return options

    def _session_with(self, options: Any) -> Any:
        try:
            return self._runtime.InferenceSession(
                self._model, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # of several classes of its own
            raise ModelError("ONNX Runtime does not run this model", str(error)) from error


def node_times(profile: Sequence[Mapping[str, Any]], runs: int) -> dict[str, float]:
    """Return the seconds in each node of a profile of several runs."""
    suffix = "_kernel_time"
    times: defaultdict[str, list[float]] = defaultdict(list)
    for event in profile:
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith(suffix):
            times[name.removesuffix(suffix)].append(event["dur"] * 1e-6)
    return {name: median(each) * len(each) / runs for name, each in times.items()}


def _model_of(source: Any) -> str | bytes:
    if isinstance(source, (str, os.PathLike)):
        return os.fsdecode(source)
    return source if isinstance(source, bytes) else bytes(source.SerializeToString())


def _in_numpy(value: Any) -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)
