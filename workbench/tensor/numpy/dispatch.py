"""numpy's two protocols: which ufuncs and functions Tensors answer, with every row."""

from __future__ import annotations

from workbench.tensor.numpy.functions import (
    creation,
    elementwise,
    joining,
    movement,
    products,
    reductions,
    statistics,
)
from workbench.tensor.numpy.functions.table import ROWS as ROWS
from workbench.tensor.numpy.functions.table import apply_function as apply_function
from workbench.tensor.numpy.ufuncs import UFUNCS as UFUNCS
from workbench.tensor.numpy.ufuncs import apply_ufunc as apply_ufunc

ROOMS = (creation, elementwise, joining, movement, products, reductions, statistics)
"""The modules that register the rows of functions."""
