"""Opts in tensor code: `contiguous(arg=opts)` says which the kernel that stores a value has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.session.support import ask, done, session_of
from workbench import Context, Opt, OptOps, Tensor, TinyJit, explore, load
from workbench.base.errors import DTypeError, KernelOptError
from workbench.execution.memory_plan import is_realized
from workbench.ir.node.uop import UOp
from workbench.search.realization import tuned

A = np.random.default_rng(1).random((32, 24), np.float32)
B = np.random.default_rng(2).random((24, 40), np.float32)
UPCAST, UNROLL = Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UNROLL, "r0", 2)
OPTS: dict[str, Sequence[Opt]] = {
    "none": (),
    "lanes": [UPCAST, UNROLL],
    "places for axes": [Opt(OptOps.UPCAST, 1, 4), Opt(OptOps.UNROLL, 0, 2)],
    "the whole axis": (Opt(OptOps.UPCAST, "g1", 0),),
    "padded": (Opt(OptOps.PADTO, "g0", 5), Opt(OptOps.UPCAST, "g0", 5)),
    "another order": (Opt(OptOps.SWAP, "g0", "g1"), Opt(OptOps.LOCAL, "g0", 8)),
    "a group": (Opt(OptOps.GROUP, "r0", 4), Opt(OptOps.LOCAL, "g1", 4)),
    "threads and a tile": (Opt(OptOps.THREAD, "g0", 2), Opt(OptOps.STAGE, "g0", 2)),
}


def product(opts: Sequence[Opt] | None) -> Tensor:
    return (Tensor(A) @ Tensor(B)).contiguous(arg=opts)


def kernel_of(t: Tensor) -> UOp:
    (kernel,) = [item.kernel for item in t.schedule() if item.kernel is not None]
    return kernel


@pytest.mark.parametrize("name", OPTS)
@pytest.mark.parametrize("device", ["LLVM", "C", "PYTHON"])
def test_a_kernel_runs_with_the_opts_of_its_code(device: str, name: str) -> None:
    """Whatever the settings are: not the default ones, not a search's, and not none."""
    opts = OPTS[name]
    with Context(DEV=device):
        plain = explore(product(None)).kernels[0]
        expected = plain.apply(*opts)
        for settings in ({}, {"NOOPT": 1}, {"BEAM": 1}):
            with Context(**settings):
                ran = tuned(kernel_of(product(opts)), device)
                assert ran.replace(arg=expected.ast.arg) is expected.ast
                np.testing.assert_allclose(product(opts).numpy(), A @ B, rtol=1e-5)


def test_it_shows_the_opts_and_says_where_they_are_from() -> None:
    ex = explore(product([UPCAST, UNROLL]))
    (kernel,) = ex.kernels
    assert kernel.applied_opts == () and "contiguous(arg=..) asks for it" in str(ex)
    asked = 'the code asks for UPCAST("g1", 4), UNROLL("r0", 2)'
    assert kernel.opts_in_code == asked and f"; 0 opts; {asked})" in repr(kernel)
    assert f"\n  {asked}\n" in str(ex)
    assert explore(Tensor(A) + 1).kernels[0].opts_in_code == ""
    auto = kernel.optimized()
    assert auto.applied_opts == (UPCAST, UNROLL) and auto.check().ok
    assert "the code asks for these opts" in str(auto.steps)
    with session_of(ex) as session:
        session.complete()
        place = done(session, "auto", kernel=0)["variant"]
        row = session.row(place)
        assert row.opts == ['UPCAST("g1", 4)', 'UNROLL("r0", 2)']
        assert any("the code asks" in step.why for step in row.steps)


def test_they_come_back_from_a_file_and_from_python(tmp_path: Path) -> None:
    ex = explore(product([UPCAST]))
    again = load(ex.save(tmp_path / "saved.json")).kernels[0]
    assert again.optimized().applied_opts == (UPCAST,)
    names: dict[str, Any] = {}
    exec(again.to_python(), names)
    assert names["kernel"].optimized().applied_opts == (UPCAST,)


