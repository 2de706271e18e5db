"""Layers of one matrix product: Linear, Embedding, LSTMCell.

Checks of the inputs of layers.
"""

from __future__ import annotations

import math

from workbench.tensor.operands.arguments import flag, short, whole
from workbench.tensor.operands.refuse import dtype_error, shape_error
from workbench.tensor.tensor import Tensor


def tensor_input(value: object, layer: object) -> Tensor:
    """Return the input of a layer. Errors: DTypeError for a value that is not a tensor."""
    if isinstance(value, Tensor):
        return value
    name, kind = type(layer).__name__, type(value).__name__
    raise dtype_error(
        f"cannot apply {name} to {short(value)}",
        f"the input of a layer must be a tensor, and this is {kind}",
        "Tensor(x)",
    )


class Linear:
    """x @ weight.T + bias.

    Shapes: (.., in_features) -> (.., out_features); weight (out_features, in_features).
    Initial values: uniform up to 1 / sqrt(in_features) from 0, both.
    Errors: ShapeError for another number of features.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        inputs = whole(in_features, "Linear: in_features", 1)
        outputs = whole(out_features, "Linear: out_features", 1)
        bound = 1 / math.sqrt(inputs)
        self.weight = Tensor.uniform(outputs, inputs, low=-bound, high=bound)
        self.bias: Tensor | None = None
        if flag(bias, "Linear: bias"):
            self.bias = Tensor.uniform(outputs, low=-bound, high=bound)

    def __call__(self, x: Tensor) -> Tensor:
        features = self.weight.shape[1]
        x = tensor_input(x, self)
        if x.shape[-1:] != (features,):
            raise shape_error(
                f"cannot apply Linear({features}, {self.weight.shape[0]}) to shape {x.shape}",
                f"the last axis is the features, and there must be {features}",
            )
        return x.linear(self.weight.transpose(), self.bias)


class Embedding:
    """A row of a table for each index.

    Shapes: (..) -> (.., embed_size); weight (vocab_size, embed_size).
    Initial values: uniform up to sqrt(6 / (vocab_size + embed_size)) from 0.
    Errors: DTypeError unless the index is of integers.
    Source: Glorot and Bengio 2010, for the initial values.
    """

    def __init__(self, vocab_size: int, embed_size: int):
        rows = whole(vocab_size, "Embedding: vocab_size", 1)
        columns = whole(embed_size, "Embedding: embed_size", 1)
        self.weight = Tensor.glorot_uniform(rows, columns)

    def __call__(self, idx: Tensor) -> Tensor:
        idx = tensor_input(idx, self)
        if not idx.dtype.is_int:
            raise dtype_error(
                f"cannot look up rows by {idx.dtype}",
                "an index of an Embedding must be an integer",
                ".cast(dtypes.int32)",
            )
        return self.weight[idx]


class LSTMCell:
    """One step of a long short-term memory.

    Shapes: x (batch, input_size), and hidden state and cell state (batch, hidden_size), which are
    0 where none are passed -> the next two.
    Initial values: weights uniform up to 1 / sqrt(hidden_size) from 0, biases 0.
    Source: Hochreiter and Schmidhuber 1997.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        inputs = whole(input_size, "LSTMCell: input_size", 1)
        hidden = whole(hidden_size, "LSTMCell: hidden_size", 1)
        bound = 1 / math.sqrt(hidden)
        self.weight_ih = Tensor.uniform(4 * hidden, inputs, low=-bound, high=bound)
        self.weight_hh = Tensor.uniform(4 * hidden, hidden, low=-bound, high=bound)
        self.bias_ih: Tensor | None = None
        self.bias_hh: Tensor | None = None
        if flag(bias, "LSTMCell: bias"):
            self.bias_ih = Tensor.zeros(4 * hidden)
            self.bias_hh = Tensor.zeros(4 * hidden)

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        hidden, inputs = self.weight_hh.shape[1], self.weight_ih.shape[1]
        x = tensor_input(x, self)
        if x.ndim != 2 or x.shape[1] != inputs:
            raise shape_error(
                f"cannot apply LSTMCell({inputs}, {hidden}) to shape {x.shape}",
                f"the input must be (batch, {inputs})",
            )
        if hc is None:
            zeros = Tensor.zeros(x.shape[0], hidden, dtype=x.dtype)
            hc = zeros, zeros
        gates = x.linear(self.weight_ih.transpose(), self.bias_ih)
        gates = gates + hc[0].linear(self.weight_hh.transpose(), self.bias_hh)
        enter, forget, value, leave = gates.chunk(4, dim=1)
        cell = forget.sigmoid() * hc[1] + enter.sigmoid() * value.tanh()
        return leave.sigmoid() * cell.tanh(), cell
