"""An exploration from a file of `ex.save(path)`, and the files of a folder that have one.

Nothing of the file is executed: its graph is IR text, verified before it is scheduled; source that
was edited by hand is shown, and never run. A file has no data: times are of random inputs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Sized
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from workbench.backends.device import Device
from workbench.base.context import LIVE
from workbench.base.errors import MissingFileError, VerifyError, WorkbenchError, cut
from workbench.base.source import SourceLine
from workbench.base.typed import json_value, typed
from workbench.execution.buffers import absent_buffer
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.parser import parse
from workbench.ir.verify.tensor import with_foreign_code
from workbench.ir.verify.verify import verify
from workbench.kernel.kernel import Kernel
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration import exploration
from workbench.viz.exploration.exploration import Exploration, Page
from workbench.viz.exploration.memory_budget import MemoryBudget
from workbench.viz.files.files import gradient_record, loaded_choices, plan_hash
from workbench.viz.model.lines import FileOrigin, Viewer
from workbench.viz.model.phases import PHASES
from workbench.viz.page.panel import panes
from workbench.viz.record.about import machine_row
from workbench.viz.record.variants import step_rows
from workbench.viz.run.checked import checked_run
from workbench.viz.run.run import RUN_FORMAT, Run
from workbench.viz.schema.run import RunRecord
from workbench.viz.schema.saved import FileVariant, SavedExploration
from workbench.viz.schema.variant import TimingRow
from workbench.viz.session.handlers import variants
from workbench.viz.session.live_record import Edited
from workbench.viz.session.opt_text import parse_opt
from workbench.viz.session.session import Session

FORMAT = "workbench exploration"
"""The field `format` of a file."""
VERSION = 1
"""The version of files that is read here."""
MOST_BYTES = 256 << 20
"""Most bytes of a file that is read."""
HINT = "a file that ex.save(path) or run.save(path) wrote"
"""The hint of an error: which files can be loaded."""
REGISTER = "register here first what was registered where the file was saved"
"""The hint of an error of a file that needs what is not here."""


HEAD_BYTES = 200
"""Bytes at the beginning of a file that say whether it is an exploration."""
MOST_ENTRIES = 1000
"""Most entries of a folder that are looked at."""


def saved_files(folder: Path) -> list[Path]:
    """Return the files of a folder that hold explorations, the latest first; [] for a folder that
    cannot be read."""
    found: list[tuple[float, Path]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MOST_ENTRIES):
            with suppress(OSError):
                if entry.is_file() and _is_exploration(entry.path):
                    found.append((entry.stat().st_mtime, Path(entry.path)))
    return [path for _, path in sorted(found, reverse=True)]


def _is_exploration(path: str) -> bool:
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    return head.lstrip()[:1] == b"{" and f'"{FORMAT}"'.encode() in head


def opened(path: str | os.PathLike[str], page: Page) -> Exploration:
    """Return the exploration that `ex.save(path)` wrote, with its variants, notes and times, which
    `page` shows.

    Errors: WorkbenchError for a file that is missing, cut off, of another kind or another version,
    and for one that needs a device, a rule or a pane that is not here.
    """
    saved = _read(path)
    if saved.show and saved.show not in panes():
        because = f"it shows the pane {saved.show!r:.40}, and there are {', '.join(panes())}"
        raise _refused(path, because, REGISTER)
    try:
        root = _graph(saved.graph)
        _check_places(saved, root)
        viewer, origin = _node_facts(saved, root, _words(path, saved, root))
    except (WorkbenchError, _Mismatch) as error:
        because = str(error).partition("\n")[0]
        raise _refused(path, f"it is damaged: {because}") from None
    except _MAKERS_ERRORS as error:
        because = "its graph and what it says of its nodes do not fit each other"
        raise _refused(path, f"it is damaged: {because}") from error
    count = len(saved.devices)
    forced = dict(zip(root.src[count:], saved.forced, strict=False))
    choices = loaded_choices(forced, saved.by_hand, root.src[count:])
    try:
        for device in filter(None, saved.devices):
            Device[device]  # an unknown one is refused
        tensors = map(Tensor._on, root.src[:count], saved.devices)
        ex = exploration.of(
            tuple(tensors), page, choices, tuple(saved.rules_off), saved.show, viewer, origin,
            device=_device_of_kernels(saved.device),
        )  # fmt: skip
    except WorkbenchError as error:
        because = f"{error.what}: {error.because}"
        raise _refused(path, because, error.hint or REGISTER) from error
    words, budget = origin.words, None
    if plan_hash(ex.kernels) != saved.plan:
        words += " Here it is scheduled otherwise than where it was saved."
    elif saved.budget is not None:
        budget = MemoryBudget(**asdict(saved.budget))
    if saved.device and not _is_here(saved.device) and ex.device != saved.device:
        words += (
            f" Its kernels were for {saved.device}, which is not here: they are for {ex.device}."
        )
    origin = dataclasses.replace(origin, words=words)
    ex = dataclasses.replace(ex, origin=origin, budget=budget)
    session = ex.display.session = Session(ex, prefetches=LIVE.value > 1)
    with session.lock:
        _restore(session, saved)
        session.send_changes()
    return ex


def _device_of_kernels(device: str) -> str:
    """Return a device that kernels are compiled for but do not run on here; "" for others."""
    with suppress(WorkbenchError):
        if Device[device].is_elsewhere or Device[device].only_compiles:
            return Device[device].name
    return ""


def _is_here(device: str) -> bool:
    with suppress(WorkbenchError):
        return Device.available(device)
    return False


# reading


def _check_places(saved: SavedExploration, root: UOp) -> None:
    """Check that a file refers only to nodes, roots and lines that it has. Errors: _Mismatch."""
    count = len(root.toposort())
    columns: dict[str, Sized] = {
        "lines": saved.node_lines,
        "names": saved.node_names,
        "modules": saved.node_modules,
        "phases": saved.node_phases or [""] * count,
    }
    for name, column in columns.items():
        if len(column) != count:
            raise _Mismatch(f"it has {name} of {len(column)} nodes, and there are {count}")
    phases = {"", *(phase.name for phase in PHASES)}
    if not phases.issuperset(saved.node_phases):
        raise _Mismatch("a node has a phase of training that there is not")
    chosen = len(saved.forced) if saved.by_hand is None else saved.by_hand.values
    named = len(saved.devices) + chosen
    if chosen < len(saved.forced) or (
        saved.by_hand is not None and any(place >= chosen for place in saved.by_hand.places())
    ):
        raise _Mismatch("a choice by hand is about a value that is not there")
    if len(root.src) < named or (len(root.src) > named and not saved.gradients):
        raise _Mismatch("its graph has other roots than it says")
    lines = len(saved.lines)
    own = () if saved.line is None else (saved.line,)
    if any(place >= lines for places in (own, *saved.node_lines) for place in places):
        raise _Mismatch(f"it names a line that is not there: it has {lines} lines")
    if any(place >= count for row in saved.gradients for place in row.places()):
        raise _Mismatch(f"a gradient is of a node that is not there: it has {count}")


def _node_facts(saved: SavedExploration, root: UOp, words: str) -> tuple[Viewer, FileOrigin]:
    """Return the user's names of the nodes, and the origin with all other facts about them."""
    nodes = list(root.toposort())
    listed = _lines(saved)
    own_lines = zip(nodes, saved.node_lines, strict=True)
    lines = {n: [listed[p] for p in places] for n, places in own_lines if places}
    names = zip(nodes, saved.node_names, strict=True)
    modules = zip(nodes, saved.node_modules, strict=True)
    phases = {n: p for n, p in zip(nodes, saved.node_phases, strict=False) if p}
    passes = [gradient_record(row, nodes) for row in saved.gradients]
    line = None if saved.line is None else listed[saved.line]
    viewer = Viewer(names={node: tuple(own) for node, own in names if own}, line=line)
    called = {node: calls for node, calls in modules if calls}
    return viewer, FileOrigin(words, lines, called, passes, phases)


