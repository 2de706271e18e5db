"""Draws in a row, of which tinygrad's numbers are recorded in draws.json.

`python -m tests.tensor.creation.draws` records them anew; it needs tinygrad 0.14.0.
"""

from __future__ import annotations

import json
import os
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).with_name("draws.json")
SEEDS = [*range(16), 1337, 2**31 - 1, 2**32 - 1, 2**32 + 5]

Call = tuple[str, tuple[int, ...], dict[str, Any]]
EXACT: list[Call] = [
    ("rand", (3,), {}),
    ("rand", (), {}),
    ("rand", (2, 4), {}),
    ("rand", (101,), {}),
    ("rand", (3,), {"dtype": "float16"}),
    ("rand", (6,), {"dtype": "float16"}),
    ("rand", (5,), {"dtype": "bfloat16"}),
    ("rand", (3,), {"dtype": "float64"}),
    ("rand", (4,), {"dtype": "float64"}),
    ("rand", (1,), {"contiguous": False}),
    ("randint", (7,), {}),
    ("randint", (3, 3), {"low": -3, "high": 4}),
    ("randint", (4,), {"low": -1000, "high": 24}),
    ("randint", (5,), {"high": 256, "dtype": "uint8"}),
    ("randint", (5,), {"low": 2**40, "high": 2**40 + 1000, "dtype": "int64"}),
]
"""Method, shape and arguments of draws that agree bit for bit."""

CLOSE: list[Call] = [
    ("randn", (5,), {}),
    ("randn", (2, 3), {"dtype": "float64"}),
    ("normal", (4,), {"mean": 4, "std": 0.5}),
    ("uniform", (5,), {"low": -3.0, "high": 5.5}),
    ("scaled_uniform", (3, 3), {}),
    ("glorot_uniform", (2, 3, 2), {}),
    ("kaiming_uniform", (3, 4), {"a": 0.1}),
    ("kaiming_normal", (2, 3), {}),
    ("rand", (2,), {}),
]
"""The same of draws that agree to within 1e-6."""

HALF: list[Call] = [
    ("randn", (5,), {"dtype": "float16"}),
    ("uniform", (4,), {"low": -3, "high": 5, "dtype": "float16"}),
    ("kaiming_uniform", (3, 3), {"dtype": "float16"}),
    ("uniform", (4,), {"low": 1, "high": 9, "dtype": "bfloat16"}),
]
"""The same of draws that agree to within one step of a low-precision type."""


def checksum(values: np.ndarray[Any, Any]) -> int:
    """Return the CRC of the values' bytes."""
    return zlib.crc32(np.ascontiguousarray(values).tobytes())


def _recorded(tensor: Any, seed: int) -> dict[str, list[Any]]:
    tensor.manual_seed(seed)
    exact = [_numpy(tensor, *call) for call in EXACT]
    tensor.manual_seed(seed)
    close = [_numpy(tensor, *call).tolist() for call in CLOSE + HALF]
    return {"exact": [checksum(values) for values in exact], "close": close}


def _numpy(tensor: Any, name: str, shape: tuple[int, ...], arguments: Any) -> Any:
    value = getattr(tensor, name)(*shape, **arguments)
    # numpy has no bfloat16
    return (value.float() if arguments.get("dtype") == "bfloat16" else value).numpy()


if __name__ == "__main__":
    os.environ["DEV"] = "PYTHON"
    oracle = import_module("tinygrad").Tensor
    rows = [json.dumps({str(s): _recorded(oracle, s)})[1:-1] for s in SEEDS]
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n")