def test_an_opt_that_does_not_fit_is_refused_in_words() -> None:
    tensor = product([Opt(OptOps.UPCAST, "g1", 7)])
    words = r"UPCAST\(\"g1\", 7\), which the code asks for"
    for settings in ({}, {"NOOPT": 1}, {"BEAM": 1}, {"DEV": "PYTHON"}):
        with Context(**settings), pytest.raises(KernelOptError, match=words) as error:
            product([Opt(OptOps.UPCAST, "g1", 7)]).realize()
        assert "40 elements" in error.value.because and error.value.hint
        assert "40 elements" in error.value.because and error.value.hint
    ex = explore(tensor)  # where one finds out which would be
    assert Opt(OptOps.UPCAST, "g1", 5) in ex.kernels[0].legal_opts()
    refusal = 'UPCAST("g1", 7), which the code asks for: '
    for text in (str(ex), repr(ex.kernels[0]), ex.kernels[0].opts_in_code):
        assert refusal in text and "40 elements" in text, "when it is explored"
    with pytest.raises(KernelOptError, match=words):
        ex.kernels[0].optimized()
    with session_of(ex) as session:
        session.complete()
        assert refusal in session.record.kernels[0].opts_in_code
        assert "asks for" in ask(session, "auto", kernel=0)["error"]["what"]
        assert done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]


@pytest.mark.parametrize("arg", [5, "UPCAST", UPCAST, [1], [None], {}, np.ones(2)])
def test_what_is_no_list_of_opts_is_refused(arg: Any) -> None:
    with pytest.raises(DTypeError, match="contiguous: arg"):
        product(arg)
    with pytest.raises(DTypeError, match="contiguous: arg"):
        product([Opt(OptOps.UPCAST, 1.5, 4)])  # type: ignore[arg-type]


def test_a_value_that_no_kernel_stores_has_no_opts() -> None:
    in_memory = Tensor(A).realize()
    stored = product([UPCAST])
    calls: list[Callable[[], Tensor]] = [
        lambda: in_memory.contiguous(arg=[UPCAST]),
        lambda: Tensor(A).contiguous(arg=[UPCAST]),
        lambda: stored.contiguous(arg=[UNROLL]),
    ]
    for call in calls:
        with pytest.raises(KernelOptError, match="no kernel with these opts"):
            call()
    assert stored.contiguous(arg=[UPCAST]) is stored and in_memory.contiguous() is in_memory
    late = (Tensor(A) @ Tensor(B)).contiguous().contiguous(arg=[UPCAST])
    assert tuned(kernel_of(late), "LLVM") is tuned(kernel_of(stored), "LLVM")


def test_opts_are_of_one_kernel() -> None:
    """Values beside it, before it and after it have their own, and their values are right."""
    x = Tensor(A)
    exp = x.exp().contiguous(arg=[Opt(OptOps.UPCAST, "g0", 2)])
    beside, after = x.exp() * 2, (exp + 1).sum(0)
    beside.realize(exp, after)
    np.testing.assert_allclose(exp.numpy(), np.exp(A), rtol=1e-5)
    np.testing.assert_allclose(beside.numpy(), np.exp(A) * 2, rtol=1e-5)
    np.testing.assert_allclose(after.numpy(), (np.exp(A) + 1).sum(0), rtol=1e-5)
    same = (Tensor(A) + 0).contiguous(arg=[Opt(OptOps.UPCAST, "g0", 2)])
    np.testing.assert_array_equal(same.numpy(), A)  # the copy has them
    assert is_realized(same.uop)


def test_writes_gradients_and_replays_have_them() -> None:
    target = Tensor(np.zeros((40, 40), np.float32)).realize()
    target[4:36].assign(product([UPCAST]))
    np.testing.assert_allclose(target.numpy()[4:36], A @ B, rtol=1e-5)
    assert not target.numpy()[:4].any() and not target.numpy()[36:].any()
    x = Tensor(A, requires_grad=True)
    (x @ Tensor(B)).contiguous(arg=[UPCAST]).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), np.tile(B.sum(1), (32, 1)), rtol=1e-5)

    @TinyJit
    def step(a: Tensor, b: Tensor) -> Tensor:
        return (a @ b).contiguous(arg=[UPCAST, UNROLL]).relu().realize()

    for number in range(4):
        a, b = Tensor(A - number).realize(), Tensor(B).realize()
        expected = np.maximum((A - number) @ B, 0)
        np.testing.assert_allclose(step(a, b).numpy(), expected, rtol=1e-4, atol=1e-5)
