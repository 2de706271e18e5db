"""The kernels that each language must write: with default opts, and with opts by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workbench import Tensor, dtypes
from workbench.base.errors import WorkbenchError
from workbench.ir.opt.opt import Opt, OptOps
from workbench.kernel.kernel import Kernel
from workbench.viz import explore

Shape = tuple[int, ...]


def floats(*shape: int) -> Tensor:
    return Tensor.empty(*shape)


def gathered() -> Tensor:
    return floats(256, 64).gather(0, Tensor.empty(128, 64, dtype=dtypes.int32))


EXPRESSIONS: dict[str, Callable[[], Tensor]] = {
    "elementwise": lambda: (floats(512, 512).exp() * floats(512, 512) + 1.5).sin(),
    "two-stage sum": lambda: floats(1 << 20).sum(),
    "softmax": lambda: floats(128, 512).softmax(-1),
    "layernorm": lambda: floats(128, 512).layernorm(),
    "matmul": lambda: floats(128, 128) @ floats(128, 128),
    "conv": lambda: floats(2, 8, 34, 34).conv2d(floats(16, 8, 3, 3)),
    "transpose": lambda: floats(256, 256).transpose(0, 1).contiguous(),
    "attention": lambda: floats(2, 4, 64, 32).scaled_dot_product_attention(
        floats(2, 4, 64, 32), floats(2, 4, 64, 32)
    ),
    "gather": gathered,
    "cumsum": lambda: floats(64, 256).cumsum(1),
}
TILE = (
    Opt(OptOps.LOCAL, "g0", 16),
    Opt(OptOps.LOCAL, "g1", 16),
    Opt(OptOps.SPLIT, "r0", 16),
    Opt(OptOps.ORDER, "r0", "l0"),
    Opt(OptOps.STAGE, "r0", 1),
    Opt(OptOps.STAGE, "r0", 2),
)
"""Tiles of a product in shared memory."""
TRANSPOSE = (Opt(OptOps.LOCAL, "g0", 16), Opt(OptOps.LOCAL, "g1", 16), Opt(OptOps.STAGE, "l0", 1))
"""A tile through shared memory: rows in, columns out."""
GENERAL = (
    Opt(OptOps.LOCAL, "g0", 16),
    Opt(OptOps.GROUP, "r0", 16),
    Opt(OptOps.UPCAST, "g1", 4),
    Opt(OptOps.UPCAST, "g0", 2),
    Opt(OptOps.UNROLL, "r0", 4),
)
"""What is legal of these."""
BY_HAND = {"matmul": (*TILE, Opt(OptOps.UPCAST, "l1", 4)), "transpose": TRANSPOSE}


def kernels_of(name: str, device: str, machine: str) -> Iterator[tuple[str, Kernel]]:
    """Yield the kernels of an expression for a device on a machine ("": this one): "default" with
    default opts, "hand" with opts by hand."""
    expression = EXPRESSIONS[name]()
    target = machine or None
    for kernel in explore(expression, device=device, target=target).kernels:
        yield "default", kernel.optimized()
        yield "hand", by_hand(kernel, BY_HAND.get(name, GENERAL))


def by_hand(kernel: Kernel, opts: tuple[Opt, ...]) -> Kernel:
    """Return a kernel with those opts that are legal, one after the other."""
    for opt in opts:
        try:
            kernel = kernel.apply(opt)
        except WorkbenchError:
            continue
    return kernel
