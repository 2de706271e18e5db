"""Source lines of gradients, from the forward ops; functions with a custom gradient.

Sections: The user's source lines of gradients; Functions with a custom gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any
from weakref import ref

from workbench.base.source import (
    Calls,
    Derivation,
    SourceLine,
    derivations_below,
    line_of,
    nodes_between,
)
from workbench.base.trace import PassRecord
from workbench.ir.gradient.backward import GRADIENT, Backward, Share, gradient_steps
from workbench.ir.gradient.occurrences import given_rules, is_alias, with_gradient, without_alias
from workbench.ir.node.construct import full
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import dtype_error, shape_error, short
from workbench.tensor.operands.broadcast import cast_to

# --------------------------------------------------------------------------------------------------
# The user's source lines of gradients.

GRADIENT_OF = "gradient of "
"""Prefix of a gradient's method name; the method name of its forward op follows."""


class GradientStep(Derivation):
    """The derivation of an intermediate gradient, with the calls of its forward op."""

    __slots__ = ()


class BackwardPass:
    """The steps of a backward pass, which all its gradients share, computed on demand.

    `user_rules` names the custom gradients that it used. All nodes are referred to weakly: the
    lines of a gradient keep no activation in memory."""

    __slots__ = ("_ends", "_gradients", "_shares", "_steps", "forward", "user_rules", "seconds")

    def __init__(self, result: Backward, forward: Derivation):
        self.forward, self.seconds = forward, result.seconds
        self.user_rules = given_rules(share.node for share in result.shares)
        self._ends: Any = ref(result.root), ref(result.seed)
        self._gradients = [(ref(t), ref(g)) for t, g in result.gradients.items()]
        self._shares: Any = [tuple(map(ref, share)) for share in result.shares]
        self._steps: tuple[Derivation, ...] | None = None

    def shares(self) -> Iterator[Share]:
        """Yield the shares whose nodes are all alive."""
        for references in self._shares:
            nodes = [reference() for reference in references]
            if None not in nodes:
                yield Share(*nodes)

    def steps(self) -> tuple[Derivation, ...]:
        """Return the derivations of the intermediate gradients, in the order of the pass."""
        if self._steps is None:
            forward = dict(_by_node(self.forward))
            origins: dict[UOp, UOp] = {}
            for share in self.shares():
                origins.setdefault(share.total, without_alias(share.node))
            self._steps = tuple(
                _step(gradient, forward[node])
                for gradient, node in origins.items()
                if node in forward
            )
        return self._steps

    def record(self) -> PassRecord | None:
        """Return the record of the pass, as an observer would have made it; None where its root or
        its seed is no longer alive."""
        root, seed = (end() for end in self._ends)
        if root is None or seed is None:
            return None
        pairs = [(target(), gradient()) for target, gradient in self._gradients]
        alive = [(t, g) for t, g in pairs if t is not None and g is not None]
        before, after, matches = gradient_steps(root, seed, alive, self.shares())
        name, doc = GRADIENT.name, GRADIENT.doc
        return PassRecord(name, doc, before, after, matches, self.seconds)


class GradientDerivation(Derivation):
    """The derivation of a gradient. `calls` are the user's calls that requested it. The sources,
    computed on demand, are the derivations of the forward value and of the intermediate gradients
    of `made_by`."""

    __slots__ = ("made_by",)

    def __init__(self, node: UOp, calls: Calls, made_by: BackwardPass):
        self._node = ref(node)
        forward = made_by.forward
        self.calls, self.made_by = calls, made_by
        self.owner = forward.owner
        self.method = f"{GRADIENT_OF}{forward.method.strip('_')}"

    @property
    def sources(self) -> tuple[Derivation, ...]:  # type: ignore[override]
        """The derivations of the forward value and of the intermediate gradients, in order."""
        return (self.made_by.forward, *self.made_by.steps())


def backward_passes(derivations: Iterable[Derivation]) -> list[BackwardPass]:
    """Return the backward passes that made gradients below some derivations, in their order."""
    gradients = (
        one for one in derivations_below(derivations) if isinstance(one, GradientDerivation)
    )
    return list(dict.fromkeys(one.made_by for one in gradients))


def _step(gradient: UOp, forward: Derivation) -> Derivation:
    """Return the derivation of an intermediate gradient, from its forward op's."""
    method = f"{GRADIENT_OF}{forward.method.strip('_')}"
    return GradientStep(gradient, forward.calls, (), forward.owner, method)


