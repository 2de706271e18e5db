"""workbench: the tensor-to-kernel stack, to step through, change by hand and time.

    from workbench import Tensor, explore
    explore((a @ b + c).relu())
    explore(module, x)  # of PyTorch; or an ONNX file, or a function over arrays

The names below are the public API. Each loads when it is first used: `import workbench` is quick,
and a script that only computes loads no code of the page.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workbench.base.dtypes import dtypes as dtypes
from workbench.base.interrupts import no_fork

if TYPE_CHECKING:
    from workbench import nn as nn
    from workbench.backends.contract import DeviceInfo as DeviceInfo
    from workbench.backends.device import Device as Device
    from workbench.backends.elsewhere import Renderer as Renderer
    from workbench.backends.program.text import Language as Language
    from workbench.base.context import Context as Context
    from workbench.base.errors import KernelOptError as KernelOptError
    from workbench.base.errors import ModelError as ModelError
    from workbench.base.errors import WorkbenchError as WorkbenchError
    from workbench.base.target import Target as Target
    from workbench.counters import GlobalCounters as GlobalCounters
    from workbench.emulator.emulate import emulate as emulate
    from workbench.emulator.steps import Trace as Trace
    from workbench.ir.meaning.tiles import lane_map as lane_map
    from workbench.ir.node.ops import AxisType as AxisType
    from workbench.ir.opt.opt import Opt as Opt
    from workbench.ir.opt.opt import OptKind as OptKind
    from workbench.ir.opt.opt import OptOps as OptOps
    from workbench.ir.opt.opt import Refusal as Refusal
    from workbench.ir.rewriting.patterns import var as var
    from workbench.ir.rewriting.rewrite import Rule as Rule
    from workbench.ir.rewriting.rewrite import RuleSet as RuleSet
    from workbench.kernel.kernel import Kernel as Kernel
    from workbench.kernel_files.capture_kernels import capture_kernels as capture_kernels
    from workbench.models.door import load_model as load_model
    from workbench.models.model import Model as Model
    from workbench.registration import register as register
    from workbench.registration import unregister as unregister
    from workbench.search.result import SearchResult as SearchResult
    from workbench.tensor.jit import TinyJit as TinyJit
    from workbench.tensor.operands.broadcast import Variable as Variable
    from workbench.tensor.tensor import Tensor as Tensor
    from workbench.viz.compare import compare as compare
    from workbench.viz.exploration.exploration import Exploration as Exploration
    from workbench.viz.exploration.explore import explore as explore
    from workbench.viz.exploration.explore import load as load
    from workbench.viz.glossary import glossary as glossary
    from workbench.viz.run.run import profile as profile

__version__ = "0.1.0"

_MODULES = {
    "Tensor": "workbench.tensor.tensor",
    "TinyJit": "workbench.tensor.jit",
    "Variable": "workbench.tensor.operands.broadcast",
    "Device": "workbench.backends.device",
    "Renderer": "workbench.backends.elsewhere",
    "Context": "workbench.base.context",
    "Opt": "workbench.ir.opt.opt",
    "OptKind": "workbench.ir.opt.opt",
    "OptOps": "workbench.ir.opt.opt",
    "AxisType": "workbench.ir.node.ops",
    "Kernel": "workbench.kernel.kernel",
    "SearchResult": "workbench.search.result",
    "KernelOptError": "workbench.base.errors",
    "ModelError": "workbench.base.errors",
    "WorkbenchError": "workbench.base.errors",
    "GlobalCounters": "workbench.counters",
    "compare": "workbench.viz.compare",
    "Exploration": "workbench.viz.exploration.exploration",
    "emulate": "workbench.emulator.emulate",
    "Trace": "workbench.emulator.steps",
    "lane_map": "workbench.ir.meaning.tiles",
    "explore": "workbench.viz.exploration.explore",
    "glossary": "workbench.viz.glossary",
    "load": "workbench.viz.exploration.explore",
    "profile": "workbench.viz.run.run",
    "capture_kernels": "workbench.kernel_files.capture_kernels",
    "load_model": "workbench.models.door",
    "Model": "workbench.models.model",
    "register": "workbench.registration",
    "DeviceInfo": "workbench.backends.contract",
    "Language": "workbench.backends.program.text",
    "Refusal": "workbench.ir.opt.opt",
    "Rule": "workbench.ir.rewriting.rewrite",
    "RuleSet": "workbench.ir.rewriting.rewrite",
    "Target": "workbench.base.target",
    "var": "workbench.ir.rewriting.patterns",
    "unregister": "workbench.registration",
}

__all__ = ["Context", "dtypes", "nn", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in (*_MODULES, "nn"):
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    if name == "nn":
        return import_module("workbench.nn")
    with no_fork:  # in a forked child a module that is half imported would stay so
        if name == "Kernel":  # a kernel read from text has its picture, too
            import_module("workbench.viz.formatters").register_all()
        if name == "profile":  # so has a run
            import_module("workbench.viz.exploration.explore").registered_page()
        value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def load_ipython_extension(ipython: Any) -> None:
    """Give IPython its magics: this is what `%load_ext workbench` calls."""
    import_module("workbench.viz.magics").load(ipython)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
