"""Edited IR: the text of a statement tree or of a linear program, verified, and lowered on.

    edited_ir(kernel, "LLVM", text).stages     # from that level on, up to the source

A user typed or pasted the text. It is refused, with a line and a column, unless it is of its level,
has the kernel's arguments, and is so small that lowering it takes seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from workbench.backends.device import Device, DeviceInfo
from workbench.backends.program.text import Source, require_readable
from workbench.base.dtypes import dtypes
from workbench.base.errors import DeviceError, ParseError, VerifyError, kind_of
from workbench.base.trace import unobserved
from workbench.emulator.checks import (
    NAMED_BY_RUNS,
    hints_of_edit,
    params_of,
    require_params,
    require_program,
)
from workbench.emulator.source.languages import language_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.parser import Listing, Place, read
from workbench.ir.text.printer import to_text
from workbench.ir.verify.kernel import MAX_LANES
from workbench.ir.verify.rows import broken
from workbench.ir.verify.verify import guarded_indexes, verify
from workbench.pipeline import Stages, stages

IRLevel = Literal["tree", "linear"]
MOST_ARRAY_BYTES = 1 << 26
"""Most bytes of all arrays of a program, unless the unedited one has more."""
MOST_OPERATIONS = 1 << 17
"""Most operations that the lanes of a tree may make of its statements."""
UNEDITED = "the text as it was"
_STATEMENTS = (Ops.LOOP, Ops.IF, Ops.STORE, Ops.ACCUMULATE, Ops.BARRIER, Ops.SPECIAL)
_FOREIGN = {
    Ops.VAR: "a kernel is run without variables",
    Ops.EXTERN: "source text is no part of a kernel of IR",
}


@dataclass(frozen=True, slots=True)
class EditedIR:
    """IR `text` that a user edited, of a `level`: its `listing`, and the `stages` that follow."""

    text: str
    level: IRLevel
    listing: Listing
    stages: Stages

    @property
    def linear(self) -> tuple[UOp, ...]:
        """The linear program."""
        return self.stages.linear


def ir_text(reached: Stages, level: IRLevel) -> str:
    """Return the text of a level of a kernel on a device, which `edited_ir` reads."""
    return to_text(reached.lowered if level == "tree" else reached.linear)


def level_of(text: str) -> IRLevel:
    """Return the level of a text, by its first line."""
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return "linear" if first == "LINEAR" else "tree"


def edited_ir(kernel: UOp, device: str, text: str) -> EditedIR:
    """Return the edited text of a level of `kernel` (a SINK) on a device, and the stages from there
    on, up to the source. Nothing is loaded, and nothing runs.

    Errors: ParseError and VerifyError, with the line and the column, and with the text before the
    edit as a hint; CompileError as `stages`; DeviceError for a kernel that is written as source.
    """
    if not isinstance(text, str):
        because = f"{kind_of(text)} is not a text"
        raise ParseError("this is no IR", because, 'kernel.compile().text("linear"), edited')
    require_readable(text)
    _require_ir(text, Device[device])
    if kernel.code is not None:
        what = f"the kernel {kernel.arg.name} has no IR to edit"
        because = f"it is written in {kernel.code.language}"
        raise DeviceError(what, because, f"its {kernel.code.language}, edited")
    info, level = Device[device], level_of(text)
    with unobserved():
        own = stages(kernel, device, "linear")
        before = own.linear if level == "linear" else own.lowered
        with hints_of_edit(text, before, UNEDITED):
            listing = read(text)
            with _at_places(listing):
                reached = _reached(listing, own, info)
                require_params(reached.linear, own.linear, kernel.outputs, info.target)
                _require_writes(reached.linear, kernel.outputs)
        if level == "linear" and info is Device.emulator:  # its sources are trees
            reached = replace(reached, source=_source(reached, info))
        else:
            reached = stages(reached, device, "source")
    return EditedIR(text, level, listing, reached)


def _require_ir(text: str, info: DeviceInfo) -> None:
    """Errors: ParseError for source in a language of a device, which has no IR to lower on."""
    if Ops.BLOCK.name in text:  # each level has one
        return
    emulated = language_of(text, "" if info.language is None else info.language.name)
    if emulated is not None:
        raise _not_ir(emulated, "emulate(kernel, code=text) runs it")
    for language in (each for device in (info, *Device) for each in device.languages):
        if language.head and re.search(language.head, text, re.MULTILINE):
            raise _not_ir(language.name, "Edit in the Source pane of explore(..), which runs it")


def _not_ir(language: str, hint: str) -> ParseError:
    because = "IR text has an op a line: LINEAR and BLOCK come first, or a tree ends with BLOCK"
    return ParseError(f"this is {language}, not IR", because, hint)


def _reached(listing: Listing, own: Stages, info: DeviceInfo) -> Stages:
    ir = listing.ir
    if isinstance(ir, UOp):
        return _from_tree(ir, listing, own, info)
    _require_known(ir)
    require_program(ir, _named_by_runs(info))
    _require_room(ir, own)
    empty = UOp(Ops.BLOCK, dtypes.void, (), ir[0].arg)  # a tree whose statements no line follows
    return Stages(own.kernel, empty, empty, ir)


def _named_by_runs(info: DeviceInfo) -> frozenset[str]:
    """Return the rules whose violations a run on a device reports: those of work-groups that are
    emulated."""
    return NAMED_BY_RUNS if info.is_elsewhere and info.has_groups else frozenset()


def _from_tree(tree: UOp, listing: Listing, own: Stages, info: DeviceInfo) -> Stages:
    nodes = tree.toposort()
    if tree.op is not Ops.BLOCK:
        problem = f"the text ends with a {tree.op.name}"
        raise ParseError(problem, "a tree ends with its BLOCK").placed(*listing.nodes[tree])
    for node, place in listing.nodes.items():
        if node.op in _STATEMENTS and node not in nodes:
            problem = f"this {node.op.name} is not in the tree"
            because = "it is no source of a LOOP, an IF or the BLOCK below it"
            raise ParseError(problem, because).placed(*place)
    _require_known(nodes)
    in_own = {node for node in own.lowered.toposort() if node.op is Ops.INDEX}
    verify(tree, "lowered", in_bounds=in_own - guarded_indexes(own.lowered).keys())
    _require_room(nodes, own)
    _require_few_lanes(nodes)
    quoted = own.tree if tree is own.lowered else tree  # by comments, before it was decomposed
    reached = stages(Stages(own.kernel, quoted, tree), info.name, "linear")
    require_program(reached.linear, _named_by_runs(info))
    return reached


def _source(reached: Stages, info: DeviceInfo) -> Source:
    """Return a linear program as the source of a device without a language for it."""
    params = params_of(reached.linear, info.target)
    name, text = reached.linear[0].arg.name, to_text(reached.linear)
    return Source(name, "workbench IR", text, params, linear=reached.linear)


# what no level of the IR refuses, and a run cannot have


def _require_known(nodes: Iterable[UOp]) -> None:
    """Errors: VerifyError for a node that only a whole expression may have."""
    for node in nodes:
        if node.op in _FOREIGN:
            raise broken("known", "an edited kernel has its own ops", node, _FOREIGN[node.op])


def _require_room(nodes: Iterable[UOp], own: Stages) -> None:
    """Errors: VerifyError for arrays that are larger than any that is computed with."""
    most, total = max(MOST_ARRAY_BYTES, _array_bytes(own.linear)), 0
    for node in nodes:
        if node.op is Ops.DEFINE:
            size = math.prod(node.memory_shape)
            total += size * node.dtype.itemsize
            if node.space == "register" and size > MAX_LANES:
                why = f"it has {size:,} registers, and at most {MAX_LANES:,} are written out"
                raise broken("room", "registers are few enough to write out", node, why)
            if total > most:
                why = f"it is the last of {total:,} bytes, and at most {most:,} are allocated"
                raise broken("room", "arrays fit the memory of a kernel", node, why)


def _array_bytes(linear: Sequence[UOp]) -> int:
    arrays = [node for node in linear if node.op is Ops.DEFINE]
    return sum(math.prod(node.memory_shape) * node.dtype.itemsize for node in arrays)


def _require_few_lanes(nodes: Iterable[UOp]) -> None:
    """Errors: VerifyError for lanes that make too many operations of a tree's statements."""
    total = 0
    for node in nodes:
        if node.op in (Ops.STORE, Ops.ACCUMULATE):
            below = node.toposort()
            axes = [r for r in below if r.op is Ops.RANGE and r.axis_kind.is_lane]
            total += math.prod(axis.extent for axis in axes) * len(below)
            if total > MOST_OPERATIONS:
                why = f"its lanes make the program longer than {MOST_OPERATIONS:,} operations"
                raise broken("few-lanes", "lanes are few enough to write out", node, why)


