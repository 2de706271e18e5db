"""Opts and edits as text, and rows of edits, searches and timings.

Sections: Parsing of opts; Rows of edited source; Rows of a search; Timings as rows and as text.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Sequence
from uuid import uuid4

from msgspec.structs import replace

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.device import Device, DeviceInfo
from workbench.backends.native.program import AsmLine
from workbench.base.errors import ParseError, cut
from workbench.base.sequences import common_prefix
from workbench.ir.nest.estimates import Estimates
from workbench.ir.opt.opt import Opt, OptKind, OptOps
from workbench.kernel.kernel import Kernel
from workbench.measure.kernel_time import doubts, least_seconds, over_calls, seconds_text
from workbench.measure.speeds import Speeds
from workbench.measure.timing import Samples, number_text, percent_text
from workbench.search.moves import Candidate
from workbench.search.result import SearchResult
from workbench.viz.model.words import WHOLE
from workbench.viz.record.about import share_row
from workbench.viz.record.variants import assembly_row, code_row, machine_code_row
from workbench.viz.schema.variant import CandidateRow, CodeLink, CodeRow, SearchRow, TimingRow
from workbench.viz.session.live_record import Edited

# --------------------------------------------------------------------------------------------------
# Parsing of opts in text that a user typed or pasted, which is never evaluated.
#
# It accepts printed opts, `UPCAST("g1", 4)` or `Opt(OptOps.UPCAST, "g1", 4)`, also
# `Opt("UPCAST", "g1", 4)`; what the page shows, `UPCAST g1 4` or `upcast:g1:4`; several opts with
# commas or on lines, those of Python with or without brackets; and the text of
# `Kernel.to_python()`, of which it reads the arguments of `.apply(...)`.

MOST_CHARACTERS = 200_000
MOST_OPTS = 100
MOST_TEXT = 60
"""Most characters of a text that an error repeats."""
EXAMPLE = 'UPCAST("g1", 4)'
_PRINTED = re.compile(r"""([A-Z_]+)\(("\w+"|\d{1,9})(?:, ("\w+"|\d{1,9}))?\)""", re.ASCII)
_SEPARATOR = re.compile(r"[,;\n](?![^()]*\))")
"""What separates opts: not in brackets."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|-?[0-9]{1,9}")


def parse_opts(text: str) -> tuple[Opt, ...]:
    """Return the opts that `text` lists, in order.

    Errors: ParseError for other text.
    """
    if len(text) > MOST_CHARACTERS:
        raise ParseError("cannot read the opts", "the text is too long", EXAMPLE)
    opts = _printed_opt(text) or _opts_in_words(text)
    if opts is not None:
        return _limited(opts)
    try:
        tree = ast.parse(text.strip())
        opts = [opt for statement in tree.body for opt in _statement_opts(statement)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ParseError):
            raise
        parts = [part for part in _SEPARATOR.split(text) if part.strip()]
        if isinstance(error, SyntaxError) and 1 < len(parts) <= MOST_OPTS:  # each in its own form
            return _limited([opt for part in parts for opt in parse_opts(part)])
        because = "it is nested too deeply"
        if isinstance(error, SyntaxError):
            typed = cut(text.strip(), MOST_TEXT)
            because = f"{typed} is neither an opt nor words such as UPCAST g1 4"
        raise ParseError("cannot read the opts", because, EXAMPLE) from None
    return _limited(opts)


def _limited(opts: list[Opt]) -> tuple[Opt, ...]:
    if len(opts) > MOST_OPTS:
        because = f"there are {len(opts)} of them, more than {MOST_OPTS}"
        raise ParseError("cannot read the opts", because, EXAMPLE)
    return tuple(opts)


def _printed_opt(text: str) -> list[Opt] | None:
    """Return the opt of a text like `UPCAST("g1", 4)`; None for any other. The page's threads read
    the opts of a record all the time, and must not call `ast.parse` for it: before Python 3.11.8 it
    fails in a cell that runs at the same time, because threads share its count of recursions."""
    match = _PRINTED.fullmatch(text.strip())
    if match is None or match[1] not in OptOps.__members__:
        return None
    axis, arg = map(_printed_value, match.groups()[1:])
    return [Opt(OptOps[match[1]], axis, arg)]


