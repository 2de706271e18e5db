"""Kernels written by hand, each with what numpy says it computes.

Together they hold what loop nests are made of: several reductions, one inside another, a
STAGE, gates, unit and other strides, work-groups.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.ir.samples import at, axis, kernel, load, param, reduced, stage
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.target import Target
from workbench.ir.lower.lower import lower
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.nest.loops import kinds
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated
from workbench.ir.opt.apply import actions, apply_opt, why_not
from workbench.ir.opt.opt import Opt, OptKind, OptOps
from workbench.ir.text.printer import to_text
from workbench.ir.verify.verify import verify

Array = np.ndarray[Any, Any]
LLVM = Target("LLVM")
PYTHON = Target("PYTHON", native_transcendentals=True)
TARGETS = {"LLVM": LLVM, "PYTHON": PYTHON}


@dataclass(frozen=True)
class Example:
    """A kernel that writes parameter 0, and `oracle`, the same from the other parameters."""

    name: str
    graph: UOp
    oracle: Callable[..., Array]

    def arrays(self, seed: int = 0) -> list[Array]:
        """Return an array per parameter: the output all NaN, inputs random."""
        generator = np.random.default_rng(seed)
        params = sorted(
            (n for n in self.graph.toposort() if n.op is Ops.PARAM), key=lambda n: n.arg[0]
        )
        inputs = [generator.standard_normal(p.arg[1]).astype(np.float32) for p in params[1:]]
        return [np.full(params[0].arg[1], np.nan, np.float32), *inputs]

    def wanted(self, arrays: Sequence[Array]) -> Array:
        return np.asarray(self.oracle(*arrays[1:])).reshape(-1)


def matmul_bias_relu(rows: int, columns: int, inner: int) -> Example:
    g0, g1, r0 = axis("g0", rows), axis("g1", columns), axis("r0", inner)
    a = load(param(1, rows * inner), g0 * inner + r0)
    b = load(param(2, inner * columns), r0 * columns + g1)
    total = reduced(Ops.ADD, a * b, r0) + load(param(3, columns), g1)
    target = at(param(0, rows * columns), g0 * columns + g1)
    graph = kernel("g0 g1 r0", (target, total.alu(Ops.MAX, total.like(0.0)), "g0 g1"))

    def oracle(a: Array, b: Array, c: Array) -> Array:
        return np.maximum(a.reshape(rows, inner) @ b.reshape(inner, columns) + c, 0)

    return Example("matmul_bias_relu", graph, oracle)


def softmax(rows: int, columns: int) -> Example:
    """A row at a time, its exponentials staged (exp2 for exp)."""
    g0, r0, r1 = axis("g0", rows), axis("r0", columns), axis("r1", columns)
    j, k = axis("f0", columns), axis("i0", columns)
    x = param(1, rows * columns)
    greatest = reduced(Ops.MAX, load(x, g0 * columns + r0), r0)
    e = stage("e", (columns,), (load(x, g0 * columns + j) + -greatest).alu(Ops.EXP2), j)
    value = load(e, k).alu(Ops.FDIV, reduced(Ops.ADD, load(e, r1), r1))
    target = at(param(0, rows * columns), g0 * columns + k)
    graph = kernel("g0 r0 f0 r1 i0", (target, value, "g0 i0"))

    def oracle(x: Array) -> Array:
        x = x.reshape(rows, columns)
        e = np.exp2(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return Example("softmax", graph, oracle)


def sum_of_columns(rows: int, columns: int) -> Example:
    g0, r0 = axis("g0", columns), axis("r0", rows)
    total = reduced(Ops.ADD, load(param(1, rows * columns), r0 * columns + g0), r0)
    graph = kernel("g0 r0", (at(param(0, columns), g0), total, "g0"))
    return Example("sum_of_columns", graph, lambda x: x.reshape(rows, columns).sum(0))


def nested_reduction(outer: int, middle: int, inner: int) -> Example:
    """The sum of weighted greatest values: one reduction inside another's value."""
    g0, r0, r1 = axis("g0", outer), axis("r0", middle), axis("r1", inner)
    x = load(param(1, outer * middle * inner), (g0 * middle + r0) * inner + r1)
    value = reduced(Ops.MAX, x, r1) * load(param(2, middle), r0)
    graph = kernel("g0 r0 r1", (at(param(0, outer), g0), reduced(Ops.ADD, value, r0), "g0"))
    return Example(
        "nested_reduction", graph, lambda x, w: (x.reshape(outer, middle, inner).max(2) * w).sum(1)
    )


