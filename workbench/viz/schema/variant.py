"""A variant of a record: a kernel with opts, its loops, code, cost, times and next opts."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from workbench.base.errors import WorkbenchError
from workbench.base.typed import Amount, Count
from workbench.viz.schema.gpu import GpuTrace


class ErrorWords(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An error: what failed, why, and what to `try`; `line` and `column` are the place in the code,
    from 1, at which its compiler stopped (null: none)."""

    what: str
    because: str
    hint: str = field(name="try")
    line: int | None = None
    column: int | None = None

    def as_error(self) -> WorkbenchError:
        """Return the error that these words are of."""
        error = WorkbenchError(self.what, self.because, self.hint)
        error.line, error.column = self.line, self.column
        return error


class NamedNumber(Struct, array_like=True, forbid_unknown_fields=True):
    """A number with its name, as a list."""

    name: str
    value: float


class StepRow(Struct, forbid_unknown_fields=True):
    """A step of the default opts: what it applied, why, and the counts behind it in words."""

    name: str
    opts: list[str]
    why: str
    counts: str


class OptRow(Struct, forbid_unknown_fields=True):
    """An opt in `words`, its kind, its first axis ("" for none), and the amount that may be changed
    (null: it has none)."""

    words: str
    op: str
    axis: str
    amount: int | None


class AxisRow(Struct, forbid_unknown_fields=True):
    """An axis of a kernel; `kind` is a name in the record's `kinds`."""

    name: str
    kind: str
    size: int


class BufferRow(Struct, forbid_unknown_fields=True):
    """A buffer of a kernel: its name in the kernel, and the `user`'s ("": none); `size` counts
    elements."""

    name: str
    user: str
    dtype: str
    size: int
    role: str


class UseRow(Struct, forbid_unknown_fields=True):
    """How a loop uses a buffer: the `stride` of its accesses in elements ("varies": no single one),
    and the bytes of the elements that it touches, in words and as `n`; the cache `level` can hold
    their cache lines (null: no level is known). `cell` has bytes and level in a few letters. Where
    the elements lie apart, `lines` has the bytes of their cache lines in words, and `held` the
    bytes of the cache that these occupy."""

    stride: str
    bytes: str
    n: int
    level: str | None
    cell: list[str]
    lines: str = ""
    held: int = 0


class NestRow(Struct, forbid_unknown_fields=True):
    """A loop, a lane axis or a statement of a nest, `depth` loops deep; `around` has the kinds of
    the axes around it."""

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
    """The origin of a line of code: axes by name, nodes and the user's lines by place, and for an
    instruction the numbers of the source lines that it was compiled from. `statement` is the line,
    from 1, that computes the same in the language that all kernels are read in; of edited code, a
    line of its own text."""

    axes: list[str]
    nodes: list[int]
    lines: list[int]
    source: list[int]
    statement: int | None


