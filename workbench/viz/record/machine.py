"""The row of this machine: processor, cores, caches, and speeds where they are known."""

from __future__ import annotations

import os
from typing import Any

from workbench.backends.native import machine as system
from workbench.measure.speeds import Speeds
from workbench.viz.schema.record import CacheSize, LevelSpeed, MachineRow, OneThread


def machine(speeds: Speeds | None = None) -> MachineRow:
    """Return the machine. Speeds are those of all cores together, and None where
    they are not known."""
    levels = [CacheSize(*level) for level in system.caches()]
    return MachineRow(system.cpu(), os.cpu_count() or 1, levels, **speed_rows(speeds))


def speed_rows(speeds: Speeds | None) -> dict[str, Any]:
    """Return the fields of a machine's speeds.

    Units: peak in operations per second, bandwidth (of reading) and copy in bytes per second.
    """
    if speeds is None:
        return dict.fromkeys(("peak", "bandwidth", "copy", "one_thread"))
    return {
        "peak": {kind: rate.together for kind, rate in speeds.peak.items()},
        "bandwidth": [
            LevelSpeed(level, rate.together) for level, rate in speeds.read.items()
        ],
        "copy": [
            LevelSpeed(level, rate.together) for level, rate in speeds.copy.items()
        ],
        "one_thread": OneThread(
            {kind: rate.one for kind, rate in speeds.peak.items()},
            [LevelSpeed(level, rate.one) for level, rate in speeds.read.items()],
            [LevelSpeed(level, rate.one) for level, rate in speeds.copy.items()],
        ),
    }
