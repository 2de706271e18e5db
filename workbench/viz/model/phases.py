"""The phases of training, forward, backward and optimiser, and the phase of a value.

Gradients are of the backward. Other values computed from gradients are of the optimiser, if no
gradient of them is taken: new values of parameters, written over the old ones or not, and norms of
gradients. So are values that the same object writes beside them. All others are of the forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.base.source import Derivation, derivations_below
from workbench.tensor.autograd.lines import GradientDerivation, GradientStep, backward_passes
from workbench.viz.schema.plan import PhaseRow

FORWARD = "forward"
"""The phase that computes values."""
BACKWARD = "backward"
"""The phase that computes gradients."""
OPTIMISER = "optimiser"
"""The phase that computes the new values of parameters from gradients."""


PHASES = (
    PhaseRow(FORWARD, "F", ["#77AADD", "#99DDFF"]),
    PhaseRow(BACKWARD, "B", ["#EE8866", "#FFAABB"]),
    PhaseRow(OPTIMISER, "O", ["#BBCC33", "#44BB99"]),
)
"""The phases in the order in which they run. Their colours are among those of kernels
(still/svg.py)."""
_ORDER = {phase.name: place for place, phase in enumerate(PHASES)}


def in_order(phases: Iterable[str]) -> tuple[str, ...]:
    """Return phases, each once, in the order in which they run."""
    return tuple(sorted(set(phases), key=_ORDER.__getitem__))


def phase_colour(place: int, phases: Sequence[str]) -> str:
    """Return the colour of the kernel at `place`: of the forward, if it is one of its phases, else
    of its last phase."""
    main = FORWARD if FORWARD in phases else phases[-1]
    return PHASES[_ORDER[main]].colours[place % 2]


def phases_of(
    derivations: Sequence[Derivation], written: Sequence[Derivation]
) -> Mapping[Derivation, str]:
    """Return the phase of some derivations, and of those below them; `written` are the derivations
    of values that are written to memory."""
    forwards = [made_by.forward for made_by in backward_passes(derivations)]
    differentiated = set(derivations_below(forwards))
    of_written = set(derivations_below(written))
    after: set[Derivation] = set()
    phases: dict[Derivation, str] = {}
    for derivation in derivations_below(derivations):
        is_gradient = isinstance(derivation, GradientDerivation | GradientStep)
        if is_gradient or any(source in after for source in derivation.sources):
            after.add(derivation)
        is_update = derivation in after and derivation not in differentiated
        phases[derivation] = BACKWARD if is_gradient else OPTIMISER if is_update else FORWARD
    owners = set(_owners(derivation for derivation, phase in phases.items() if phase == OPTIMISER))
    for derivation in of_written - differentiated:
        if phases.get(derivation) == FORWARD and owners.intersection(_owners([derivation])):
            phases[derivation] = OPTIMISER
    return phases


def _owners(derivations: Iterable[Derivation]) -> Iterator[int]:
    """Yield the identities of the objects whose methods made some derivations."""
    for derivation in derivations:
        owner: Any = None if derivation.owner is None else derivation.owner()
        if owner is not None:
            yield id(owner)