def _printed_value(text: str | None) -> int | str | None:
    return text[1:-1] if text and text[0] == '"' else text and int(text)


def _opts_in_words(text: str) -> list[Opt] | None:
    """Return the opts of a text like "UPCAST g1 4, UNROLL r0 whole"; None for any other."""
    rows = [row.strip() for row in re.split(r"[,;\n]", text)]
    parts = [re.split(r"[\s:]+", row) for row in rows if row]
    opts = []
    for op, *arguments in parts:
        op = op.upper()
        is_shown = op in OptOps.__members__ and len(arguments) <= 2
        if not is_shown or not all(map(_WORD.fullmatch, arguments)):
            return None
        axis, arg = ([*map(_value_of, arguments), None, None])[:2]
        opts.append(Opt(OptOps[op], axis, arg))
    return opts or None


def _value_of(word: str) -> int | str:
    if word == WHOLE:
        return 0
    return int(word) if word.removeprefix("-").isdecimal() else word


def parse_opt(text: str) -> Opt:
    """Return the one opt of `text`. Errors: ParseError for none, or several."""
    opts = parse_opts(text)
    if len(opts) != 1:
        because = f"it holds {len(opts)} opts"
        raise ParseError(f"{cut(text, MOST_TEXT)} is not one opt", because, EXAMPLE)
    return opts[0]


def _statement_opts(statement: ast.stmt) -> Iterator[Opt]:
    match statement:
        case ast.ImportFrom(module="workbench"):
            return
        case ast.Assign(value=value) | ast.Expr(value=value):
            yield from _value_opts(value)
        case _:
            raise _not_an_opt(statement)


def _value_opts(value: ast.expr) -> Iterator[Opt]:
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _value_opts(part)
        case ast.Call(func=ast.Attribute(attr="apply"), args=parts, keywords=[]):
            for part in parts:
                yield from _value_opts(part)
        case ast.Call(func=ast.Attribute(value=ast.Name("Kernel"), attr="from_text")):
            return  # a kernel without opts
        case ast.Call(func=ast.Name("Opt"), args=[ast.Constant(str(op)), *parts], keywords=words):
            yield _opt(value, _op_of(ast.Name(op)), parts, words)
        case ast.Call(func=ast.Name("Opt"), args=[op, *parts], keywords=words):
            yield _opt(value, _op_of(op), parts, words)
        case ast.Call(func=function, args=parts, keywords=words):
            yield _opt(value, _op_of(function), parts, words)
        case _:
            raise _not_an_opt(value)


def _op_of(value: ast.expr) -> OptKind:
    match value:
        case ast.Name(name) | ast.Attribute(value=ast.Name("OptOps"), attr=name):
            if name.upper() in OptOps.__members__:
                return OptOps[name.upper()]
    raise _not_an_opt(value)


def _opt(whole: ast.expr, op: OptKind, parts: list[ast.expr], words: list[ast.keyword]) -> Opt:
    fields = dict(zip(("axis", "arg"), map(_literal, parts), strict=False))
    for word in words:
        if word.arg not in ("axis", "arg") or word.arg in fields:
            raise _not_an_opt(whole)
        fields[word.arg] = _literal(word.value)
    if len(parts) > 2:
        raise _not_an_opt(whole)
    return Opt(op, fields.get("axis"), fields.get("arg"))


def _literal(value: ast.expr) -> int | str | None:
    match value:
        case ast.Constant(value=constant) if constant is None or type(constant) in (int, str):
            return constant  # type: ignore[return-value]  # narrowed by type(), not isinstance
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(amount))):
            return -amount  # the kernel says which amounts there are
        case ast.Constant(value=float(amount)):
            because = "an amount or a place is a whole number"
            raise ParseError(f"{amount} is no amount", because, EXAMPLE)
        case ast.Name(name):
            raise ParseError(
                f"{cut(name, MOST_TEXT)} is a name without quotes",
                "the name of an axis stands in quotes",
                f'"{cut(name, MOST_TEXT)}", as in {EXAMPLE}',
            )
    raise _not_an_opt(value)


def _not_an_opt(node: ast.AST) -> ParseError:
    names = ", ".join(OptOps.__members__)
    return ParseError(
        f"{cut(ast.unparse(node), MOST_TEXT)} is not an opt", f"there are {names}", EXAMPLE
    )


