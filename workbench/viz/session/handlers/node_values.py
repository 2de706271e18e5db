"""Requests about the values of a node: at a position, as a table with a picture, and compared with
numpy's.

A node of the kernel level reads arguments by number, and kernels of one shape share such nodes: its
values depend on the kernel whose data are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from workbench.base.errors import WorkbenchError
from workbench.check.node_values import NodeValues
from workbench.check.value_summary import Picture, Summary, picture_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.viz.exploration.node_checks import BUDGET_S, checks_of_nodes
from workbench.viz.schema.messages import (
    NodeChecksReply,
    NodeValue,
    ValueAxis,
    ValuePicture,
    ValueSummary,
    ValueTable,
    ValueWindow,
)
from workbench.viz.session.live_record import LiveRecord
from workbench.worker.client import TaskStopped

MAX_VALUES = 16
"""Most values of a node at a position that are shown: the first ones."""
MOST_ROWS = 64
"""Most rows of numbers in a reply."""
MOST_NUMBERS = 4096
"""Most numbers in a reply."""
MEMOISED = 4
"""The number of nodes whose values a session keeps for the next request."""
MOST_MEMOISED = 1 << 22
"""Most elements of the values of a node that are kept."""
EXACT = 1 << 53
"""Whole numbers beyond it are rounded in JavaScript."""


def values(
    session: LiveRecord, variant: int | None, place: int, node: int, at: dict[str, int]
) -> NodeValue:
    """Return the value of a node at the position `at` of its axes, and the least and the greatest
    of all its values (of those computed, if there are too many).

    Errors: WorkbenchError where a node has no value of its own, or is too large to compute.
    """
    uop = session.recorder.node(node)
    kernel = session.record.passes[place].kernel
    number = _kernel_of(session, uop, _own(session, variant) if kernel is None else kernel)
    everywhere = _computed(session, uop, number, variant, {})
    positions = {n: p for n, p in at.items() if n in everywhere.sizes}
    if everywhere.chosen:  # not all values are there
        return _value_row(_computed(session, uop, number, variant, positions), everywhere)
    return _value_row(everywhere.part(positions), everywhere)


def _value_row(selected: NodeValues, everywhere: NodeValues) -> NodeValue:
    first = [_plain(v) for v in selected.array.reshape(-1)[:MAX_VALUES].tolist()]
    return NodeValue(
        value=first if selected.axes else first[0],
        least=_plain(everywhere.min),
        greatest=_plain(everywhere.max),
        nan=everywhere.nans,
        shape=list(selected.array.shape),
    )


def table(
    session: LiveRecord,
    variant: int | None,
    node: int | None,
    rows: str,
    columns: str,
    at: dict[str, int],
    first: list[int],
) -> ValueTable:
    """Return the values of a node along two of its axes, with the summary of all of them (of those
    computed, if there are too many).

    Errors: WorkbenchError where a node has no value of its own, or is too large to compute, for an
    axis that it lacks, and for a position out of range.
    """
    uop = _result_of(session, variant) if node is None else session.recorder.node(node)
    number = _kernel_of(session, uop, _own(session, variant))
    whole = _computed(session, uop, number, variant, {})
    part = whole.chosen
    if part:
        still = {name: at.get(name, 0) for name in part}
        whole = _computed(session, uop, number, variant, still)
    rows, columns = _drawn(whole.axes, rows, columns)
    still = {name: at.get(name, 0) for name in whole.axes if name not in (rows, columns)}
    drawn = whole.part(still)
    matrix = _matrix(drawn, rows)
    return ValueTable(
        whole.text, whole.dtype, number, [ValueAxis(*axis) for axis in whole.sizes.items()],
        rows, columns, dict(drawn.at), list(part), _summary_row(whole.summary),
        _picture_row(matrix, picture_of(matrix)), _window(matrix, first),
    )  # fmt: skip


def _own(session: LiveRecord, variant: int | None) -> int:
    """Return the number of the kernel of a variant; 0 without one."""
    return 0 if variant is None else session.row(variant).kernel


def _result_of(session: LiveRecord, variant: int | None) -> UOp:
    """Return the value that the kernel of a variant computes, as a tensor."""
    items = [i for i in session.recorder.exploration.items if i.kernel is not None]
    if not items:
        because = "all values are constants, or in memory"
        raise WorkbenchError("there is no kernel whose result could be shown", because)
    return items[_own(session, variant)].nodes[0]


def check_nodes(session: LiveRecord) -> NodeChecksReply:
    """Return the first value of the expression that differs from numpy's on the session's device.

    Errors: WorkbenchError if data are missing; TaskStopped.
    """
    mine, device = session.recorder, session.device
    ex = mine.exploration
    for kernel in ex.kernels:
        kernel.require_data("cannot check these values")

    def progress(done: int, total: int) -> None:
        if session.jobs.is_stopped():
            raise TaskStopped()
        session.status("check_nodes", done, total, "comparing values with numpy's")

    try:
        checks = checks_of_nodes(ex.expression, ex.lines, ex.rules_off, device, BUDGET_S, progress)
    finally:
        session.status(None)
    wrong = checks.wrong
    with session.lock:
        is_here = wrong is not None and session.recorder is mine
        place = mine.place(wrong.node) if wrong is not None and is_here else None
        session.send_changes()
    return NodeChecksReply(str(checks), place, list(wrong.at) if wrong is not None else [])


# the kernel of a node


def _kernel_of(session: LiveRecord, node: UOp, own: int) -> int | None:
    """Return the number of the kernel that a node is of: `own` if that has the node, else the first
    one that has it; None for a tensor.

    Errors: WorkbenchError for arguments of a kernel that is not known.
    """
    nodes = node.toposort()
    if not any(n.op in (Ops.PARAM, Ops.RANGE) for n in nodes):
        return None
    count = len(session.record.kernels)
    if not any(n.op is Ops.PARAM for n in nodes) or count == 1:
        return own  # it depends on loops alone, or there is no other kernel
    for number in (own, *(n for n in range(count) if n != own)):
        if any(node in UOp.sink(*roots).toposort() for roots in _states(session, number)):
            return number
    what, because = "whose values these are is not known", "no kernel has this node in the end"
    raise WorkbenchError(what, because, "the node in a pass of one kernel")


def _states(session: LiveRecord, number: int) -> Iterator[list[UOp]]:
    """Yield graphs whose nodes are those of a kernel: of its variants, its passes and rewrites."""
    kernels = zip(session.record.variants, session.kernels, strict=True)
    yield [kernel.ast for row, kernel in kernels if row.kernel == number]
    item = [i for i in session.recorder.exploration.items if i.kernel is not None][number]
    for draft in _drafts(session):
        if draft.nodes == item.nodes and draft.buffers == item.buffers:
            assert draft.kernel is not None
            yield [draft.kernel]
    for row in session.record.passes:
        if row.kernel == number:
            steps = [place for step in row.rewrites for place in (step.before, step.after)]
            yield [session.recorder.node(place) for place in (*row.before, *row.after, *steps)]


def _drafts(session: LiveRecord) -> Iterator[ScheduleItem]:
    """Yield the items of the schedule as they were before they were simplified."""
    for record in session.recorder.exploration.passes:
        state = record.after
        if isinstance(state, tuple):
            yield from (i for i in state if isinstance(i, ScheduleItem) and i.kernel is not None)


def _computed(
    session: LiveRecord, node: UOp, number: int | None, variant: int | None, at: Mapping[str, int]
) -> NodeValues:
    """Return the values of a node of kernel `number` (None: of a tensor), which the session keeps
    if they are few. All variants of a kernel read the same data."""
    key = node, number, tuple(sorted(at.items()))
    if key not in session.node_values:
        if number is None:
            found = session.recorder.exploration.values(node, at)
        else:
            is_own = variant is not None and session.row(variant).kernel == number
            place = variant if is_own else session.record.kernels[number].root
            assert place is not None
            found = session.kernels[place].values(node, at)
        if found.array.size > MOST_MEMOISED:
            return found
        while len(session.node_values) >= MEMOISED:
            del session.node_values[next(iter(session.node_values))]
        session.node_values[key] = found
    return session.node_values[key]


# rows of a reply


def _drawn(axes: tuple[str, ...], rows: str, columns: str) -> tuple[str, str]:
    """Return the names of the axes of rows and columns; "" where there are too few axes.

    Errors: WorkbenchError for an axis that the values lack, and for one axis in both places.
    """
    for name in (rows, columns):
        if name and name not in axes:
            because = f"they have {', '.join(axes) or 'none'}"
            raise WorkbenchError(f"{name!r:.40} is not an axis of these values", because)
    if rows and rows == columns:
        raise WorkbenchError(f"{rows!r:.40} cannot be both rows and columns", "choose another axis")
    columns = columns or next((name for name in reversed(axes) if name != rows), "")
    rows = rows or next((name for name in reversed(axes) if name != columns), "")
    return (rows, columns) if columns else ("", rows)


def _matrix(values: NodeValues, rows: str) -> Any:
    array = values.array
    if array.ndim == 2 and values.axes[0] != rows:
        array = array.T
    return array.reshape((1,) * (2 - array.ndim) + array.shape)


def _summary_row(summary: Summary) -> ValueSummary:
    histogram = summary.histogram
    return ValueSummary(
        summary.size, summary.nans, summary.infinite, summary.zeros, _plain(summary.least),
        _plain(summary.greatest), summary.mean, list(histogram.edges if histogram else ()),
        list(histogram.counts if histogram else ()), histogram is not None and histogram.is_whole,
    )  # fmt: skip


def _picture_row(matrix: Any, picture: Picture) -> ValuePicture:
    means = [None if np.isnan(v) else v for v in picture.means.reshape(-1).tolist()]
    height, width = matrix.shape
    marks = [int(mark) for mark in picture.marks.reshape(-1).tolist()]
    return ValuePicture(height, width, picture.block, picture.means.shape[1], means, marks)


def _window(matrix: Any, first: list[int]) -> ValueWindow:
    """Return the numbers from a place on, or from a place nearer to the beginning if the matrix
    ends before."""
    height, width = matrix.shape
    count = min(height, MOST_ROWS)
    columns = min(width, MOST_NUMBERS // max(1, count))
    top, left = (max(0, n) for n in (min(first[0], height - count), min(first[1], width - columns)))
    part = matrix[top : top + count, left : left + columns]
    return ValueWindow((top, left), columns, [_plain(v) for v in part.reshape(-1).tolist()])


def _plain(value: Any) -> Any:
    """Return a number for JSON: an infinity, a NaN or a very large whole number as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if type(value) is int and abs(value) > EXACT else value
