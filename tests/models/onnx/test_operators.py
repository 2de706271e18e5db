"""The table of ONNX's operators: complete by reflection, and its rows against ONNX's own tests of
nodes, which come with the package."""

from __future__ import annotations

import random
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.peers import peer
from tests.support import count
from workbench import ModelError, Tensor, load_model
from workbench.models.onnx.table import REFUSED, load_rows, row_of

onnx = peer("onnx")
load_rows()
LATEST = 23
"""The opset up to which each operator has a row, a function or a reason."""
NOT_HERE = ("MaxRoiPool", "Multinomial")
"""Operators without a row, which are refused by name."""
CONTROL = ("If", "Loop", "Scan", "Shape", "Size")
"""Operators that the graph computes itself."""
PARTS = 4
"""Tests among which ONNX's own are dealt."""


def test_every_operator_has_a_row_a_function_or_a_reason() -> None:
    names = {
        (schema.name, opset)
        for schema in onnx.defs.get_all_schemas_with_history()
        for opset in range(max(7, schema.since_version), LATEST + 1)
        if not schema.domain and not schema.deprecated
    }
    missing = set()
    for name, opset in names:
        schema = onnx.defs.get_schema(name, opset)
        is_function = schema.has_function or schema.has_context_dependent_function
        if not (row_of("", name, opset) or is_function or name in REFUSED or schema.deprecated):
            missing.add(name)
    assert missing == {*NOT_HERE, *CONTROL}


@cache
def cases() -> list[Any]:
    """Return ONNX's tests of nodes of its own domain; those of random numbers have no result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        listed = load_model_tests(kind="node")
    return [
        case
        for case in listed
        if "bernoulli" not in case.name and all(not o.domain for o in case.model.opset_import)
    ]


@pytest.mark.parametrize("part", range(PARTS))
def test_rows_compute_what_onnx_says(part: int) -> None:
    """Cases are drawn: no result is wrong; most are computed, the others refused with a reason."""
    listed = cases()
    chosen = random.Random(0).sample(listed, count(len(listed), 20))[part::PARTS]
    computed = sum(agrees(case) for case in chosen)
    assert computed >= len(chosen) * 3 // 4


def agrees(case: Any) -> bool:
    """Compare a case; return False where it is refused."""
    try:
        model = load_model(case.model)
        results = [model(*map(array, inputs)) for inputs, _ in case.data_sets]
    except ModelError as error:
        assert error.because
        return False
    for result, (_, wanted) in zip(results, case.data_sets, strict=True):
        listed = result if isinstance(result, tuple) else (result,)
        for ours, theirs in zip(listed, map(array, wanted), strict=True):
            compare(case.name, ours, theirs)
    return True


def array(value: Any) -> Any:
    """Return an array of a value; a dtype that numpy lacks is written as a TensorProto."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def compare(name: str, ours: Tensor, theirs: Any) -> None:
    assert ours.dtype.numpy == theirs.dtype, name
    if theirs.dtype.kind not in "fV":
        np.testing.assert_array_equal(ours.numpy(), theirs, name)
        return
    # of half precision two units: sums are not rounded in between here
    rtol = 1e-3 if theirs.dtype.itemsize > 2 else 4e-3 if theirs.dtype.kind == "f" else 2e-2
    wide = [np.asarray(a).astype(np.float64) for a in (ours.numpy(), theirs)]
    np.testing.assert_allclose(*wide, rtol=rtol, atol=1e-6, err_msg=name)
