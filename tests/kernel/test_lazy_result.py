"""A function whose result is not computed has no time: it is refused in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from workbench import Tensor
from workbench.base.errors import WorkbenchError
from workbench.kernel.run import require_computed


@dataclass
class Pair:
    left: object
    right: object


class Dask:
    def __dask_graph__(self) -> None: ...


def test_what_is_not_computed_is_refused_wherever_it_is() -> None:
    x = Tensor([1.0, 2.0])
    nested = (1, {"loss": [Pair(np.ones(2), x * 3)]})
    for value in (x + 1, nested, Dask(), (i for i in range(3))):
        with pytest.raises(WorkbenchError, match="not computed") as error:
            require_computed("numpy", value)
        assert error.value.hint
    realized = (x * 2).realize()
    for value in (None, np.ones(3), realized, [realized, {"x": 3.0}], Pair):
        require_computed("numpy", value)
