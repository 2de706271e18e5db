"""What a text of WGSL says of its memory."""

from __future__ import annotations

from workbench.backends.webgpu.webgpu_device import written_bindings

TEXT = """
@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@binding(1) @group(0) var<storage, read> p1: array<f32>;
@ binding ( 2 )  // of what comes: @binding(9) var<storage, read_write>
  @group(0)
var < storage , read_write > p2: array<f32>;
/* @group(0) @binding(8) /* in each other */ var<storage, read_write> p8: array<f32>; */
var<workgroup> t0: array<f32, 4>;
"""


def test_attributes_of_what_is_written_stand_in_any_order() -> None:
    assert written_bindings(TEXT) == [0, 2]
    assert written_bindings("") == []
