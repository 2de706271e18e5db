"""Values of the wrong kind, given to a Kernel's methods: what / because / try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.base.errors import WorkbenchError

K = explore((Tensor(np.ones((4, 8), np.float32)) * 2).sum(1)).kernels[0]
NASTY: list[Any] = [
    None, True, -1, 1.5, float("nan"), 2**70, 1j, "", "nonsense", b"x", (), [], {}, {1}, ...,
    len, int, object(), np.ones(2), np.float64(1.5), Tensor([1, 2]),
]  # fmt: skip

# fmt: off
ACTIONS: dict[str, Callable[[Any], object]] = {
    "time budget_s": lambda given: K.time("PYTHON", budget_s=given),
    "run device": lambda given: K.run(given),
    "check device": lambda given: K.check(given),
    "built": lambda given: K.built(given),
    "compile device": lambda given: K.compile(given),
    "apply": lambda given: K.apply(given),
    "why_not": lambda given: K.why_not(given),
    "opt op": lambda given: K.apply(Opt(given, "g0", 4)),
    "opt axis": lambda given: K.apply(Opt(OptOps.UPCAST, given, 4)),
    "opt amount": lambda given: K.apply(Opt(OptOps.UPCAST, "g0", given)),
    "swap": lambda given: K.apply(Opt(OptOps.SWAP, "g0", given)),
    "order": lambda given: K.apply(Opt(OptOps.ORDER, given, "g0")),
    "stage": lambda given: K.apply(Opt(OptOps.STAGE, "g0", given)),
    "text": lambda given: Kernel.from_text(given),
    "seed": lambda given: Kernel.from_text(K.to_text(), seed=given).run("PYTHON"),
    "shape": lambda given: Kernel.from_text(K.to_text(), shape=given),
    "title": lambda given: repr(Kernel.from_text(K.to_text(), title=given)),
    "explore": lambda given: explore(given),
    "explore show": lambda given: explore(Tensor([1]) + 1, show=given),
    "explore show empty": lambda given: explore(Tensor([1]) + 1, show=np.array([given])[:0]),
    "explore two": lambda given: explore(Tensor([1]) + 1, given),
}
# fmt: on


@pytest.mark.parametrize("name", ACTIONS)
def test_refused_in_words_or_done(name: str) -> None:
    for argument in NASTY:
        try:
            ACTIONS[name](argument)
        except WorkbenchError as error:
            assert error.what and error.because, argument


@pytest.mark.parametrize("level", [None, 1, "nonsense", [], {}, np.ones(2)])
def test_levels_that_are_not_there(level: Any) -> None:
    with pytest.raises(KeyError, match="there are lowered, linear"):
        K.compile("PYTHON")[level]


@pytest.mark.parametrize("value", ["a", None, -1, float("nan"), 10**400, 1j])
def test_a_budget_is_seconds(value: Any) -> None:
    with pytest.raises(WorkbenchError, match="cannot use budget_s") as caught:
        K.time("PYTHON", budget_s=value)
    assert "seconds" in caught.value.because
