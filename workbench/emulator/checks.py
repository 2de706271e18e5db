"""Checks of a program on the emulator: edited programs, limits of the device, wrong outputs,
inefficiencies, and the predicted duration.

Sections: Edited programs; The predicted duration of an emulation; The remedy for a refused edit
of a program; Inefficiencies of a run; The limits of a device, checked before an edited program
runs; Wrong outputs of a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from workbench.backends.program.analysis import analyse
from workbench.backends.program.launch import LaunchShape, launch_shape
from workbench.backends.program.text import signature
from workbench.base.dtypes import DType
from workbench.base.errors import DeviceError, ParseError, VerifyError, plural
from workbench.base.target import Target
from workbench.emulator.accesses import AccessCount, WorstWarp
from workbench.emulator.cells import NO_ITEM
from workbench.emulator.findings import Inefficiency, InefficiencyKind
from workbench.emulator.machine import LANES_AT_ONCE, Machine
from workbench.emulator.rounds import ends_of, rounds_plan
from workbench.emulator.source.program import NO_ANNOTATIONS, Annotations
from workbench.ir.meaning import closeness
from workbench.ir.nest.accesses import name_of, size_of
from workbench.ir.nest.loops import group_excess
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import brief, to_text
from workbench.ir.verify.linear import verify_linear

# --------------------------------------------------------------------------------------------------
# Edited programs: the text of a linear program, or its steps.

_UNEDITED = "the text of emulate(kernel).code, edited"
NAMED_BY_RUNS = frozenset({"divergence", "set-first", "partners"})
"""Rules whose violations a run reports, with the work-items."""


def program_of(code: str | Sequence[UOp]) -> tuple[UOp, ...]:
    """Return the steps of a linear program. Errors that a run reports are not refused: a barrier
    that not all work-items come to, a register that is never set.

    Errors: ParseError for a text that is no program; VerifyError for steps that no program has.
    """
    steps = parse(code) if isinstance(code, str) else _steps(code)
    if isinstance(steps, UOp):
        because = "it has no line LINEAR at its beginning"
        raise ParseError("this is not the text of a linear program", because, _UNEDITED)
    require_program(steps)
    return steps


def require_program(steps: Sequence[UOp], without: frozenset[str] = NAMED_BY_RUNS) -> None:
    """Errors: VerifyError for steps that no program has; `without` are rules that need not hold."""
    verify_linear(steps, without=without)
    _require_numbers(steps)
    _require_one_type(steps)


def _steps(code: Any) -> tuple[UOp, ...]:
    if isinstance(code, (list, tuple)) and all(isinstance(s, UOp) for s in code):
        return tuple(code)
    what = f"{code!r:.60} is not a linear program"
    raise ParseError(what, "it is neither text nor a list of steps", _UNEDITED)


def _require_numbers(steps: Sequence[UOp]) -> None:
    """Errors: VerifyError for SPECIALs that do not number all dimensions once."""
    for role in ("grid", "item"):
        numbers = [n.dimension for n in steps if n.op is Ops.SPECIAL and n.role == role]
        if sorted(numbers) != list(range(len(numbers))):
            listed = ", ".join(map(str, numbers))
            because = f"SPECIALs number the dimensions {listed} of the {role}"
            hint = f"each of 0 to {len(numbers) - 1} once"
            raise VerifyError("special: each dimension has one number", because, hint)


def _require_one_type(steps: Sequence[UOp]) -> None:
    """Errors: VerifyError for an argument of two lengths or dtypes."""
    types: dict[int, str] = {}
    for param in (n.param for n in steps if n.op is Ops.INDEX):
        if param.op is Ops.PARAM:
            own = _type_of(param)
            first = types.setdefault(param.slot, own)
            if first != own:
                because = f"p{param.slot} is {first}, and {own}"
                what = "param: an argument has one dtype and one length"
                raise VerifyError(what, because, where=brief(param))


def params_of(steps: Sequence[UOp], target: Target) -> tuple[tuple[DType, int], ...]:
    """Return the dtype and the length of each argument of a program, by slot."""
    return signature(_params(steps, target))


def require_params(
    steps: Sequence[UOp], own: Sequence[UOp], outputs: Iterable[int], target: Target
) -> None:
    """Errors: VerifyError for a program with other arguments than the kernel's `own`, or without
    one of its outputs, by slot."""
    what = "the program has other arguments than the kernel"
    own_params = {param.slot: param for param in _params(own, target)}
    params = _params(steps, target)
    for param in params:
        before = own_params.get(param.slot)
        if before is None or _type_of(before) != _type_of(param):
            has = "no such argument" if before is None else _type_of(before)
            because = f"it has p{param.slot} as {_type_of(param)}, and the kernel has {has}"
            raise VerifyError(what, because, _own_texts(own_params.values()))
    for slot in sorted({*outputs} & own_params.keys() - {p.slot for p in params}):
        because = f"it has no p{slot}, which the kernel writes its result to"
        raise VerifyError(what, because, _own_texts(own_params.values()))


def _params(steps: Sequence[UOp], target: Target) -> tuple[UOp, ...]:
    return analyse(tuple(steps), target).params


def _own_texts(params: Iterable[UOp]) -> str:
    texts = [f"PARAM.{p.dtype} {{{p.slot}, {p.length}}}" for p in params]
    return f"the kernel's own: {', '.join(texts)}"


def _type_of(param: UOp) -> str:
    return f"{param.dtype.scalar}[{param.length}]"


# --------------------------------------------------------------------------------------------------
# The predicted duration of an emulation: the number of executions of each step.

STEP_S = 2e-5
"""Seconds of a step of the program for all work-items that run together, however few."""
LANE_S = 2e-8
"""Seconds that each lane of each work-item adds to a step."""


def repeats(
    linear: Sequence[UOp], annotations: Annotations = NO_ANNOTATIONS
) -> Iterator[tuple[UOp, int]]:
    """Yield each step of a linear program, and how often a work-item executes it at most (once, in
    a loop whose rounds are not known); a LOOP counts as often as its body."""
    times = [1]
    for position, node in enumerate(linear):
        if node.op is Ops.LOOP:
            times.append(times[-1] * (1 if position in annotations.until else node.axis.extent))
        elif node.op is Ops.ENDLOOP:
            times.pop()
        yield node, times[-1]


def emulation_s(
    linear: Sequence[UOp], groups: int | None = None, annotations: Annotations = NO_ANNOTATIONS
) -> float:
    """Return about how many seconds the emulator takes for all work-groups of a program, or for a
    number of them (`groups`)."""
    launch = launch_shape(linear)
    count = math.prod(launch.grid) if groups is None else groups
    items = count * math.prod(launch.group)
    goes = -(-items // LANES_AT_ONCE)
    lanes = max(1, min(items, LANES_AT_ONCE))
    at_once = rounds_at_once(linear, lanes) if annotations is NO_ANNOTATIONS else {}
    return sum(
        times * goes / at_once.get(position, 1) * STEP_S
        + times * items * max(1, node.dtype.count) * LANE_S
        for position, (node, times) in enumerate(repeats(linear, annotations))
    )


def rounds_at_once(linear: Sequence[UOp], items: int) -> Mapping[int, int]:
    """Return how many rounds of its loop are computed at once, by the position of each step that is
    not executed round by round."""
    at_once: dict[int, int] = {}
    ends = ends_of(linear)
    for position, node in enumerate(linear):
        if node.op is not Ops.LOOP:
            continue
        plan = rounds_plan(linear, position + 1, ends[position], node.axis)
        if plan is None:
            continue
        rounds = min(plan.at_once(items), node.axis.extent)
        steps = range(position, ends[position])
        at_once |= {p: rounds for p in steps if linear[p] not in plan.by_round}
    return at_once


# --------------------------------------------------------------------------------------------------
# The remedy for a refused edit of a program: the edit undone.

_AT = "at line"
_MOST_CHARACTERS = 200
_MOST_LINES = 3000
"""Most lines of texts that are compared: it may take the square of their number."""


@contextmanager
def hints_of_edit(
    code: str | Sequence[UOp], own: UOp | Sequence[UOp] = (), unedited: str = _UNEDITED
) -> Iterator[None]:
    """Add a hint to errors about an edited program or statement tree: the text as it was, unless
    they have one. `own` is the one before the edit, () if there is none; if no edit is found, the
    hint is `unedited`."""
    try:
        yield
    except (ParseError, VerifyError) as error:
        undone = _hint(code, own, error.line)
        is_changed = isinstance(error, ParseError) and undone.startswith(_AT)
        if is_changed or not error.hint:  # a name that is like one says less than the line itself
            error.hint = undone or unedited
        raise


def _hint(code: str | Sequence[UOp], own: UOp | Sequence[UOp], line: int | None) -> str:
    if not isinstance(code, str):
        return "the steps of emulate(kernel).linear, with other edits"
    has_own = isinstance(own, UOp) or bool(own)
    before, lines = _lines(to_text(own)) if has_own else [], _lines(code)
    is_short = max(len(before), len(lines)) <= _MOST_LINES
    return _undone(before, lines, line) if is_short else ""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.rstrip().split("\n")]


def _undone(before: Sequence[str], lines: Sequence[str], line: int | None) -> str:
    """Return a hint that undoes an edit: the last one at or before `line`, or else the first one.
    It is "" without an edit, and if nothing in the text is as before."""
    codes = SequenceMatcher(None, before, lines, autojunk=False).get_opcodes()
    edits = [code for code in codes if code[0] != "equal"]
    if not edits or len(edits) == len(codes):
        return ""
    earlier = [edit for edit in edits if line is not None and edit[3] < line]
    _, first, end, start, stop = earlier[-1] if earlier else edits[0]
    if line is not None and start < line <= stop and end - first == stop - start:
        first, end, start = first + line - 1 - start, first + line - start, line - 1
    if first == end:
        count = stop - start
        which = f"line {start + 1}" if count == 1 else f"lines {start + 1} to {stop}"
        hint = f"the text without {which}"
    else:
        more = end - first - 1
        rest = f", and the {plural(more, 'line')} after it" if more else ""
        old = before[first][:_MOST_CHARACTERS]
        hint = f"{_AT} {start + 1}, as it was: {old}{rest}"
    is_one_of_many = line is None and len(edits) > 1
    return f"{hint} (the first of {len(edits)} edits)" if is_one_of_many else hint


# --------------------------------------------------------------------------------------------------
# Inefficiencies of a run: uncoalesced accesses, bank conflicts, divergent branches.


def inefficiencies(machine: Machine) -> tuple[Inefficiency, ...]:
    """Return the inefficiencies, the one with the most needless transactions first."""
    listed = [*_of_accesses(machine), *_of_branches(machine)]
    return tuple(sorted(listed, key=lambda n: n.least - n.transactions))


def _of_accesses(machine: Machine) -> Iterator[Inefficiency]:
    for position, count in machine.memory.counts.items():
        if count.worst is not None:
            yield _of_access(machine, position, count, count.worst)


def _of_access(
    machine: Machine, position: int, count: AccessCount, worst: WorstWarp
) -> Inefficiency:
    name = name_of(machine.linear[position].place.param)
    one, other = (machine.findings.item(n) for n in worst.items)
    verb = "writes" if count.is_store else "reads"
    first, second = (f"{name}[{element}]" for element in worst.elements)
    what = "transactions" if count.space == "global" else "passes"
    kind: InefficiencyKind = "uncoalesced" if count.space == "global" else "bank conflict"
    words = (
        f"{one} {verb} {first}, and {other} {second}: their warp takes"
        f" {worst.transactions} {what}, and {worst.least} would do"
    )
    total = count.transactions, count.least
    pair = (one, other)
    return Inefficiency(kind, name, worst.elements, pair, position, *total, words)


def _of_branches(machine: Machine) -> Iterator[Inefficiency]:
    for position, branch in machine.totals.branches.items():
        if branch.items is not None and branch.warps > branch.least:
            one, other = (machine.findings.item(n) for n in branch.items)
            words = (
                f"{one} goes on and {other} of its warp does not: {branch.warps:,} warps"
                f" do, and {branch.least:,} would hold all work-items that do"
            )
            pair, total = (one, other), (branch.warps, branch.least)
            yield Inefficiency("divergent branch", "", (), pair, position, *total, words)


# --------------------------------------------------------------------------------------------------
# The limits of a device, checked before an edited program runs.

MOST_S = 120.0
"""Most seconds of a run that a user requests."""
SMALLER = "smaller tensors, of which the kernel has the same loops"
"""Hint for a kernel that is too large to be emulated."""
MOST_ELEMENTS = 1 << 26
"""Most elements of global memory: the logs of their writers and readers take some 80 bytes each."""


def require_elements(linear: Sequence[UOp], target: Target) -> None:
    """Errors: DeviceError for a program whose arguments have more elements than MOST_ELEMENTS;
    called before memory is allocated for them."""
    elements = sum(length for _, length in params_of(linear, target))
    if elements > MOST_ELEMENTS:
        what = f"the kernel {linear[0].arg.name} is too large to be emulated"
        most = f"at most {MOST_ELEMENTS:,} are watched"
        because = f"its arguments have {elements:,} elements, and {most}"
        raise DeviceError(what, because, SMALLER)


def require_fit(linear: Sequence[UOp], target: Target) -> None:
    """Errors: DeviceError, with the numbers, for a program that exceeds a limit of the target. On a
    processor a program is a single work-item, and always fits."""
    if not target.has_groups:
        return
    problem = next(_problems(linear, launch_shape(linear), target), None)
    if problem is not None:
        name = linear[0].arg.name
        what = f"the kernel {name} is too large for {target.device}"
        raise DeviceError(what, *problem)


def require_time(
    linear: Sequence[UOp],
    target: Target,
    most_s: float = MOST_S,
    groups: int | None = None,
    annotations: Annotations = NO_ANNOTATIONS,
) -> None:
    """Errors: DeviceError for a program that the emulator would run for more than `most_s` seconds:
    all of its work-groups, or a number of them (`groups`)."""
    seconds = emulation_s(linear, groups, annotations)
    if seconds > most_s:
        name = linear[0].arg.name
        what = f"the kernel {name} is too large to be emulated for {target.device}"
        took = plural(round(seconds), "second")
        because = f"it would take about {took}, and at most {most_s:g} are allowed"
        raise DeviceError(what, because, SMALLER)


def _problems(
    linear: Sequence[UOp], launch: LaunchShape, target: Target
) -> Iterator[tuple[str, str]]:
    """Yield (reason, hint) for each limit that a program exceeds."""
    because = group_excess([*reversed(launch.group)], target)
    if because:
        yield because, "smaller LOCAL and GROUP axes"
    sizes = [*reversed(launch.grid)]
    limits = target.grid_limits
    if len(sizes) > len(limits):
        because = f"its grid has {len(sizes)} dimensions, and there are {len(limits)}"
        yield because, "fewer dimensions"
    for dimension, size, limit in zip("xyz", sizes, limits, strict=False):
        if size > limit:
            because = f"its grid has {size:,} groups along {dimension}, and {limit:,} fit"
            yield because, "larger groups, or fewer"
    spaces = (
        ("shared", "a group", target.shared_bytes),
        ("scratch", "a work-item", target.scratch_bytes),
    )
    for space, owner, limit in spaces:
        arrays = [n for n in linear if n.op is Ops.DEFINE and n.space == space]
        nbytes = sum(size_of(a) * a.dtype.itemsize for a in arrays)
        if nbytes > limit:
            because = f"the arrays of {owner} have {nbytes:,} bytes, and {limit:,} fit"
            yield because, "smaller tiles"


Array = np.ndarray[Any, Any]


# --------------------------------------------------------------------------------------------------
# Wrong outputs of a run: the first wrong element of each, and its last writer.


def find_wrong_values(
    machine: Machine, expected: Mapping[int, Array], is_whole: bool = True
) -> None:
    """Add a finding for each slot whose array differs from `expected` by more than rounding. Unless
    the run `is_whole`, only the elements that it has written are compared."""
    for slot, right in expected.items():
        array = machine.memory.params.get(slot)
        if array is None:  # no step accesses it
            machine.findings.wrong(f"p{slot}", 0, NO_ITEM, 0, (None, right[0]))
            continue
        actual = array.view(right.dtype)[: right.size]
        errors = closeness.errors(actual, right)
        is_wrong = errors > closeness.limit_of(actual, right)
        if not is_whole:
            is_wrong &= written_elements(machine, slot, right)
        wrong = np.flatnonzero(is_wrong)
        if wrong.size:
            element = int(wrong[0])
            values = actual[element], right[element]
            writes = machine.memory.writes(slot)
            cell = element * right.itemsize // array.itemsize
            number = NO_ITEM if writes is None else int(writes.items[cell])
            position = 0 if writes is None else int(writes.positions[cell])
            machine.findings.wrong(f"p{slot}", element, number, position, values)


def written_elements(machine: Machine, slot: int, right: Array) -> Array:
    """Return which elements of `right`, the output of a slot, a run has written."""
    log = machine.memory.writes(slot)
    if log is None:
        return np.zeros(right.size, bool)
    itemsize = machine.memory.params[slot].itemsize  # of the elements as the program has them
    cells = np.arange(right.size) * right.itemsize // itemsize
    written: Array = log.items[cells] != NO_ITEM
    return written
