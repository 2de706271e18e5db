"""A run in the Trace Event Format of Chrome, which Perfetto and Chrome's tracing open.

Times are microseconds with fractions. A lane is a thread, nested spans are complete events ("X"),
gaps have a thread below that of their lane, memory is a counter ("C"). Source: Chrome's "Trace
Event Format" document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from workbench.viz.run.text import span_name
from workbench.viz.schema.run import RunKernel, RunRecord

PROCESS = 1
"""The number of the process of all lanes."""


def trace_text(run: RunRecord) -> str:
    """Return the JSON text of a run, with one event a line."""
    events = ",\n".join(json.dumps(event, allow_nan=False) for event in trace_events(run))
    about = json.dumps({"title": run.title, "machine": run.machine, "notices": run.notices})
    return f'{{"displayTimeUnit": "ns", "otherData": {about}, "traceEvents": [\n{events}\n]}}\n'


def trace_events(run: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield the events of a run: names of lanes, spans, gaps, memory."""
    yield _meta("process_name", 0, name=f"workbench: {run.title}")
    gap_lane = len(run.lanes)
    for place, lane in enumerate(run.lanes):
        yield _meta("thread_name", place, name=lane.name)
        yield _meta("thread_sort_index", place, sort_index=2 * place)
        if lane.kind == "device":
            yield _meta("thread_name", gap_lane + place, name=f"gaps of {lane.name}")
            yield _meta("thread_sort_index", gap_lane + place, sort_index=2 * place + 1)
    errors = {error.span: error.text for error in run.errors}
    spans = run.spans
    for place, (start, length, lane_place) in enumerate(
        zip(spans.start_ns, spans.length_ns, spans.lane, strict=True)
    ):
        kind, subject = run.kinds[spans.kind[place]], spans.subject[place]
        is_kernel = kind in ("kernel", "part")
        about = _about(run.kernels[subject]) if is_kernel else {}
        if place in errors:
            about["error"] = errors[place]
        name = run.kernels[subject].title if is_kernel else span_name(run, place)
        yield _complete(name, kind, start, length, lane_place, about)
    gaps = run.gaps
    for start, length, own, cause in zip(
        gaps.start_ns, gaps.length_ns, gaps.lane, gaps.cause, strict=True
    ):
        yield _complete(run.causes[cause], "gap", start, length, gap_lane + own, {})
    yield from _memory(run)


def _about(kernel: RunKernel) -> dict[str, Any]:
    facts = {
        "kernel": kernel.name, "device": kernel.device, "opts": kernel.opts,
        "module": kernel.module, "line": kernel.line, "phase": kernel.phase, "bound": kernel.bound,
        "bytes": kernel.bytes, "operations": kernel.flops, "predicted_ns": kernel.predicted_ns,
    }  # fmt: skip
    return {name: value for name, value in facts.items() if value not in ("", None)}


def _complete(
    name: str, kind: str, start: int, length: int, lane: int, about: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": start / 1e3, "dur": length / 1e3}
    event = {"name": name, "cat": kind, "ph": "X", **times, "pid": PROCESS, "tid": lane + 1}
    return {**event, "args": about} if about else event


def _meta(what: str, lane: int, **args: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": PROCESS, "tid": lane + 1, "args": args}


def _memory(run: RunRecord) -> Iterator[dict[str, Any]]:
    memory = run.memory
    changes: list[tuple[int, int, int]] = []
    for place, own in enumerate(memory.memory):
        changes.append((memory.start_ns[place], own, memory.bytes[place]))
        if memory.end_ns[place] >= 0:
            changes.append((memory.end_ns[place], own, -memory.bytes[place]))
    used = [*memory.before_bytes]
    starts = [(0, own, 0) for own in range(len(used))]
    for at, own, change in [*starts, *sorted(changes)]:
        used[own] += change
        yield {
            "name": f"memory of {memory.memories[own]}", "ph": "C", "ts": at / 1e3, "pid": PROCESS,
            "args": {"bytes": used[own]},
        }  # fmt: skip
