"""Rules of the linear level: nodes by table, then one walk in program order.

A check returns why a node breaks its rule, "" where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from workbench.base.dtypes import dtypes
from workbench.base.errors import VerifyError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.node.views import LoopRole
from workbench.ir.verify.kernel import barrier, define, memory, param, special, wrong_index
from workbench.ir.verify.rows import Spec, broken, by_op, common, require, shuffle

STEPLESS_OPS = frozenset({Ops.CONST, Ops.VAR, Ops.PARAM, Ops.RANGE, Ops.LANES, Ops.REG})
"""Ops that are used without a step of their own."""


def index(node: UOp) -> str:
    if memory(node.src[0]).op not in (Ops.PARAM, Ops.DEFINE):
        return f"it points into {node.src[0].op.name}"
    if len(node.src) != 2:
        return "it does not have one flat index"
    return wrong_index(node.src[1].dtype)


def load(node: UOp) -> str:
    if node.src[0].op is not Ops.INDEX or len(node.src) > 2:
        return "it does not read one INDEX"
    allowed = dtypes.bool, dtypes.bool.vec(node.dtype.count)
    if len(node.src) == 2 and node.src[1].dtype not in allowed:
        return f"its condition is {node.src[1].dtype}"
    return ""


def store(node: UOp) -> str:
    if len(node.src) not in (2, 3):
        return f"it has {len(node.src)} sources"
    target, value = node.src[:2]
    allowed = dtypes.bool, dtypes.bool.vec(value.dtype.count)
    if len(node.src) == 3 and node.src[2].dtype not in allowed:
        return f"its condition is {node.src[2].dtype}"
    if target.op is not Ops.INDEX:
        return f"it writes to {target.op.name}"
    fits = value.dtype.scalar is target.dtype
    return "" if fits else f"it writes {value.dtype} to {target.dtype}"


def sets(node: UOp) -> str:
    register, value = node.src
    if register.op is not Ops.REG:
        return f"it sets {register.op.name}"
    return "" if value.dtype is register.dtype else f"{value.dtype} is set to {register.dtype}"


def register(node: UOp) -> str:
    match node.arg:
        case (str(), int()):
            return ""
    return f"its arg is {node.arg!r}, not (name, first lane)"


def lanes(node: UOp) -> str:
    fits = isinstance(node.arg, tuple) and len(node.arg) == node.dtype.count > 1
    return "" if fits else f"{node.arg!r} does not fill {node.dtype}"


def loop(node: UOp) -> str:
    if len(node.src) != 1 or node.src[0].op is not Ops.RANGE:
        return "it does not name one range"
    return "" if node.arg in (None, *get_args(LoopRole)) else f"its arg is {node.arg!r}"


def branch(node: UOp) -> str:
    fits = len(node.src) == 1 and node.condition.dtype is dtypes.bool
    return "" if fits else "it does not have one bool"


def wmma(node: UOp) -> str:
    core, (a, b, c, *more) = node.arg, node.src
    if more:
        return f"it has {len(node.src)} sources"
    for source, fragment in ((a, core.a), (b, core.b), (c, core.c)):
        if source.dtype.count != fragment.per_lane:
            return f"a lane has {fragment.per_lane} elements, and this is {source.dtype}"
    return "" if c.dtype is node.dtype else f"it adds to {c.dtype}"


def exchange(node: UOp) -> str:
    rows, *more = node.src
    if more or not isinstance(node.arg, tuple) or len(node.arg) != 2:
        return f"it has {len(node.src)} sources, or no two layouts"
    counts = rows.dtype.count, node.dtype.count
    fits = counts == tuple(layout.per_lane for layout in node.arg)
    return "" if fits else f"lanes have {rows.dtype} before it and {node.dtype} after it"


def block(node: UOp) -> str:
    fits = not node.src and isinstance(node.arg, KernelInfo)
    return "" if fits else "it does not hold just the KernelInfo"


# fmt: off
LINEAR = by_op((
    *common("n"),
    Spec("param",    (Ops.PARAM,),             param,    "a parameter has a slot and a size"),
    Spec("define",   (Ops.DEFINE,),            define,   "a DEFINE has Storage"),
    Spec("index",    (Ops.INDEX,),             index,    "an INDEX is one address in memory"),
    Spec("load",     (Ops.LOAD,),              load,     "a LOAD reads an INDEX"),
    Spec("store",    (Ops.STORE,),             store,    "a STORE writes elements of its memory"),
    Spec("set",      (Ops.SET,),               sets,     "a SET changes a REG"),
    Spec("register", (Ops.REG,),               register, "a REG has a name and its first lane"),
    Spec("lanes",    (Ops.LANES,),             lanes,    "LANES has a value per lane"),
    Spec("loop",     (Ops.LOOP, Ops.ENDLOOP),  loop,     "a loop runs over one range"),
    Spec("special",  (Ops.SPECIAL,),           special,  "a SPECIAL numbers a RANGE"),
    Spec("if",       (Ops.IF, Ops.ENDIF),      branch,   "an IF has one condition"),
    Spec("barrier",  (Ops.BARRIER,),           barrier,  "a BARRIER stands alone"),
    Spec("shuffle",  (Ops.WARP_SHUFFLE,),      shuffle,  "a shuffle has a distance"),
    Spec("wmma",     (Ops.WMMA,),              wmma,     "a WMMA takes whole fragments"),
    Spec("exchange", (Ops.EXCHANGE,),          exchange, "an EXCHANGE takes whole fragments"),
    Spec("block",    (Ops.BLOCK,),             block,    "the first step names the kernel"),
))
# fmt: on
_ORDER_RULES = {
    "first-step": "a program begins with its BLOCK",
    "order": "a value stands before its uses, in a loop that is still open",
    "once": "a value is computed once",
    "nesting": "loops nest: the innermost ends first",
    "open-range": "a range is used inside its loop",
    "set-first": "a register is set before it is read",
    "divergence": "all work-items of a group come to a barrier or a shuffle",
    "partners": "lanes that exchange values are all there",
}


def verify_linear(program: Sequence[UOp], without: frozenset[str] = frozenset()) -> None:
    """Raise VerifyError for the first step that breaks a rule of the linear level; `without` names
    rules that need not hold."""
    if not program or program[0].op is not Ops.BLOCK:
        first = program[0] if program else UOp.sink()
        raise _broken(
            "first-step", first, f"this begins with {first.op.name if program else 'nothing'}"
        )
    walk = _Walk(without)
    for place, step in enumerate(program):
        try:
            if step.op is Ops.BLOCK and place:
                raise _broken("first-step", step, f"step {place} is a BLOCK")
            walk.step(step)
        except VerifyError as error:
            error.position = place
            raise
    if walk.blocks:
        raise _broken("nesting", walk.blocks[-1], "its loop or IF does not end")


def _broken(rule: str, node: UOp, why: str) -> VerifyError:
    return broken(rule, _ORDER_RULES[rule], node, why)


class _Walk:
    """The state before a step: the LOOPs and IFs around it (`blocks`), the values that each of
    these has computed, the registers that are set, and the number of work-items of a group."""

    def __init__(self, without: frozenset[str]) -> None:
        self.without = without
        self.blocks: list[UOp] = []
        self.ranges: set[UOp] = set()
        self.defined: set[UOp] = set()
        self.values_by_block: list[list[UOp]] = [[]]
        self.registers: set[UOp] = set()
        self.checked: set[UOp] = set()
        self.items = 1

    def step(self, step: UOp) -> None:
        for source in step.src:
            self._source(step, source)
        if step not in self.checked:
            require(step, LINEAR)
            self.checked.add(step)
        if step.op is Ops.LOOP:
            self._open(step)
        elif step.op is Ops.IF:
            self._begin(step)
        elif step.op in (Ops.ENDLOOP, Ops.ENDIF):
            self._close(step)
        elif step.op is Ops.SPECIAL:
            self.ranges.add(step.axis)
            if step.role == "item":
                self.items *= step.axis.extent
        elif step.op is Ops.SET:
            self.registers.add(step.src[0])
        elif step.op is Ops.BARRIER:
            self._require_all(step)
        elif step in self.defined and step.dtype is not dtypes.void:
            raise _broken("once", step, "it is a second step of the same value")
        if step.op is Ops.WARP_SHUFFLE:
            self._require_all(step)
            if self.items % (1 << step.arg.bit_length()):
                why = f"a group of {self.items} has lanes without a partner"
                self._refuse("partners", step, why)
        if step not in self.defined:
            self.defined.add(step)
            self.values_by_block[-1].append(step)

    def _source(self, step: UOp, source: UOp) -> None:
        if source.op in STEPLESS_OPS:
            if source not in self.checked:
                for node in source.toposort():
                    require(node, LINEAR)
                self.checked.add(source)
        elif source not in self.defined:
            raise _broken("order", step, f"{source.op.name} is not defined here")
        if source.op is Ops.REG and source not in self.registers:
            if step.op is not Ops.SET or source is not step.src[0]:
                why = f"register {source.arg} is not set"
                self._refuse("set-first", step, why)
        if source.op is Ops.RANGE and source not in self.ranges:
            if step.op not in (Ops.LOOP, Ops.ENDLOOP, Ops.SPECIAL):
                raise _broken("open-range", step, f"no loop over {source.axis_name} is open")

    def _require_all(self, step: UOp) -> None:
        """Refuse a step that some work-items may not reach."""
        if any(b.op is Ops.IF for b in self.blocks):
            self._refuse("divergence", step, "it stands in an IF")

    def _refuse(self, rule: str, step: UOp, why: str) -> None:
        if rule not in self.without:
            raise _broken(rule, step, why)

    def _open(self, step: UOp) -> None:
        if step.axis in self.ranges:
            name = step.axis.axis_name
            raise _broken("nesting", step, f"a loop over {name} is open")
        self.ranges.add(step.axis)
        self._begin(step)

    def _begin(self, step: UOp) -> None:
        self.blocks.append(step)
        self.values_by_block.append([])

    def _close(self, step: UOp) -> None:
        begins = Ops.LOOP if step.op is Ops.ENDLOOP else Ops.IF
        innermost = self.blocks[-1] if self.blocks else step
        if (innermost.op, innermost.src[0]) != (begins, step.src[0]):
            what = "the IF" if begins is Ops.IF else f"the loop over {step.axis.axis_name}"
            raise _broken("nesting", step, f"{what} is not innermost")
        self.blocks.pop()
        if begins is Ops.LOOP:
            self.ranges.discard(step.axis)
        self.defined.difference_update(self.values_by_block.pop())
