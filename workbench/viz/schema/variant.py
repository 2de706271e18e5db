"""A variant of a record: a kernel with opts, its loops, code, cost, times and what to try next."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from workbench.base.typed import Amount, Count


class ErrorWords(Struct, forbid_unknown_fields=True):
    """An error: what failed, because of what, and what to try."""

    what: str
    because: str
    hint: str = field(name="try")


class NamedNumber(Struct, array_like=True, forbid_unknown_fields=True):
    """A number with its name, as a list."""

    name: str
    value: float


class StepRow(Struct, forbid_unknown_fields=True):
    """A step of the default opts: what it applied, why, and in words the counts that made it."""

    name: str
    opts: list[str]
    why: str
    counts: str


class AxisRow(Struct, forbid_unknown_fields=True):
    """An axis of a kernel; `kind` is a name in the record's `kinds`."""

    name: str
    kind: str
    size: int


class BufferRow(Struct, forbid_unknown_fields=True):
    """A buffer of a kernel; `size` counts elements."""

    name: str
    dtype: str
    size: int
    role: str


class UseRow(Struct, forbid_unknown_fields=True):
    """How a loop uses a buffer: `n` bytes, which the cache `level` holds (null: none is known).
    `cell` has the bytes and the level where there is room for a few letters."""

    stride: str
    bytes: str
    n: int
    level: str | None
    cell: list[str]


class NestRow(Struct, forbid_unknown_fields=True):
    """A loop, a lane or a statement of a nest, `depth` loops deep."""

    kind: Literal["loop", "lanes", "statement"]
    depth: int
    around: list[str]
    axis: str
    axis_kind: str
    size: int
    vector: bool
    text: str
    uses: dict[str, UseRow]
    nodes: list[int]
    lines: list[int]


class Nest(Struct, forbid_unknown_fields=True):
    """The loop nest of a kernel."""

    buffers: list[BufferRow]
    rows: list[NestRow]


class CodeLink(Struct, forbid_unknown_fields=True):
    """Where a line of code comes from: axes by name, nodes and the user's lines by their places,
    the lines of source that an instruction was compiled from by number."""

    axes: list[str]
    nodes: list[int]
    lines: list[int]
    source: list[int]


class CodeRow(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A program in one language, a link or null for each of its lines; or the error that its
    renderer ends with."""

    language: str
    device: str
    lines: list[str]
    links: list[CodeLink | None]
    error: ErrorWords | None = None


class OfferRow(Struct, forbid_unknown_fields=True):
    """An opt that is possible. Units: `predicted` is a speed-up, `measured` seconds, `spread` a
    share of them."""

    opt: str
    op: str
    axes: list[str]
    does: str
    on_gpu: str
    predicted: float | None
    why: str
    measured: float | None
    spread: float | None


class RefusedRow(Struct, forbid_unknown_fields=True):
    """An opt that is not possible, and the reason."""

    opt: str
    why: str


class CostRow(Struct, forbid_unknown_fields=True):
    """What a run costs by the form of the kernel. Units: bytes from each level, seconds that each
    part takes alone, roofs in operations a second."""

    kind: str | None
    threads: int
    flops: float
    bytes: dict[str, float]
    seconds: dict[str, float]
    roofs: dict[str, float]
    limit: str
    predicted_s: float
    launch_s: float


class TimingRow(Struct, forbid_unknown_fields=True):
    """A timing. Units: `spread` is a share of the median, `samples` are seconds; the speeds are
    in 1e9 operations and 1e9 bytes a second. `run` names the measurement."""

    median_s: Amount
    min_s: Amount
    spread: Amount
    samples: list[Amount]
    cold_s: Amount | None
    gflops: Amount
    gbytes: Amount
    kind: str | None
    threads: Annotated[int, Meta(ge=1)]
    device: str
    emulator: bool
    run: str
    earlier: bool


class CheckRow(Struct, forbid_unknown_fields=True):
    """Whether a result is right, in words."""

    ok: bool
    text: str


class TrialRow(Struct, array_like=True, forbid_unknown_fields=True):
    """A candidate of a search, as a list; `parent` is the number of the candidate it was made
    from. Units: seconds of one run, null where it was not timed."""

    number: Count
    parent: Count | None
    how: str
    seconds: Amount | None
    note: str


class SearchRow(Struct, forbid_unknown_fields=True):
    """What a search tried; `best` is the number of a candidate. Units: seconds that it took."""

    tried: Count
    timed: Count
    best: Count
    speedup: Amount | None
    seconds: Amount
    ended: str
    device: str
    trials: list[TrialRow]

    def __post_init__(self) -> None:
        numbers: set[int] = set()
        for candidate in self.trials:
            if candidate.number in numbers or candidate.parent not in {None, *numbers}:
                raise ValueError(
                    "a candidate comes once, after the one it was made from"
                )
            numbers.add(candidate.number)
        if self.best not in numbers:
            raise ValueError("the best is one of those that were tried")


class VariantRow(Struct, forbid_unknown_fields=True):
    """A kernel with opts, and what is known of it on the session's device. `python` stands
    by itself; `recipe` binds `kernel` after the lines of the expression."""

    kernel: int
    parent: int | None
    name: str
    opts: list[str]
    recipe: str
    steps: list[StepRow]
    axes: list[AxisRow]
    bars: list[list[int]]
    python: str
    loops: Nest | None
    code: list[CodeRow]
    counts: dict[str, int] | None
    passes: list[int]
    offers: list[OfferRow]
    refused: list[RefusedRow]
    check: CheckRow | None
    timing: TimingRow | None
    bound: str | None
    cost: CostRow | None
    error: ErrorWords | None
    note: str
    edited: bool
    search: SearchRow | None
    rules_off: list[str]
