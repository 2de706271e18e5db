"""How many kernels a method of Tensor needs, forward and for its gradients: at most what tinygrad
0.14 needs for the same shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from workbench.base.context import Context
from workbench.tensor import Tensor

IMAGE = Tensor.empty(16, 32, 28, 28)
ROWS, LABELS = Tensor.empty(128, 1000), Tensor(np.zeros(128, np.int32))
QUERY, KEY, VALUE = (Tensor.empty(32, 8, 16, 16) for _ in range(3))
FEW = Tensor.empty(32, 2, 16, 16)
COLUMN, MASK = Tensor.empty(32), Tensor.empty(16, 16, dtype="bool")


def normalised() -> Tensor:
    spread = IMAGE.var((0, 2, 3), correction=0) + 1e-5
    return IMAGE.batchnorm(COLUMN, COLUMN, IMAGE.mean((0, 2, 3)), spread.rsqrt())


def summed(result: Tensor) -> Tensor:
    """Return one number: a loss, or of another result one with a gradient that differs from
    element to element."""
    return result.square().sum() if result.ndim else result


class Row(NamedTuple):
    """`most` and `most_backward` are tinygrad's kernels; None: not compared."""

    name: str
    result: Callable[[], Tensor]
    of: tuple[Tensor, ...]
    most: int
    most_backward: int | None = None


# fmt: off
TABLE = [
    Row("cross_entropy", lambda: ROWS.cross_entropy(LABELS), (ROWS,), 1, 3),
    Row("smooth", lambda: ROWS.cross_entropy(LABELS, label_smoothing=0.1), (ROWS,), 1, 3),
    Row("sparse", lambda: ROWS.sparse_categorical_crossentropy(LABELS), (ROWS,), 1, 3),
    Row("nll_loss", lambda: ROWS.log_softmax().nll_loss(LABELS), (ROWS,), 1, 3),
    Row("binary", lambda: ROWS.binary_crossentropy_logits(ROWS), (ROWS,), 1, 1),
    Row("softmax", lambda: ROWS.softmax(), (ROWS,), 1, 4),
    Row("logsumexp", lambda: ROWS.logsumexp(1), (ROWS,), 1, 3),
    Row("layernorm", lambda: ROWS.layernorm(), (ROWS,), 1, 6),
    Row("normalize", lambda: ROWS.normalize(), (ROWS,), 1, 3),
    Row("batchnorm", normalised, (IMAGE, COLUMN), 3, 8),
    Row("attention", lambda: QUERY.scaled_dot_product_attention(KEY, VALUE),
        (QUERY, KEY, VALUE), 3, 10),
    Row("causal", lambda: QUERY.scaled_dot_product_attention(KEY, VALUE, is_causal=True),
        (QUERY, KEY, VALUE), 3, 10),
    Row("masked", lambda: QUERY.scaled_dot_product_attention(KEY, VALUE, MASK),
        (QUERY, KEY, VALUE), 3, 10),
    Row("few heads", lambda: QUERY.scaled_dot_product_attention(FEW, FEW, enable_gqa=True),
        (QUERY,), 3),
    Row("qr", lambda: Tensor.empty(8, 8).qr()[1], (), 63),
    Row("svd", lambda: Tensor.empty(4, 4).svd()[0], (), 138),
    Row("newton_schulz", lambda: Tensor.empty(64, 64).newton_schulz(5, (2, -1.5, 0.5)), (), 16),
]
# fmt: on


def kernels(*tensors: Tensor) -> int:
    """Return how many kernels compute tensors together."""
    first, *others = tensors
    return sum(item.kernel is not None for item in first.schedule(*others))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_kernels_are_at_most_tinygrads(row: Row) -> None:
    assert kernels(row.result()) <= row.most
    if row.most_backward is not None:
        gradients = summed(row.result()).gradient(*row.of)
        assert kernels(*gradients) <= row.most_backward + 1  # its results are squared first


def test_weights_of_attention_are_dropped_in_training_only() -> None:
    ones = Tensor.ones(1, 64, 8).contiguous()
    plain = ones.scaled_dot_product_attention(ones, ones)
    np.testing.assert_allclose(
        ones.scaled_dot_product_attention(ones, ones, dropout_p=0.5).numpy(), plain.numpy()
    )
    with Context(TRAINING=1):
        trained = ones.scaled_dot_product_attention(ones, ones, dropout_p=0.5).numpy()
    # 64 weights of 1/64, each 0 or doubled: a whole number of 1/32.
    counts = trained * 32
    np.testing.assert_allclose(counts, counts.round(), atol=1e-4)
    assert 0.5 < trained.mean() < 1.5
    assert len(np.unique(counts.round())) > 4
