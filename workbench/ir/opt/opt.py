"""Opts as values: a kind, an axis and an argument. An opt prints as the Python that constructs it.

An OptKind is a record of all facts about a kind. `OptOps` has the kinds by name; `table.py` lists
those of the package, and users may add their own.

Sections: Opts as values; Amounts that a refusal proposes; Families of axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from workbench.base.errors import RegisterError
from workbench.base.target import Target
from workbench.base.trace import unobserved
from workbench.ir.nest.storage import Excess
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import AXIS_ORDER, AxisType, Ops
from workbench.ir.node.uop import UOp, memoised, split_gate
from workbench.pickles import pickled

# --------------------------------------------------------------------------------------------------
# Opts as values.


@pickled
@dataclass(frozen=True, slots=True)
class Opt:
    """One opt: `Opt(OptOps.UPCAST, "g1", 4)`.

    `axis` is a name, or the position of an axis among those that the kind applies to: for UNROLL
    among the reduce axes, for ORDER, SWAP and STAGE among the loops. For TC it has three names,
    or the position of a choice. `arg` is an amount (0: the whole axis); another axis for ORDER and
    SWAP; the slot of an input for STAGE; a number of buffers for PIPELINE; a level or the sizes of
    a tile for TC. NOLOCALS takes neither.
    """

    op: OptKind
    axis: str | int | None = None
    arg: int | str | None = None

    def __post_init__(self) -> None:
        for field in ("axis", "arg"):
            value = getattr(self, field)
            if isinstance(value, np.integer):  # printed and saved like an int
                object.__setattr__(self, field, int(value))

    def __repr__(self) -> str:
        parts = [repr(self.op), *[repr(p) for p in (self.axis, self.arg) if p is not None]]
        return f"Opt({', '.join(parts)})"

    def __str__(self) -> str:
        def quoted(part: object) -> str:
            return f'"{part}"' if isinstance(part, str) else repr(part)

        parts = [quoted(p) for p in (self.axis, self.arg) if p is not None]
        op = self.op.name if isinstance(self.op, OptKind) else repr(self.op)
        return f"{op}({', '.join(parts)})"


@pickled
class Axis(NamedTuple):
    """An axis of a kernel, for text and menus."""

    name: str
    kind: AxisType
    size: int


@pickled
class Refusal(NamedTuple):
    """Why an opt is not legal, and which opt would be."""

    because: str
    hint: str = ""


@pickled
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OptKind:
    """One kind of opt: its axes, its legality and its application. Two kinds are never equal, even
    with the same name.

    `why_not(kernel, opt, target)` returns why an opt is not legal, or None. `apply(kernel, opt)`
    returns the new kernel. Both get an `opt` whose axis is a name. `here` (on a CPU) and `on_a_gpu`
    are the captions in menus. Whether the new kernel needs too much memory is checked after
    `why_not`: `less_memory` then returns the hint, or "" to propose other amounts. `on_target`, if
    it is set, returns the opt that is applied and recorded; otherwise only its axis is named.

    `argument` says what the `arg` of the opt is: an "amount", another "axis", an "input", a "tile"
    of a tensor core, or "" for nothing. An integer axis counts the axes of the kinds in
    `applies_to`, or the loops if that is empty. Menus and searches try each of `amounts` (0: the
    whole axis; a function if they depend on the target) on each of these axes, and each (axis, arg)
    of `choices`. A search tries, and the page offers, kinds with a lower `promise` first. `makes`
    is the kind of the new axis; None if there is none, or if it has the kind of the split axis.
    """

    name: str
    here: str
    on_a_gpu: str
    why_not: Callable[[UOp, Opt, Target], Refusal | None]
    apply: Callable[[UOp, Opt], UOp]
    argument: str = "amount"
    applies_to: frozenset[AxisType] = frozenset()
    amounts: Sequence[int] | Callable[[Target], Sequence[int]] = ()
    choices: Callable[[UOp], Iterable[tuple[str, int | str | None]]] = lambda kernel: ()
    makes: AxisType | None = None
    promise: int = 1000
    less_memory: Callable[[Excess | None], str] = lambda over: ""
    on_target: Callable[[UOp, Opt, Target], Opt] | None = None

    def amounts_on(self, target: Target) -> Sequence[int]:
        """Return the amounts that menus and searches try on a target."""
        return self.amounts(target) if callable(self.amounts) else self.amounts

    def tried(self, kernel: UOp, target: Target) -> Iterator[Opt]:
        """Yield the opts of this kind that menus and searches try on a kernel."""
        for name, axis in ranges(kernel).items():
            if axis.axis_kind in self.applies_to:
                yield from (Opt(self, name, n) for n in self.amounts_on(target))
        yield from (Opt(self, axis, arg) for axis, arg in self.choices(kernel))

    @property
    def caption(self) -> str:
        """The effect of the opt on a processor and on a GPU, in one line."""
        return f"{self.name} on a processor: {self.here}. On a GPU: {self.on_a_gpu}."

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return opt_kind, (self.name,)


def opt_kind(name: str) -> OptKind:
    """Return the kind of a pickled opt. Errors: RegisterError if this process has no kind of that
    name."""
    if name not in OptOps.__members__:
        because = "it was registered in another process"
        raise RegisterError(f"there is no opt {name}", because, "workbench.register it here too")
    return OptOps[name]


class OptKinds:
    """Every kind of opt by its name, `OptOps.UPCAST` or `OptOps["UPCAST"]`, in the order in which
    menus and searches try them."""

    def __init__(self) -> None:
        self._own: frozenset[str] = frozenset()
        self.__members__: Mapping[str, OptKind] = {}
        """The kinds by name. Adding or removing a kind replaces this mapping."""

    def __getitem__(self, name: str) -> OptKind:
        return self.__members__[name]

    def __getattr__(self, name: str) -> OptKind:
        kind = self.__dict__.get("__members__", {}).get(name)
        if kind is None:
            raise AttributeError(f"there is no opt {name}: the opts are {self!r}")
        opt_kind: OptKind = kind
        return opt_kind

    def __iter__(self) -> Iterator[OptKind]:
        return iter(self.__members__.values())

    def __len__(self) -> int:
        return len(self.__members__)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__members__]

    def __repr__(self) -> str:
        return ", ".join(self.__members__)

    def add(self, *kinds: OptKind) -> None:
        """Add the package's own kinds."""
        self._add({kind.name: kind for kind in kinds})
        self._own |= {kind.name for kind in kinds}

    def is_own(self, kind: OptKind) -> bool:
        """Whether a kind is the package's own."""
        return kind.name in self._own

    @property
    def registered(self) -> tuple[OptKind, ...]:
        """The kinds that users registered."""
        return tuple(kind for kind in self if kind.name not in self._own)

    def register(self, kind: OptKind) -> OptKind:
        """Add a kind and return it: menus offer it, searches try it, and text may name it. It
        replaces a registered kind of the same name.

        Errors: RegisterError for the name of an opt of the package, and for an invalid field.
        """
        reason = _unfit(kind)
        if kind.name in self._own:
            reason = f"the package has an opt {kind.name}", "another name"
        if reason is not None:
            raise RegisterError(f"cannot register the opt {kind.name!s:.40}", *reason)
        self._add({kind.name: kind})
        return kind

    def unregister(self, name: str) -> None:
        """Remove a registered kind; existing opts keep it. Errors: RegisterError for a name that
        is not registered."""
        if name not in [kind.name for kind in self.registered]:
            added = ", ".join(kind.name for kind in self.registered) or "register() one first"
            raise RegisterError(
                f"cannot remove the opt {name!s:.40}", "it is not registered", added
            )
        self.__members__ = {n: k for n, k in self.__members__.items() if n != name}

    def _add(self, kinds: Mapping[str, OptKind]) -> None:
        self.__members__ = {**self.__members__, **kinds}