# --------------------------------------------------------------------------------------------------
# Rows of edited source: the text, and its machine code.


def edited_code(
    device: str,
    text: str,
    original: CodeRow | None,
    assembly: Sequence[AsmLine],
    elsewhere: MachineCode | None,
) -> list[CodeRow]:
    """Return the row of edited source, and of its machine code if that is known: `elsewhere` for a
    machine that is not here, otherwise `assembly`. Lines before the first change, and after the
    last one, have the links of the `original`."""
    info, lines = Device[device], text.split("\n")
    originals = [None] * len(lines) if original is None else _links(original, lines)
    computed = {line.source_line for line in assembly}
    links = [
        replace(link or CodeLink([], [], [], [], None), statement=number)
        if link is not None or number in computed
        else None
        for number, link in enumerate(originals, 1)
    ]
    rows = [code_row(info, lines, links)]
    line_links = [_line_link(links, line.source_line) for line in assembly]
    return rows + _machine_code(info, assembly, elsewhere, line_links)


def edited_ir_code(
    source: Edited,
    original: CodeRow | None,
    program: str,
    assembly: Sequence[AsmLine],
    elsewhere: MachineCode | None,
) -> list[CodeRow]:
    """Return the row of edited IR, of the `program` that it was rendered to, and of its machine
    code if that is known."""
    info, lines = Device[source.device], source.text.split("\n")
    links = () if original is None else _links(original, lines)
    rows = [code_row(info, lines, links, source.language)]
    if info.language is not None:
        rows.append(code_row(info, program.split("\n")))
    return rows + _machine_code(info, assembly, elsewhere)


def _machine_code(
    info: DeviceInfo,
    assembly: Sequence[AsmLine],
    elsewhere: MachineCode | None,
    links: Sequence[CodeLink | None] = (),
) -> list[CodeRow]:
    if elsewhere is not None:
        return [machine_code_row(info, elsewhere, links)]
    return [assembly_row(info, assembly, links)] if assembly else []


def _links(original: CodeRow, lines: Sequence[str]) -> list[CodeLink | None]:
    """Return a link for each line: the original's in the common first and last lines, else None."""
    before = len(common_prefix(tuple(original.lines), tuple(lines)))
    rest = tuple(original.lines[before:][::-1]), tuple(lines[before:][::-1])
    after = len(common_prefix(*rest))
    changed: list[CodeLink | None] = [None] * (len(lines) - before - after)
    tail = original.links[len(original.links) - after :] if after else []
    return [*original.links[:before], *changed, *tail]


def _line_link(links: Sequence[CodeLink | None], number: int | None) -> CodeLink | None:
    link = links[number - 1] if number and number <= len(links) else None
    return None if link is None else replace(link, source=[number or 0])


# --------------------------------------------------------------------------------------------------
# Rows of a search, for a record and a file: a row for each candidate.

MOST_CANDIDATES = 1000
"""Candidates in the row of a search: the first ones, besides the best one and its ancestors."""
MOST_SEARCH_TEXT = 300
"""Most characters of a candidate's description, and of its note."""


def search_row(search: SearchResult[Kernel], budget_s: float, when: int) -> SearchRow:
    """Return the row of a search that had `budget_s` and ended `when`, with its candidates in the
    order in which they were tried."""
    lineage = _best_lineage(search)
    candidates = [t for t in search.tried if t.number < MOST_CANDIDATES or t.number in lineage]
    return SearchRow(
        len(search.tried),
        len(search.ranked()),
        search.best,
        search.speedup,
        search.seconds,
        search.ended,
        search.device,
        [_candidate_row(t) for t in candidates],
        search.is_predicted,
        budget_s,
        when,
    )


def _best_lineage(search: SearchResult[Kernel]) -> set[int]:
    """Return the numbers of the best candidate and of its ancestors."""
    lineage, at = set[int](), search.best
    while at not in lineage:
        lineage.add(at)
        parent = search.tried[at].parent
        at = at if parent is None else parent
    return lineage


