"""Rows of a record: languages, devices, the machine and its speeds; and the key of a graph."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import NamedTuple

from workbench.backends.device import Device, DeviceInfo
from workbench.backends.native import machine
from workbench.backends.program.text import Language
from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.cost.gpu.gpu_cost import peaks
from workbench.cost.gpu.memory_traffic import level_speeds
from workbench.cost.predicted_cost import published_speeds
from workbench.edited import IRLevel
from workbench.emulator.source.languages import LANGUAGES
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.measure.speeds import Speeds, speeds, with_launch_time, with_peak
from workbench.viz.record.changes import Changes, Path
from workbench.viz.schema.record import (
    CacheSize,
    DeviceRow,
    LanguageRow,
    LevelSpeed,
    MachineRow,
    OneThread,
    PageRecord,
)
from workbench.viz.schema.variant import ShareRow, TimingRow

ASSEMBLY = Language("asm", "machine code", "[#;].*$", r"^\s*\.?[\w$.]+:")
STATEMENTS = Language("IR", "statement tree", "#.*$", r"\b(?:FOR|STORE|LOAD|IF|for|store)\b")
_OPS = r"\b[A-Z][A-Z_]+\b"
IR_TEXTS: Mapping[IRLevel, Language] = {
    "tree": Language("IR tree", "the statement tree, as text to edit", r"^\s*#.*$", _OPS),
    "linear": Language("IR linear", "the linear program, as text to edit", r"^\s*#.*$", _OPS),
}
"""The languages of IR text that parses, by level."""
IR_LANGUAGES = {language.name: level for level, language in IR_TEXTS.items()}
"""The level of each language of IR text."""
WHOLE_MACHINE_SHARE = 0.9
"""Threads with this share of the machine's peak are named as the whole machine: "peak"."""


def expression_key(outputs: Sequence[UOp]) -> str:
    """Return a hash of a graph, the same in every session: of its text with numbered BUFFERs."""
    text = expression_text(UOp.sink(*outputs))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def expression_text(root: UOp) -> str:
    """Return the text of a graph, the same in every session: its BUFFERs are numbered."""
    buffers = [n for n in root.toposort() if n.op is Ops.BUFFER]
    numbered = {
        n: construct.buffer(n.dtype, f"memory{i}", n.device, n.shape) for i, n in enumerate(buffers)
    }
    return to_text(root.substitute(numbered))


def language_rows() -> list[LanguageRow]:
    """Return the languages, each with the device that runs it ("": none): first the language that
    all kernels can be read in, then those of devices, machine code, the statement tree, and the IR
    as text to edit."""
    devices = [Device.reader, *(d for d in Device if d is not Device.reader)]
    rows: dict[str, LanguageRow] = {}
    for info in devices:
        for language in info.languages:
            device = info.name if language is info.language else ""
            row = LanguageRow(**asdict(language), device=device)
            row.is_emulated = language.name in LANGUAGES
            rows.setdefault(language.name, row)
    return [
        *rows.values(),
        LanguageRow(**asdict(ASSEMBLY), device="", role="machine"),
        LanguageRow(**asdict(STATEMENTS), device="", role="statements"),
        *[
            LanguageRow(**asdict(each), device="", role="text", is_emulated=True)
            for each in IR_TEXTS.values()
        ],
    ]


def device_rows() -> list[DeviceRow]:
    """Return the devices, those that can be chosen first, then machines that need not be here.
    Devices that only compile are left out: they have no times and no results."""
    devices = [Device[name] for name in Device.names()]
    rows = [_device_row(info) for info in devices if not info.only_compiles]
    rows.sort(key=lambda row: not row.available)
    return rows + [_device_row(Device[name]) for name in Device.machine_names()]


def _device_row(info: DeviceInfo) -> DeviceRow:
    """Return the row of a device; one that is elsewhere can be chosen, too."""
    can_be_chosen = info.is_available or info.is_elsewhere
    return DeviceRow(
        info.name,
        can_be_chosen,
        info.about if can_be_chosen else info.how_to_get,
        info.is_emulator,
        info.is_elsewhere,
        [language.name for language in info.languages],
        info.has_groups,
        info.has_machine_code,
    )


