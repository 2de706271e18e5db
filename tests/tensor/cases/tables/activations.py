"""Activation functions, at ordinary values and where they are hard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.peers import torch
from tests.tensor.cases.case import FLOATS, Case, case, values

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")
HARD = values(0.0, -0.0, 1e-6, -1e-6, 0.5, -0.5, 3.0, -3.0, 20.0, -20.0, 90.0, -90.0, NAN)
ENDS = values(INF, -INF)

Call = Callable[[Any], Any]


def rows(name: str, ours: Call, theirs: Call, ulps: float = 8, ends: bool = True) -> list[Case]:
    """Return rows of a function of one tensor; `ends`: torch has its limits at the infinities."""
    operands: list[Any] = [(3, 4), (0, 3), (), HARD, *([ENDS] if ends else [])]
    return [case(name, ours, x, torch=theirs, dtypes=FLOATS, ulps=ulps) for x in operands]


# fmt: off
CASES = [
    *rows("relu", lambda x: x.relu(), F.relu, 0),
    *rows("relu6", lambda x: x.relu6(), F.relu6, 0),
    *rows("leaky_relu", lambda x: x.leaky_relu(), F.leaky_relu, 1),
    *rows("leaky_relu", lambda x: x.leaky_relu(neg_slope=0.3), lambda x: F.leaky_relu(x, 0.3), 1),
    *rows("elu", lambda x: x.elu(), F.elu),
    *rows("elu", lambda x: x.elu(alpha=0.4), lambda x: F.elu(x, 0.4)),
    *rows("celu", lambda x: x.celu(), F.celu),
    *rows("celu", lambda x: x.celu(alpha=2.5), lambda x: F.celu(x, 2.5)),
    *rows("selu", lambda x: x.selu(1.6732632423543772, 1.0507009873554805), F.selu),
    *rows("hardtanh", lambda x: x.hardtanh(), F.hardtanh, 0),
    *rows("hardtanh", lambda x: x.hardtanh(-0.25, 2), lambda x: F.hardtanh(x, -0.25, 2), 0),
    *rows("hardsigmoid", lambda x: x.hardsigmoid(), F.hardsigmoid),
    *rows("hardswish", lambda x: x.hardswish(), F.hardswish, ends=False),
    *rows("sigmoid", lambda x: x.sigmoid(), torch.sigmoid),
    *rows("logsigmoid", lambda x: x.logsigmoid(), F.logsigmoid),
    *rows("tanh", lambda x: x.tanh(), torch.tanh),
    *rows("softsign", lambda x: x.softsign(), F.softsign, ends=False),
    *rows("softplus", lambda x: x.softplus(), F.softplus),
    *rows("softplus", lambda x: x.softplus(beta=3.0), lambda x: F.softplus(x, 3.0), 32),
    *rows("silu", lambda x: x.silu(), F.silu, ends=False),
    *rows("swish", lambda x: x.swish(), F.silu, ends=False),
    *rows("mish", lambda x: x.mish(), F.mish, ends=False),
    *rows("gelu", lambda x: x.gelu(), lambda x: F.gelu(x, approximate="tanh"), ends=False),
    *rows("gelu", lambda x: x.gelu("none"), F.gelu, ends=False),
    *rows("quick_gelu", lambda x: x.quick_gelu(), lambda x: x * torch.sigmoid(1.702 * x),
          ends=False),
]
# fmt: on
