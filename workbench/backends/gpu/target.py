"""The Target of a common GPU, for kernels that are read or emulated on a machine without one."""

from __future__ import annotations

from workbench.base.target import Target


def common_gpu(name: str) -> Target:
    """Return a Target with limits that nearly every GPU has."""
    return Target(
        name,
        vector_bytes=16,
        native_transcendentals=True,
        grid_limits=(1 << 31, 1 << 16, 1 << 16),
        group_items=256,
        group_limits=(256, 256, 64),
        warp_lanes=32,
        shared_bytes=32 << 10,
        stack_bytes=1 << 30,
        scratch_bytes=16 << 10,
    )
