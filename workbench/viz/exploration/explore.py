"""`explore(*tensors)`: tensors scheduled under observation; `load(path)`: those of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError, kind_of, require
from workbench.base.garbage import fewer_collections
from workbench.base.source import calls, line_of
from workbench.base.target import Target
from workbench.base.terminal import register
from workbench.base.variables import variables
from workbench.ir.gradient.occurrences import without_aliases
from workbench.kernel.kernel import Kernel
from workbench.models.door import is_function, load_model, weights_file
from workbench.models.function import results_of
from workbench.models.model import Model
from workbench.models.sources import is_source, is_tinygrads
from workbench.tensor.jit.tinyjit import TinyJit
from workbench.tensor.tensor import Tensor
from workbench.viz import formatters
from workbench.viz.exploration import exploration
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.questions import check_kernel, question_of
from workbench.viz.files.load import is_run, opened, opened_run
from workbench.viz.model.lines import Viewer
from workbench.viz.names import Names, module_paths, names_of
from workbench.viz.page.document import modes
from workbench.viz.page.panel import pane_of, panes
from workbench.viz.pane import Pane
from workbench.viz.run.run import Run
from workbench.viz.run.sizes import Again
from workbench.viz.session.show import LivePage


def explore(
    *source: Any,
    show: str = "",
    without: tuple[str, ...] = (),
    ask: str = "",
    device: str = "",
    target: str | Target = "",
    **by_name: Any,
) -> Exploration:
    """Return the Exploration of tensors: the kernels that would compute them, and why. Or that of
    a `source` from outside with its inputs, `explore(module, x)`: of the kernels of a
    torch.nn.Module, an exported program, an ONNX model, a tinygrad Tensor (`explore(t, *more)`), or
    a Model that `load_model` returned; or of a Python function over arrays, `explore(f, a, b)`,
    which runs once over Tensors of them. To its code arrays of numpy have numpy's meaning
    (`x.std()`, `x.size`), and Tensors have their own.

    It computes nothing. As the last line of a notebook cell it is the workbench. `show` names one
    pane of it: "loops", "plan", "rewrites", "code", "results", "rules", "memory", "gpu",
    "run", "accesses" or "values"; with "board", "tune", "side_by_side", "schedule", "trace",
    "compare", "compare_plans" or "teach" the whole workbench opens in that layout.
    `without` names rules and steps that are switched off, from scheduling to code (`show="rules"`
    lists them). `ask` asks for a guess first: "kernels" (how many will it be?), "opts" (which does
    auto apply?), "bound" (what does it wait for?) or "time", of the first kernel, or of another
    ("bound 2"); the answer and its hints are hidden until there is a guess, in the page or by
    `ex.guess(..)`.

    Inputs of a model may be given `by_name`, as in a call of it: `explore(bert, input_ids=ids)`.

    `device` is the device that the kernels are for ("": the tensors'), and `target` a machine that
    need not be here: `device="CUDA", target="H100"`, or "CUDA:H100"; a Target of the table will do.
    For such a machine times are predicted, and results of small kernels are emulated. A device
    that is not available stands for the first of its machines.

    Errors: ModelError for a function that returns no Tensors, DTypeError for one that needs values.
    WorkbenchError for a value that is not a Tensor, for no tensor at all, and for a pane, a
    rule or a question that does not exist; DeviceError for a device or a machine that does not.
    """
    explored = _expressions(source, by_name)
    tensors = explored.tensors
    _check(tensors)
    is_layout = isinstance(show, str) and show in modes() and show not in panes()
    layout = show if is_layout else ""
    if not isinstance(show, str) or (show and not layout):
        pane_of(show, "explore(y, show={})")
    if not isinstance(ask, str) or ask:
        question_of(ask)
    require(device, (str, NoneType), "explore: device", "one of Device.names()")
    require(target, (str, Target, NoneType), "explore: target", '"H100"')
    page = registered_page()
    named = Device.on_machine(device, target) if device or target else ""
    here = calls()
    line = None if isinstance(source[0], Tensor) or not here else line_of(here[0])
    first = source[0]  # a tensor or a module has no variables of its own
    function = vars(first)["__wrapped__"] if isinstance(first, TinyJit) else first
    names = _names_below(tensors, [*explored.inputs, *explored.named], function)
    nodes = without_aliases([t.uop for _, t in explored.inputs])
    inputs = tuple(zip((name for name, _ in explored.inputs), nodes, strict=True))
    modules, file = module_paths(function), explored.model_file
    viewer = Viewer(here, names, modules, line, inputs, explored.constant, file)
    off = _names(without)
    with fewer_collections():
        ex = exploration.of(
            tensors,
            page,
            rules_off=off,
            show="" if layout else show,
            viewer=viewer,
            ask=ask,
            device=named,
        )
    check_kernel(ask, len(ex.kernels))
    if source[0] is not tensors[0] and len(source) + len(by_name) > 1:
        anew = partial(explore, source[0], without=without, device=device, target=target)
        ex = replace(ex, again=Again(anew, source[1:], by_name, tuple(name for name, _ in inputs)))
    if layout:
        ex.select(mode=layout)
    return ex


def load(path: str | os.PathLike[str]) -> Any:
    """Return the exploration that `ex.save(path)` wrote, with its variants, notes and times; or the
    Run that `run.save(path)` wrote.

    An exploration has no data: opts, code and schedules are live, times are of random inputs, and
    what needs data (`.run()`, `.check()`, `.values()`) is refused.

    Errors: WorkbenchError for a file that is missing, cut off, of another kind or another version,
    and for one that needs a device, a rule or a pane that is not here.
    """
    return opened_run(path) if is_run(path) else opened(path, registered_page())


class _Explored(NamedTuple):
    """The tensors to explore, and those that a model or a function has names for."""

    tensors: tuple[Any, ...]
    inputs: list[tuple[str, Tensor]] = []
    named: list[tuple[str, Tensor]] = []
    constant: frozenset[str] = frozenset()
    model_file: str = ""


def _expressions(source: tuple[Any, ...], by_name: Mapping[str, Any]) -> _Explored:
    """Return the tensors of a source to explore. The others, and those `by_name`, are inputs."""
    is_model = bool(source) and (isinstance(source[0], Model) or is_source(source[0]))
    if by_name and not is_model:
        because = "only inputs of a model are given by name"
        options = "show=, without=, ask=, device= or target="
        raise WorkbenchError(f"explore has no argument {next(iter(by_name))!r}", because, options)
    if source and is_function(source[0]):
        return _Explored(*results_of(source[0], source[1:])[:3])
    if not is_model:
        return _Explored(source)
    model = source[0] if isinstance(source[0], Model) else load_model(source[0])
    graph, tensors, traced, constant = model.traced(source[1:], dict(by_name))
    inputs = zip([port.name for port in graph.inputs], tensors, strict=True)
    outputs = zip([port.name for port in graph.outputs], traced.outputs, strict=True)
    named = [
        *(*model.state_dict().items(), *outputs),
        *(*traced.written.items(), *traced.named.items()),
    ]
    results = (*traced.outputs, *traced.written.values())
    return _Explored(results, [*inputs], named, constant, model.file)


def _names_below(
    tensors: Sequence[Tensor], more: Sequence[tuple[str, Tensor]], function: object
) -> Names:
    named = [*variables(Tensor, function), *more]
    nodes = without_aliases([t.uop for t in (*tensors, *(t for _, t in named))])
    below, values = nodes[: len(tensors)], nodes[len(tensors) :]
    return names_of(below, zip((name for name, _ in named), values, strict=True))


def registered_page() -> LivePage:
    """Return the page of explorations, after registering it and the pictures of other values."""
    formatters.register_all()
    page = LivePage()
    register(Exploration, page.bundle)
    register(Pane, page.pane_bundle)
    register(Run, page.run_bundle)
    return page


def _names(without: object) -> tuple[str, ...]:
    if isinstance(without, str):
        return (without,)
    if isinstance(without, (tuple, list)):
        return tuple(map(str, without))
    because = f"{type(without).__name__} is not a tuple of names"
    raise WorkbenchError("cannot read these rules", because, 'without=("form-fma",)')


_TRAINING = "explore(loss, *optimiser.schedule_step())"


def _check(tensors: tuple[object, ...]) -> None:
    if not tensors:
        raise WorkbenchError("nothing to explore", "explore() takes tensors", "explore(a + b)")
    for place, value in enumerate(tensors, 1):
        if isinstance(value, Tensor):
            continue
        if any(reason := weights_file(value)):
            raise WorkbenchError(f"cannot explore {value}", *reason)
        raise WorkbenchError(
            f"cannot explore argument {place}, {kind_of(value)}",
            "only the expression that a Tensor stands for can be scheduled",
            _hint_for(value),
        )


def _hint_for(value: object) -> str:
    """Return what to do with a value that is not a Tensor."""
    if isinstance(value, Exploration):
        return "the tensors again, or the exploration alone as the cell's last line"
    if isinstance(value, Kernel):
        return "explore(y) of the tensor; a kernel has .compile(), .time(), .check()"
    if isinstance(value, (list, tuple, dict)) and value:
        items = value.values() if isinstance(value, dict) else value
        if all(isinstance(v, Tensor) or is_tinygrads(v) for v in items):
            return f"explore(*tensors{'.values()' if isinstance(value, dict) else ''})"
    if isinstance(value, Iterator):
        return "explore(*tensors), where it yields Tensors"
    if hasattr(value, "schedule_step"):
        return _TRAINING
    if isinstance(value, np.ndarray) or hasattr(type(value), "__array__"):
        return "an expression of it, such as explore(Tensor(x) + 1)"
    if _is_of_torch(value):
        return _torch_hint(value)
    if isinstance(value, (str, os.PathLike)):
        return "workbench.load(path), for a file that ex.save(path) wrote"
    if isinstance(value, type) and not issubclass(value, Tensor):
        return "what an instance of it returns: explore(C()(x)), where x is a Tensor"
    if callable(value) and not isinstance(value, type):
        return "explore(f, x), where the function comes first, or what it returns: explore(f(x))"
    return (
        "an expression of Tensors, such as explore(Tensor(x) + 1), a tinygrad Tensor, or a module,"
        " an ONNX file or a function before its inputs"
    )


def _is_of_torch(value: object) -> bool:
    """Whether a value is of a class of PyTorch's, or of one derived from it."""
    owners = [type(value), value, *getattr(value, "__mro__", type(value).__mro__)]
    names = [getattr(owner, "__module__", None) or "" for owner in owners]
    return any(str(name).partition(".")[0] == "torch" for name in names)


def _torch_hint(value: object) -> str:
    if hasattr(value, "param_groups"):
        return f"an optimiser of workbench.nn.optim: {_TRAINING}"
    if isinstance(value, type):
        return "an instance of it with its inputs: explore(C(), x)"
    if hasattr(value, "state_dict"):
        return "explore(module, x), where the module comes first"
    return "the same function of a Tensor, such as explore(Tensor(x).relu())"
