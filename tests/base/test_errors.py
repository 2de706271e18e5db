"""Errors are also what code that was written for numpy, PyTorch or Python expects."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench
from workbench import Tensor
from workbench.base.context import DEBUG
from workbench.base.errors import FileError, MissingFileError, WorkbenchError, integer_of
from workbench.nn.state import safe_load


def test_shapes_and_dtypes_are_runtime_errors_too() -> None:
    x = Tensor(np.ones((2, 3), np.float32))
    for kind in (RuntimeError, ValueError):
        with pytest.raises(kind, match="cannot multiply matrices"):
            x @ x
    for kind in (RuntimeError, TypeError):
        with pytest.raises(kind, match="cannot apply &"):
            x & 1


def test_a_missing_file_is_one(tmp_path: Path) -> None:
    path = tmp_path / "absent.safetensors"
    for load in (safe_load, lambda p: Tensor(Path(p)), workbench.load):
        with pytest.raises(FileNotFoundError) as missing:
            load(str(path))
        assert isinstance(missing.value, MissingFileError) and str(path) in str(missing.value)
        assert missing.value.errno == errno.ENOENT
    with pytest.raises(FileError) as refused:
        safe_load(str(tmp_path))
    assert not isinstance(refused.value, FileNotFoundError)


def test_errors_travel_between_processes() -> None:
    for kind in (WorkbenchError, FileError, MissingFileError):
        error = kind("cannot open x", "it is gone", "another", "In[1]")
        copy = pickle.loads(pickle.dumps(error))
        assert str(copy) == str(error) and type(copy) is kind
        assert type(kind.__new__(kind, *error.args)) is kind  # as tblib makes one


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_integers_of_numpy_are_integers(value: object) -> None:
    found = integer_of(value)
    assert found == 3 and type(found) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float32(3), "3", None, np.ones(2)])
def test_flags_and_other_values_are_no_integers(value: object) -> None:
    assert integer_of(value) is None


def test_counts_and_sizes_take_numbers_of_numpy() -> None:
    ex = workbench.explore(Tensor(np.ones((4, 8), np.float32)).sum(1))
    two: Any = np.int64(2)
    assert [row.launches for row in ex.run("PYTHON", repeat=two).record.kernels] == [2]
    assert ex.kernel_at(np.int64(0))[0] == 0
    assert ex.replan(memory=np.int64(1 << 20)).budget.limit_bytes == 1 << 20
    with workbench.Context(DEBUG=two):
        assert DEBUG.value == 2