def convolution(size: int, taps: int) -> Example:
    """A 2-D convolution, zeros beyond the edge: loads behind a gate."""
    g0, g1, r0, r1 = (axis("g0", size), axis("g1", size), axis("r0", taps), axis("r1", taps))
    before = taps // 2
    i, j = g0 + r0 + (-before), g1 + r1 + (-before)
    inside = ((i >= 0) & (i < size)) & ((j >= 0) & (j < size))
    x = load(param(1, size * size), gated(i * size + j, inside))
    total = reduced(Ops.ADD, x * load(param(2, taps * taps), r0 * taps + r1), r0, r1)
    target = at(param(0, size * size), g0 * size + g1)

    def oracle(x: Array, w: Array) -> Array:
        x = np.pad(x.reshape(size, size), before)
        w = w.reshape(taps, taps)
        parts = [x[a : a + size, b : b + size] * w[a, b] for a in range(taps) for b in range(taps)]
        return np.sum(parts, 0)

    graph = kernel("g0 g1 r0 r1", (target, total, "g0 g1"))
    return Example("convolution", graph, oracle)


def transpose(size: int) -> Example:
    g0, g1 = axis("g0", size), axis("g1", size)
    value = load(param(1, size * size), g1 * size + g0)
    graph = kernel("g0 g1", (at(param(0, size * size), g0 * size + g1), value, "g0 g1"))
    return Example("transpose", graph, lambda x: x.reshape(size, size).T)


def tiled_matmul(tiles: int, width: int) -> Example:
    """Work-groups of width x width, both factors staged."""
    size = tiles * width
    g0, g1, r0 = axis("g0", tiles), axis("g1", tiles), axis("r0", tiles)
    l0, l1, r1 = axis("l0", width), axis("l1", width), axis("r1", width)
    a0, a1, b0, b1 = [axis(name, width) for name in ("a_f0", "a_f1", "b_f0", "b_f1")]
    left, right = param(1, size * size), param(2, size * size)
    a = load(left, (g0 * width + a0) * size + r0 * width + a1)
    b = load(right, (r0 * width + b0) * size + g1 * width + b1)
    a, b = (stage("As", (width, width), a, a0, a1), stage("Bs", (width, width), b, b0, b1))
    total = reduced(Ops.ADD, load(a, l0, r1) * load(b, r1, l1), r0, r1)
    target = at(param(0, size * size), (g0 * width + l0) * size + g1 * width + l1)
    order = "g0 g1 r0 a_f0 a_f1 b_f0 b_f1 l0 l1 r1"

    def oracle(a: Array, b: Array) -> Array:
        return a.reshape(size, size) @ b.reshape(size, size)

    return Example("tiled_matmul", kernel(order, (target, total, "g0 g1 l0 l1")), oracle)


def gram(rows: int, inner: int) -> Example:
    """A matrix times itself, transposed: one input is read at two indexes."""
    g0, g1, r0 = axis("g0", rows), axis("g1", rows), axis("r0", inner)
    a = param(1, rows * inner)
    total = reduced(Ops.ADD, load(a, g0 * inner + r0) * load(a, g1 * inner + r0), r0)
    target = at(param(0, rows * rows), g0 * rows + g1)

    def oracle(a: Array) -> Array:
        return a.reshape(rows, inner) @ a.reshape(rows, inner).T

    return Example("gram", kernel("g0 g1 r0", (target, total, "g0 g1")), oracle)


