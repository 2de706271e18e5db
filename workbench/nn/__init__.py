"""Neural networks: layers, optimisers, state dicts, data sets. Names and arguments are tinygrad's,
and names in state dicts PyTorch's.
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING

from workbench.nn import datasets as datasets
from workbench.nn import optim as optim
from workbench.nn import state as state
from workbench.nn.layers import BatchNorm as BatchNorm
from workbench.nn.layers import BatchNorm2d as BatchNorm2d
from workbench.nn.layers import BatchNorm3d as BatchNorm3d
from workbench.nn.layers import Conv1d as Conv1d
from workbench.nn.layers import Conv2d as Conv2d
from workbench.nn.layers import ConvTranspose1d as ConvTranspose1d
from workbench.nn.layers import ConvTranspose2d as ConvTranspose2d
from workbench.nn.layers import Embedding as Embedding
from workbench.nn.layers import GroupNorm as GroupNorm
from workbench.nn.layers import InstanceNorm as InstanceNorm
from workbench.nn.layers import LayerNorm as LayerNorm
from workbench.nn.layers import LayerNorm2d as LayerNorm2d
from workbench.nn.layers import Linear as Linear
from workbench.nn.layers import LSTMCell as LSTMCell
from workbench.nn.layers import RMSNorm as RMSNorm

if not TYPE_CHECKING:  # with it, mypy would accept every attribute

    def __getattr__(name: str) -> object:
        places = {} if name.startswith("_") else _places()
        near = [name] if name in places else get_close_matches(name, places)
        question = f": did you mean {' or '.join(places[n] for n in near)}?" if near else ""
        raise AttributeError(f"module 'workbench.nn' has no attribute {name!r}{question}")


def _places() -> dict[str, str]:
    """Return, by the name of each layer, optimiser and function, how to write it after `nn.`."""
    below = {"datasets": datasets, "optim": optim, "state": state}
    found = {n: f"nn.{part}.{n}" for part, module in below.items() for n in _own(vars(module))}
    return found | {n: f"nn.{n}" for n in [*_own(globals()), *below]}


def _own(names: dict[str, object]) -> list[str]:
    """Return the names of public objects of nn, without what its modules import."""
    return [
        name
        for name, value in names.items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(__name__)
    ]
