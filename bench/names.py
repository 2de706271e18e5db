"""Every public name, used once on a small expression: relu(a @ b + c), 48 x 64 x 80.

    python bench/names.py

Prints what each gives; ends with an error where an answer is wrong.
"""

from __future__ import annotations

import sys

import numpy as np

from workbench import (
    AxisType,
    Context,
    Device,
    Kernel,
    KernelOptError,
    Opt,
    OptOps,
    Tensor,
    dtypes,
    explore,
)

generator = np.random.default_rng(0)
A, B, C = (
    generator.standard_normal(shape, dtype=np.float32)
    for shape in ((48, 80), (80, 64), (64,))
)
EXPECTED = np.maximum(A @ B + C, 0)


def main() -> int:
    y = expression()
    k = explored(y)
    fast = opted(k)
    compiled(fast)
    run(k, fast)
    handed_on(fast)
    title("the tensor itself")
    assert np.allclose(y.realize().numpy(), EXPECTED, atol=1e-4)
    print(y, y.sum().item())
    return 0


def expression() -> Tensor:
    title("Tensor, dtypes")
    a, b = Tensor(A), Tensor(B, dtype=dtypes.float32)
    c = Tensor(C.tolist(), device="LLVM", requires_grad=False)
    y = (a @ b + c).relu()
    print(y, y.dtype, y.shape)

    title("y.schedule(): what would run")
    for item in y.schedule():
        print(item)

    return y


def explored(y: Tensor) -> Kernel:
    title("explore(y)")
    ex = explore(y)
    print(ex)
    graph = ex.to_networkx()
    print(
        f"to_networkx: {graph.number_of_nodes()} nodes, {graph.number_of_edges()} edges"
    )
    print(f"to_graphviz: {len(ex.to_graphviz().source.splitlines())} lines of DOT")
    print(f"passes: {', '.join(record.name for record in ex.passes)}")

    title("Kernel")
    (k,) = ex.kernels
    for axis in k.axes:
        print(axis.name, axis.kind, axis.size)
    assert k.axes[0].kind is AxisType.GLOBAL and k.applied_opts == ()
    print(f"{len(k.legal_opts())} legal opts, such as {k.legal_opts()[:3]}")

    return k


def opted(k: Kernel) -> Kernel:
    title("Opts: by name, by number, and one that is not legal")
    fast = k.apply(Opt(OptOps.UPCAST, "g1", 16), Opt(OptOps.UPCAST, 0, 4))
    fast = fast.apply(Opt(OptOps.LOCAL, "g0", 4), Opt(OptOps.ORDER, "g1", "g0"))
    print(f"{fast!r}: {', '.join(map(str, fast.applied_opts))}")
    wrong = Opt(OptOps.UPCAST, "g1", 5)
    assert k.why_not(Opt(OptOps.UNROLL, "r0", 4)) is None
    assert k.why_not(wrong) is not None
    try:
        k.apply(wrong)
    except KernelOptError as error:
        print(error)

    return fast


def compiled(fast: Kernel) -> None:
    title("compile: source, assembly, passes, levels, figures")
    program = fast.compile("LLVM")
    print(f"source: {len(program.source.splitlines())} lines of LLVM IR")
    print(f"assembly: {len(program.assembly.splitlines())} lines")
    print(f"passes: {', '.join(p.name for p in program.passes if not p.parent)}")
    print(f"lowered: {len(program['lowered'].toposort())} nodes")
    print(f"linear: {len(program['linear'])} instructions")
    print(program.estimates)
    print(fast.counts)


def run(k: Kernel, fast: Kernel) -> None:
    title("run, check and time on every device that is here")
    for device in filter(Device.available, Device.names()):
        for kernel in (k, fast):
            (actual,) = kernel.run(device)
            result = kernel.check(device)
            assert np.allclose(actual, EXPECTED, atol=1e-4) and result.ok
            print(f"{device:6} {len(kernel.applied_opts)} opts: {result}")
            print(f"{'':6} {kernel.time(device, budget_s=0.2)}")

    title("Device.DEFAULT and Context")
    print(Device.DEFAULT)
    with Context(DEV="PYTHON"):
        print(Device.DEFAULT, (Tensor(A) @ Tensor(B)).numpy().shape)


def handed_on(fast: Kernel) -> None:
    title("to_python: there and back")
    text = fast.to_python()
    print(text)
    names: dict[str, Kernel] = {}
    exec(text, names)
    again = names["kernel"]
    print(f"the same kernel: {again.ast is fast.ast}; on seeded data: {again.check()}")
    assert again.ast is fast.ast and again.applied_opts == fast.applied_opts


def title(words: str) -> None:
    print(f"\n-- {words}")


if __name__ == "__main__":
    sys.exit(main())
