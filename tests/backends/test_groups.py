"""A device with work-groups (`tests/backends/groups.py`) computes, with barriers where its
work-items exchange elements, and launches the shapes that its Target allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agreement.hunt import attempts, report
from tests.backends.groups import NAME, Groups
from tests.ir.lower.test_orders import WORK_GROUPS
from tests.tools.kernels import EXAMPLES
from tests.viz.record.support import plain
from tests.viz.session.support import done, session_of
from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.backends.device import Device
from workbench.backends.program.text import Language
from workbench.base.errors import DeviceError, KernelOptError
from workbench.ir.lower.launch import barriers
from workbench.ir.lower.statement_tree import build_tree
from workbench.ir.node.ops import Ops
from workbench.ir.opt.apply import apply_opt, why_not
from workbench.ir.verify.verify import verify
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]
TILES = [
    Opt(OptOps.LOCAL, "g0", 4),
    Opt(OptOps.LOCAL, "g1", 4),
    Opt(OptOps.SPLIT, "r0", 4),
    Opt(OptOps.ORDER, "r0", "l0"),
    Opt(OptOps.STAGE, "r0", 1),
]


@pytest.fixture
def device() -> Iterator[Groups]:
    groups = Device.register(Groups())
    assert isinstance(groups, Groups)
    yield groups
    Device.unregister(NAME)


def product() -> tuple[Kernel, Array]:
    """Return the kernel of a product on the device, and the same for numpy."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((16, 8), (8, 12)))
    result = Tensor(a, device=NAME) @ Tensor(b, device=NAME)
    return explore(result).kernels[-1], a @ b


def applied(kernel: Kernel, opts: list[Opt]) -> Kernel:
    for opt in opts:
        kernel = kernel.apply(opt)
    return kernel


# shapes


def test_groups_of_the_grid_and_items_of_a_group(device: Groups) -> None:
    kernel, expected = product()
    (actual,) = applied(kernel, TILES[:2]).run()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    (shape,) = device.launches
    assert (shape.grid, shape.group) == ((4, 3), (4, 4))
    assert shape.names("grid") == ("g0", "g1") and shape.names("item") == ("l0", "l1")
    assert shape.steps is None and shape.threads == 1


def test_default_opts_fill_a_warp(device: Groups) -> None:
    kernel, expected = product()
    tuned = kernel.optimized()
    assert "work-items" in [step.name for step in tuned.steps]
    (actual,) = tuned.run()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    assert device.launches[-1].group == (4, 12), "four rows of 12 outputs fill 64 items"
    plain, _ = product_on_processor()
    assert "work-items" not in [step.name for step in plain.optimized().steps]


def test_what_the_grid_has_no_room_for_is_a_loop(device: Groups) -> None:
    kernel, _ = product()
    limits = {(): (), (8,): (), (16,): (12,), (16, 11): (12,), (12, 16): (16, 12)}
    for limit, grid in limits.items():
        target = replace(device.target, grid_limits=limit)
        tree = build_tree(kernel.ast, target)
        loops = [n for n in tree.toposort() if n.op is Ops.LOOP and n.role == "grid"]
        assert tuple(n.axis.extent for n in reversed(loops)) == grid, limit
        verify(tree, "lowered")


def test_a_processor_has_no_groups() -> None:
    kernel, _ = product_on_processor()
    shape = stages(kernel.ast, Device.processor.name, "source", TILES[:2]).source.launch
    assert shape.grid == shape.group == () and shape.steps == 4


def product_on_processor() -> tuple[Kernel, Array]:
    a = np.ones((16, 8), np.float32)
    b = np.ones((8, 12), np.float32)
    return explore(Tensor(a) @ Tensor(b)).kernels[-1], a @ b


def test_opts_that_the_device_has_no_room_for(device: Groups) -> None:
    kernel, _ = product()
    small = replace(device.target, group_items=8, shared_bytes=60)
    local, stage = TILES[0], TILES[-1]
    assert why_not(kernel.ast, local, small) is None
    graph, _ = apply_opt(kernel.ast, local, small)
    refusal = why_not(graph, TILES[1], small)
    assert refusal is not None and "16 work-items" in str(refusal)
    with pytest.raises(KernelOptError, match="and 8 fit"):
        apply_opt(graph, TILES[1], small)
    tiles = applied(kernel, TILES[:-1]).ast
    assert why_not(tiles, stage, device.target) is None
    refusal = why_not(tiles, stage, replace(device.target, shared_bytes=60))
    assert refusal is not None and "64 bytes of local memory" in str(refusal)


# barriers


