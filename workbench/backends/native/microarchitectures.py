"""Microarchitectures by LLVM's name of the processor: the latency of a multiply-add, and the
throughput by its width.

Opts are chosen by these figures, the same in every session; the costs of kernels go by what is
measured (`measure/speeds.py`). Sources: A. Fog, Instruction tables, 2024; uops.info; Arm, Software
Optimization Guides of the cores named here; AMD and Intel, optimization manuals, 2024.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.base.target import Starts


class MultiplyAdd(NamedTuple):
    """See the fields of `Target`."""

    cycles: int = 4
    starts: Starts = ()


_TWO_OF_16 = MultiplyAdd(4, ((16, 2), (32, 1)))
_TWO_OF_32 = MultiplyAdd(4, ((32, 2), (64, 1)))
_TWO_OF_64 = MultiplyAdd(4, ((64, 2),))
_FOUR_OF_16 = MultiplyAdd(4, ((16, 4), (32, 2)))
MULTIPLY_ADDS: dict[str, MultiplyAdd] = {
    "znver1": MultiplyAdd(5, ((16, 2), (32, 1))),
    "znver2": MultiplyAdd(5, ((32, 2),)),
    "znver3": MultiplyAdd(4, ((32, 2),)),
    "znver4": _TWO_OF_32,
    "znver5": _TWO_OF_64,
    "haswell": MultiplyAdd(5, ((32, 2),)),
    "broadwell": MultiplyAdd(5, ((32, 2),)),
    "skylake": MultiplyAdd(4, ((32, 2),)),
    "alderlake": _TWO_OF_32,
    "raptorlake": _TWO_OF_32,
    "meteorlake": _TWO_OF_32,
    "arrowlake": _TWO_OF_32,
    "icelake-client": _TWO_OF_32,
    "tigerlake": _TWO_OF_32,
    "rocketlake": _TWO_OF_32,
    "skylake-avx512": _TWO_OF_64,
    "cascadelake": _TWO_OF_64,
    "cooperlake": _TWO_OF_64,
    "icelake-server": _TWO_OF_64,
    "sapphirerapids": _TWO_OF_64,
    "emeraldrapids": _TWO_OF_64,
    "graniterapids": _TWO_OF_64,
    "gracemont": MultiplyAdd(6, ((16, 2), (32, 1))),
    "sierraforest": MultiplyAdd(6, ((16, 2), (32, 1))),
    "cortex-a53": MultiplyAdd(8, ((16, 1),)),
    "cortex-a55": MultiplyAdd(4, ((16, 1),)),
    "cortex-a76": _TWO_OF_16,
    "neoverse-n1": _TWO_OF_16,
    "neoverse-n2": _TWO_OF_16,
    "neoverse-v1": _FOUR_OF_16,
    "neoverse-v2": _FOUR_OF_16,
    "apple-m1": _FOUR_OF_16,
    "apple-m2": _FOUR_OF_16,
    "apple-m3": _FOUR_OF_16,
    "apple-m4": _FOUR_OF_16,
    "spacemit-x60": MultiplyAdd(4, ((32, 1),)),
}


def multiply_add(processor: str) -> MultiplyAdd:
    """Return the figures of a processor by LLVM's name: common ones where it is not known."""
    return MULTIPLY_ADDS.get(processor, MultiplyAdd())
