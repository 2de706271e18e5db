"""Errors are also what code that was written for numpy, PyTorch or Python expects."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import numpy as np
import pytest

import workbench
from workbench import Tensor
from workbench.base.errors import FileError, MissingFileError, WorkbenchError
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