def _require_writes(linear: Sequence[UOp], outputs: Sequence[int]) -> None:
    """Errors: VerifyError for a STORE to an input, and for one that all threads make."""
    threads: list[UOp] = []
    for position, node in enumerate(linear):
        if node.op is Ops.LOOP and node.role == "thread" and node.axis.extent > 1:
            threads.append(node.axis)
        elif node.op is Ops.ENDLOOP and node.axis in threads:
            threads.remove(node.axis)
        elif node.op is Ops.STORE and node.place.param.op is Ops.PARAM:
            why, slot = "", node.place.param.slot
            alike = next((axis for axis in threads if axis not in node.place.ranges), None)
            if slot not in outputs:
                why = f"it writes to p{slot}, an input"
            elif alike is not None:
                why = f"a race: all threads, {alike.axis_name}, write to the same elements"
            if why:
                error = broken("writes", "a kernel writes to its outputs, once", node, why)
                error.position = position
                raise error


# the places of faults in the text


@contextmanager
def _at_places(listing: Listing) -> Iterator[None]:
    """Give a VerifyError of the block the place of its node in the text."""
    try:
        yield
    except VerifyError as error:
        place = _place_of(error, listing)
        if place is not None and error.line is None:
            error.placed(*place)
        raise


def _place_of(error: VerifyError, listing: Listing) -> Place | None:
    position, node = error.position, error.node
    if position is not None and position < len(listing.steps):
        return listing.steps[position]
    if not isinstance(node, UOp):
        return None
    users = (place for user, place in listing.nodes.items() if node in user.src)
    return listing.nodes.get(node) or next(users, None)
