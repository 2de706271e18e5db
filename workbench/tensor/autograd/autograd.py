"""Gradients of tensors: `backward`, `gradient`, `requires_grad`.

Gradients are expressions like any others: nothing is computed before it is needed.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any, Self
from weakref import ref

from workbench.base.errors import type_name
from workbench.base.source import calls
from workbench.ir.gradient.backward import Backward, NoGradient, backward, is_on
from workbench.ir.gradient.occurrences import MergedGraph, alias, with_gradient
from workbench.ir.node.construct import full, is_known
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import advice
from workbench.tensor.autograd.leaves import (
    GradientState,
    Training,
    detached,
    flow,
    gradient_changes,
    leads_to_leaf,
    leads_to_lost_leaf,
    leaf_node,
    leaf_of,
    leaves_below,
    lets_through,
    new_leaf,
    number_of,
    own_leaf_node,
    own_node,
    plain_value,
)
from workbench.tensor.autograd.lines import (
    BackwardPass,
    GradientDerivation,
    custom_gradient,
    line_of_node,
)
from workbench.tensor.autograd.origins import depends_on_leaf, is_computed_from, is_replayed_from
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import (
    dtype_error,
    flag,
    gradient_error,
    shape_error,
    short,
)
from workbench.tensor.operands.broadcast import cast_to


class Autograd(Base):
    """backward, gradient, grad, requires_grad, detach; train and no_grad.

    A tensor with requires_grad=True is a leaf: `backward()` adds to its `.grad`. While
    `requires_grad` is None, a tensor has no gradient, and an optimiser sets it to True.
    """

    __slots__ = ()

    # computing gradients

    def backward(self, gradient: Self | None = None) -> Self:
        """Add the gradient of this tensor to `.grad` of each leaf that it depends on, and return
        this tensor. `gradient` is the gradient of this tensor itself; None: 1, for one element.

        Errors: ShapeError for several elements without `gradient`, or a `gradient` of another
        shape; DTypeError for a tensor of integers; GradientError for a tensor that depends on no
        leaf, or on one through an op without a gradient, or through the result of a captured
        TinyJit, which has no expression.
        """
        seed = self._seed(gradient, "backward()")
        if is_replayed_from(self.uop):
            what = "backward() would leave out a share of a gradient"
            raise _through_replay(what, "one with requires_grad=True")
        leaves = dict(leaves_below(self.uop))
        result = self._backward(list(leaves), seed)
        if not result.gradients:
            raise self._without_leaf()
        made_by = self._made_by(result)
        for node, gradient_node in result.gradients.items():
            leaf = leaves[node]
            share = self._of_gradient(detached(gradient_node), made_by)
            assert isinstance(leaf, Autograd)
            leaf.grad = share if leaf.grad is None else leaf.grad + share
        self._state().is_spent = True
        return self

    def gradient(
        self, *targets: Self, gradient: Self | None = None, materialize_grads: bool = False
    ) -> list[Self]:
        """Return the gradient of this tensor with respect to each of `targets`, which need not be
        leaves. The results can be differentiated again.

        Shapes, Dtypes: those of the targets. `gradient` is as in `backward`.
        Errors: as `backward`, but a leaf is not needed. GradientError for a target that this tensor
        does not depend on, unless `materialize_grads`, which makes its gradient zeros; for one that
        is no leaf, if a value on the way was computed before (realize(), numpy(), item()): only
        values that lead to leaves keep their expressions; and for any target, if a value on the way
        is the result of a captured TinyJit.
        """
        seed = self._seed(gradient, "gradient()")
        for target in targets:
            _check_target(target)
        self._require_expressions(targets)
        nodes = self._nodes_of(targets)
        result = self._backward([n for some in nodes for n in some], seed)
        gradients: list[Self] = []
        made_by = self._made_by(result)
        for number, (target, some) in enumerate(zip(targets, nodes, strict=True)):
            if not some and not flag(materialize_grads, "materialize_grads"):
                raise self._unconnected(number)
            zero = full(target.shape, target.uop.like(0))
            gradients.append(target._of_gradient(result.of(some, zero), made_by))
        return gradients

    # leaves and their gradients

    @property
    def grad(self) -> Self | None:
        """The sum of the gradients of all `backward()` calls; None before them."""
        state = self._grad_state
        return None if state is None else state.grad

    @grad.setter
    def grad(self, grad: Self | None) -> None:
        if grad is not None and grad.shape != self.shape:
            raise shape_error(
                f"cannot set the gradient of a tensor of shape {self.shape}",
                f"this one has shape {grad.shape}",
                f"a gradient of shape {self.shape}, or None",
            )
        self._state().grad = grad

    @property
    def requires_grad(self) -> bool | None:
        """True for a leaf, and for a float that depends on one; False where the user set it; else
        None."""
        state = self._grad_state
        if state is not None and state.requires_grad is not None:
            return state.requires_grad
        return True if self.dtype.is_float and depends_on_leaf(self.uop) else None

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        self.requires_grad_(requires_grad)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make this tensor a leaf (False: no leaf), and return it. True changes nothing if it
        depends on a leaf already.

        Errors: DTypeError for a leaf of integers; GradientError for False if it depends on a leaf.
        """
        is_leaf = flag(requires_grad, "requires_grad")
        if is_leaf and not self.dtype.is_float:
            raise dtype_error(
                f"a tensor of {self.dtype} cannot require a gradient",
                "only floats have gradients",
                ".float()",
            )
        if number_of(self) == 0 and depends_on_leaf(self.uop):
            if is_leaf:
                return self
            raise gradient_error(
                "cannot set requires_grad=False",
                "this tensor is computed of one that has requires_grad=True",
                ".detach()",
            )
        state = self._state()
        state.requires_grad = is_leaf
        if is_leaf and not state.number:
            state.number = new_leaf(self)
            self._restate(own_leaf_node(state.number, self.uop))
        elif not is_leaf:
            number, state.number = state.number, 0
            gradient_changes.count += 1
            if self.uop.op is Ops.DETACH and self.uop.arg == number:
                self._restate(self.uop.src[0])
        return self

    @property
    def is_param(self) -> bool:
        """Whether this tensor is a leaf. Also known as: tinygrad's is_param."""
        return number_of(self) != 0

    def is_param_(self, is_param: bool = True) -> Self:
        """Return `requires_grad_(is_param)`. Also known as: tinygrad's is_param_."""
        return self.requires_grad_(flag(is_param, "is_param_: is_param"))

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor has requires_grad=True, or depends on no tensor that has."""
        return number_of(self) != 0 or not depends_on_leaf(self.uop)

    def detach(self) -> Self:
        """Return a view of this tensor through which no gradient flows."""
        return self._view(detached(self.uop))

    def contiguous_backward(self) -> Self:
        """Return this value; its gradient is stored, not fused into the kernels that read it."""
        value = self.uop

        def stored(g: UOp) -> list[UOp | None]:
            return [UOp(Ops.CONTIGUOUS, g.dtype, (g,))]

        return self._with(with_gradient(value, [value], "contiguous_backward", stored))

    custom_gradient = staticmethod(custom_gradient)

    # modes

    @staticmethod
    def train(mode: bool = True) -> Training:
        """Return a `with` block, or decorator, in which `Tensor.training` is `mode`."""
        return Training(flag(mode, "train: mode"))

    @staticmethod
    def no_grad() -> ContextDecorator:
        """Return a `with` block, or decorator, in which results have no gradients."""
        return flow(False)

    @staticmethod
    def enable_grad() -> ContextDecorator:
        """Return a `with` block, or decorator, in which results have gradients, also in no_grad."""
        return flow(True)

    # helpers

    def _state(self) -> GradientState:
        if self._grad_state is None:
            self._grad_state = GradientState()
        return self._grad_state

    @property
    def _is_spent(self) -> bool:
        return self._grad_state is not None and self._grad_state.is_spent

    def _leaf_node(self, value: UOp) -> UOp:
        """Return the node that stands for this tensor with the value `value`."""
        number = number_of(self)
        return leaf_node(number, value) if number else value

    def _take_result(self, result: UOp) -> None:
        """Take `result`, this tensor's computed value, as its node."""
        if number_of(self):
            self._uop = self._leaf_node(result)
        elif plain_value(self._uop) is not result and not is_known(self._uop):
            self._expression = ref(self._uop)
            self._uop = own_node(result)

    def _keeps_expression(self, result: UOp) -> bool:
        """Whether this tensor keeps its expression after it is computed to `result`, for a later
        gradient; after backward() it does not, as in PyTorch."""
        if number_of(self) or self._is_spent:
            return False
        is_other = result is not self.uop and leads_to_leaf(result)
        return is_other or leads_to_leaf(self.uop)

    def _seed(self, gradient: Self | None, what: str) -> UOp:
        if not self.dtype.is_float:
            raise dtype_error(
                f"{what} of a tensor of {self.dtype}",
                "only floats have gradients",
                "a loss of floats",
            )
        if gradient is None:
            if self.numel() != 1:
                raise shape_error(
                    f"{what} of a tensor of shape {self.shape}",
                    "without gradient= the tensor must have one element, as a loss has",
                    ".sum() or .mean() first, or gradient=Tensor.ones(..)",
                )
            return full(self.shape, self.uop.like(1))
        if not isinstance(gradient, type(self)):
            raise dtype_error(
                f"{what}: gradient={short(gradient)} does not fit",
                f"it is a tensor, and this is {type_name(type(gradient))}",
                "gradient=Tensor.ones_like(y) for backward() of y",
            )
        if gradient.shape != self.shape:
            raise shape_error(
                f"{what}: gradient of shape {gradient.shape} does not fit",
                f"it has the shape of the tensor, {self.shape}",
                f"Tensor.ones{self.shape}",
            )
        seed = cast_to(gradient.uop, self.dtype)
        return full(self.shape, seed) if seed.is_const else seed

    def _backward(self, nodes: list[UOp], seed: UOp) -> Backward:
        try:
            return backward(self.uop, nodes, seed)
        except NoGradient as error:
            line = line_of_node(error.node, self.derivation)
            refusal = gradient_error(*_without_gradient(error.node))
            if line is not None:
                refusal.where = line.where
            raise refusal from None

    def _nodes_of(self, targets: tuple[Self, ...]) -> list[list[UOp]]:
        """Return the nodes under this tensor that stand for each target."""
        own = [t._own_nodes() for t in targets]
        separate = frozenset([n for some in own for n in some])
        order = [*MergedGraph(self.uop, separate).walk(lets_through)]
        return [
            [n for n in order if n in some or leaf_of(n) is t]
            for t, some in zip(targets, own, strict=True)
        ]

    def _made_by(self, result: Backward) -> BackwardPass | None:
        """Return the BackwardPass of a result; None if this tensor has no derivation."""
        forward = self.derivation
        return None if forward is None else BackwardPass(result, forward)

    def _of_gradient(self, value: UOp, made_by: BackwardPass | None) -> Self:
        """Return a gradient as a tensor, with the source lines of the forward pass."""
        tensor = self._on(alias(value), self._device)
        if made_by is not None and not value.is_const:
            tensor.derivation = GradientDerivation(value, calls(), made_by)
        return tensor

    def _without_leaf(self) -> Exception:
        what = "backward() has no tensor to find a gradient for"
        if not self._is_spent and leads_to_lost_leaf(self.uop):
            return gradient_error(
                what,
                "the one with requires_grad=True that this tensor depends on is gone: nothing "
                "refers to it",
                "a name for it: x = Tensor(.., requires_grad=True), whose .grad is read later",
            )
        because = "this tensor depends on none with requires_grad=True"
        because += ": it was computed after its backward()" if self._is_spent else ""
        return gradient_error(what, because, "Tensor(.., requires_grad=True), or loss.gradient(x)")

    def _require_expressions(self, targets: tuple[Self, ...]) -> None:
        """Errors: GradientError for a target if a gradient of this tensor reaches memory that was
        computed from it: that share of its gradient is unknown."""
        for number, target in enumerate(targets):
            what = f"target {number} of gradient() has no gradient"
            if number_of(target):
                if is_replayed_from(self.uop, target):
                    raise _through_replay(what, "it")
            elif is_computed_from(self.uop, target):
                raise gradient_error(
                    what,
                    "a value that depends on it was computed before, by realize() or by a TinyJit, "
                    "and only what leads to leaves keeps its expression",
                    "requires_grad=True on the target before that value is computed, outside of a "
                    "TinyJit, or .detach() of that value, to take it for a constant",
                )

    def _unconnected(self, number: int) -> Exception:
        return gradient_error(
            f"target {number} of gradient() has no gradient",
            "this tensor does not depend on it",
            "another target, or materialize_grads=True for zeros",
        )


def _through_replay(what: str, leaf: str) -> Exception:
    return gradient_error(
        what,
        f"this tensor depends on {leaf} through a result of a captured TinyJit, which has no "
        "expression: a replay runs kernels alone",
        "the loss and its gradient in the captured function, or .detach() of that result, to take "
        "it for a constant",
    )


def _check_target(target: Any) -> None:
    if not isinstance(target, Base):
        raise dtype_error(
            f"gradient() with respect to {short(target)}",
            f"targets are tensors, and this is {type_name(type(target))}",
            "loss.gradient(x, w)",
        )
    if not target.dtype.is_float:
        raise dtype_error(
            f"gradient() with respect to a tensor of {target.dtype}",
            "only floats have gradients",
            ".float()",
        )


def _without_gradient(node: UOp) -> tuple[str, str, str]:
    """Return the three texts of the error for an op without a gradient."""
    because = "the result depends on a tensor through it"
    if node.op is Ops.CUSTOM:
        what = f"the kernel {node.name} has no gradient"
        return what, because, "grad_fxn= of custom_kernel, or .detach() before it"
    hint = ".detach() before it, or a gradient of its own: Tensor.custom_gradient"
    if not is_on(node):
        hint = advice()
    return f"{node.op.name} has no gradient", because, hint
