"""The phases of training, forward, backward and optimiser, and the phase of a value.

A gradient is of the backward. What else is computed of gradients is the optimiser's, where memory
is written with it and no gradient is asked of it; so is what the same object writes beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.base.source import Derivation, derivations_below
from workbench.tensor.autograd.lines import GradientDerivation, GradientStep, backward_passes
from workbench.viz.schema.plan import PhaseRow

FORWARD = "forward"
"""The value itself is computed."""
BACKWARD = "backward"
"""Gradients are computed."""
OPTIMISER = "optimiser"
"""What parameters become is computed, of gradients."""


PHASES = (
    PhaseRow(FORWARD, "F", ["#77AADD", "#99DDFF"]),
    PhaseRow(BACKWARD, "B", ["#EE8866", "#FFAABB"]),
    PhaseRow(OPTIMISER, "O", ["#BBCC33", "#44BB99"]),
)
"""In the order in which they run. Their colours are among those of kernels (still/svg.py)."""
_ORDER = {phase.name: place for place, phase in enumerate(PHASES)}


def in_order(phases: Iterable[str]) -> tuple[str, ...]:
    """Return phases, each once, in the order in which they run."""
    return tuple(sorted(set(phases), key=_ORDER.__getitem__))


def phase_colour(place: int, phases: Sequence[str]) -> str:
    """Return the colour of a kernel, by its place and its phases: that of the forward, in which it
    has to run, or else of the last."""
    main = FORWARD if FORWARD in phases else phases[-1]
    return PHASES[_ORDER[main]].colours[place % 2]


def phases_of(
    derivations: Sequence[Derivation], written: Sequence[Derivation]
) -> Mapping[Derivation, str]:
    """Return the phase of each of some derivations and of those below them; `written` are those of
    values that are written to memory."""
    forwards = [made_by.forward for made_by in backward_passes(derivations)]
    differentiated = set(derivations_below(forwards))
    of_written = set(derivations_below(written))
    after: set[Derivation] = set()
    phases: dict[Derivation, str] = {}
    for one in derivations_below(derivations):
        is_gradient = isinstance(one, GradientDerivation | GradientStep)
        if is_gradient or any(source in after for source in one.sources):
            after.add(one)
        is_update = one in of_written and one in after and one not in differentiated
        phases[one] = BACKWARD if is_gradient else OPTIMISER if is_update else FORWARD
    owners = set(_owners(one for one, phase in phases.items() if phase == OPTIMISER))
    for one in of_written - differentiated:
        if phases.get(one) == FORWARD and owners.intersection(_owners([one])):
            phases[one] = OPTIMISER
    return phases


def _owners(derivations: Iterable[Derivation]) -> Iterator[int]:
    """Yield the identities of the objects whose methods made some derivations."""
    for one in derivations:
        owner: Any = None if one.owner is None else one.owner()
        if owner is not None:
            yield id(owner)
