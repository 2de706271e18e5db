"""Keywords and names of numpy on a Tensor: the error has this package's name for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import by_rows
from workbench import Tensor
from workbench.base.errors import DTypeError

T: Any = Tensor([[1.0, 2.0], [3.0, 4.0]])


@by_rows(
    ("call", "hint"),
    [
        *(
            (lambda name=name: getattr(T, name)(axis=0, keepdims=True), "keepdim=True")
            for name in ("sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin")
        ),
        (lambda: T.std(ddof=1), "correction=1"),
        (lambda: T.var(0, ddof=1), "correction=1"),
        (lambda: T.softmax(dim=-1), "axis=-1"),
        (lambda: T.cumsum(dim=0), "axis=0"),
        (lambda: T.clip(min=0), "min_=0"),
        (lambda: T.clip(a_max=1), "max_=1"),
        (lambda: T.sort(axis=0), "dim=0"),
        (lambda: T.squeeze(axis=0), "dim=0"),
        (lambda: T.mean(dtype="float64"), "np.mean(t, .., dtype='float64')"),
        (lambda: T.round(decimals=1), "np.round(t, .., decimals=1)"),
        (lambda: T.reshape(4, order="F"), "np.reshape(t, .., order='F')"),
        (lambda: T.repeat(2, axis=0), "np.repeat(t, .., axis=0)"),
        (lambda: T.sum(keepdm=True), "keepdim=True"),
        (lambda: T.sum(0, out=T), "t.sum(axis=.., keepdim=.., dtype=..)"),
    ],
)
def test_a_keyword_of_numpys_is_answered_with_ours(call: Callable[[], Any], hint: str) -> None:
    with pytest.raises(DTypeError, match="unexpected keyword argument") as refused:
        call()
    assert hint in refused.value.hint, refused.value.hint
    assert "test_keywords.py, line" in refused.value.where


@by_rows(
    ("name", "ours"),
    [("astype", "cast"), ("copy", "clone"), ("ravel", "flatten"), ("swapaxes", "transpose")],
)
def test_a_name_of_numpys_is_answered_with_ours(name: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean {ours}"):
        getattr(T, name)
    assert callable(getattr(T, ours))
