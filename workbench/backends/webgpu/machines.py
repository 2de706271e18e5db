"""The Target that every implementation of WebGPU supports.

Source: W3C, WebGPU, section "Limits": the default of each limit, which no implementation is below.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.base.target import Target


def target(
    device: str,
    group_items: int = 256,
    shared_bytes: int = 16 << 10,
    grid_limit: int = (1 << 16) - 1,
    group_limits: tuple[int, ...] = (256, 256, 64),
) -> Target:
    """Return the Target of an implementation with these limits.

    Transcendentals are functions of the language (`functions.py`): the polynomials of other devices
    need 64 bits, and sums in the order in which they stand, which an implementation may change.
    """
    return Target(
        device,
        vector_bytes=16,
        grid_limits=(grid_limit,) * 3,
        group_items=group_items,
        group_limits=group_limits,
        warp_lanes=32,
        native_transcendentals=True,
        shared_bytes=shared_bytes,
        scratch_bytes=4 << 10,
        stack_bytes=1 << 30,
    )


MACHINES: Mapping[str, Target] = {"BROWSER": target("BROWSER")}
"""By name."""
