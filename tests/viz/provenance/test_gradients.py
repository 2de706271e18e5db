"""Kernels of gradients: they are told from those of the forward, and lead to its lines."""

from __future__ import annotations

import numpy as np

from workbench import Tensor, explore


def test_a_gradient_kernel_has_the_line_of_its_forward() -> None:
    rng = np.random.default_rng(0)
    x = Tensor(rng.random((8, 16), np.float32)).realize()
    w = Tensor(rng.random((16, 32), np.float32), requires_grad=True).realize()
    v = Tensor(rng.random((32, 4), np.float32), requires_grad=True).realize()
    first = test_a_gradient_kernel_has_the_line_of_its_forward.__code__.co_firstlineno
    hidden = x @ w
    output = hidden.tanh() @ v
    loss = output.square().mean()
    loss.backward()
    ex = explore(loss, w.grad, v.grad)
    lines = {
        (kernel.title.startswith("backward: "), kernel.line.line - first)
        for kernel in ex.kernels
        if kernel.line is not None
    }
    hidden_line, output_line, loss_line = 6, 7, 8
    backward = {line for is_backward, line in lines if is_backward}
    forward = {line for is_backward, line in lines if not is_backward}
    assert backward == {hidden_line, output_line}
    assert forward == {output_line, loss_line}


def test_without_gradients_there_is_no_backward() -> None:
    x = Tensor(np.ones((4, 4), np.float32)).realize()
    assert [k.title for k in explore((x @ x).relu()).kernels] == ["matmul+relu"]
