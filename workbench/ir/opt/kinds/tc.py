"""TC: tiles of a matrix product, each by one instruction of a tensor core.

After TC("g0 g1 r0", "16x8x16")

    s = sum over r0 in 64 of float32(A[g0*64 + r0]) * float32(B[r0*32 + g1])
    ->
    s = sum over r0 in 4, w2 in 16 of float32(A[(g0*16 + w0)*64 + r0*16 + w2]) * ..

The axes are the rows and the columns of the result, and the steps of the sum. w0, w1 and w2 are the
tile (kind WARP): its elements are distributed over the lanes of a warp, by the layout of the device
(`ir/nest/fragments.py`). On a processor one lane holds them all, in vector registers.

The argument is a level or the sizes of a tile. At level 0 the sum must have one loop; at level 1 it
may have several; at level 2 axes that the tile does not divide are padded. Sizes choose one tile,
with padding where needed. A tile that rounds its operands (tf32) is chosen by its sizes only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from workbench.base.target import Target
from workbench.base.tensor_cores import TensorCore
from workbench.base.trace import derived_from
from workbench.ir.nest.fragments import Factors, factors, fits, zero_outside
from workbench.ir.nest.loops import statements
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import divide, simplified
from workbench.ir.opt.kinds import padto
from workbench.ir.opt.kinds.nolocals import refuse_no_groups
from workbench.ir.opt.opt import Opt, OptKind, Refusal, ranges

PADDING_LEVEL = 2
"""The level from which axes are padded."""
LEVELS = (0, 1, PADDING_LEVEL)
_OUTPUTS = frozenset({AxisType.GLOBAL, AxisType.LOOP})


def why_not(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why `opt` is not legal on `kernel`, or None."""
    if not target.tensor_cores:
        why = target.no_tensor_cores and f": {target.no_tensor_cores}"
        return Refusal(
            f"there are no tensor cores on {target.device}{why}",
            "the list without TC; UPCAST of two output axes makes a tile in vector registers",
        )
    forbidden = refuse_no_groups(kernel, opt) if target.has_groups else None
    refusal = forbidden or _refuse_kernel(kernel)
    if refusal is not None:
        return refusal
    names = str(opt.axis).split()
    if tuple(names) not in axis_choices(kernel):
        offers = ", ".join(f'"{" ".join(names)}"' for names in axis_choices(kernel))
        because = f"{opt.axis} are not rows, columns and steps of a sum of products"
        return Refusal(because, offers and f"one of: {offers}")
    sums = _sums(kernel, names[2])
    return _refuse_sums(kernel, names, sums) or _refuse_tile(kernel, opt, target)


def _refuse_kernel(kernel: UOp) -> Refusal | None:
    kinds = {r.axis_kind: name for name, r in ranges(kernel).items()}
    if AxisType.WARP in kinds:
        return Refusal("the kernel has a tile of a tensor core already", "UPCAST, LOCAL")
    if AxisType.GROUP_REDUCE in kinds:
        because = (
            f"a work-group shares out the sum ({kinds[AxisType.GROUP_REDUCE]}), and the lanes of a"
            " warp have its elements together"
        )
        return Refusal(because, "the list without GROUP")
    if not axis_choices(kernel):
        computed = _computed_operand(kernel)
        if computed is not None:
            name = computed.op.name
            because = f"the kernel computes an operand ({name}), and a tensor core loads both"
            return Refusal(because, "x.contiguous() for that operand, which stores it first")
        because = (
            "no sum adds products of two loads, of which one changes with an output axis that the"
            " other does not have"
        )
        return Refusal(because, "a matrix product or a convolution, before STAGE and UPCAST")
    return None


def _computed_operand(kernel: UOp) -> UOp | None:
    """Return an operand of a matrix product that the kernel computes; None if it loads both."""
    for node in kernel.toposort():
        if node.op is not Ops.REDUCE or node.src[0].op is not Ops.MUL:
            continue
        a, b = node.src[0].src
        if a.ranges - b.ranges and b.ranges - a.ranges:
            plain = (n.src[0] if n.op is Ops.CAST else n for n in (a, b))
            return next((n for n in plain if n.op is not Ops.LOAD), None)
    return None


def _refuse_sums(kernel: UOp, names: list[str], sums: list[UOp]) -> Refusal | None:
    axes = ranges(kernel)
    tile = {axes[name] for name in names}
    for node in sums:
        parts = factors(node)
        if parts is None or _rows_first(parts, axes[names[0]], axes[names[1]]) is None:
            because = f"another reduction over {names[2]} does not add such products"
            return Refusal(because, "another axis of the sum")
    for node, statement in statements(kernel).items():
        shared = tile & (statement.free | set(statement.own))
        if node.op is Ops.STAGE and shared:
            name = min(r.axis_name for r in shared)
            because = f"{node.name} is staged over {name}, before there was a tile"
            return Refusal(because, "TC first, then STAGE")
    return None


