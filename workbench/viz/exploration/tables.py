"""Tuples that print as a table: the `kernels`, `passes`, `decisions` and `variants` of an
Exploration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, SupportsIndex, TypeVar, overload

from workbench.base.errors import PlaceError, WorkbenchError, require
from workbench.base.terminal import Printed
from workbench.base.trace import PassRecord
from workbench.ir.schedule.plan import Decision
from workbench.kernel.kernel import Kernel
from workbench.viz.decision_text import decisions_text, passes_text
from workbench.viz.exploration.display import Display
from workbench.viz.model.decisions import printed_decisions
from workbench.viz.model.passes import outcomes
from workbench.viz.model.words import kernel_number

Row = TypeVar("Row")


class AskedTable(Printed, tuple[Row, ...], Generic[Row]):
    """Rows that print as text. While a question that they would answer waits for a guess, they
    print the question. `name` is their attribute of an Exploration."""

    name: ClassVar[str]
    display: Display

    def __new__(cls, rows: Iterable[Row] = (), display: Display | None = None) -> Self:
        """Return the table of some rows; without a display no question hides it."""
        table = super().__new__(cls, rows)
        table.display = display or Display()
        return table

    @overload
    def __getitem__(self, place: SupportsIndex) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, place: Any) -> Any:
        """Return a row, or the rows of a slice. Errors: PlaceError for a missing row."""
        try:
            return super().__getitem__(place)
        except (IndexError, TypeError):
            raise self._no_row(place) from None

    def _no_row(self, place: object) -> PlaceError:
        numbers = f"0 to {len(self) - 1}" if len(self) > 1 else "0"
        because = f"they are numbered {numbers}" if self else "there are none"
        hint = f"ex.{self.name}[{max(0, len(self) - 1)}]" if self else ""
        return PlaceError(f"there is no {self.name}[{place!r:.40}]", because, hint)

    def text(self) -> str:
        """Return the rows as a text."""
        return tuple.__repr__(self)

    def __str__(self) -> str:
        return self.display.waits if self.display.hides(self.name) else self.text()


class KernelTuple(AskedTable[Kernel]):
    """Kernels in execution order; printed as a tuple."""

    name = "kernels"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        hidden = self.display.hides(self.name)
        printer.text(str(self)) if hidden else printer.pretty(tuple(self))


class PassTable(AskedTable[PassRecord]):
    """Passes in execution order; printed, a line each: its outcome and its time."""

    name = "passes"

    def text(self) -> str:
        """Return a line for each pass."""
        return passes_text(tuple(outcomes(self))) or "no passes"


class Decisions(AskedTable[Decision]):
    """Decisions of the scheduler; printed, a line each: the value, whether it is stored or fused,
    and why."""

    name = "decisions"

    def text(self) -> str:
        """Return a line for each decision that is printed, and the number of the others."""
        return decisions_text(printed_decisions(self, self.display.on), len(self)) or "no decisions"


@dataclass(frozen=True, slots=True, repr=False)
class Variant(Printed):
    """A kernel with opts, called `name`. `place` is its position in the record, `number` that of
    its kernel in `ex.kernels`, `time` its timing as text ("": not measured), and `display` that of
    its exploration."""

    place: int
    number: int
    name: str
    kernel: Kernel
    time: str
    display: Display = field(compare=False)

    def __str__(self) -> str:
        opts = ", ".join(map(str, self.kernel.applied_opts)) or "no opts"
        head = f"{self.name} (kernel {kernel_number(self.number)}): {opts}"
        return f"{head}   {self.time}".rstrip()


class Variants(AskedTable[Variant]):
    """Variants, which print as a table; `named` returns one by its name."""

    name = "variants"

    def named(self, name: str) -> Variant:
        """Return the first variant of a name.

        Errors: WorkbenchError for an unknown name.
        """
        require(name, str, "named: name", '"auto"')
        for variant in self:
            if variant.name == name:
                return variant
        because = "there are " + ", ".join(variant.name for variant in self)
        raise WorkbenchError(f"there is no variant {name!r:.60}", because, "one of them")

    def _no_row(self, place: object) -> PlaceError:
        error = super()._no_row(place)
        if isinstance(place, str) and self:
            error.hint = f"ex.variants.named({self[0].name!r})"
        return error

    def text(self) -> str:
        """Return a line for each variant."""
        return "\n".join(map(str, self))


def variants_of(kernels: Iterable[Kernel], display: Display) -> Variants:
    """Return the un-optimised variants of kernels that were never shown."""
    rows = (
        Variant(place, place, "plain", kernel, "", display) for place, kernel in enumerate(kernels)
    )
    return Variants(rows, display)