def _unfit(kind: OptKind) -> tuple[str, str] | None:
    """Return why a kind of opt is invalid, and what to try; None if it is valid."""
    name = kind.name
    if not isinstance(name, str) or not name.isidentifier() or name != name.upper():
        return f"{name!r:.40} is not a word in capitals", 'a name such as "HALVE"'
    for field in ("why_not", "apply", "choices", "less_memory"):
        if not callable(getattr(kind, field)):
            return f"its {field} is not a function", f"{field}=a function"
    if kind.argument not in ("amount", "axis", "input", "tile", ""):
        because = f"its argument {kind.argument!r:.40} is unknown"
        return because, '"amount", "axis", "input", "tile" or ""'
    for amount in () if callable(kind.amounts) else kind.amounts:
        if type(amount) is not int or amount < 0:
            because = f"its amount {amount!r:.40} is not a whole number"
            return because, "amounts=(2, 4), with 0 for the whole axis"
    if not all(isinstance(k, AxisType) for k in (*kind.applies_to, *_product_kinds(kind))):
        because = "what it applies to or makes is not a kind of axis"
        return because, "applies_to=frozenset({AxisType.GLOBAL})"
    if type(kind.promise) is not int:
        return f"its promise {kind.promise!r:.40} is not a whole number", "promise=50"
    return None


