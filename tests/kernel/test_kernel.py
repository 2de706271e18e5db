"""The facade: run, time, count. A kernel is a value and leaves all else alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tests.kernel.samples import DEVICES, TILE, UPCAST, A, B, C, matmul, numbers, text_kernel
from workbench import Context, Kernel, KernelOptError, Opt, OptOps, Tensor, explore
from workbench.base.errors import DeviceError
from workbench.base.trace import observe

WANTED = np.maximum(A @ B + C, 0)


# running


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("opts", [(), TILE, (Opt(OptOps.ORDER, "r0", "g0"),)], ids=str)
def test_run_gives_the_output_in_the_tensors_shape(device: str, opts: tuple[Opt, ...]) -> None:
    (actual,) = matmul().apply(*opts).run(device)
    assert actual.shape == (48, 64) and actual.dtype == np.float32
    np.testing.assert_allclose(actual, WANTED, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_runs_agree_and_share_nothing(device: str) -> None:
    kernel = matmul()
    first, second = kernel.run(device)[0], kernel.run(device)[0]
    assert np.array_equal(first, second) and not np.shares_memory(first, second)
    first[:] = np.nan
    assert np.array_equal(kernel.run(device)[0], second)
    seeded = text_kernel("softmax")
    assert np.array_equal(seeded.run(device)[0], seeded.run(device)[0])


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_that_a_tensor_holds_is_written(device: str) -> None:
    with Context(DEV=device):
        x, y = Tensor(A).realize(), Tensor(B).realize()
        z = (x @ y).realize()
        originals = [t.numpy() for t in (x, y, z)]
        (kernel,) = explore(z * 2 + 1).kernels
        for run in (kernel.run, kernel.check, lambda: kernel.time(budget_s=0.01)):
            run()
        kernel.apply(Opt(OptOps.UPCAST, "g0", 8)).run()
        for tensor, before in zip((x, y, z), originals, strict=True):
            assert np.array_equal(tensor.numpy(), before)
        np.testing.assert_allclose(kernel.run()[0], originals[2] * 2 + 1, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_producers_run_first(device: str) -> None:
    x = Tensor(numbers(64, 64))
    kernels = explore((x @ x).exp() @ x).kernels
    assert len(kernels) == 2
    expected = np.exp(numbers(64, 64) @ numbers(64, 64)) @ numbers(64, 64)
    (actual,) = kernels[-1].run(device)
    assert actual.shape == (64, 64), "the tensor's shape, not that of the value under its reshapes"
    np.testing.assert_allclose(actual, expected, rtol=2e-3)
    assert kernels[-1].check(device).ok and kernels[0].check(device).ok


def test_a_kernel_stays_on_the_device_of_its_data() -> None:
    kernel = matmul()
    with Context(DEV="PYTHON"):
        emulated = matmul()
        assert kernel.compile().device == "LLVM"
    assert emulated.compile().device == emulated.device == "PYTHON"
    assert kernel.compile().device == "LLVM"
    assert kernel.compile("cpu").device == "LLVM"
    with pytest.raises(DeviceError, match="no device 'TPU'"):
        kernel.run("TPU")


def test_running_is_not_observed() -> None:
    kernel = matmul()
    with observe() as watching:
        kernel.run()
        kernel.check()
        kernel.time(budget_s=0.01)
        assert kernel.counts and kernel.legal_opts()
    assert watching.records == []


# a value


def test_a_kernel_is_immutable_and_apply_makes_another() -> None:
    plain = matmul()
    opted = plain.apply(*TILE)
    assert plain.applied_opts == () and opted.applied_opts == TILE
    assert opted.original is plain.ast is plain.original and opted.ast is not plain.ast
    assert [a.name for a in opted.axes] == ["g0", "g1", "l0", "r0", "u0", "u1"]
    assert opted.order == ("g0", "g1", "l0", "r0")
    with pytest.raises(FrozenInstanceError):
        plain.ast = opted.ast  # type: ignore[misc]


def test_the_default_opts_say_why() -> None:
    """Every one of them belongs to a step; a kernel with other opts has no steps."""
    plain = matmul()
    variant = plain.optimized()
    assert variant.applied_opts == tuple(o for step in variant.steps for o in step.opts)
    assert variant.applied_opts and all(s.why and s.counts for s in variant.steps)
    text = str(variant.steps)
    assert all(s.why in text and all(str(o) in text for o in s.opts) for s in variant.steps)
    for other in (plain, variant.apply(Opt(OptOps.NOLOCALS)), variant.without()):
        assert not other.steps


def test_integer_axes_are_kept_by_name() -> None:
    assert matmul().apply(Opt(OptOps.UPCAST, 1, 8)).applied_opts == (UPCAST,)


def test_an_illegal_opt_says_why_here_and_in_why_not() -> None:
    kernel, wrong = matmul(), Opt(OptOps.UPCAST, "g1", 5)
    with pytest.raises(KernelOptError) as caught:
        kernel.apply(UPCAST, wrong)
    assert caught.value.where.startswith("test_kernel.py, line ")
    message = kernel.why_not(wrong)
    assert message is not None and message.startswith('cannot apply UPCAST("g1", 5)')
    assert "64 elements, and 5 does not divide 64" in message
    assert kernel.why_not(UPCAST) is None
    assert all(kernel.why_not(o) is None for o in kernel.legal_opts())


def test_it_prints() -> None:
    kernel = matmul().apply(UPCAST)
    assert repr(kernel).startswith("Kernel(") and "g1=8" in repr(kernel)
    assert "RANGE 8 upcast" in str(kernel) and "REDUCE(add" in str(kernel)


# figures


def test_estimates_are_the_algorithms_and_stay_the_same() -> None:
    kernel = matmul()
    expected = kernel.estimates
    assert expected.flops == 2 * 48 * 64 * 80 + 2 * 48 * 64
    assert expected.bytes == 4 * (48 * 64 + 48 * 80 + 80 * 64 + 64)
    assert expected.intensity == expected.flops / expected.bytes
    assert kernel.apply(*TILE).estimates == expected
    assert kernel.compile().estimates == expected


def test_counts_are_of_the_program() -> None:
    plain = matmul().counts
    assert plain.fmas == 48 * 64 * 80 and plain.stores == 48 * 64
    assert plain.loads == 2 * 48 * 64 * 80 + 48 * 64
    assert plain.bytes_loaded == 4 * plain.loads and plain.bytes_stored == 4 * 48 * 64
    assert plain.barriers == 0
    summed_together = matmul().apply(Opt(OptOps.GROUP, "r0", 4))
    assert summed_together.counts.barriers == 48 * 64, "one for each element's group"
    wide = matmul().apply(UPCAST).counts
    assert wide.fmas == plain.fmas // 8 and wide.stores == plain.stores // 8
    assert wide.bytes_stored == plain.bytes_stored
    tile = matmul().apply(UPCAST, Opt(OptOps.UPCAST, "g0", 4)).counts
    assert tile.fmas == wide.fmas and tile.loads < wide.loads
    assert matmul().apply(UPCAST).counts == wide, "deterministic"


@pytest.mark.parametrize("device", DEVICES)
def test_time_measures_with_its_spread(device: str) -> None:
    timing = matmul().time(device, budget_s=0.05)
    assert 0 < timing.min_s <= timing.median_s and timing.samples_s
    assert min(timing.samples_s) == timing.min_s and timing.spread >= 0
    estimates = matmul().estimates
    assert timing.gflops == pytest.approx(estimates.flops / timing.median_s / 1e9)
    assert timing.gbytes_per_s == pytest.approx(estimates.bytes / timing.median_s / 1e9)
    is_repeated = len(timing.samples_s) > 1  # on a busy machine it may not be
    assert "GFLOP/s" in str(timing) and ("±" in str(timing)) == is_repeated
    emulated = timing.fraction_of_peak is None
    assert emulated == (device == "PYTHON") == ("EMULATOR" in str(timing))


@pytest.mark.parametrize("act", [Kernel.run, lambda kernel: kernel.time("LLVM")])
def test_data_that_cannot_be_allocated_are_refused(act: Callable[[Kernel], object]) -> None:
    """Wrong values of an output, or random ones of an input, were made in numpy before."""
    kernel = explore(Tensor.empty(2**44, dtype="int8") + 1).kernels[0]
    with pytest.raises(DeviceError, match="cannot allocate"):
        act(kernel)
