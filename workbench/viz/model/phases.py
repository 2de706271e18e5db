"""The phases of a model, weights, forward, backward and optimiser, and the phase of a value.

Gradients are of the backward. Other values computed from gradients are of the optimiser, if no
gradient of them is taken: new values of parameters, written over the old ones or not, and norms of
gradients. So are values that the same object writes beside them. All others are of the forward, but
for weights: random numbers that the user's code holds, and that are not in memory yet.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.base.errors import plural
from workbench.base.source import Derivation, derivations_below
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.autograd.leaves import leaf_of, plain_value
from workbench.tensor.autograd.lines import GradientDerivation, GradientStep, backward_passes
from workbench.tensor.creation.random import is_key
from workbench.viz.schema.plan import PhaseRow

WEIGHTS = "weights"
"""The phase that draws the first values of a model's state, before all others."""
FORWARD = "forward"
"""The phase that computes values."""
BACKWARD = "backward"
"""The phase that computes gradients."""
OPTIMISER = "optimiser"
"""The phase that computes the new values of parameters from gradients."""


PHASES = (
    PhaseRow(WEIGHTS, "W", ["#DDDDDD", "#EEDD88"]),
    PhaseRow(FORWARD, "F", ["#77AADD", "#99DDFF"]),
    PhaseRow(BACKWARD, "B", ["#EE8866", "#FFAABB"]),
    PhaseRow(OPTIMISER, "O", ["#BBCC33", "#44BB99"]),
)
"""The phases in the order in which they run. Their colours are among those of kernels
(still/svg.py)."""
_ORDER = {phase.name: place for place, phase in enumerate(PHASES)}


def weights_title(count: int) -> str:
    """Return the title of the fold of the kernels that draw weights."""
    return f"{WEIGHTS}: {plural(count, 'kernel')}, computed before"


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


def keys_of_weights(
    roots: Sequence[UOp], computed: Container[UOp], names: Container[UOp]
) -> frozenset[UOp]:
    """Return the keys of the random numbers that weights below `roots` are made of: of values that
    stay for later expressions, since the user has `names` for them, or gradients by them are asked
    for, and that hang on nothing else. The elements are drawn, not reduced, and not in memory yet
    (`computed`)."""
    graph = UOp.sink(*roots).toposort(lambda node: node not in computed)
    drawn: set[UOp] = set()
    others: set[UOp] = set()
    for node in graph:
        is_input = node in computed or (node.op is Ops.BUFFER and not is_key(node))
        if is_input or node.op in _COMBINING or not others.isdisjoint(node.src):
            others.add(node)
        elif is_key(node) or not drawn.isdisjoint(node.src):
            drawn.add(node)
    results = {plain_value(root) for root in roots}
    weights = [n for n in drawn if n in names or (n.op is Ops.DETACH and leaf_of(n) is not None)]
    below = UOp.sink(*[n for n in weights if plain_value(n) not in results]).toposort()
    return frozenset(node for node in below if is_key(node))


_COMBINING = frozenset({Ops.REDUCE_AXIS, Ops.CUSTOM})


def _owners(derivations: Iterable[Derivation]) -> Iterator[int]:
    """Yield the identities of the objects whose methods made some derivations."""
    for derivation in derivations:
        owner: Any = None if derivation.owner is None else derivation.owner()
        if owner is not None:
            yield id(owner)