def _candidate_row(candidate: Candidate) -> CandidateRow:
    how, note = candidate.how[:MOST_SEARCH_TEXT], candidate.note[:MOST_SEARCH_TEXT]
    return CandidateRow(
        candidate.number, candidate.parent, how, candidate.seconds, note, candidate.spread
    )


# --------------------------------------------------------------------------------------------------
# Timings as rows and as text; the page has the same text (page/app/timing.js). The record adds the
# share of the peak, which may rise.

MOST_SAMPLES = 40
"""Most samples of one timing in a record."""


def timing_row(
    samples: Samples,
    work: Estimates,
    device: str,
    kind: str | None = None,
    threads: int = 1,
    cold: Samples | None = None,
    run: str = "",
    random_inputs: bool = False,
    busy: float | None = None,
) -> TimingRow:
    """Return the row of a timing. `kind` is the float type that the kernel computes in (None: no
    floats). `run` names the measurement: the times of one measurement were taken in turns, and only
    their ratios are meaningful, because a machine may be slower an hour later."""
    cold = cold if cold is not None and cold.samples_s else None
    info = Device[device] if device in Device.names() else None  # None: the name of a baseline
    if info is not None:
        least_s = least_seconds(device, kind, threads, work)
        samples = dataclasses.replace(samples, least_s=least_s)
    median, gflops = samples.median_s, work.flops / samples.median_s / 1e9
    is_emulator = info is not None and info.is_emulator
    is_compared = info is None or info.is_processor or is_emulator
    return TimingRow(
        median_s=median,
        min_s=samples.min_s,
        spread=samples.spread_s / median,
        samples=[float(f"{s:.4g}") for s in samples.times_s[:MOST_SAMPLES]],
        cold_s=cold.median_s if cold else None,
        cold_spread=cold.spread_s / cold.median_s if cold else None,
        gflops=gflops,
        gbytes=work.bytes / median / 1e9,
        kind=kind if is_compared else None,  # other devices have no peak to compare with
        threads=threads,
        device=device,
        emulator=is_emulator,
        run=run,
        earlier=False,
        random_inputs=random_inputs,
        busy=busy,
        doubts=doubts(busy, samples.times_s, samples.had),
        had=samples.had,
    )


def run_name() -> str:
    """Return a name that no other measurement has, in this session or an earlier one."""
    return uuid4().hex[:12]


def timing_text(row: TimingRow, speeds: Speeds | None) -> str:
    """Return a timing as text, with its spread, its speed, and its share of the peak of `speeds` if
    it has one: "13 ms ± 12%, cold 14 ms ± 3%, 9.0% of peak, 20.6 GFLOP/s, 0.242 GB/s"."""
    parts = [f"{seconds_text(row.median_s)} {spread_text(row)}"]
    if row.cold_s is not None:
        spread = "" if row.cold_spread is None else f" {within_text(row.cold_spread)}"
        parts.append(f"cold {seconds_text(row.cold_s)}{spread}")
    if row.emulator:
        parts.append(f"EMULATOR ({row.device})")
    else:
        share = share_row(row, speeds)
        parts += [f"{percent_text(share.fraction)} of {share.of}"] if share else []
        parts += [f"{number_text(row.gflops)} GFLOP/s", f"{number_text(row.gbytes)} GB/s"]
    parts += row.doubts
    parts += over_calls(row.median_s, row.medians)
    parts += [row.later] if row.later else []
    if row.random_inputs:
        parts.append("on random inputs")
    if row.earlier:
        parts.append("measured earlier")
    if row.machine:
        parts.append(f"on {row.machine}")
    return ", ".join(parts)


def spread_text(row: TimingRow) -> str:
    """Return the spread of a median as text: the greater of those within its samples and over
    several measurements; "1 run" for a single sample, "busy" if it was disturbed."""
    if row.had is not None:
        return "busy"
    if row.medians:
        medians = row.median_s, *row.medians
        half_range = (max(medians) - min(medians)) / 2 / row.median_s
        return within_text(max(row.spread, half_range))
    return "1 run" if len(row.samples) < 2 else within_text(row.spread)


def within_text(spread: float) -> str:
    """Return a spread as text, with "<0.1%" and ">100%" at the ends."""
    if spread < 0.001:
        return "± <0.1%"
    return "± >100%" if spread >= 1 else f"± {percent_text(spread)}"
