"""Custom kernels: kernels that a user writes, as nodes of an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from workbench.base.errors import type_name
from workbench.ir.gradient.occurrences import with_gradient
from workbench.ir.node.construct import full
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import opt_rows
from workbench.ir.opt.opt import Opt
from workbench.ir.text.printer import to_text
from workbench.tensor.autograd.lines import shares_of
from workbench.tensor.base import Base
from workbench.tensor.custom.argument import KernelFunction, layout_of
from workbench.tensor.custom.source import SlotLayout
from workbench.tensor.operands.arguments import dtype_error, short
from workbench.tensor.operands.axes import checked_opts

GradientFunction = Callable[..., Any]


class CustomKernels(Base):
    """custom_kernel: a node of the graph from a kernel that a user wrote."""

    __slots__ = ()

    def custom_kernel(
        self,
        *lst: Self,
        fxn: KernelFunction | str,
        grad_fxn: GradientFunction | None = None,
        opts: Sequence[Opt] | None = None,
    ) -> list[Self]:
        """Return this tensor and those of `lst` after a kernel that a user wrote: new tensors for
        those that it writes, the others as they are.

        `fxn` writes the kernel: a function, called with a `KernelArgument` for each tensor; or IR
        text (`Kernel.to_text()`), whose slots are the positions of the tensors; or, if their device
        compiles C, one C function with a pointer for each tensor, to const for one that is only
        read.

        The kernel is checked, scheduled by itself, compiled once, and explored like any other. It
        writes each element of its outputs once, and reads the values that they had before it. No
        tensor changes: an output is often `Tensor.empty(...)`, for its shape and dtype. C cannot be
        checked: it runs in a process of its own, where wrong writes and endless loops do no harm.

        `opts` is the whole list of its opts, instead of the default ones or those of a search; ()
        for no opts. C has none.

        `grad_fxn(gradient, call)` returns the gradient of each tensor, None where none flows;
        `call.src[1:]` are the tensors. If the kernel has several outputs, it is called with a
        gradient for each, and `call=`. Without `grad_fxn` the kernel has no gradient.

        Errors: ShapeError or DTypeError if the kernel is not for these tensors, VerifyError if it
        breaks a rule (an index that leaves its buffer), ParseError for text that is no kernel,
        DeviceError for C on a device that compiles none; DTypeError for `opts` that are no list of
        opts and, when the kernel runs, KernelOptError for one that it does not allow.
        Also known as: PyTorch's custom ops; JAX's Pallas calls.

        >>> from workbench import Tensor
        >>> def row_sums(out, x):
        ...     i, k = out.axis(0), x.axis(1)
        ...     out[i] = x[i, k].reduce(k)
        >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> sums = Tensor.empty(2).custom_kernel(x + 1, fxn=row_sums)[0]
        >>> (sums * 10).tolist()
        [50.0, 90.0]
        """
        tensors = [self, *lst]
        _check(tensors, grad_fxn)
        layout = layout_of(fxn, tensors)
        if layout is None:  # there is nothing to write
            return tensors
        if opts is not None:
            layout = layout._replace(kernel=_with_opts(layout.kernel, opts))
        return _results(layout, tensors, grad_fxn)


class KernelCall:
    """A call of a kernel, for `grad_fxn`: `src` has the kernel, and then the tensors that it was
    called with; `outputs` are the tensors that it computed."""

    def __init__(self, kernel: UOp, tensors: Sequence[Any]):
        self.name = str(kernel.arg.name)
        self.src = (kernel, *tensors)
        self.outputs: list[Any] = []


def _check(tensors: Sequence[Any], grad_fxn: object) -> None:
    """Errors: DTypeError for an operand that is no tensor, or a `grad_fxn` that is no function."""
    for tensor in tensors:
        if not isinstance(tensor, Base):
            raise dtype_error(
                f"custom_kernel: {short(tensor)} is not a tensor",
                f"a kernel reads and writes tensors, and this is {type_name(type(tensor))}",
                "Tensor(...) of it",
            )
    if grad_fxn is not None and not callable(grad_fxn):
        raise dtype_error(
            f"custom_kernel: grad_fxn = {short(grad_fxn)} cannot be called",
            "it is a function of the gradient and the call",
            "grad_fxn=lambda gradient, call: (None, gradient * 2)",
        )


def _with_opts(kernel: UOp, opts: Sequence[Opt]) -> UOp:
    """Return a kernel with opts from the code. Errors: DTypeError."""
    rows = opt_rows(checked_opts(opts, "custom_kernel: opts"))
    if kernel.code is not None and rows:
        language = kernel.code.language
        raise dtype_error(
            f"the kernel {kernel.arg.name} has no axes for opts",
            f"it is written in {language}, whose loops stay as they are",
            "loops written otherwise, or the kernel as IR text",
        )
    return kernel.replace(arg=kernel.arg._replace(opts=rows))


def _results(
    layout: SlotLayout, tensors: Sequence[Any], grad_fxn: GradientFunction | None
) -> list[Any]:
    """Return the tensors after the kernel."""
    first, *others = tensors
    call = KernelCall(layout.kernel, tensors)
    call.outputs = [first._with(v, *others) for v in _values(layout, tensors)]
    if grad_fxn is not None:
        sources = [t.uop for t in tensors]
        for place, output in enumerate(call.outputs):
            rule = _gradient_rule(grad_fxn, call, place)
            node = with_gradient(output.uop, sources, call.name, rule)
            call.outputs[place] = first._with(node, *others)
    results = list(tensors)
    for slot, output in zip(layout.written, call.outputs, strict=True):
        output._is_weak = False
        results[slot] = output
    return results


def _values(layout: SlotLayout, tensors: Sequence[Base]) -> list[UOp]:
    """Return the nodes of the outputs of a kernel."""
    text, name = to_text(layout.kernel), str(layout.kernel.arg.name)
    shapes = tuple([tensors[slot].shape for slot in layout.written])
    sources = tuple([tensors[slot].uop for slot in layout.read])
    return [
        UOp(Ops.CUSTOM, tensors[slot].dtype, sources, (name, place, shapes, text))
        for place, slot in enumerate(layout.written)
    ]


def _gradient_rule(
    grad_fxn: GradientFunction, call: KernelCall, place: int
) -> Callable[[UOp], list[UOp | None]]:
    """Return the rule for the gradient of output `place`: it calls `grad_fxn` with zeros for the
    other outputs. The function is linear, so the results for all outputs add up."""
    tensors = call.src[1:]

    def rule(g: UOp) -> list[UOp | None]:
        output = call.outputs[place]
        gradients = [o._on(full(o.shape, o.uop.like(0)), o._device) for o in call.outputs]
        gradients[place] = output._on(g, output._device)
        several = len(gradients) > 1
        result = grad_fxn(*gradients, call=call) if several else grad_fxn(gradients[0], call)
        listed = list(result) if isinstance(result, tuple | list) else [result]
        each = [output._on(r, output._device) if isinstance(r, UOp) else r for r in listed]
        return shares_of(call.name, each, tensors)

    return rule