class InstructionCost(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What an instruction costs, as a list. Units: cycles until its result is there, cycles between
    two such instructions at best, and cycles for which it occupies each port of the core."""

    latency: float
    throughput: float
    ports: dict[str, float] = {}


class CompilerPass(Struct, forbid_unknown_fields=True):
    """A pass of a compiler that changed a program; `lines` are the program after it, by places in
    the table of lines."""

    name: str
    title: str
    lines: list[int]


class CompilerPasses(Struct, forbid_unknown_fields=True):
    """The source of a program, as the first row, and the passes of a compiler that changed it, in
    execution order; `lines` has every line of all states once."""

    lines: list[str]
    passes: list[CompilerPass]


class PageLaunch(Struct, forbid_unknown_fields=True):
    """The launch of a program by a page: its entry point, the work-groups along x, y and z, and the
    slots of its bindings in order. `module` is a WebAssembly module in base64, whose memory has
    `stack_bytes` for the stack and the kernel's `scratch_bytes`; "" where the page compiles the
    text."""

    entry: str
    grid: list[int]
    slots: list[int]
    module: str
    stack_bytes: int
    scratch_bytes: int


class CodeRow(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A program in one language, with a link or null for each of its lines; or the error of its
    renderer. Of machine code, `help` explains each mnemonic; `costs` has the cost of each line by a
    tool for a processor (`costs_by`), if there is one; `made_by` has the passes of the compiler,
    once they were requested. Of a machine that is not here, `note` says in words what the code
    takes of the machine, and `live` has the number of registers in use at each line. A program that
    a page can run has a `launch`."""

    language: str
    device: str
    lines: list[str]
    links: list[CodeLink | None]
    error: ErrorWords | None = None
    help: dict[str, str] = {}
    costs: list[InstructionCost | None] = []
    costs_by: str = ""
    made_by: CompilerPasses | None = None
    note: str = ""
    live: list[int | None] = []
    launch: PageLaunch | None = None


class OfferRow(Struct, forbid_unknown_fields=True):
    """A legal opt, or several that gain together. `predicted` and `measured` are speed-ups over the
    variant that it is offered to, measured in turns with that. `spread` is half the interval of the
    measured speed-up, as a share of it (null: too few rounds to tell); `differs`: the speed-up is
    beyond the noise. `counts` says how the accesses of work-groups change, before -> after ("": not
    known). `busy`: other programs had the cores in every sample, so nothing was measured. Units:
    `seconds` of one run."""

    opt: str
    op: str
    axes: list[str]
    does: str
    on_gpu: str
    predicted: float | None
    why: str
    measured: float | None
    spread: float | None
    differs: bool
    seconds: float | None
    counts: str = ""
    busy: bool = False


class RefusedRow(Struct, forbid_unknown_fields=True):
    """An opt that is not legal, and the reason."""

    opt: str
    why: str


class CostRow(Struct, forbid_unknown_fields=True):
    """The cost of a run by the kernel's loop nest, on as many parallel parts of the machine as
    `threads` (`of`: "thread", "unit"); `notes` are lines about it. Units: bytes from each level,
    seconds that each part takes alone, roofs in operations a second."""

    kind: str | None
    threads: int
    flops: float
    bytes: dict[str, float]
    seconds: dict[str, float]
    roofs: dict[str, float]
    limit: str
    predicted_s: float
    launch_s: float
    of: str
    notes: list[str]


class ShareRow(Struct, forbid_unknown_fields=True):
    """A share of a peak: of the whole machine ("peak"), or of the threads of a kernel that leaves
    cores to others ("one thread's peak")."""

    fraction: Amount
    of: str


class TimingRow(Struct, forbid_unknown_fields=True):
    """A timing. Units: `spread` and `cold_spread` are shares of the median, `samples` are seconds;
    the speeds are in 1e9 operations and 1e9 bytes a second. `run` names the measurement, `machine`
    another machine than this one ("": it was this one). `random_inputs`: the expression's own
    inputs were not available. `moved_bytes` are loaded and stored in one run (null: as the
    variant's counts say). `share` is the share of the peak as it is now known (null: it does not
    apply). `busy` is the time of a loop of known length beside the timing, in units of its time at
    rest (null: unknown). `medians` are those of earlier measurements in this session; `doubts` say
    why the timing is not certain. `had`: other programs had the kernel's cores for a part of all
    samples but one; the time is for how long it had them, and this is its share of them (null: two
    samples are undisturbed). `later`: a later, less certain time, in words ("": none)."""

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
    random_inputs: bool = False
    machine: str = ""
    cold_spread: Amount | None = None
    moved_bytes: Amount | None = None
    share: ShareRow | None = None
    busy: Amount | None = None
    medians: list[Amount] = []
    doubts: list[str] = []
    had: Amount | None = None
    later: str = ""

    @property
    def is_founded(self) -> bool:
        """Whether it has several undisturbed samples."""
        return self.had is None and len(self.samples) > 1

    @property
    def is_comparable(self) -> bool:
        """Whether this machine's speeds apply to it: it was measured here, undisturbed."""
        return not self.machine and self.had is None


class CheckRow(Struct, forbid_unknown_fields=True):
    """The verdict on a result, and its words; `ok` is null where only a part was compared, and that
    has no fault."""

    ok: bool | None
    text: str


class CandidateRow(Struct, array_like=True, forbid_unknown_fields=True):
    """A candidate of a search, as a list; `parent` is the number of the candidate that it was made
    from. Units: seconds of one run (null: not timed); `spread` of its runs is a share of their
    median (null: too few to tell)."""

    number: Count
    parent: Count | None
    how: str
    seconds: Amount | None
    note: str
    spread: Amount | None = None


class SearchRow(Struct, forbid_unknown_fields=True):
    """The candidates of a search; `best` is the number of one. `predicted`: their times are of a
    model, for a machine that is not here. Units: `seconds` that the search took, and the seconds
    that it was given (null: not known); `when` it ended, in seconds of the epoch (0: not known)."""

    tried: Count
    timed: Count
    best: Count
    speedup: Amount | None
    seconds: Amount
    ended: str
    device: str
    candidates: list[CandidateRow]
    predicted: bool = False
    budget_s: Amount | None = None
    when: Count = 0

    def __post_init__(self) -> None:
        numbers: set[int] = set()
        for candidate in self.candidates:
            if candidate.number in numbers or candidate.parent not in {None, *numbers}:
                raise ValueError("a candidate comes once, after the one it was made from")
            numbers.add(candidate.number)
        if self.best not in numbers:
            raise ValueError("the best is one of those that were tried")


def joined_searches(one: list[SearchRow], other: list[SearchRow]) -> list[SearchRow]:
    """Return the searches of two lists, each once, the oldest first."""
    return sorted([*one, *(row for row in other if row not in one)], key=lambda row: row.when)


class VariantRow(Struct, forbid_unknown_fields=True):
    """A kernel with opts, and what is known of it on the session's device. `python` stands by
    itself; `recipe` binds `kernel` after the lines of the expression. `opts` are Python, and
    `opt_rows` the same opts in words. A deleted variant keeps its place, and is not shown.
    `elsewhere` has the timings on other devices than the session's; `code_elsewhere` has machine
    code and statement trees for other devices, as far as they were requested. `gpu` is its run on
    the emulator, if there was one with steps. `default_of` is the device whose default opts the
    variant has, or was made from ("": none). `searches` are those that found it. Units: `when` it
    was made, in seconds of the epoch; 0 for a variant that every record has.
    """

    kernel: int
    parent: int | None
    name: str
    when: int
    deleted: bool
    opts: list[str]
    opt_rows: list[OptRow]
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
    elsewhere: list[TimingRow]
    bound: str | None
    cost: CostRow | None
    error: ErrorWords | None
    note: str
    edited: bool
    searches: list[SearchRow]
    rules_off: list[str]
    code_elsewhere: list[CodeRow] = []
    gpu: GpuTrace | None = None
    default_of: str = ""