def machine_row(machine_speeds: Speeds | None = None, device: str = "") -> MachineRow:
    """Return this machine's row, or that of a `device` with published figures. Speeds are of all
    cores together, but for `one_thread`; None: not known."""
    if device and Device[device].has_hardware:
        return _published_machine(Device[device].target)
    caches = [CacheSize(*level) for level in machine.caches()]
    return MachineRow(machine.cpu(), os.cpu_count() or 1, caches, *speed_rows(machine_speeds))


def _published_machine(target: Target) -> MachineRow:
    caches = [CacheSize(*level) for level in target.caches]
    hardware = target.hardware
    if hardware is None:
        return MachineRow(target.device, target.cores, caches, *speed_rows(None))
    bandwidths = level_speeds(hardware)
    if not target.has_groups:
        read = published_speeds(hardware, target).read
        bandwidths = {level: rate.together for level, rate in read.items()}
    bandwidth = [LevelSpeed(*row) for row in bandwidths.items()]
    return MachineRow(
        hardware.about, hardware.units, caches, peaks(target), bandwidth, None, None,
        "unit" if target.has_groups else "core", list(hardware.sources),
    )  # fmt: skip


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
    """Return a timing's share of the peak of its threads; None without speeds, on an emulator or
    another machine, of a disturbed time, without floats, and with fewer operations executed than
    counted."""
    kind, threads = timing.kind, timing.threads
    if speeds is None or kind is None or timing.emulator or not timing.is_comparable:
        return None
    fraction = speeds.share(kind, threads, timing.gflops * 1e9)
    if fraction is None:
        return None
    peak = speeds.peak[kind]
    if peak.of(threads) >= WHOLE_MACHINE_SHARE * peak.together:
        return ShareRow(fraction, "peak")
    peak_name = "one thread's peak" if threads == 1 else f"{threads} threads' peak"
    return ShareRow(fraction, peak_name)


class MachineSpeeds:
    """The speeds of this machine in a record, measured once; a kernel that exceeds a peak raises
    the peak. `speeds` is None until they are known."""

    def __init__(self, record: PageRecord, changes: Changes, machine_speeds: Speeds | None):
        self._record, self._changes, self.speeds = record, changes, machine_speeds

    def prepare(self) -> None:
        """Measure speeds that `measure` will need; the record does not change. It takes a second,
        on a busy machine many, once."""
        if self._are_missing:
            speeds()

    def measure(self) -> None:
        """Measure unknown speeds, unless `prepare` has, and add them to the record."""
        if self._are_missing:
            with suppress(WorkbenchError):  # without a compiler they stay unknown
                self._put(speeds())
                self.fit_timings()

    @property
    def _are_missing(self) -> bool:
        return self.speeds is None and not self._has_published_figures

    @property
    def _has_published_figures(self) -> bool:
        return Device[self._record.device].has_hardware

    def show_device(self) -> None:
        """Show the machine of the record's device: this one, or one with published figures."""
        row = machine_row(self.speeds, self._record.device)
        if row != self._record.machine:
            self._changes.put(("machine",), row)

    def fit_timings(self, variant: int | None = None) -> None:
        """Fit the speeds to the timing of a variant (None: of each): raise a peak that it exceeds,
        lower a launch time above it, so that no timing contradicts the machine."""
        variants = self._record.variants
        for row in variants if variant is None else [variants[variant]]:
            timing = row.timing
            if self.speeds is None or not timing or not timing.is_comparable:
                continue
            # edited source may execute fewer operations than are counted
            if timing.emulator or row.edited:
                continue
            speed = timing.gflops * 1e9
            raised = with_peak(self.speeds, timing.kind, timing.threads, speed)
            self._put(with_launch_time(raised, timing.threads, timing.median_s))

    def put_shares(self) -> None:
        """Set each timing's share of the peak; the peak may have risen."""
        for variant, row in enumerate(self._record.variants):
            if row.timing is not None:
                self._put_share(("variants", variant, "timing"), row.timing)
            for place, timing in enumerate(row.elsewhere):
                self._put_share(("variants", variant, "elsewhere", place), timing)

    def _put(self, machine_speeds: Speeds) -> None:
        self.speeds = machine_speeds
        if self._has_published_figures:
            return
        for name, value in speed_rows(machine_speeds)._asdict().items():
            if getattr(self._record.machine, name) != value:
                self._changes.put(("machine", name), value)

    def _put_share(self, path: Path, timing: TimingRow) -> None:
        share = share_row(timing, self.speeds)
        if share != timing.share:
            self._changes.put((*path, "share"), share)