def _product_kinds(kind: OptKind) -> tuple[object, ...]:
    return () if kind.makes is None else (kind.makes,)


OptOps = OptKinds()


OUTPUT_KINDS = frozenset({AxisType.GLOBAL, AxisType.LOOP, AxisType.LOCAL, AxisType.FILL})
REDUCE_KINDS = frozenset({AxisType.REDUCE, AxisType.GROUP_REDUCE})


def store_strides(kernel: UOp) -> dict[UOp, int]:
    """Return the stride of each axis in the result, for several outputs in the first that has the
    axis."""
    strides: dict[UOp, int] = {}
    for store in reversed(kernel.stores):
        strides |= terms(split_gate(store.place.flat_index)[0])[0]
    return strides


@memoised
def ranges(kernel: UOp) -> Mapping[str, UOp]:
    """Return the RANGEs of a kernel by axis name, in the order in which axes are listed."""
    position = {name: i for i, name in enumerate(kernel.arg.order)}
    axis_nodes = [n for n in kernel.toposort() if n.op is Ops.RANGE]
    axis_nodes.sort(
        key=lambda r: (AXIS_ORDER[r.axis_kind], position.get(r.axis_name, 0), r.axis_name)
    )
    return {r.axis_name: r for r in axis_nodes}


def axes(kernel: UOp) -> tuple[Axis, ...]:
    """Return the axes of a kernel: by kind, then in loop order."""
    return tuple(Axis(r.axis_name, r.axis_kind, r.extent) for r in ranges(kernel).values())


# --------------------------------------------------------------------------------------------------
# Amounts that a refusal proposes: legal ones, by the predicate that checks opts.

MAX_HINT_AMOUNT = 64
"""The largest amount that a hint lists. Larger ones may be legal, but a hint is short."""


def amounts_hint(opt: Opt, extent: int, is_legal: Callable[[Opt], bool]) -> str:
    """Return a hint with the legal amounts of `opt` on its axis of `extent` elements, the nearest
    of them as an opt: 'UPCAST("g1", 4)   (legal here: 2, 4, 8, 16)'."""

    def with_amount(amount: int) -> Opt:
        return Opt(opt.op, opt.axis, amount)

    tried = range(2, min(extent, MAX_HINT_AMOUNT) + 1)
    legal = [n for n in tried if extent % n == 0 and is_legal(with_amount(n))]
    if legal:
        target = opt.arg if isinstance(opt.arg, int) and opt.arg else extent
        nearest = min(legal, key=lambda n: abs(n - target))
        return f"{with_amount(nearest)}   (legal here: {', '.join(map(str, legal))})"
    if is_legal(with_amount(0)):
        return f"{with_amount(0)}   (legal here: {extent}, the whole axis)"
    return "another axis (no amount is legal here)"


# --------------------------------------------------------------------------------------------------
# Families of axes: the parts into which opts have split one axis.

Family = tuple[str, ...]


def families(kernel: UOp, opts: Sequence[Opt]) -> tuple[Family, ...]:
    """Return the axes of `kernel` with `opts` (legal ones, by name) in families. A family has the
    parts of one axis of `kernel`, the outer part first; other axes that opts add are families of
    one. After UPCAST("g0", 4) and LOCAL("g0", 2) they are (g0, l0, u0) and (r0).
    """
    groups = [[name] for name in ranges(kernel)]
    for opt in opts:
        with unobserved():
            changed = opt.op.apply(kernel, opt)
        before, after = ranges(kernel), ranges(changed)
        family = next((names for names in groups if opt.axis in names), None)
        for name in [n for n in after if n not in before]:
            if family is not None and after[name].axis_kind is _split_kind(opt, before):
                family.insert(family.index(str(opt.axis)) + 1, name)
            else:
                groups.append([name])
        # a removed axis leaves its name to later ones
        groups = [[n for n in names if n in after] for names in groups]
        kernel = changed
    return tuple(tuple(names) for names in groups if names)


def _split_kind(opt: Opt, axes: Mapping[str, UOp]) -> AxisType | None:
    """Return the kind of the part that an opt splits off its axis, or None if it splits none."""
    if opt.op.argument != "amount":
        return None
    return opt.op.makes or axes[str(opt.axis)].axis_kind