def _refuse_tile(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    names = str(opt.axis).split()
    node = _sums(kernel, names[2])[0]
    parts = factors(node)
    assert parts is not None
    if type(opt.arg) not in (int, str) or opt.arg not in (*LEVELS, *_shapes(target)):
        because = f"{opt.arg!r} is neither a level nor the sizes of a tile"
        if opt.arg is None:
            return Refusal("it takes a place and a level", f"{opt.op.name}(0, 2)")
        return Refusal(because, f"0, 1, 2, or {', '.join(_shapes(target))}")
    if opt.arg == 0 and sum(not r.axis_kind.is_lane for r in node.src[1:]) > 1:
        return Refusal("the sum has several axes", f"{opt.op.name} at level 1 or 2")
    cores = [core for core in target.tensor_cores if fits(core, node, parts)]
    candidates = [core for core in cores if _matches(core, opt)]
    if not candidates:
        return Refusal(_no_core(node, parts, opt, target), _offered(cores, target))
    if _first_fit(kernel, opt, candidates) is not None:
        return None
    return _refuse_sizes(kernel, opt, candidates[0])


def _no_core(node: UOp, parts: Factors, opt: Opt, target: Target) -> str:
    what = f"{parts.a.dtype} x {parts.b.dtype} in {node.dtype}"
    size = f" {opt.arg}" if isinstance(opt.arg, str) else ""
    return f"no tensor core of {target.device} multiplies{size} {what}"


def _offered(cores: list[TensorCore], target: Target) -> str:
    if cores:
        return "by its sizes: " + ", ".join(map(str, cores))
    return "one of: " + ", ".join(map(str, target.tensor_cores))


def _refuse_sizes(kernel: UOp, opt: Opt, core: TensorCore) -> Refusal | None:
    """Return why the sizes of `core` do not fit the axes, with the padding as a hint; or None."""
    for name, size in _sizes(opt, core).items():
        extent = ranges(kernel)[name].extent
        if extent % size == 0:
            continue
        if extent * padto.MAX_GROWTH <= size:
            because = f"{name} of {extent} would grow {padto.MAX_GROWTH} times or more, to {size}"
            return Refusal(because, "larger axes")
        because = f"{size} does not divide the {extent} elements of {name}"
        return Refusal(
            because,
            f'{Opt(opt.op, opt.axis, PADDING_LEVEL)}, which pads, or PADTO("{name}", {size}) first',
        )
    return None


def apply(kernel: UOp, opt: Opt) -> UOp:
    """Return `kernel` with its sum of products in tiles; `opt.arg` has their sizes, "16x8x16".

    Shapes:   axes of M, N and K elements become (M/m, m), (N/n, n), (K/k, k), rounded up.
    Rewrite:  for r0 in K: s += A[g0, r0] * B[r0, g1]   ->   for r0 in K/k: s[w0, w1] += sum over w2
              of A[g0*m + w0, r0*k + w2] * B[r0*k + w2, g1*n + w1]
    Also known as: tensorize (TVM), tensor cores, matrix cores (AMD), XMX (Intel), simdgroup_matrix.
    """
    names = str(opt.axis).split()
    sizes = [int(size) for size in str(opt.arg).split("x")]
    for name, size in zip(names, sizes, strict=True):
        if ranges(kernel)[name].extent % size:
            kernel = padto.apply(kernel, Opt(padto.PADTO, name, size))
    kernel = _without_masks(kernel, names[2])
    for name, size in zip(names, sizes, strict=True):
        kernel = divide(kernel, name, size, AxisType.WARP)
    return kernel


def _without_masks(kernel: UOp, steps: str) -> UOp:
    """Return the kernel with masked loads of the operands, in place of masked products."""
    changes: dict[UOp, UOp] = {}
    for node in _sums(kernel, steps):
        parts = factors(node)
        if parts is not None and parts.masks:
            with derived_from(node):
                a, b = (zero_outside(load, parts.masks) for load in (parts.a, parts.b))
                value = a.cast(node.dtype) * b.cast(node.dtype)
                changes[node] = construct.reduce(value, node.src[1:], node.combines)
    return simplified(kernel.substitute(changes)) if changes else kernel


def on_target(kernel: UOp, opt: Opt, target: Target) -> Opt:
    """Return `opt` with the axes of a choice in place of its number, and the sizes of the first
    tile that fits in place of a level. An opt that is not legal keeps its level."""
    choices = [" ".join(names) for names in axis_choices(kernel)]
    is_number = type(opt.axis) is int and 0 <= opt.axis < len(choices)
    axis = choices[opt.axis] if is_number else opt.axis  # type: ignore[index]
    named = Opt(opt.op, axis, opt.arg)
    if type(opt.arg) is not int or why_not(kernel, named, target) is not None:
        return named
    names = str(axis).split()
    node = _sums(kernel, names[2])[0]
    parts = factors(node)
    assert parts is not None
    cores = [c for c in target.tensor_cores if fits(c, node, parts) and _matches(c, opt)]
    core = _first_fit(kernel, named, cores)
    return named if core is None else Opt(opt.op, axis, core.shape)


def _matches(core: TensorCore, opt: Opt) -> bool:
    """Whether a core has the sizes in `opt`; with a level, whether it keeps its operands exact."""
    return core.shape == opt.arg if isinstance(opt.arg, str) else not core.rounds_to


def _first_fit(kernel: UOp, opt: Opt, cores: list[TensorCore]) -> TensorCore | None:
    """Return the first of `cores` whose sizes divide the axes. If there is none and `opt` allows
    padding, return the first to whose sizes the axes can be padded; else None."""
    for core in cores:
        sizes = _sizes(opt, core)
        if all(ranges(kernel)[name].extent % size == 0 for name, size in sizes.items()):
            return core
    if opt.arg != PADDING_LEVEL and not isinstance(opt.arg, str):
        return None
    for core in cores:
        sizes = _sizes(opt, core)
        if all(ranges(kernel)[n].extent * padto.MAX_GROWTH > size for n, size in sizes.items()):
            return core
    return None


def _sizes(opt: Opt, core: TensorCore) -> dict[str, int]:
    names = str(opt.axis).split()
    return dict(zip(names, (core.m, core.n, core.k), strict=True))


def _shapes(target: Target) -> list[str]:
    return list(dict.fromkeys(core.shape for core in target.tensor_cores))


def _sums(kernel: UOp, steps: str) -> list[UOp]:
    axis = ranges(kernel).get(steps)
    return [n for n in kernel.toposort() if n.op is Ops.REDUCE and axis in n.src[1:]]


def _rows_first(parts: Factors, rows: UOp, columns: UOp) -> Factors | None:
    """Return the factors, first the one with the rows; None unless one has only the rows and the
    other only the columns."""
    a, b = parts.a, parts.b
    for one, other in ((a, b), (b, a)):
        if rows in one.ranges and columns in other.ranges:
            if rows not in other.ranges and columns not in one.ranges:
                return Factors(one, other, parts.masks)
    return None


def axis_choices(kernel: UOp) -> list[tuple[str, str, str]]:
    """Return (rows, columns, steps) for sums of products: an axis of the first load only, one of
    the second only, and a shared one. The transposed choices follow."""
    triples: dict[tuple[str, str, str], None] = {}
    transposed: dict[tuple[str, str, str], None] = {}
    for node in kernel.toposort():
        parts = factors(node) if node.op is Ops.REDUCE else None
        if parts is None:
            continue
        a, b = parts.a.ranges, parts.b.ranges
        rows = _listed(kernel, a - b, _OUTPUTS)
        columns = _listed(kernel, b - a, _OUTPUTS)
        steps = _listed(kernel, a & b & set(node.src[1:]), {AxisType.REDUCE})
        for m, n, k in product(rows, columns, steps):
            triples[m, n, k] = None
            transposed[n, m, k] = None
    return [*triples, *transposed]


def _listed(
    kernel: UOp, axes: frozenset[UOp], kinds: frozenset[AxisType] | set[AxisType]
) -> list[str]:
    """Return the names of axes of these kinds, in the order in which axes are listed."""
    listed = ranges(kernel).items()
    return [name for name, r in listed if r in axes and r.axis_kind in kinds]


def _offers(kernel: UOp) -> Iterator[tuple[str, int]]:
    """Yield each choice of axes at the level that pads, without the transposed choices."""
    choices = axis_choices(kernel)
    yield from ((" ".join(names), PADDING_LEVEL) for names in choices[: len(choices) // 2])


TC = OptKind(
    "TC",
    here="a core multiplies two small matrices in one instruction (AMX, bf16 dot products)",
    on_a_gpu="the work-items of a warp multiply two small matrices in one instruction",
    why_not=why_not,
    apply=apply,
    argument="tile",
    choices=_offers,
    makes=AxisType.WARP,
    promise=10,
    on_target=on_target,
)
