"""The buffers with which a page runs a kernel: asked for by the page, or why they are not there."""

from __future__ import annotations

import base64

import numpy as np

from tests.viz.session.support import done, session_of
from tests.viz.support import matmul
from workbench import Tensor, explore


def test_a_page_gets_the_buffers_of_a_kernel() -> None:
    ex = matmul()
    with session_of(ex) as session:
        assert session.record.kernels[0].data is None, "no page asked for them"
        done(session, "data", kernel=0)
        data = session.record.kernels[0].data
        assert data is not None and data.error is None
        expected, *inputs = [np.frombuffer(base64.b64decode(b.data), b.dtype) for b in data.buffers]
        assert [b.written for b in data.buffers] == [True, False, False, False]
        (right,) = ex.kernels[0].run()
        limit = data.buffers[0].tolerance
        assert 0 < limit < 1e-3
        np.testing.assert_allclose(expected, right.ravel(), atol=limit)
        assert all(np.any(array) for array in inputs)


def test_what_is_too_large_is_said() -> None:
    ex = explore(Tensor(np.ones(100_000, np.float32)) + 1)
    with session_of(ex) as session:
        done(session, "data", kernel=0)
        data = session.record.kernels[0].data
        assert data is not None and not data.buffers and data.error is not None
        assert "781 KiB" in data.error.because
