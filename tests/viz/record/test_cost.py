"""What a record says a variant costs: the figures of the kernel itself."""

from __future__ import annotations

import pytest

from tests.viz.record.support import plain
from tests.viz.support import matmul
from workbench.viz.record.record import build


def test_the_cost_of_a_variant_is_its_kernels() -> None:
    ex = matmul()
    record = plain(build(ex))
    row = record["variants"][0]
    found, counts = ex.kernels[0].cost, row["counts"]
    assert row["cost"]["roofs"] == pytest.approx(found.roofs())
    assert row["cost"]["predicted_s"] == pytest.approx(found.predicted_s)
    assert row["cost"]["seconds"] == pytest.approx(found.seconds)
    assert row["cost"]["limit"] == found.limit
    assert row["cost"]["flops"] == record["kernels"][0]["flops"]
    assert row["cost"]["bytes"]["L1"] == counts["bytes_loaded"] + counts["bytes_stored"]
    # a roof is bandwidth times operations per byte: no figure of a record contradicts another
    one = record["machine"]["one_thread"]
    rates = dict(one["bandwidth"])
    assert row["cost"]["threads"] == 1
    for level, roof in row["cost"]["roofs"].items():
        moved = row["cost"]["bytes"].get(level)
        most = (
            one["peak"]["f32"]
            if level == "peak"
            else found.estimates.flops / moved * rates[level]
        )
        assert roof == pytest.approx(most)
