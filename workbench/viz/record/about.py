"""What a record says of the expression as a whole, and of the devices there are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from workbench.backends.device import Device
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text


def expression_key(outputs: Sequence[UOp]) -> str:
    """Return a hash of what is computed, the same in every session: memory goes by number."""
    root = UOp.sink(*outputs)
    memory = [n for n in root.toposort() if n.op is Ops.BUFFER]
    plain = {n: n.replace(arg=(f"memory{i}", *n.arg[1:])) for i, n in enumerate(memory)}
    text = to_text(root.substitute(plain))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def device_rows() -> list[dict[str, Any]]:
    """Return the devices as plain data."""
    return [
        {
            "name": name,
            "available": Device.available(name),
            "how_to_get": Device[name].how_to_get,
            "emulator": name == "PYTHON",
        }
        for name in Device.names()
    ]