def calls_by_node(derivation: Derivation) -> Iterator[tuple[UOp, Calls]]:
    """Yield each living node of an expression, with the user's calls that made it."""
    for node, own in _by_node(derivation):
        yield node, own.calls


def _by_node(derivation: Derivation) -> Iterator[tuple[UOp, Derivation]]:
    """Yield each living node of an expression, with its own derivation."""
    ends: set[UOp] = set()
    for one in derivations_below([derivation]):
        if one.node is not None:
            for node in nodes_between(one.node, ends):
                if not is_alias(node):
                    yield node, one
            ends.add(one.node)


def line_of_node(node: UOp, derivation: Derivation | None) -> SourceLine | None:
    """Return the user's line that made a node of an expression; None where it is unknown."""
    if derivation is None:
        return None
    calls = next((c for n, c in calls_by_node(derivation) if n is node), ())
    return line_of(calls[0]) if calls else None


# --------------------------------------------------------------------------------------------------
# Functions with a custom gradient: a result, and the function of its gradient.

Function = Callable[..., tuple[Any, Callable[[Any], Any]]]


def custom_gradient(function: Function) -> Callable[..., Any]:
    """Return a function of tensors with the gradient that `function` defines.

    `function` returns a pair: its result, and a function of the gradient of the result. The latter
    returns the gradients of the arguments that are tensors, in order (a single one needs no tuple);
    None for an argument without a gradient.
    Errors: DTypeError for another pair, or other values than tensors of floats; ShapeError for
    another number of gradients, or another shape.
    Also known as: torch.autograd.Function; TensorFlow's and JAX's custom gradients.

    >>> from workbench import Tensor
    >>> @Tensor.custom_gradient
    ... def rounded(x):
    ...     return x.round(), lambda g: g
    >>> x = Tensor([1.2, 2.7], requires_grad=True)
    >>> (rounded(x) * 3).sum().backward().item(), x.grad.tolist()
    (12.0, [3.0, 3.0])
    """
    name = getattr(function, "__name__", type(function).__name__)

    @wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        pair = function(*args, **kwargs)
        if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1])):
            raise dtype_error(
                f"{name} with a gradient of its own returns {short(pair)}",
                "it returns a tensor, and a function of the gradient of that",
                "return y, lambda g: g * 2",
            )
        result, gradient_of = pair
        _check_tensor(result, f"the result of {name}")
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Base)]

        def rule(g: UOp) -> list[UOp | None]:
            return shares_of(name, gradient_of(result._on(g, result._device)), tensors)

        sources = [t.uop for t in tensors]
        node = with_gradient(result.uop, sources, name, rule)
        return result._with(node, *tensors)

    return differentiated


def shares_of(name: str, results: Any, tensors: Sequence[Base]) -> list[UOp | None]:
    """Return the gradients of `tensors` as nodes, from the `results` of a user's function.

    Errors: DTypeError for another type, ShapeError for another number of them or another shape.
    """
    each = list(results) if isinstance(results, tuple | list) else [results]
    if len(each) != len(tensors):
        raise shape_error(
            f"the gradient of {name} has {len(each)} results",
            f"it has one for each tensor that {name} was called with, {len(tensors)} here",
            "None for one without a gradient",
        )
    shares: list[UOp | None] = []
    for share, tensor in zip(each, tensors, strict=True):
        if share is None:
            shares.append(None)
            continue
        _check_tensor(share, f"a gradient of {name}")
        if share.shape != tensor.shape:
            raise shape_error(
                f"a gradient of {name} has shape {share.shape}",
                f"its tensor has shape {tensor.shape}",
                ".sum() over what was broadcast",
            )
        node = cast_to(share.uop, tensor.dtype)
        shares.append(full(tensor.shape, node) if node.is_const else node)
    return shares


def _check_tensor(value: Any, what: str) -> None:
    if not isinstance(value, Base) or not value.dtype.is_float:
        kind = value.dtype if isinstance(value, Base) else type(value).__name__
        hint = ".float()" if isinstance(value, Base) else "Tensor([1.0, 2.0])"
        raise dtype_error(
            f"{what} is {short(value)}", f"it is a tensor of floats, not {kind}", hint
        )
