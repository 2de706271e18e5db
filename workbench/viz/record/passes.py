"""Passes as rows of a record: states before and after, and the root after every rewrite.

Nodes are interned, so a step adds only its new nodes. The rows are bounded: a rewrite beyond
MOST_REWRITES is not listed (`matches` counts it), and once the states of a pass have added
MOST_STATE_NODES nodes, later rewrites have root -1: their states are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from workbench.base.errors import shape_text
from workbench.base.trace import Match, PassRecord, PassStep
from workbench.ir.node.construct import is_read
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Decision, ScheduleItem, SchedulePlan
from workbench.viz.model import passes
from workbench.viz.model.loops import pass_recipe
from workbench.viz.model.passes import outcomes
from workbench.viz.record.nodes import Nodes, States, Texts
from workbench.viz.record.rules import RuleRows
from workbench.viz.schema.record import PassOutcome, PassRecipe, RecordedPass, RewriteRow

MOST_REWRITES = 2000
"""Most rewrites of one pass that are listed."""
MOST_STATE_NODES = 4000
"""Most nodes that the states of one pass add to a record."""
MOST_TEXT = 40_000
"""Most characters of a state's text; a longer one is cut, and its length is added."""
NOT_RECORDED = -1


class Owner(NamedTuple):
    """The owner of passes: the compilation of a variant for a device, or SCHEDULING."""

    variant: int | None
    device: str | None


SCHEDULING = Owner(None, None)


class PassRows:
    """The table of passes. Nodes, texts and rules that a pass refers to are added to theirs."""

    def __init__(self, nodes: Nodes, texts: Texts, rules: RuleRows):
        self.listed: list[RecordedPass] = []
        self._nodes, self._texts, self._rules = nodes, texts, rules
        self._places: dict[int, tuple[int, PassRecord]] = {}
        self._equal: dict[tuple[int, ...], RecordedPass] = {}
        """Rows by the identities of a pass's states and matches, which the passes of equal kernels
        share. The passes in `_places` keep these objects alive."""
        self._texts_of: dict[int, tuple[Any, int | None]] = {}
        """Places of texts by the identity of a state: a pass begins with the state that the pass
        before it ended with."""

    def place(self, record: PassRecord) -> int | None:
        """Return the place of an added pass; None for any other, even an equal one."""
        entry = self._places.get(id(record))
        return None if entry is None else entry[0]

    def add(
        self,
        records: Sequence[PassRecord],
        kernels: Mapping[int, int] | int | None,
        owner: Owner = SCHEDULING,
        python: str = "ex.passes",
    ) -> list[int]:
        """Add passes in execution order, unless they were added before; return their places.
        `kernels` is the number of the kernel that all work on, or the numbers of the kernels by
        position in `records` (None: no kernel); `python` is an expression for the passes."""
        places: list[int] = []
        roots: list[int] = []
        both = zip(records, outcomes(records), strict=True)
        for at, (record, outcome) in enumerate(both):
            kernel = kernels.get(at) if isinstance(kernels, Mapping) else kernels
            place = self.place(record)
            if place is None:
                place = len(self.listed)
                recipe = pass_recipe(python, at, record)
                row = self._row(record, outcome, roots, kernel, owner, recipe)
                self.listed.append(row)
                self._places[id(record)] = place, record
            roots = self.listed[place].after
            places.append(place)
        return places

    def _row(
        self,
        record: PassRecord,
        outcome: PassOutcome,
        roots: list[int],
        kernel: int | None,
        owner: Owner,
        python: PassRecipe,
    ) -> RecordedPass:
        of_owner: dict[str, Any] = {
            "kernel": kernel,
            "variant": owner.variant,
            "device": owner.device,
            "python": python,
        }
        key = id(record.before), id(record.after), id(record.matches), *roots
        equal = self._equal.get(key)
        if equal is not None:
            return replace(equal, **asdict(outcome), **of_owner)
        before = self._roots(record.before, roots)
        after = self._roots(record.after, before)
        row = self._equal[key] = RecordedPass(
            **asdict(outcome),
            before=before,
            after=after,
            text_before=None,
            text_after=None,
            rewrites=list(self._steps(record, record.matches[:MOST_REWRITES])),
            **of_owner,
        )
        return row

    def texts(self, record: PassRecord) -> dict[str, int | None]:
        """Return the places of the texts of a pass's states, by field of its row."""
        return {"text_before": self._text(record.before), "text_after": self._text(record.after)}

    def _text(self, state: Any) -> int | None:
        """Return the place of a state's text; None for a state without text."""
        entry = self._texts_of.get(id(state))
        if entry is None:
            entry = self._texts_of[id(state)] = state, self._new_text(state)
        return entry[1]

    def _new_text(self, state: Any) -> int | None:
        if isinstance(state, tuple) and state and isinstance(state[0], ScheduleItem):
            kernels = [i.kernel for i in state if i.kernel is not None]
            texts = {kernel: passes.text(kernel) for kernel in dict.fromkeys(kernels)}
            state = "\n\n".join(texts[kernel] for kernel in kernels)
        is_text = isinstance(getattr(state, "text", state), str)
        if not is_text and not self._roots(state, []):
            return None
        text = passes.text(state)
        if len(text) > MOST_TEXT:
            text = f"{text[:MOST_TEXT]}\n... ({len(text):,} characters)"
        return self._texts.add(text)

    def _roots(self, state: Any, planned: list[int]) -> list[int]:
        """Return the roots of a state: the root of a graph, a program's nodes in order, the kernels
        of a schedule, or `planned` for a plan; [] for a state that is not IR."""
        if isinstance(state, UOp):
            return [self._nodes.add(state)]
        if isinstance(state, tuple):
            parts = [s.kernel if isinstance(s, ScheduleItem) else s for s in state]
            return self._nodes.add_all(p for p in parts if isinstance(p, UOp))
        return planned if isinstance(state, SchedulePlan) else []

    def _steps(self, record: PassRecord, matches: Sequence[Match]) -> Iterator[RewriteRow]:
        """Yield the row of each match; a decision changes nothing."""
        if any(isinstance(m.rule, Decision) for m in matches):
            root = self._nodes.add(record.before)
            for match in matches:
                node = self._nodes.add(match.before)
                yield RewriteRow(-1, node, node, root)
            return
        is_graph = bool(matches) and isinstance(record.before, UOp)
        states = States(record.before) if is_graph else None
        room = len(self._nodes) + MOST_STATE_NODES
        for match in matches:
            rule = self._rules.add(match.rule)
            state = None if states is None else states.apply(match)
            before, after = self._nodes.add(match.before), self._nodes.add(match.after)
            root = NOT_RECORDED if state is None else self._nodes.add(state)
            yield RewriteRow(rule, before, after, root, _subject(match))
            if len(self._nodes) > room:
                states = None


