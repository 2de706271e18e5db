"""Optimisers, and learning rates over time. Names and arguments of the optimisers are tinygrad's,
those of the schedulers PyTorch's.
"""

from workbench.nn.optim.optimizers import LAMB as LAMB
from workbench.nn.optim.optimizers import LARS as LARS
from workbench.nn.optim.optimizers import SGD as SGD
from workbench.nn.optim.optimizers import Adam as Adam
from workbench.nn.optim.optimizers import AdamW as AdamW
from workbench.nn.optim.optimizers import Muon as Muon
from workbench.nn.optim.optimizers import Optimizer as Optimizer
from workbench.nn.optim.optimizers import OptimizerGroup as OptimizerGroup
from workbench.nn.optim.schedulers import CosineAnnealingLR as CosineAnnealingLR
from workbench.nn.optim.schedulers import LRScheduler as LRScheduler
from workbench.nn.optim.schedulers import LRSchedulerGroup as LRSchedulerGroup
from workbench.nn.optim.schedulers import MultiStepLR as MultiStepLR
from workbench.nn.optim.schedulers import OneCycleLR as OneCycleLR
from workbench.nn.optim.schedulers import ReduceLROnPlateau as ReduceLROnPlateau
