"""Settings: their table, their values, the environment, and the block that scopes them."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.base.context import BEAM, DEBUG, SETTINGS, Context, Setting, settings_table
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import DTypeError, WorkbenchError
from workbench.tensor import Tensor


def test_one_table_has_all_settings() -> None:
    table = settings_table()
    for setting in SETTINGS.values():
        assert f"\n{setting.name} " in f"\n{table}"
        assert setting.doc.splitlines()[0] in table
        assert setting.checked(setting.default) == setting.default
    assert Context.__doc__ is not None
    assert all(line.strip() in Context.__doc__ for line in table.splitlines())


def test_a_block_scopes_values() -> None:
    before = DEBUG.value, BEAM.value
    with Context(DEBUG=1, BEAM=3):
        with pytest.raises(ZeroDivisionError), Context(DEBUG=2):
            assert (DEBUG.value, BEAM.value) == (2, 3)
            raise ZeroDivisionError
        assert (DEBUG.value, BEAM.value) == (1, 3)
    assert (DEBUG.value, BEAM.value) == before


def test_refusals() -> None:
    for values, text in (
        ({"NOPE": 1}, "no setting NOPE"),
        ({"DEBUG": "2"}, "of type int, not str"),
        ({"DEV": 1}, "of type str, not int"),
        ({"NOOPT": 2}, "it is one of 0, 1"),
        ({"DEFAULT_FLOAT": "int32"}, "it is one of float16"),
        ({"BEAM": -1}, "0 or more"),
    ):
        with pytest.raises(WorkbenchError, match=text):
            Context(**values)


def test_the_environment_gives_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for raw, value in (("3", 3), ("0", 0)):
        monkeypatch.setenv("WIDTH", raw)
        assert Setting("WIDTH", 1, "a width").value == value
    monkeypatch.setenv("WIDTH", "wide")
    with pytest.raises(WorkbenchError, match="not a number"):
        Setting("WIDTH", 1, "a width")
    monkeypatch.setenv("KIND", "HALF")
    assert Setting("KIND", "float", "a dtype", ("float", "half")).value == "half"
    monkeypatch.setenv("KIND", "int")
    with pytest.raises(WorkbenchError, match="KIND='int'"):
        Setting("KIND", "float", "a dtype", ("float", "half"))


def test_default_dtypes() -> None:
    assert (dtypes.default_float, dtypes.default_int) == (dtypes.float32, dtypes.int32)
    with Context(DEFAULT_FLOAT="HALF", DEFAULT_INT="long"):
        assert (dtypes.default_float, dtypes.default_int) == (dtypes.half, dtypes.long)
        assert dtypes.from_py([1, [2.0]]) is dtypes.half
        assert dtypes.of(1) is dtypes.long


def test_facts_of_dtypes() -> None:
    # recorded in tinygrad 0.14: bits of the exponent and of the fraction
    for name, bits in (
        ("fp8e4m3", (4, 3)),
        ("fp8e5m2", (5, 2)),
        ("half", (5, 10)),
        ("bfloat16", (8, 7)),
        ("double", (11, 52)),
    ):
        assert dtypes.finfo(getattr(dtypes, name)) == bits
    assert dtypes.finfo(dtypes.float32) == (8, 23)
    with pytest.raises(WorkbenchError, match="has no exponent"):
        dtypes.finfo(dtypes.int8)
    for kinds, says in (
        (dtypes.floats, dtypes.is_float),
        (dtypes.ints, dtypes.is_int),
        (dtypes.uints, dtypes.is_unsigned),
        ((dtypes.bool,), dtypes.is_bool),
    ):
        assert [d for d in dtypes.all if says(d)] == list(kinds)
    assert [dtypes.from_py(v) for v in (True, 1, 1.0, [True, 2], [], [[1], [2.0]])] == [
        *(dtypes.bool, dtypes.int32, dtypes.float32),
        *(dtypes.int32, dtypes.float32, dtypes.float32),
    ]
    with pytest.raises(WorkbenchError, match="no dtype is that of"):
        dtypes.from_py("one")


def test_the_dtype_of_wide_integers_is_that_of_their_tensor() -> None:
    rows: list[tuple[Any, DType]] = [
        (2**31 - 1, dtypes.int32), (-(2**31), dtypes.int32), (2**31, dtypes.int64),
        (-(2**40), dtypes.int64), (2**63, dtypes.uint64), ([1, 2**40], dtypes.int64),
        ([[True], [2**64 - 1]], dtypes.uint64), ([1.5, 2**70], dtypes.float32),
    ]  # fmt: skip
    for value, dtype in rows:
        assert dtypes.from_py(value) is Tensor(value).dtype is dtype
        assert isinstance(value, list) or dtypes.of(value) is dtype
    for value, words in (
        (2**64, "does not fit 64 bits"),
        (10**5000, "cannot use the integer <int>"),  # Python does not print it
        ([-(2**63) - 1, 0], "does not fit 64 bits"),
        ([-1, 2**63], "no 64-bit type holds both"),
    ):
        for make in (dtypes.from_py, Tensor):
            with pytest.raises(DTypeError, match=words):
                make(value)
    with Context(DEFAULT_INT="long"):
        assert dtypes.from_py(1) is dtypes.of(1) is Tensor(1).dtype is dtypes.int64
