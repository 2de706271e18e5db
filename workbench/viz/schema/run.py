"""A run as data: what ran on each lane and when, the gaps between, and memory over time.

Long tables are columns, each a list: 10^5 spans stay small. Units: nanoseconds since the run began,
bytes. Rows name each other by place.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from workbench.base.typed import Amount, Count

LaneKind = Literal["python", "device", "worker"]
GapCause = Literal[
    "Python", "launch", "schedule", "compile", "search", "capture", "copy", "memory", "waiting",
    "recording", "outside",
]  # fmt: skip
"""What a thread did between two kernels. `Python`: the user's code. `launch`: the work of `realize`
and replays around kernels. `memory`: new memory from the system. `waiting`: for other threads.
`recording`: what the
recording itself takes. `outside`: no Python work of this process was recorded there."""


class RunKernel(Struct, forbid_unknown_fields=True):
    """A kernel of a run, whose `launches` are spans; equal launches are one row. `key` is a digest
    of the kernel before opts, by which two runs are compared. `module`, `line` and `phase` are ""
    where unknown; `place` is its position in the exploration (null: it is of none). `flops` and
    `bytes` are those of the algorithm, a launch. `bound` is what it waits for by the model, `why`
    the numbers, `predicted_ns` its time by the model (null: not known), and `ratio` measured by
    predicted. `total_ns` is the time of all launches, `share` of the time in kernels; `low_ns` and
    `high_ns` are the ends of the middle half of the launches."""

    key: str
    name: str
    title: str
    kind: str
    device: str
    opts: str
    module: str
    line: str
    phase: str
    place: int | None
    flops: Amount
    bytes: Amount
    predicted_ns: Amount | None
    bound: str
    why: str
    launches: Count = 0
    total_ns: Count = 0
    least_ns: Count = 0
    median_ns: Amount = 0.0
    low_ns: Amount = 0.0
    high_ns: Amount = 0.0
    share: Amount = 0.0
    ratio: Amount | None = None


class RunLane(Struct, forbid_unknown_fields=True):
    """A lane of the timeline. A "python" lane has nested spans of the work around kernels; a
    "device" lane the kernels that a thread launched on a `device`; a "worker" lane the parts of
    kernels that a thread of the pool ran."""

    name: str
    kind: LaneKind
    device: str
    thread: Count


class RunSpans(Struct, forbid_unknown_fields=True):
    """The spans in order of their start, as columns. `kind` is a place in the run's `kinds`;
    `subject` of a kernel or of its part is a place in `kernels`, else in `names` (-1: none).
    `depth` is 0 but for nested spans of Python lanes."""

    start_ns: list[Count]
    length_ns: list[Count]
    lane: list[Count]
    depth: list[Count]
    kind: list[Count]
    subject: list[int]


class RunGaps(Struct, forbid_unknown_fields=True):
    """The time of device lanes without a kernel, as columns: each gap is cut where the work that
    the thread did in it changes. `cause` is a place in the run's `causes`."""

    start_ns: list[Count]
    length_ns: list[Count]
    lane: list[Count]
    cause: list[Count]


class RunMemory(Struct, forbid_unknown_fields=True):
    """Blocks of memory as columns: the block `bytes` large was in use from `start_ns` to `end_ns`
    (-1: to the end of the run and after), in `memories[memory]`; `label` is a place in the run's
    `names`, of what wrote it first (-1: unknown). `before_bytes` were in use when the run began, in
    each memory. `peak_bytes` is the most at once, at `peak_ns`. `is_planned`: the blocks are those
    of the plan, placed where its kernels ran."""

    memories: list[str]
    before_bytes: list[Count]
    start_ns: list[Count]
    end_ns: list[int]
    bytes: list[Count]
    memory: list[Count]
    label: list[int]
    peak_bytes: Count
    peak_ns: Count
    is_planned: bool = False


class RunShare(Struct, forbid_unknown_fields=True):
    """The time of a part of a run: of the kernels of a phase, a module or a kind, or of a cause of
    gaps. `share` is of all these parts together."""

    name: str
    ns: Count
    share: Amount
    count: Count


class RunError(Struct, forbid_unknown_fields=True):
    """The error that ended a span, by its place."""

    span: Count
    text: str


class RunHelp(Struct, forbid_unknown_fields=True):
    """A change that would save `saves_ns` of the whole run: the kernel in `kernels` with `opts`. It
    takes `to_ns` a launch instead of `from_ns`: as measured, or by the model's ratio."""

    kernel: Count
    opts: str
    saves_ns: Amount
    from_ns: Amount
    to_ns: Amount
    is_measured: bool


class RunRecord(Struct, forbid_unknown_fields=True):
    """A run. `rounds` are the starts of the repetitions of `ex.run` ([]: it is a profile of code).
    `phases` says where the time of the launching threads went. `error` is the error that ended the
    run ("": it ended), `notices` what is missing or strange in it."""

    title: str
    machine: str
    length_ns: Count
    rounds: list[Count]
    kinds: list[str]
    causes: list[str]
    names: list[str]
    kernels: list[RunKernel]
    lanes: list[RunLane]
    spans: RunSpans
    gaps: RunGaps
    memory: RunMemory
    phases: list[RunShare]
    modules: list[RunShare]
    by_kind: list[RunShare]
    help: list[RunHelp]
    errors: list[RunError]
    error: str
    notices: list[str]
