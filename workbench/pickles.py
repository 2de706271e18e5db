"""The names that classes and functions of the package have in pickles, wherever their modules are.

pickle names a class by its module, so that a pickle could not be read after the module has moved.
A class that is `pickled` is named by its own name, which is unique in the package, and `_MODULES`
says where it is now. Pickles name only the functions of this module: it does not move, and a row of
the table keeps its name as long as there are pickles with it. What they say of a value, its fields,
is that of the version that wrote it: to be kept for years, write a state dict (`nn.state`), an
exploration (`ex.save`) or a kernel as code (`kernel.to_python`). Pickles that are older than this
module name others: the version that wrote them reads them.
"""

from __future__ import annotations

import copyreg
from enum import Enum
from importlib import import_module
from typing import Any, TypeVar

_LAYERS = (
    "BatchNorm", "Conv2d", "ConvTranspose2d", "Embedding", "GroupNorm", "InstanceNorm", "LSTMCell",
    "LayerNorm", "LayerNorm2d", "Linear", "RMSNorm",
)  # fmt: skip
_MODULES = {
    "Axis": "workbench.ir.opt.opt",
    "AxisType": "workbench.ir.node.ops",
    "Bottleneck": "workbench.cost.kernel_cost",
    "BoundVariable": "workbench.tensor.operands.broadcast",
    "Candidate": "workbench.search.moves",
    "CheckResult": "workbench.check.answer",
    "Counts": "workbench.ir.nest.estimates",
    "Fragment": "workbench.base.tensor_cores",
    "Hardware": "workbench.base.target",
    "HeuristicStep": "workbench.ir.opt.heuristic.step",
    "HeuristicSteps": "workbench.ir.opt.heuristic.step",
    "KernelInfo": "workbench.ir.node.uop",
    "LAMB": "workbench.nn.optim.optimizers",
    "LARS": "workbench.nn.optim.optimizers",
    "Node": "workbench.portable",
    "Ops": "workbench.ir.node.ops",
    "Opt": "workbench.ir.opt.opt",
    "OptimizerGroup": "workbench.nn.optim.optimizers",
    "PickledData": "workbench.kernel.inputs",
    "PickledMemory": "workbench.portable",
    "Portable": "workbench.portable",
    "Refusal": "workbench.ir.opt.opt",
    "Seeded": "workbench.kernel.inputs",
    "SearchResult": "workbench.search.result",
    "SourceLine": "workbench.base.source",
    "Storage": "workbench.ir.node.uop",
    "Target": "workbench.base.target",
    "Tensor": "workbench.tensor.tensor",
    "TensorCore": "workbench.base.tensor_cores",
    "Timing": "workbench.measure.kernel_time",
    "UOp": "workbench.ir.node.uop",
    "Variable": "workbench.tensor.operands.broadcast",
    "opt_kind": "workbench.ir.opt.opt",
    "restored_dtype": "workbench.base.dtypes",
    "restored_kernel": "workbench.kernel.kernel",
    "restored_memory": "workbench.tensor.versions",
    "restored_tensor": "workbench.tensor.copies",
    "restored_view": "workbench.tensor.copies",
    **dict.fromkeys(_LAYERS, "workbench.nn.layers"),
}
"""Where each class and function is now, by its name."""
T = TypeVar("T", bound=type)


def pickled(kind: T) -> T:
    """Return the class `kind`, whose own instances are named in pickles by the table. A class that
    is derived from it is named as pickle does, unless it is in the table, too."""
    usual: Any = kind.__reduce_ex__

    def reduced(self: Any, protocol: Any) -> Any:
        if isinstance(self, Enum):
            return member, (type(self).__name__, self.name)
        made = usual(self, protocol)
        if isinstance(made, str):  # a global variable
            return made
        make, arguments, *rest = made
        if make is copyreg.__newobj__:  # type: ignore[attr-defined]
            name = reference(arguments[0])
            return (blank, (name, *arguments[1:]), *rest) if isinstance(name, str) else made
        name = reference(make)
        return (called, (name, *arguments), *rest) if isinstance(name, str) else made

    setattr(kind, "__reduce_ex__", reduced)  # noqa: B010  mypy refuses to assign a method
    return kind


def reference(thing: Any) -> Any:
    """Return the name of a class or function that is in the table, others as they are."""
    name = getattr(thing, "__qualname__", "")
    return name if _MODULES.get(name) == getattr(thing, "__module__", None) else thing


def referred(name: Any) -> Any:
    """Return the class or function that `reference` named."""
    return getattr(import_module(_MODULES[name]), name) if isinstance(name, str) else name


# what pickles name


def blank(name: str, *arguments: Any) -> Any:
    """Return a new instance, without its state."""
    kind = referred(name)
    return kind.__new__(kind, *arguments)


def called(name: str, *arguments: Any) -> Any:
    """Return what a function returns."""
    return referred(name)(*arguments)


def member(name: str, key: str) -> Any:
    """Return a member of an enum."""
    return referred(name)[key]
