"""Tensors and kernels pickled: elsewhere they have their data, and no other process's memory."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.support import count
from workbench import Kernel, Opt, OptOps, Tensor, TinyJit, dtypes, explore
from workbench.backends.memory import Buffer
from workbench.base.errors import DeviceError, JitError, WorkbenchError
from workbench.tensor.autograd.leaves import plain_value

# The other process has memory of its own by the names that the first one's has.
READER = """
import pickle, sys
from workbench import Tensor
own = [Tensor([float(n)] * 6).realize() for n in range(40)]
things = pickle.load(sys.stdin.buffer)
arrays = [t.numpy() if isinstance(t, Tensor) else t.run()[0] for t in things]
assert all((t.numpy() == n).all() for n, t in enumerate(own))
pickle.dump(arrays, sys.stdout.buffer)
"""


def elsewhere(*things: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> list[Any]:
    """Return the values of tensors and kernels as another process finds them."""
    process = subprocess.run(
        [sys.executable, "-c", READER],
        input=pickle.dumps(things, protocol),
        capture_output=True,
        check=False,
        timeout=200,
    )
    assert process.returncode == 0, process.stderr.decode()
    values: list[Any] = pickle.loads(process.stdout)
    return values


def test_tensors_take_their_data_along() -> None:
    x = Tensor(np.arange(6, dtype=np.float32))
    computed = (x * 2).realize()
    small = Tensor([1.5, -2.0], dtype="bfloat16").realize()
    tensors = [
        x,
        computed,
        computed[2:5],
        computed + x,
        x.reshape(2, 3).T.sum(0),
        small,
        Tensor(3),
        Tensor.zeros(0, 2),
        Tensor([True, False]).realize(),
    ]
    want = [t.numpy() for t in tensors]
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        for actual, expected in zip(elsewhere(*tensors, protocol=protocol), want, strict=True):
            assert actual.dtype == expected.dtype and actual.shape == expected.shape
            np.testing.assert_array_equal(actual, expected)


def test_a_tensor_stays_what_it_is() -> None:
    t = Tensor([1.0, 2.0], device="PYTHON", requires_grad=True) + 1
    other = pickle.loads(pickle.dumps(t))
    assert (other.device, other.dtype, other.shape) == ("PYTHON", dtypes.float32, (2,))
    assert pickle.loads(pickle.dumps(Tensor(2.0, requires_grad=True))).requires_grad
    assert plain_value(copy.deepcopy(t).uop) is plain_value(t.uop), "the same value"


def test_a_deep_graph_is_pickled() -> None:
    t = Tensor(np.ones(3, np.float32))
    for n in range(count(20_000, 5)):
        t = t + float(n % 3)
    assert pickle.loads(pickle.dumps(t)).shape == (3,)


def test_a_kernel_takes_its_inputs_along() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((8, 8)).astype(np.float32) for _ in range(2))
    x = (Tensor(a) @ Tensor(b)).exp()
    second = explore(x.contiguous().sum(0)).kernels[-1]
    fast = explore(x).kernels[0].apply(Opt(OptOps.UPCAST, "g1", 8))
    text = Kernel.from_text(fast.to_text())
    actual = elsewhere(second, fast, text)
    np.testing.assert_allclose(actual[0], np.exp(a @ b).sum(0), rtol=1e-4)
    np.testing.assert_allclose(actual[1], np.exp(a @ b), rtol=1e-4)
    np.testing.assert_array_equal(actual[2], text.run()[0])
    here = pickle.loads(pickle.dumps(fast))
    assert here.applied_opts == fast.applied_opts and here.ast is fast.ast
    assert here.check().ok
    assert here.apply(Opt(OptOps.UPCAST, "g0", 4)).check("C").ok


def test_what_names_memory_of_this_process_is_refused() -> None:
    x = Tensor([1.0, 2.0]).realize()
    add = TinyJit(lambda t: (t + 1).realize())
    for _ in range(3):
        add(x)
    ex = explore(x + 1)
    with pytest.raises(DeviceError, match="cannot pickle a BUFFER by itself"):
        pickle.dumps(x.uop)
    for thing in (ex, (x + 1).schedule(), ex.kernels[0].compile("LLVM"), add):
        with pytest.raises((DeviceError, TypeError, AttributeError, pickle.PicklingError)):
            pickle.dumps(thing)


def test_what_is_of_one_process_is_refused() -> None:
    """A Buffer's address and a Program's machine code are those of this process."""
    ex = explore((Tensor([1.0, 2.0]) + 1).realize() * 2)
    compiled = [ex.kernels[0].compile(device) for device in ("LLVM", "PYTHON")]
    buffer = Buffer("LLVM", dtypes.float32, 4)
    values = [ex, buffer, TinyJit(lambda t: t + 1), *compiled]
    values += [part for c in compiled for part in (c.built, c.built.program)]
    for value in values:
        for use in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(WorkbenchError, match=r"cannot pickle[\s\S]*try "):
                use(value)


def test_a_copy_of_a_node_is_the_node() -> None:
    x = Tensor([1.0, 2.0]).realize()
    for _ in range(3000):
        x = x + 1
    for use in (copy.copy, copy.deepcopy):
        assert use(x.uop) is x.uop


def test_a_device_that_is_not_there_is_named() -> None:
    """A pickle comes from a machine that had it, or was damaged on the way."""
    value = (Tensor([1.0, 2.0], device="PYTHON") * 2).realize()
    for thing in (value, value + 1, explore(value + 1).kernels[0]):
        text = pickle.dumps(thing)
        with pytest.raises(DeviceError, match="there is no device 'NOWHER'"):
            pickle.loads(text.replace(b"PYTHON", b"NOWHER"))


def test_a_captured_value_is_not_pickled() -> None:
    """A replay would not pickle it again; a constant needs nothing that is captured."""
    pickled: list[bytes] = []

    def function(x: Tensor) -> Tensor:
        pickled.append(pickle.dumps(Tensor(2.0)))
        pickled.append(pickle.dumps(x + 1))
        return x * 2

    x = Tensor([1.0, 2.0]).realize()
    call = TinyJit(function)
    call(x)
    with pytest.raises(JitError, match=r"cannot read values while[\s\S]*outside"):
        call(x)
    assert [pickle.loads(p).tolist() for p in pickled] == [2.0, [2.0, 3.0], 2.0]
