"""Bad input: the exact class, and a message that says what, because of what, and what to try."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest

from tests.support import by_rows
from workbench.base.errors import AxisError, DeviceError, DTypeError, ShapeError, WorkbenchError
from workbench.tensor import Tensor

M = Tensor(np.ones((3, 4), np.float32))
V = Tensor(np.ones(5, np.float32))
I = Tensor([1, 2, 3])  # noqa: E741 - the table below reads better with short names
B = Tensor([True, False])
I8 = Tensor([1, 2], dtype="int8")
S = Tensor(1.5)
IMAGE = Tensor(np.ones((1, 2, 4, 4), np.float32))
E = Tensor(np.ones((0, 3), np.float32))

Action = Callable[[], object]

# fmt: off
SHAPES: list[tuple[Action, str]] = [
    (lambda: M + V, "cannot add: shapes (3, 4) and (5,) do not broadcast"),
    (lambda: (M > 0).where(V, 0), "cannot choose between: shapes"),
    (lambda: M < V, "cannot compare: shapes (3, 4) and (5,)"),
    (lambda: M @ V, "cannot multiply matrices of shapes (3, 4) and (5,)"),
    (lambda: M @ M, "try      transpose the right one"),
    (lambda: M @ V, "try      a right one with 4 elements on axis -1"),
    (lambda: M @ Tensor.ones(3, 6), "try      transpose the left one"),
    (lambda: M.permute(0, 0), "try      permute(1, 0)"),
    (lambda: M.sum("rows"), "try      an axis from -2 to 1"),
    (lambda: M @ S, "a scalar is not a matrix"),
    (lambda: M.reshape(5, 2), "cannot reshape (3, 4) to (5, 2)"),
    (lambda: M.reshape(-1, -1), "only one size can be -1"),
    (lambda: M.reshape(-1, 5), "does not divide"),
    (lambda: M.reshape(-2, -6), "is not a size"),
    (lambda: M.reshape(3.0, 4), "is not a size"),
    (lambda: E.reshape(-1, 0), "cannot reshape (0, 3)"),
    (lambda: M.expand(4, 4), "cannot expand shape (3, 4) to (4, 4)"),
    (lambda: M.expand(4), "cannot expand"),
    (lambda: M.permute(0), "must name each of the 2 axes"),
    (lambda: M.permute(0, 0), "must name each of the 2 axes"),
    (lambda: M.shrink(((0, 9), None)), "cannot shrink axis 0"),
    (lambda: M.shrink(((2, 1), None)), "cannot shrink axis 0"),
    (lambda: M.shrink(((0, 1),)), "for each of the 2 axes"),
    (lambda: M.pad((1, 2, 3)), "has two numbers per axis"),
    (lambda: M.pad(((1, 2),)), "for each of the 2 axes"),
    (lambda: M.pad(((-4, 0), None)), "cuts off more than there is"),
    (lambda: M.flip((0, 0)), "twice"),
    (lambda: M.sum((0, -2)), "name axis 0 twice"),
    (lambda: M.flatten(1, 0), "comes after"),
    (lambda: E.max(0), "cannot take the max over axis 0 of shape (0, 3)"),
    (lambda: E.min(), "cannot take the min over axis 0"),
    (lambda: E.argmax(), "cannot take the argmax"),
    (lambda: E.argmin(0), "cannot take the argmin"),
    (lambda: M[::0], "cannot be 0"),
    (lambda: M.item(), "has no single value"),
    (lambda: len(S), "no length"),
    (lambda: list(S), "no length"),
    (lambda: M.clip(), "neither min_ nor max_"),
    (lambda: Tensor([[1, 2], [3]]), "item 1 has 1 items"),
    (lambda: Tensor([[1, 2], 3]), "item 1 is not a list but 3"),
    (lambda: Tensor([1, [2]]), "item 1 is a list of 1 items"),
    (lambda: Tensor.zeros(-1), "is not a size"),
    (lambda: Tensor.arange(0, 5, 0), "step is 0"),
    (lambda: Tensor.arange(0, float("inf")), "are finite numbers"),
    (lambda: Tensor.arange(float("nan")), "are finite numbers"),
    (lambda: Tensor.linspace(0, 1, -1), "steps = -1 is too small"),
    (lambda: Tensor.eye(-1), "n = -1 is too small"),
    (lambda: Tensor.empty(2, 1.5), "is not a size"),
    (lambda: M.unflatten(1, (3, 2)), "cannot reshape (4,) to (3, 2)"),
    (lambda: M.repeat(2), "there are 1 numbers for 2 axes"),
    (lambda: M.repeat(2, -1), "is not a size"),
    (lambda: M.cat(V), "one has 2 axes and the other 1"),
    (lambda: M.cat(M.T), "only axis 0 may differ, and axis 1 does"),
    (lambda: S.cat(S), "has no axis to join along"),
    (lambda: Tensor.cat([]), "the list is empty"),
    (lambda: Tensor.cat(), "cannot cat no tensors\n  because  there are no arguments"),
    (lambda: Tensor.stack(dim=1), "cannot stack no tensors"),
    (lambda: Tensor.meshgrid(), "cannot meshgrid no tensors"),
    (lambda: M.stack(V), "only equal shapes fit"),
    (lambda: M.split([1, 1]), "they add up to 2, and the axis has 3"),
    (lambda: M.split(0), "never reach the end"),
    (lambda: M.split(-1), "a size = -1 is too small"),
    (lambda: M.chunk(0), "into 0 chunks"),
    (lambda: M.sum("a"), "sum: axis 'a' is not an axis"),
    (lambda: M.sum(1.0), "an axis is an integer, and this is float"),
    (lambda: M.max(True), "an axis is an integer, and this is bool"),
    (lambda: M.flip(None), "axis None is not an axis"),
    (lambda: M.reshape((1,) * 63 + (3, 4)), "cannot make a tensor of 65 axes"),
    (lambda: Tensor([[]] * 3).reshape(3, 0, *(1,) * 63), "numpy has at most 64"),
    (lambda: M.expand(-1, 3, 4), "-1 is not a size"),
    (lambda: M.softplus(0), "is divided by it"),
    (lambda: M.cross_entropy(V.int()), "labels of shape (5,) do not fit shape (3, 4)"),
    (lambda: M.cross_entropy(I, label_smoothing=1.5), "it is a share, from 0 to 1"),
    (lambda: S.cross_entropy(I), "cross_entropy: a scalar has no classes"),
    (lambda: M.nll_loss(I, V), "nll_loss: a weight of shape (5,)"),
    (lambda: M.sparse_categorical_crossentropy(M), "labels of shape (3, 4) do not fit"),
    (lambda: M.binary_crossentropy(V), "cannot multiply: shapes (5,) and (3, 4) do not broadcast"),
    (lambda: M.linear(V), "cannot multiply: shapes"),
    (lambda: M.linear(M), "cannot multiply matrices of shapes (3, 4) and (3, 4)"),
    (lambda: IMAGE.conv_transpose2d(M), "and they have 4 and 2 axes"),
    (lambda: IMAGE.conv_transpose2d(Tensor.ones(3, 1, 2, 2)), "the input has 2 channels, and"),
    (lambda: IMAGE.conv_transpose2d(Tensor.ones(1, 2, 2, 2)), "try      weight.transpose(0, 1)"),
    (lambda: IMAGE.conv_transpose2d(Tensor.ones(2, 2, 2, 2), groups=3), "3 groups do not divide"),
    (lambda: IMAGE.conv_transpose2d(Tensor.ones(2, 1, 2, 2), padding=3), "nothing of axis 2 is"),
    (lambda: IMAGE.conv_transpose2d(Tensor.ones(2, 1, 2, 2), output_padding=1), "is too large"),
    (lambda: IMAGE.max_unpool2d(I), "indices of shape (3,) do not fit shape (1, 2, 4, 4)"),
    (lambda: IMAGE.max_unpool2d(IMAGE.int(), output_size=(2,)), "output_size (2,) does not fit"),
    (lambda: IMAGE.max_unpool2d(IMAGE.int(), padding=9), "an axis has one element or more"),
    (lambda: I.max_unpool2d(I), "it slides over 2 axes, and there are 1"),
    (lambda: M.scaled_dot_product_attention(V, V), "do not fit"),
    (lambda: M.scaled_dot_product_attention(M.T, M), "a query has 4 features, and a key 3"),
    (lambda: M.scaled_dot_product_attention(M, M[:2]), "there are 3 keys, and 2 values"),
    (lambda: M.scaled_dot_product_attention(M, M, V), "cannot add: shapes (3, 3) and"),
    (lambda: M.scaled_dot_product_attention(M, M, IMAGE[0, :, :3, :3]), "a mask of shape (2, 3"),
    (lambda: M.scaled_dot_product_attention(M, M, B[:1], is_causal=True), "only one of them can"),
    (lambda: M.scaled_dot_product_attention(M, M, enable_gqa=True), "with enable_gqa each head of"),
    (lambda: V.qr(), "qr: shape (5,) is not that of a matrix"),
    (lambda: V.svd(), "svd: shape (5,) is not that of a matrix"),
    (lambda: V.newton_schulz(1, (1, 2)), "it needs matrices, which have two axes"),
    (lambda: M.newton_schulz(2**40, (1, 2)), "newton_schulz: steps = 1099511627776 is too large"),
    (lambda: M.newton_schulz(1, ()), "and 0 params"),
    (lambda: M.newton_schulz(-1, (1,)), "newton_schulz: steps = -1 is too small"),
    (lambda: M.celu(0), "celu: alpha = 0"),
    (lambda: M.hardtanh(2, 1), "no number lies between them"),
    (lambda: M.batchnorm(None, None, V, V), "mean of shape (5,) does not fit shape (3, 4)"),
    (lambda: M.fmod(V), "cannot take the remainder of: shapes (3, 4) and (5,)"),
    (lambda: M.lerp(V, 0.5), "shapes (5,) and (3, 4) do not broadcast"),
    (lambda: M.logaddexp(V), "cannot add the exponentials of: shapes"),
    (lambda: Tensor.arange(2**30).split(1), "into 1073741824 pieces"),
    (lambda: M.max_pool2d(4), "no window fits axis 0"),
    (lambda: M.unflatten(1, None), "an axis becomes one axis or more"),
    (lambda: M.unflatten(1, ()), "cannot unflatten axis 1 of shape (3, 4) into ()"),
    (lambda: M.interpolate(()), "cannot interpolate shape (3, 4) to ()"),
    (lambda: M.conv2d(M), "and they have 2 and 2 axes"),
]
AXES: list[tuple[Action, str]] = [
    (lambda: S.chunk(2), "cannot chunk a tensor without axes"),
    (lambda: M.permute(0, 2), "axis=2 is out of range"),
    (lambda: M.transpose(0, 5), "axis=5 is out of range"),
    (lambda: M.flip(2), "axis=2 is out of range"),
    (lambda: M.sum(2), "sum: axis=2 is out of range"),
    (lambda: S.sum(1), "an axis from -1 to 0"),
    (lambda: M.squeeze(7), "axis=7 is out of range"),
    (lambda: M.unsqueeze(4), "axis=4 is out of range"),
    (lambda: M[3], "index 3 is out of range for axis 0"),
    (lambda: M[0, -5], "index -5 is out of range for axis 1"),
    (lambda: M[0, 0, 0], "too many indices"),
    (lambda: M[..., ...], "two Ellipsis"),
    (lambda: M[[0, 1], [0, 1, 2]], "cannot index: shapes (2,) and (3,)"),
    (lambda: M.unflatten(2, (1,)), "axis=2 is out of range"),
    (lambda: M.cat(M, dim=2), "cat: axis=2 is out of range"),
    (lambda: M.stack(M, dim=4), "stack: axis=4 is out of range"),
    (lambda: M.cumsum(2), "cumsum: axis=2 is out of range"),
    (lambda: M.cummax(-3), "cummax: axis=-3 is out of range"),
    (lambda: M.cummin(2), "cummin: axis=2 is out of range"),
    (lambda: M.logcumsumexp(2), "logcumsumexp: axis=2 is out of range"),
    (lambda: M.var_mean(2), "axis=2 is out of range"),
    (lambda: M.normalize(dim=2), "axis=2 is out of range"),
    (lambda: I.normalize(), "axis=1 is out of range"),
    (lambda: M.gather(2, I), "gather: axis=2 is out of range"),
    (lambda: M[I, I, I], "too many indices"),
    (lambda: E[[0]], "it has no elements"),
    (lambda: I[[0, 7]], "index 7 is out of range for axis 0 of shape (3,)"),
    (lambda: M[1, [0, -5]], "index -5 is out of range for axis 1 of shape (3, 4)"),
    (lambda: M[:, np.array([[4]])], "index 4 is out of range for axis 1"),
    (lambda: M[range(2, 5)], "an index from -3 to 2"),
    (lambda: M.gather(1, np.array([[0, 4]])), "index 4 is out of range for axis 1"),
    (lambda: M.cross_entropy(Tensor([1, 4, 2])), "cross_entropy: label 4 is out of range"),
    (lambda: M.cross_entropy(Tensor([0, 1, -1])), "there are 4 classes, and labels count from 0"),
    (lambda: M.sparse_categorical_crossentropy(Tensor([-1, -2, 3])), "ignore_index=-2 if such"),
    (lambda: M.nll_loss(Tensor([0, -1, 2])), "nll_loss: label -1 is out of range"),
    (lambda: M.nll_loss(Tensor([5, -1, 2]), ignore_index=-1), "nll_loss: label 5 is out of range"),
]
DTYPES: list[tuple[Action, str]] = [
    (lambda: Tensor("text"), "cannot make a tensor from str 'text'"),
    (lambda: Tensor({}), "try      Tensor([1.0, 2.0])"),
    (lambda: Tensor([1, "a"]), "list that holds str 'a'"),
    (lambda: Tensor([None]), "list that holds NoneType"),
    (lambda: Tensor([1j]), "list that holds complex"),
    (lambda: Tensor(1j), "cannot make a tensor from complex"),
    (lambda: Tensor({}), "cannot make a tensor from dict"),
    (lambda: Tensor(np.ones(2, complex)), "array.real, array.imag"),
    (lambda: Tensor(np.ones(2, ml_dtypes.float8_e3m4)), "array.astype('float32')"),
    (lambda: Tensor(np.array(["a"])), "numpy array of <U1"),
    (lambda: Tensor(np.array([None, 1])), "numpy array of object"),
    (lambda: Tensor(np.array(["2020-01-01"], "M8[D]")), "array.astype('int64')"),
    (lambda: Tensor(np.zeros(2, [("a", int)])), "cannot make a tensor"),
    (lambda: IMAGE.avg_pool2d(2, padding=2.5), "it must be an integer, a list or a tuple"),
    (lambda: I.full_like(float("inf")), "int32 does not hold the number inf"),
    (lambda: I.pad((1, 1), value=float("nan")), "cannot pad: int32 does not hold the number nan"),
    (lambda: Tensor.full((2,), -129.0, "int8"), "it holds integers from -128 to 127"),
    (lambda: Tensor.full((2,), 2.0**63, "int64"), "int64 does not hold the number"),
    (lambda: Tensor(2**64), "does not fit 64 bits"),
    (lambda: Tensor([-(2**63) - 1]), "does not fit 64 bits"),
    (lambda: Tensor([-1, 2**63]), "no 64-bit type holds both"),
    (lambda: Tensor([1], dtype="float8"), "no tensor has the element type float8"),
    (lambda: Tensor([1], dtype="nonsense"), "the element types are bool, int8"),
    (lambda: I.cast("index"), "no tensor has the element type index"),
    (lambda: B.bitcast("int8"), "have no meaning"),
    (lambda: B - B, "cannot subtract bool from bool"),
    (lambda: M.cross_entropy(I, "avg"), "cross_entropy: there is no reduction 'avg'"),
    (lambda: M.cross_entropy(I.float()), "a label is the number of a class"),
    (lambda: M.nll_loss(I, reduction=None), "nll_loss: reduction: None does not fit"),
    (lambda: M.nll_loss(I, ignore_index=0.5), "nll_loss: ignore_index: 0.5 does not fit"),
    (lambda: M.binary_crossentropy("a"), "cannot compare a tensor and str 'a'"),
    (lambda: M.binary_crossentropy_logits(M, pos_weight="a"), "cannot weigh a tensor and str"),
    (lambda: M.linear(3), "cannot multiply a matrix and int 3"),
    (lambda: IMAGE.max_unpool2d(IMAGE), "max_unpool2d: indices of float32"),
    (lambda: M.scaled_dot_product_attention(M, M, I.reshape(3, 1)), "a mask of int32"),
    (lambda: M.scaled_dot_product_attention(M, M, dropout_p="a"), "dropout_p: 'a' does not fit"),
    (lambda: M.newton_schulz(1, 2), "newton_schulz: params: 2 does not fit"),
    (lambda: M.svd("yes"), "svd: full_matrices: 'yes' does not fit"),
    (lambda: M.where(1, 2), "where: a condition of float32"),
    (lambda: I.where(I, 2), "or (t != 0).where(x, y)"),
    (lambda: M.gelu("erf"), "there is no approximate 'erf'"),
    (lambda: M.gelu(None), "gelu: approximate: None does not fit"),
    (lambda: M.celu("a"), "celu: alpha: 'a' does not fit"),
    (lambda: M.selu(None), "selu: alpha: None does not fit"),
    (lambda: M.hardsigmoid(beta="a"), "hardsigmoid: beta: 'a' does not fit"),
    (lambda: M.isinf("yes"), "isinf: detect_positive: 'yes' does not fit"),
    (lambda: M.copysign(None), "cannot take the sign of a tensor and NoneType"),
    (lambda: M.lerp("a", 0.5), "cannot interpolate a tensor and str 'a'"),
    (lambda: M.lerp(M, "a"), "cannot interpolate a tensor and str 'a'"),
    (lambda: M.normalize("a"), "normalize: p: 'a' does not fit"),
    (lambda: M.layernorm(eps=None), "layernorm: eps: None does not fit"),
    (lambda: M.batchnorm(None, None, None, M), "cannot normalise a tensor and NoneType"),
    (lambda: M & M, "cannot apply & to float32"),
    (lambda: I | 1.5, "cannot apply | to float32"),
    (lambda: ~M, "cannot apply ~ to float32"),
    (lambda: M << 1, "cannot apply << to float32"),
    (lambda: B << B, "cannot apply << to bool"),
    (lambda: I ** -1, "cannot raise int32 to the power -1"),
    (lambda: I + "a", "cannot add a tensor and str 'a'"),
    (lambda: I + [1, 2, 3], "try      Tensor([1, 2, 3])"),
    (lambda: I + None, "cannot add a tensor and NoneType"),
    (lambda: I @ 3, "cannot multiply a matrix and int 3"),
    (lambda: I[M], "cannot index a tensor with a tensor of float32"),
    (lambda: I[[0.5]], "cannot index a tensor with a tensor of float32"),
    (lambda: M.one_hot(3), "with a tensor of float32"),
    (lambda: I.cat(3), "cannot cat int 3"),
    (lambda: I.stack("a"), "cannot stack str 'a'"),
    (lambda: Tensor.rand(2, dtype="int8"), "rand: int8 is not a float type"),
    (lambda: Tensor.randint(2, high=1000, dtype="uint8"), "does not hold them all"),
    (lambda: I[1.5], "cannot index a tensor with float"),
    (lambda: I["a"], "cannot index a tensor with str"),
    (lambda: I[0.5:], "the ends and step of a slice are integers"),
    (lambda: bool(I), "has no truth value"),
    (lambda: I.div(2, rounding_mode="up"), "there is no rounding_mode 'up'"),
    (lambda: I8 + 300, "cannot add: int8 does not hold the number 300"),
    (lambda: 300 - I8, "it holds integers from -128 to 127"),
    (lambda: I8.maximum(300), "try      dtypes.int32, which does"),
    (lambda: Tensor([1], dtype="uint8") + -1, "it holds integers from 0 to 255"),
    (lambda: B.where(I8, np.int64(128)), "int8 does not hold the number 128"),
    (lambda: I8.pad((1, 1), value=300), "cannot pad: int8 does not hold"),
    (lambda: I8.full_like(-129), "cannot fill a tensor: int8 does not hold"),
    (lambda: Tensor.full((2,), 2**32, dtype="uint32"), "try      dtypes.int64, which does"),
    (lambda: Tensor([1, 300, 2], dtype="int8"), "int8 does not hold the number 300"),
    (lambda: Tensor(2**31, dtype="int32"), "int32 does not hold the number 2147483648"),
    (lambda: Tensor.arange(129, dtype="int8"), "int8 does not hold the number 128"),
    (lambda: Tensor.arange(2**31 - 2, 2**31 + 2, dtype="int32"), "cannot make a range"),
    (lambda: Tensor.arange(3, -3, -1, dtype="uint8"), "uint8 does not hold the number -2"),
    (lambda: Tensor([1], dtype="uint64") & I8.cast("int64"), "no integer type holds the values"),
    (lambda: Tensor(np.ma.masked_array([1, 2], [True, False])), "1 elements masked"),
    (lambda: I + np.ma.masked_array([1, 2, 3], [1, 0, 1]), "array.filled(value)"),
    (lambda: Tensor(object()), "cannot make a tensor from object"),
    (lambda: I.realize(5), "5 is not a tensor"),
    (lambda: I.schedule(np.ones(2)), "tensors are computed, and this is numpy.ndarray"),
    (lambda: M.sum(keepdim="a"), "it must be True or False, and this is str"),
    (lambda: M.sum(0, 1), "try      keepdim=True"),
    (lambda: I.one_hot("2"), "try      num_classes=2"),
    (lambda: Tensor.meshgrid([1, 2]), "none of the arguments is a tensor"),
    (lambda: M.var(correction="a"), "it must be a number"),
    (lambda: M.elu(alpha=None), "elu: alpha: None does not fit"),
    (lambda: M.pad(1), "pad: padding: 1 does not fit"),
    (lambda: M.shrink(((0, 1.5), None)), "it must be an integer, and this is float"),
    (lambda: Tensor.manual_seed("a"), "it must be an integer, and this is str"),
    (lambda: Tensor.arange("a"), "arange: stop: 'a' does not fit"),
    (lambda: I.one_hot(2.0), "one_hot: num_classes: 2.0 does not fit"),
]
DEVICES: list[tuple[Action, str]] = [
    (lambda: Tensor([1], device="TOASTER"), "TOASTER"),
    (lambda: I.to("TOASTER"), "TOASTER"),
    (lambda: Tensor([1], device="LLVM") + Tensor([1], device="PYTHON"), "cannot combine tensors"),
    (lambda: Tensor([1], device="LLVM") @ Tensor([1], device="PYTHON"), '.to("LLVM")'),
]
# fmt: on
TABLES = {ShapeError: SHAPES, AxisError: AXES, DTypeError: DTYPES, DeviceError: DEVICES}
CASES = [(error, *row) for error, table in TABLES.items() for row in table]
IDS = [f"{error.__name__}-{number}" for number, (error, *_) in enumerate(CASES)]


@by_rows(("error", "action", "words"), CASES, ids=IDS)
def test_refusal(error: type[WorkbenchError], action: Action, words: str) -> None:
    with pytest.raises(error) as caught:
        action()
    assert type(caught.value) is error
    assert words in str(caught.value)
    assert caught.value.because
    if error is not DeviceError or "combine" in words:
        assert "test_refusals.py, line" in caught.value.where


def test_the_builtin_classes_catch_them_too() -> None:
    with pytest.raises(ValueError, match="cannot add"):
        M + V
    with pytest.raises(TypeError, match="cannot subtract"):
        B - B
    with pytest.raises(IndexError, match="index 3 is out of range"):
        M[3]


AXIS_NAMES = {"axis", "dim", "dim0", "dim1", "start_dim", "end_dim", "order"}
OTHERS = {"chunks": 1, "sizes": 1, "repeats": 2, "index": I,
          "size": 1, "step": 1, "k": 1, "src": 1.0,
          "weight": None, "bias": None, "mean": 0.0, "invstd": 1.0}  # fmt: skip


def _takes_an_axis() -> Iterator[tuple[str, str]]:
    for name in dir(Tensor):
        if callable(method := getattr(Tensor, name)) and not name.startswith("_"):
            parameters = inspect.signature(method).parameters
            yield from ((name, parameter) for parameter in parameters if parameter in AXIS_NAMES)


@by_rows(("name", "parameter"), [*_takes_an_axis()])
@by_rows("axis", [7, -8])
@by_rows("tensor", [M, S], ids=["matrix", "scalar"])
def test_a_wrong_axis_is_an_index_error_too(
    tensor: Tensor, axis: int, name: str, parameter: str
) -> None:
    method = getattr(tensor, name)
    parameters = inspect.signature(method).parameters
    arguments = {k: v for k, v in OTHERS.items() if k in parameters}
    if name == "unflatten":
        arguments["sizes"] = (1,)
    if name == "scatter_reduce":
        arguments["reduce"] = "sum"
    for error in (IndexError, ValueError, AxisError):
        with pytest.raises(error, match="out of range|without axes|no axis"):
            if parameters[parameter].kind is inspect.Parameter.VAR_POSITIONAL:
                method(*range(1, tensor.ndim), axis)
            else:
                method(**arguments, **{parameter: axis})


def test_a_refusal_reads_as_a_whole() -> None:
    with pytest.raises(ShapeError) as caught:
        M + V
    text = str(caught.value).splitlines()
    assert text[0] == "cannot add: shapes (3, 4) and (5,) do not broadcast"
    assert [line.split()[0] for line in text[1:]] == ["because", "try", "where"]


class OnAnotherDevice:
    """As a tensor of another library that numpy cannot read."""

    def __array__(self, dtype: object = None, copy: object = None) -> object:
        raise RuntimeError("there is no such element type")


def test_what_becomes_no_array_is_named() -> None:
    with pytest.raises(DTypeError, match="OnAnotherDevice") as caught:
        Tensor(OnAnotherDevice())  # type: ignore[arg-type]
    assert "there is no such element type" in caught.value.because
    assert ".detach().cpu()" in caught.value.hint


def test_a_label_out_of_range_that_must_be_computed_has_the_loss_nan() -> None:
    losses = M.cross_entropy(I + 1, "none").numpy()
    assert np.isnan(losses).tolist() == [False, False, True]
    assert np.isfinite(M.nll_loss(I + 1, ignore_index=4).item())
    assert E.cross_entropy(Tensor.zeros(0, dtype="int32"), "none").shape == (0,)