EXAMPLES = {
    e.name: e
    for e in (
        matmul_bias_relu(8, 16, 12), softmax(8, 16), sum_of_columns(12, 24),
        nested_reduction(6, 8, 12), convolution(12, 3), transpose(24), tiled_matmul(3, 4),
        gram(12, 16),
    )
}  # fmt: skip

# running


def run(graph: UOp, device: str, arrays: Sequence[Array], target: Target | None = None) -> Array:
    """Return parameter 0 after running `graph` on `device`, every level verified on the way.

    `arrays` are not changed; what is written starts as it is in them.
    """
    target = target or Device[device].target
    verify(graph, "kernel")
    lowered, linear = lower(graph, target)
    verify(lowered, "lowered")
    verify(linear, "linear")
    info = Device[device]
    program = info.load(info.render(lowered, linear))
    buffers = [Buffer(device, param_dtype(graph, i), a.size) for i, a in enumerate(arrays)]
    for buffer, array in zip(buffers, arrays, strict=True):
        buffer.array[:] = array
    program(buffers)
    for buffer, array in zip(buffers[1:], arrays[1:], strict=True):
        assert np.array_equal(buffer.array, array, equal_nan=True), "an input was written"
    return np.array(buffers[0].array)


def param_dtype(graph: UOp, slot: int) -> Any:
    return next(n.dtype for n in graph.toposort() if n.op is Ops.PARAM and n.arg[0] == slot)


def interpreted(graph: UOp, arrays: Sequence[Array]) -> Array:
    """Return parameter 0 as the reference interpreter computes it."""
    return interpret_kernel(graph, arrays)[0]


# random forms of a kernel

MOVES = (OptOps.ORDER, OptOps.SWAP)


def reordered(graph: UOp, order: Sequence[str]) -> UOp:
    """Return the kernel with its loops in another order."""
    return kinds(graph.replace(arg=graph.arg._replace(order=tuple(order))))


@dataclass(frozen=True)
class Form:
    """One random form of an example: opts applied in turn, then a loop order."""

    example: Example
    opts: tuple[Opt, ...]
    graph: UOp

    def reproducer(self, seed: int) -> str:
        """Return Python that builds the same kernel again."""
        opts = "".join(f"    {opt!r},\n" for opt in self.opts)
        return (
            f"# example {self.example.name}, seed {seed}, order {' '.join(self.graph.arg.order)}\n"
            "from workbench import Kernel, Opt, OptOps\n"
            f"plain = Kernel.from_text('''\n{to_text(self.example.graph)}\n''')\n"
            f"opts = [\n{opts}]\n"
            f"kernel = Kernel.from_text('''\n{to_text(self.graph)}\n''')\n"
            "print(kernel.check())"
        )


def legal_opt(
    graph: UOp, pick: random.Random, target: Target, but: Sequence[OptKind] = ()
) -> Opt | None:
    """Return one of the legal opts, each as likely as the others, or None where there is none.

    The first legal one of a shuffled list is that; to judge all of them would take far longer.
    """
    candidates = [o for o in actions(graph, target) if o.op not in but]
    pick.shuffle(candidates)
    return next((o for o in candidates if why_not(graph, o, target) is None), None)


def random_form(example: Example, seed: int, most_opts: int, target: Target = LLVM) -> Form:
    """Return `example` with up to `most_opts` legal opts and a random loop order."""
    pick = random.Random(seed)
    graph, chosen = example.graph, []
    for _ in range(pick.randint(0, most_opts)):
        opt = legal_opt(graph, pick, target, but=MOVES)
        if opt is None:
            break
        chosen.append(opt)
        graph, _ = apply_opt(graph, opt, target)
    order = list(graph.arg.order)
    pick.shuffle(order)
    return Form(example, tuple(chosen), reordered(graph, order))