def _subject(match: Match) -> str:
    """Return the subject of a match in words: the subject that a step names, or the value that a
    replaced read reads; "" for other matches."""
    if isinstance(match.rule, PassStep):
        return match.rule.about
    is_of_value = isinstance(match.before, UOp) and is_read(match.before)
    return value_words(match.before.src[0]) if is_of_value else ""


def value_words(node: UOp) -> str:
    """Return a value in words: its op with the reduced axes, with the shapes before and after a
    movement, or with its shape."""
    op, shape = node.op.name.lower(), shape_text(node.shape)
    if node.op is Ops.REDUCE_AXIS:
        axes = " and ".join(map(str, sorted(node.reduced_axes)))
        return f"{node.combines.name.lower()} over axis {axes} of {shape_text(node.src[0].shape)}"
    if node.op in MOVEMENT or node.op is Ops.PAD:
        return f"{op} from {shape_text(node.src[0].shape)} to {shape}"
    return f"{op} {shape}"


def kernel_numbers(records: Sequence[PassRecord]) -> dict[int, int]:
    """Return the kernel of each pass of scheduling that works on one, by position in `records`: the
    passes after the one that built the kernels, one kernel after the other."""
    numbers: dict[int, int] = {}
    waiting: list[tuple[int, UOp]] = []
    total, current = 0, None
    for place, record in enumerate(records):
        items = record.after if isinstance(record.after, tuple) else ()
        kernels = [i.kernel for i in items if isinstance(i, ScheduleItem) and i.kernel]
        if kernels:
            waiting = list(enumerate(kernels, total))
            total, current = total + len(kernels), None
        elif waiting and record.before is waiting[0][1]:
            current = waiting.pop(0)[0]
        elif isinstance(record.before, UOp) and record.before.arg is None:
            current = None  # a tensor graph: the passes of the next device
        if current is not None and not kernels:
            numbers[place] = current
    return numbers
