"""Programs that are read from a text, with annotations of their steps: the ends of loops,
alignment, atomic updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import ProgramLine


@dataclass(frozen=True)
class Annotations:
    """Facts about a program that its steps do not state, by position. `until`: a LOOP ends when
    this register is false in all active work-items. `aligned`: an access needs an address that is a
    multiple of so many bytes. `copies`: STOREs that end asynchronous copies. `commits`, `waits`:
    steps that commit a batch of these, or wait for all but so many batches: SETs of a register that
    nothing reads. `returned`: the register that says that a work-item has returned, so that no
    barrier waits for it (None: all wait). `updates`: STOREs that combine their value with the
    stored one, atomically, by this op. `atomic`: memories of which all accesses are atomic.
    `divisions`: divisions of whole numbers that have no value if they are by 0, with the condition
    under which their value is used (None: always). `reads_outside`: a read outside of its memory
    gives any value, and is a defect only if that is used. `is_zeroed`: the memory of a work-group
    begins as 0."""

    until: Mapping[int, UOp] = field(default_factory=dict)
    aligned: Mapping[int, int] = field(default_factory=dict)
    copies: frozenset[int] = frozenset()
    commits: frozenset[int] = frozenset()
    waits: Mapping[int, int] = field(default_factory=dict)
    returned: UOp | None = None
    updates: Mapping[int, Ops] = field(default_factory=dict)
    atomic: frozenset[UOp] = frozenset()
    divisions: Mapping[int, UOp | None] = field(default_factory=dict)
    reads_outside: bool = False
    is_zeroed: bool = False


NO_ANNOTATIONS = Annotations()
"""The annotations of a program of the compiler, whose steps state all."""


@dataclass(frozen=True)
class TextProgram:
    """A program from a text in `language`: its steps, the lines of the text that have steps, and
    annotations of the steps."""

    language: str
    linear: tuple[UOp, ...]
    lines: tuple[ProgramLine, ...]
    annotations: Annotations


def annotations_of(text: TextProgram | None) -> Annotations:
    """Return the annotations of a program that was read from `text` (None: from none)."""
    return NO_ANNOTATIONS if text is None else text.annotations