def _read(path: str | os.PathLike[str]) -> SavedExploration:
    """Return the content of a file. Errors: MissingFileError; WorkbenchError for other faults."""
    data = _file_data(path)
    if data.get("format") != FORMAT:
        raise _refused(path, "it is not an exploration")
    try:
        saved = typed(data, SavedExploration)
        _check(saved)
    except ValueError as error:
        raise _refused(path, f"it is damaged: {error}") from None
    return saved


def is_run(path: object) -> bool:
    """Whether a file holds a run, of `run.save(path)`; False for one that cannot be read."""
    with suppress(OSError, ValueError, TypeError):
        if Path(path).is_file():  # type: ignore[arg-type]
            with open(path, "rb") as file:  # type: ignore[call-overload]
                return f'"{RUN_FORMAT}"'.encode() in file.read(HEAD_BYTES)
    return False


def opened_run(path: str | os.PathLike[str]) -> Run:
    """Return the run that `run.save(path)` wrote. Errors: as `opened`."""
    data = _file_data(path)
    try:
        return Run(checked_run(typed(data.get("run"), RunRecord)))
    except ValueError as error:
        raise _refused(path, f"it is damaged: {error}") from None


def _file_data(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the plain data of a file of ours. Errors: MissingFileError; WorkbenchError for other
    faults."""
    try:
        file = Path(path)
        if file.stat().st_size > MOST_BYTES:
            raise _refused(path, f"it is larger than {MOST_BYTES >> 20} MiB")
        if not file.is_file() and not file.is_dir():
            raise _refused(path, "it is no file, but a device or a pipe")
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(path, "it is not text") from None
    except FileNotFoundError:
        because = f"there is no such file in {cut(str(file.absolute().parent), 200)}"
        raise MissingFileError(f"cannot load {str(path)[:200]}", because, HINT) from None
    except (OSError, ValueError, TypeError) as error:
        raise _refused(path, getattr(error, "strerror", None) or str(error)) from None
    if text.lstrip()[:1] == "<":
        because = "it is a page, which a browser opens"
        raise _refused(path, because)
    try:
        data = json_value(text)
    except json.JSONDecodeError:
        is_ours = any(f'"{name}"' in text[:HEAD_BYTES] for name in (FORMAT, RUN_FORMAT))
        because = "it is cut off or damaged" if is_ours else "it is not JSON"
        raise _refused(path, because) from None
    except ValueError as error:
        raise _refused(path, f"it is damaged: {error}") from None
    if not isinstance(data, dict) or data.get("format") not in (FORMAT, RUN_FORMAT):
        raise _refused(path, "it is not an exploration")
    if data.get("v") != VERSION:
        because = f"it is of form {data.get('v')!r:.20}, and this version reads {VERSION}"
        writer = str(data.get("program"))[:20]
        raise _refused(path, because, f"the version that wrote it: {writer}")
    return data


class _Mismatch(ValueError):
    """Parts of a file do not fit each other."""


_MAKERS_ERRORS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)
"""Errors of making nodes from values that no saved graph has."""


def _check(saved: SavedExploration) -> None:
    """Check what needs no graph. Errors: _Mismatch."""
    if not saved.devices:
        raise _Mismatch("it has no tensor")
    for place, variant in enumerate(saved.variants):
        if variant.parent is not None and not 0 <= variant.parent < place:
            raise _Mismatch("a variant stands before its parent")
    for place, line in enumerate(saved.lines):
        if not all(0 <= inner < place for inner in line.inner):
            raise _Mismatch("a line stands before those that it called")


def _refused(path: Any, because: str, hint: str = HINT) -> WorkbenchError:
    return WorkbenchError(f"cannot load {str(path)[:200]}", cut(because, 300), hint)


def _graph(text: str) -> UOp:
    """Return the root of a graph, whose memory has no data here, whatever its name is."""
    root = parse(text)
    if not isinstance(root, UOp) or root.op is not Ops.SINK:
        raise VerifyError("its graph has no root")
    verify(root, "tensor")
    memory = [node for node in root.toposort() if node.op is Ops.BUFFER]
    root = root.substitute({n: absent_buffer(n.dtype, n.device, n.buffer_shape) for n in memory})
    return with_foreign_code(root)


def _lines(saved: SavedExploration) -> list[SourceLine]:
    """Return the lines of a file, each with the lines that it called."""
    lines: list[SourceLine] = []
    for row in saved.lines:
        inner = tuple([lines[place] for place in row.inner])
        lines.append(SourceLine(row.name, row.line, row.text, inner))
    return lines


def _words(path: Any, saved: SavedExploration, root: UOp) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(saved.when))
    head = f"From {os.path.basename(path)}, saved on {day} on {_machine(saved)}"
    if all(node.op is not Ops.BUFFER for node in root.toposort()):
        return f"{head}."
    return (
        f"{head}, without data: what is timed here runs on random inputs, "
        "and no answer can be checked."
    )


def _machine(saved: SavedExploration) -> str:
    cores = f"{saved.cores} core" + ("s" if saved.cores != 1 else "")
    return f"{saved.cpu[:80]}, {cores}"


# variants and their results


def _restore(session: Session, saved: SavedExploration) -> None:
    """Add the baselines and the variants of a file to a session. A variant that is not possible
    here is left out, such as one with an opt that is not registered."""
    this_machine = machine_row()
    is_same = (this_machine.cpu, this_machine.cores) == (saved.cpu, saved.cores)
    elsewhere = "" if is_same else _machine(saved)
    session.put(("baselines",), [
        replace(row, timing=row.timing and _earlier(row.timing, elsewhere))
        for row in saved.baselines
    ])  # fmt: skip
    places: dict[int, int] = {}
    for number, entry in enumerate(saved.variants):
        if 0 <= entry.saved.kernel < len(session.record.kernels):
            with suppress(WorkbenchError):
                places[number] = _restored(session, entry, places)
                _fill(session, places[number], entry, elsewhere)
    with suppress(WorkbenchError):
        if saved.device != session.device:
            variants.device(session, saved.device)


def _restored(session: Session, entry: FileVariant, places: dict[int, int]) -> int:
    """Return the place of a variant, which is added if it is new."""
    saved = entry.saved
    root = session.record.kernels[saved.kernel].root
    parent = places.get(-1 if entry.parent is None else entry.parent, root)
    if saved.edited is not None:
        source = Edited(saved.edited.device, saved.edited.text, True, saved.edited.level)
        return variants.edited_variant(session, source, parent, f"edited: {saved.name}"[:60])
    kernel = _kernel(session.kernels[root], entry)
    name = saved.name if saved.name not in ("plain", "auto") or kernel.steps else ""
    variant = variants.variant_of(session, kernel, parent, name)
    session.set(variant, "steps", step_rows(kernel.steps))
    return variant


def _kernel(root: Kernel, entry: FileVariant) -> Kernel:
    """Return the kernel of a variant; for the default opts the kernel that has their steps."""
    without = root.without(*entry.rules_off) if entry.rules_off else root
    kernel = without.apply(*map(parse_opt, entry.saved.opts))
    auto = without.optimized() if entry.saved.name == "auto" else kernel
    return auto if auto.ast is kernel.ast else kernel


def _fill(session: Session, variant: int, entry: FileVariant, elsewhere: str) -> None:
    """Set the time, note, searches, timings and verdicts of a variant."""
    saved = entry.saved
    session.set(variant, "when", saved.when)
    session.set(variant, "note", saved.note)
    session.set(variant, "searches", saved.searches)
    for device, timing in saved.timings.items():
        session.timings[variant, device] = _earlier(timing, elsewhere)
    for device, check in entry.checks.items():
        session.checks[variant, device] = check
    device = session.device if saved.edited is None else saved.edited.device
    session.set(variant, "timing", session.timings.get((variant, device)))
    session.set(variant, "check", session.checks.get((variant, device)))
    variants.show_elsewhere(session, variant)
    if saved.edited is not None:
        session.set(variant, "check", saved.edited.check)
        session.set(variant, "error", saved.edited.error)
    if saved.pinned:
        session.put(("pinned",), variant)


def _earlier(timing: TimingRow, elsewhere: str) -> TimingRow:
    return replace(timing, earlier=True, machine=timing.machine or elsewhere)
