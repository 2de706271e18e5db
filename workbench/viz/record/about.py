"""Rows of a record about the expression, the devices, the languages and this machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from workbench.backends.device import Device
from workbench.backends.native import machine as system
from workbench.backends.program.language import Language
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.measure.speeds import Speeds
from workbench.viz.schema.record import (
    CacheSize,
    DeviceRow,
    LanguageRow,
    LevelSpeed,
    MachineRow,
    OneThread,
)
from workbench.viz.schema.variant import ShareRow, TimingRow

ASSEMBLY = Language("asm", "machine code", "[#;].*$", r"^\s*\.?[\w$.]+:")
STATEMENTS = Language(
    "IR", "statement tree", "#.*$", r"\b(?:FOR|STORE|LOAD|IF|for|store)\b"
)
MOST_CORES = 0.9
"""Threads that together reach this share of the peak of all threads are compared with that."""


def expression_key(outputs: Sequence[UOp]) -> str:
    """Return a hash of the graph, the same in every session: BUFFERs count by their order."""
    text = expression_text(UOp.sink(*outputs))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def expression_text(root: UOp) -> str:
    """Return the text of a graph, the same in every session: its BUFFERs are numbered."""
    memory = [n for n in root.toposort() if n.op is Ops.BUFFER]
    plain = {
        n: construct.buffer(n.dtype, f"memory{i}", n.device, n.shape)
        for i, n in enumerate(memory)
    }
    return to_text(root.substitute(plain))


def language_rows() -> list[LanguageRow]:
    """Return the languages of programs, best first: the one that all kernels have, those of the
    devices, each with the device that runs it ("": none), machine code and the statement tree."""
    devices = [Device.reader, *(d for d in Device if d is not Device.reader)]
    pairs = [
        (language, d.name if language is d.language else "")
        for d in devices
        for language in d.languages
    ]
    return [
        LanguageRow(**asdict(language), device=device)
        for language, device in (*pairs, (ASSEMBLY, ""), (STATEMENTS, ""))
    ]


def device_rows() -> list[DeviceRow]:
    """Return the devices."""
    return [
        DeviceRow(
            name,
            Device.available(name),
            Device[name].how_to_get,
            Device[name].is_emulator,
        )
        for name in Device.names()
    ]


def machine(speeds: Speeds | None = None) -> MachineRow:
    """Return the machine. Speeds are those of all cores together, and None where
    they are not known."""
    levels = [CacheSize(*level) for level in system.caches()]
    return MachineRow(system.cpu(), os.cpu_count() or 1, levels, *speed_rows(speeds))


class SpeedRows(NamedTuple):
    """The fields of a machine's speeds; None where they are not known.

    Units: peak in operations per second, bandwidth (of reading) and copy in bytes per second.
    """

    peak: dict[str, float] | None = None
    bandwidth: list[LevelSpeed] | None = None
    copy: list[LevelSpeed] | None = None
    one_thread: OneThread | None = None


def speed_rows(speeds: Speeds | None) -> SpeedRows:
    """Return the fields of a machine's speeds."""
    if speeds is None:
        return SpeedRows()
    return SpeedRows(
        {kind: rate.together for kind, rate in speeds.peak.items()},
        [LevelSpeed(level, rate.together) for level, rate in speeds.read.items()],
        [LevelSpeed(level, rate.together) for level, rate in speeds.copy.items()],
        OneThread(
            {kind: rate.one for kind, rate in speeds.peak.items()},
            [LevelSpeed(level, rate.one) for level, rate in speeds.read.items()],
            [LevelSpeed(level, rate.one) for level, rate in speeds.copy.items()],
        ),
    )


def share_row(timing: TimingRow, speeds: Speeds | None) -> ShareRow | None:
    """Return the share of the peak of as many threads as a kernel used; None where it says
    nothing: for a kernel without floats, an emulator, another machine, and a kernel that executes
    fewer operations than are counted."""
    kind, threads = timing.kind, timing.threads
    if speeds is None or kind is None or timing.emulator or timing.machine:
        return None
    fraction = speeds.share(kind, threads, timing.gflops * 1e9)
    if fraction is None:
        return None
    peak = speeds.peak[kind]
    if peak.of(threads) >= MOST_CORES * peak.together:
        return ShareRow(fraction, "peak")
    of = "one thread's peak" if threads == 1 else f"{threads} threads' peak"
    return ShareRow(fraction, of)
