"""Neural networks: layers, optimisers, state dicts, data sets. Names and arguments are tinygrad's,
and names in state dicts PyTorch's.
"""

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