def test_a_tile_is_shared_between_two_barriers(device: Groups) -> None:
    kernel, expected = product()
    tiled = applied(kernel, TILES)
    (actual,) = tiled.run()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    built = stages(tiled.ast, NAME, "source")
    assert built.source.text.count("    yield\n") == 2, "it is filled, and read"
    spaces = {d.name: d.space for d in built.tree.toposort() if d.op is Ops.DEFINE}
    assert spaces["As"] == "shared" and spaces["acc1"] == "register"
    verify(built.lowered, "lowered")
    verify(built.linear, "linear")


def test_a_reduction_that_a_group_shares_out(device: Groups) -> None:
    values = np.random.default_rng(0).standard_normal((5, 24)).astype(np.float32)
    x = Tensor(values, device=NAME).realize()
    kernel = explore(x.sum(1)).kernels[-1].apply(Opt(OptOps.GROUP, "r0", 8))
    (actual,) = kernel.run()
    np.testing.assert_allclose(actual, values.sum(1), rtol=1e-4, atol=1e-5)
    source = stages(kernel.ast, NAME, "source").source
    text = source.text.replace("    yield\n", "    pass\n")
    buffers = kernel.data.buffers(kernel.original, NAME)
    device.load(replace(source, text=text))(buffers)
    unordered = buffers[0].to_numpy()
    assert not np.allclose(unordered, values.sum(1)), "it reads before others wrote"
    assert (device.launches[-1].grid, device.launches[-1].group) == ((5,), (8,))


@pytest.mark.parametrize("name", WORK_GROUPS)
def test_barriers_stand_where_they_are_counted(device: Groups, name: str) -> None:
    """Those before a read; where a loop runs it again, one more at its end."""
    example, opts = WORK_GROUPS[name]
    graph = example.graph
    for opt in opts:
        graph, _ = apply_opt(graph, opt, Device.processor.target)
    target = replace(device.target, group_items=1 << 10, shared_bytes=1 << 20)
    tree = build_tree(graph, target)
    verify(tree, "lowered")
    has = any(n.op is Ops.BARRIER for n in tree.toposort())
    assert has == (barriers(graph, target) > 0)


def test_other_devices_have_none() -> None:
    for example in EXAMPLES.values():
        tree = build_tree(example.graph, Device.processor.target)
        assert all(n.op is not Ops.BARRIER for n in tree.toposort())


# languages


def test_each_language_and_no_other(device: Groups) -> None:
    kernel, _ = product()
    for language in device.languages:
        source = stages(kernel.ast, NAME, "source", language=language).source
        assert source.language in (language.name, "Python")
    other = Language("Other", "another one", "", "")
    with pytest.raises(DeviceError, match="GROUPS writes no Other"):
        stages(kernel.ast, NAME, "source", language=other)
    assert Device.for_language("Steps") is None


# answers


def test_random_programs_with_random_opts(device: Groups) -> None:
    for attempt in attempts(range(720_000, 720_030), NAME, "mixed"):
        assert not attempt.verdict and not attempt.refusal, report(attempt)
    assert any(len(shape.group) for shape in device.launches)


def test_softmax_and_several_kernels(device: Groups) -> None:
    values = np.random.default_rng(0).standard_normal((6, 9)).astype(np.float32)
    x = Tensor(values, device=NAME)
    exps = np.exp(values - values.max(-1, keepdims=True))
    np.testing.assert_allclose(
        x.softmax(-1).numpy(), exps / exps.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6
    )
    centred = values - values.mean(0)
    ours = ((x - x.mean(0)).contiguous() @ x.T).relu().sum(0).numpy()
    theirs = np.maximum(centred @ values.T, 0).sum(0)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_page_shows_it(device: Groups) -> None:
    values = np.ones((16, 8), np.float32)
    x = Tensor(values, device=NAME).realize()
    with session_of(explore(x @ x.T)) as session:
        reply = done(session, "apply", variant=0, opt='LOCAL("g0", 4)')
        done(session, "code", variant=reply["variant"], language="Work-items")
        row = plain(session.record)["variants"][reply["variant"]]
        code = {c["language"]: c["lines"] for c in row["code"]}
        assert code["Work-items"][0].startswith("def kernel(")
        assert "l0 in 4 (work-item x)" in code["IR"]
        assert code["Steps"][0] == "BLOCK" and "LOAD" in code["Steps"]
        steps = next(c for c in row["code"] if c["language"] == "Steps")
        assert steps["links"][code["Steps"].index("LOAD")]["nodes"]
        devices = {r["name"]: r["device"] for r in plain(session.record)["languages"]}
        assert devices["Work-items"] == NAME and devices["Steps"] == "", "it runs one"
        done(session, "check", variant=reply["variant"])
        assert plain(session.row(reply["variant"]))["check"]["ok"]
