"""What a function over numpy's arrays gets: each name of np.ndarray has numpy's meaning.

The oracle is numpy: the same code runs over arrays and over NumpyTensors, and gives the same values
and dtypes, or is refused in words.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows, count
from tests.tensor.numpy.function_cases import CASES, Rng, array, axis, shape_of
from tests.tensor.numpy.test_against_numpy import largest_of
from workbench import TinyJit, nn
from workbench.base.errors import DTypeError, WorkbenchError
from workbench.models import numpy_array
from workbench.models.function import results_of
from workbench.models.numpy_array import NumpyTensor, as_array
from workbench.tensor.tensor import Tensor
from workbench.viz import explore

A = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
N = np.arange(12).reshape(3, 4) - 5
BY_DEVICE = "PYTHON"
TOLERANCES = {np.dtype("float16"): 4e-3, np.dtype("float32"): 2e-5, np.dtype("float64"): 1e-12}


def over(value: Any) -> Any:
    """Return arguments with NumpyTensors in place of arrays."""
    return as_array(value, BY_DEVICE) if isinstance(value, np.ndarray) else value


def assert_equal(got: Any, wanted: Any, what: str) -> None:
    if not isinstance(got, Tensor):
        assert got is wanted or np.array_equal(got, wanted), f"{what}: {got!r}, not {wanted!r}"
        return
    assert isinstance(got, NumpyTensor), f"{what}: a plain Tensor"
    values, wanted = got.numpy(), np.asarray(wanted)
    kinds = (values.dtype, values.shape), (wanted.dtype, wanted.shape)
    assert kinds[0] == kinds[1], f"{what}: {kinds[0]}, not {kinds[1]}"
    tolerance = TOLERANCES.get(wanted.dtype, 0)
    with np.errstate(all="ignore"):
        atol = tolerance * largest_of(wanted)
        np.testing.assert_allclose(values, wanted, tolerance, atol, err_msg=what)


def outcome(function: Callable[[], Any]) -> Any:
    """Return what code makes, or the error that it raises."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()
    except (WorkbenchError, TypeError, ValueError, IndexError, AttributeError) as error:
        return error


# the table


PROTOCOLS = {
    *("__array__", "__array_finalize__", "__array_function__", "__array_interface__"),
    *("__array_namespace__", "__array_priority__", "__array_struct__", "__array_ufunc__"),
    *("__array_wrap__", "__bool__", "__class_getitem__", "__complex__", "__contains__"),
    *("__copy__", "__deepcopy__", "__delitem__", "__dlpack__", "__dlpack_device__"),
    *("__float__", "__getitem__", "__index__", "__int__", "__iter__", "__len__", "__setitem__"),
    "__setstate__",
}
"""Names by which Python and numpy call an array; those of operators are in the tables."""


def test_each_name_of_an_array_has_a_row_or_a_reason() -> None:
    tables = (numpy_array.METHODS, numpy_array.ADAPTED, numpy_array.ATTRIBUTES, numpy_array.REASONS)
    names = [*(name for table in tables for name in table), *numpy_array.AS_OF_A_TENSOR]
    assert len(names) == len(set(names))
    assert set(names) == {name for name in dir(np.ndarray) if not name.startswith("_")}
    assert all(hasattr(Tensor, name) for name in numpy_array.AS_OF_A_TENSOR)


def test_each_operator_of_an_array_has_a_row() -> None:
    special = {name for name in dir(np.ndarray) if name.startswith("__")} - set(dir(object))
    assert {name for name in special - PROTOCOLS if name not in vars(NumpyTensor)} == set()
    assert all(f"__{name}__" in vars(NumpyTensor) for name in numpy_array.COMPARISONS)


# methods


def _reshaped(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    sizes: Any = [(-1,), (3, 4), (2, -1, 3), ((4, 3),), ([2, 6],)][int(rng.integers(5))]
    return (array(rng, (4, 3)), *sizes), {}


def _transposed(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = array(rng, shape_of(rng, 2, 3))
    order = tuple(int(i) for i in rng.permutation(a.ndim))
    return (a, *[(), order, (order,), (None,)][int(rng.integers(4))]), {}


def _cast(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    kind: Any = [np.float32, "int32", float, bool, np.dtype("int64")][int(rng.integers(5))]
    return (np.asarray(rng.integers(0, 3, (2, 3))).astype(array(rng, (1,)).dtype), kind), {}


def _swapped(rng: Rng) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = array(rng, shape_of(rng, 2, 3))
    return (a, axis(rng, a), axis(rng, a)), {}


METHOD_CASES = {
    "astype": _cast,
    **{name: lambda rng: ((array(rng, (2, 3)),), {}) for name in ("conj", "conjugate")},
    "flatten": CASES["ravel"],
    "reshape": _reshaped,
    "swapaxes": _swapped,
    "transpose": _transposed,
}
NEEDS_VALUES = {"argpartition", "choose", "compress", "nonzero"}
METHODS = sorted(
    {*numpy_array.METHODS, *numpy_array.ADAPTED} - NEEDS_VALUES - {"fill", "item", "sort", "view"}
)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_numpys(name: str) -> None:
    rng = np.random.default_rng(list(name.encode()))
    is_equal = False
    for _ in range(count(200, 10)):
        (a, *args), named = (METHOD_CASES.get(name) or CASES[name])(rng)
        a = np.asarray(a)
        what = f"np.array({a.tolist()}, {a.dtype}).{name}(*{args!r}, **{named!r})"
        wanted = outcome(lambda a=a, args=args, named=named: getattr(a, name)(*args, **named))
        tensors = [over(each) for each in args]
        got = outcome(lambda a=a, t=tensors, named=named: getattr(over(a), name)(*t, **named))
        if isinstance(got, Exception):
            assert isinstance(got, WorkbenchError) or isinstance(wanted, Exception), (
                f"{what} raises {got!r}"
            )
        elif not isinstance(wanted, Exception):
            assert_equal(got, wanted, what)
            is_equal = True
    assert is_equal


@by_rows(
    "code",
    [
        *("x.std()", "x.std(0, ddof=1)", "x.var(axis=(0, 1), keepdims=True)", "x.mean(-1)"),
        *("x.max(axis=-1, keepdims=True)", "x.clip(min=1, max=3)", "x.round(decimals=1)"),
        *("x.repeat(2)", "x.repeat([1, 0, 2], axis=0)", "x.transpose()", "x.T", "x.mT"),
        *("x.argsort(axis=0)", "x.squeeze(axis=None)", "x.take(indices=[0, 2], axis=1)"),
        *("x / 3", "3 / x", "x // 3", "x % 3", "divmod(x, 3)", "x ** 2", "2 ** abs(x)", "-x"),
        *("x @ y", "y @ x", "y.T + x", "y.T > x", "x == x", "+x", "x.real", "x.imag"),
        *("np.float64(3) * x", "np.float32(3) + x", "x * True", "x.view(np.int32)", "x.view()"),
        *("x[1]", "x[1, 2]", "x[..., 1:, None]", "x[::-1, [0, 2]]", "x[0, [1, 2]]"),
        *("x[:, None][0, :, [1, 2]]", "x[[0, 1], [1, 2]]", "x[x.argmax(0)]", "x.flat[3]"),
        *("x[np.array([True, False, True])]", "[row.sum() for row in x]", "x.sum(initial=2)"),
        *("x.astype(float) / x.astype(int)", "x.reshape(2, 6, copy=True)", "x.size", "x.ndim"),
        *("x.nbytes", "x.itemsize", "x.shape", "x.dtype", "len(x)", "np.finfo(x.mean().dtype).eps"),
        *("x.sum(where=x > 0)", "np.mean(x, 0, where=x > -9)", "np.std(x, where=x[0] < 0)"),
        *("x.max(1, initial=-99, where=x < 0)", "np.any(x, where=x > 2)", "x.all(where=x != 0)"),
        *("np.add.outer(x, x[0])", "x.dot(y)", "x.trace(offset=1)", "x.diagonal(1)", "x.ravel()"),
    ],
)
def test_code_is_numpys(code: str) -> None:
    for x in (A, N, N.astype(np.int32)):
        y = x.T.copy() + 2
        wanted = outcome(lambda x=x, y=y: eval(code, {"np": np, "x": x, "y": y}))
        tensors = {"x": over(x), "y": y}
        got = outcome(lambda t=tensors: eval(code, {"np": np, **t}))
        assert not isinstance(got, Exception), (code, x.dtype, got)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, list) else [(got, wanted)]
        for mine, theirs in pairs:
            for one, other in (
                zip(mine, theirs, strict=True)
                if isinstance(theirs, tuple) and isinstance(mine[0], Tensor)
                else [(mine, theirs)]
            ):
                assert_equal(one, other, f"{code} of {x.dtype}")


def test_a_square_of_bools_is_numpys() -> None:
    for make in (lambda x: x**2, lambda x: x**3, lambda x: np.power(x, 2)):
        assert_equal(make(over(A > 0)), make(A > 0), "a power of bools")


# writes


def normalised(x: Any) -> Any:
    x = x.copy()
    x -= x.max(axis=-1, keepdims=True)
    x *= 2
    return x


def masked(x: Any) -> Any:
    scores = x * 1
    scores[x < 0] = 0
    scores[0] = 7
    scores[:, 1] += 2
    scores[1, [0, 2]] = 9
    return scores


def sorted_rows(x: Any) -> Any:
    y = x[::-1].copy()
    y.sort()
    return y


def through_views(x: Any) -> Any:
    y = x.copy()
    y.T[0] = 3
    y.reshape(-1)[1] = 4
    row = y[1]
    row += 1
    return y


def of_copies(x: Any) -> Any:
    parts = [x.flatten(), x.astype(x.dtype), x.round(), +x, x.copy(), x.repeat(1, axis=0)]
    for part in parts:
        part += 1
    total = x.sum()
    before = total
    total += 5
    first = x[0, 0]
    x[0, 0] = 50
    return x, before, first, *parts


def into_an_array(x: Any) -> Any:
    total = np.zeros(x.shape)
    for row in x:
        total += row
    out = x.copy()
    np.multiply(out, 2, out=out)
    filled = np.zeros_like(x)
    filled.fill(3)
    return total, out, filled


def by_functions(x: Any) -> Any:
    y, z, row = x.copy(), np.zeros_like(x), np.zeros_like(x[0])
    np.copyto(z, x)
    np.copyto(z, 7, where=x > 1)
    np.fill_diagonal(y, 5)
    np.putmask(y, y < 0, y * 2)
    np.put_along_axis(y, y.argmax(-1)[:, None], 3, axis=-1)
    np.cumsum(x, axis=0, out=z[:])
    np.sum(x, axis=0, out=row)
    y.max(axis=0, out=row[:])
    return y, z, row, x.reshape((4, 3), order="F"), x.ravel(order="F"), np.ravel(x, "F")


def at_places(x: Any) -> Any:
    y, counts = x.copy(), np.zeros(5, int, like=x)
    np.add.at(y, [0, 0, -1], 2)
    np.subtract.at(y, (np.array([[1], [1]]), np.array([0, 0])), 1)
    np.maximum.at(y, [2], x[0])
    np.multiply.at(y, (0, [1, 1]), 3)
    np.add.at(counts, np.array([1, 1, 4]), 1)
    return y, counts


def of_an_instance(x: Any) -> Any:
    assert isinstance(x, np.ndarray) and isinstance(copy.copy(x), np.ndarray)
    xp = x.__array_namespace__()
    return xp.zeros(x.shape) + xp.asarray(x, like=x)


@by_rows(
    "function",
    [
        *(normalised, masked, sorted_rows, through_views, of_copies, into_an_array),
        *(by_functions, at_places, of_an_instance),
    ],
)
def test_writes_are_numpys(function: Callable[[Any], Any]) -> None:
    for x in (A, N):
        wanted, got = function(x.copy()), function(over(x))
        pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
        for place, (mine, theirs) in enumerate(pairs):
            assert_equal(mine, theirs, f"result {place}, {x.dtype}")


VIEWS = (
    *(
        "{a}.T",
        "{a}[::-1]",
        "{a}[:, ::2]",
        "{a}.reshape(-1)",
        "{a}.ravel()",
        "{a}[0]",
        "{a}[..., 0]",
    ),
    *(
        "{a}.swapaxes(0, -1)",
        "np.moveaxis({a}, 0, -1)",
        "{a}.reshape({a}.shape[::-1])",
        "{a}[None]",
    ),
    *("np.flip({a}, 0)", "{a}.reshape(-1, 2)", "{a}[1:]", "{a}.ravel('F')", "{a}.T.ravel()"),
    *("np.reshape({a}, (2, -1), order='F')", "{a}.T.reshape(-1, 3)", "{a} + 0", "{a}.T * 2"),
    *("np.split({a}, [1])[1]", "{a}.diagonal()", "{a}.copy()", "{a}.flatten()", "{a}.squeeze()"),
    *("{a}[0][None]", "{a}[0, ...]", "{a}.reshape(-1)[1]", "np.expand_dims({a}[0], 0)"),
)
"""Arrays made of another, on its memory or not; which, depends on how numpy lays that out."""


def test_writes_are_seen_through_numpys_views() -> None:
    for seed in range(count(300, 15)):
        rng = np.random.default_rng(seed)
        x = np.arange(float(np.prod(shape := (2, 3, 4)[: int(rng.integers(1, 4))]))).reshape(shape)
        x = x.T if rng.random() < 0.3 else x
        lines, values, names = [], {"v0": x.copy(order="K")}, ["v0"]
        for _ in range(40):
            name = names[int(rng.integers(len(names)))]
            line = f"v{len(values)} = {VIEWS[int(rng.integers(len(VIEWS)))].format(a=name)}"
            if rng.random() < 0.4:
                place = ("[..., 0]", "[..., 1]", "")[int(rng.integers(3))]
                line = f"{name}{place} += {10 * len(lines) + 10}"
            if len(lines) < 8 and tried(line, values) is None:
                lines.append(line)
                names = [n for n in values if isinstance(values[n], np.ndarray | np.generic)]
        program = "; ".join(lines)
        what = f"seed {seed}: x = np.arange({x.size}.0), strides {x.strides}, {x.shape}; {program}"
        wanted, got = {"v0": x.copy(order="K")}, {"v0": over(x)}
        for error in (tried(program, wanted), tried(program, got)):
            assert error is None or "read-only" in str(error), f"{what} raises {error!r}"
        for name in names:
            assert_equal(got[name], wanted[name], f"{what}: {name}")


# random programs


EXACT = (
    *(
        "{a} + {b}",
        "{a} - {b}",
        "{a} * {b}",
        "{a} // 3",
        "{a} % 3",
        "{a} > {b}",
        "-{a}",
        "abs({a})",
    ),
    *("2 - {a}", "np.float64(2) * {a}", "{a} ** 2", "{a} * 3", "{a} != {b}", "np.int8(1) + {a}"),
    *("{a}.T", "{a}.transpose()", "{a}.ravel()", "{a}.flatten()", "{a}.reshape(-1, 1)"),
    *("{a}.sum(axis={k}, keepdims=True)", "{a}.sum()", "{a}.max({k})", "{a}.min(axis={k})"),
    *("{a}.argmax({k})", "{a}.cumsum({k})", "{a}.clip(-2, 3)", "{a}.clip(min=0)", "{a}.round()"),
    *("{a}.astype('int32')", "{a}.astype(np.float64)", "{a}.repeat(2, {k})", "{a}.squeeze()"),
    *("{a}.take([0, -1], axis={k})", "{a}.swapaxes(0, -1)", "{a}.copy()", "{a}.trace()"),
    *("{a}.diagonal()", "{a} + {a}.size", "{a}[0]", "{a}[..., None]", "{a}[::-1]", "{a}[-1:]"),
    *("np.where({a} > 0, {a}, {b})", "np.concatenate([{a}, {a}])", "{a}.any({k})", "{a}.all()"),
    *("{a}.dot({a}.T)", "{a} @ {a}.T", "{a}.argsort({k}, kind='stable')", "np.sort({a}, {k})"),
    *("np.maximum({a}, {b})", "np.expand_dims({a}, 0)", "np.diff({a})", "{a} & {b}", "~{a}"),
)
INEXACT = (
    *("{a} / 3", "{a} / ({b} ** 2 + 1)", "{a}.mean({k})", "{a}.std()", "{a}.var({k}, ddof=1)"),
    *("np.tanh({a})", "abs({a}) ** 0.5", "np.sqrt(abs({a}))", "{a}.mean(keepdims=True) - {a}"),
)
STATEMENTS = (
    *("{c} += {b}", "{c} -= {b}", "{c} *= 2", "{c}[0] = 1", "{c}[{c} > 1] = 0", "{c}.sort()"),
    *("{c}.T[0] = 3", "{c}[..., 0] += 1", "{c}.fill(2)", "{c} /= 2"),
)
"""Statements that write to an array of the program's own, a copy."""


def tried(statement: str, values: dict[str, Any]) -> Any:
    return outcome(lambda: exec(statement, {"np": np}, values))


def random_program(rng: Rng) -> tuple[dict[str, Any], str]:
    """Return arrays by name, and a program that numpy runs, whose last name is `result`."""
    kinds = ("bool", "uint8", "int32", "int64", "float32", "float64")
    shapes = ((3, 4), (4,), (3, 1), (2, 3, 4), ())
    inputs = {
        name: np.asarray(rng.integers(0 if kind in ("bool", "uint8") else -4, 5, shape), kind)
        for name in "xy"
        for kind, shape in [(str(rng.choice(kinds)), shapes[int(rng.integers(5))])]
    }
    values: dict[str, Any] = {name: value.copy() for name, value in inputs.items()}
    names, lines = list(values), []
    for _ in range(40):
        if len(lines) == 6:
            break
        a, b = (names[int(i)] for i in rng.integers(len(names), size=2))
        key = f"v{len(names)}"
        blanks = {"a": a, "b": b, "c": key, "k": int(rng.integers(-1, 2))}
        statement = f"{key} = {EXACT[int(rng.integers(len(EXACT)))].format(**blanks)}"
        if rng.random() < 0.25:
            written = STATEMENTS[int(rng.integers(len(STATEMENTS)))].format(**blanks)
            statement = f"{key} = {a}.copy(); {written}"
        if isinstance(tried(statement, values), Exception):
            values.pop(key, None)
        elif 0 < np.size(values[key]) < 100 and np.abs(np.float64(values[key])).max() < 1e5:
            lines.append(statement)
            names.append(key)
    last = f"result = {INEXACT[int(rng.integers(len(INEXACT)))]}".format(a=names[-1], b="x", k=-1)
    is_possible = not isinstance(tried(last, values), Exception)
    return inputs, "; ".join([*lines, last if is_possible else f"result = {names[-1]}"])


def test_random_programs_are_numpys() -> None:
    refused = []
    for seed in range(count(300)):
        inputs, program = random_program(np.random.default_rng(seed))
        wanted = {name: value.copy() for name, value in inputs.items()}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(program, {"np": np}, wanted)
        got = {name: over(value) for name, value in inputs.items()}
        error = tried(program, got)
        what = f"seed {seed}: {inputs}; {program}"
        if error is None:
            assert_equal(got["result"], wanted["result"], what)
        else:
            assert isinstance(error, WorkbenchError), f"{what} raises {error!r}"
            refused.append(f"{program}: {error}")
    assert len(refused) <= count(300) // 10, "\n".join(refused)


# whose meaning


def test_a_layer_reads_a_tensor() -> None:
    norm, x = nn.LayerNorm(4), np.float32(A)
    (result,) = results_of(lambda x: norm(x) + x.std(), (x,)).outputs
    wanted = norm(Tensor(x)).numpy() + x.std()
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5)


def test_methods_of_a_tensor_alone_are_called_as_ever() -> None:
    (result,) = results_of(lambda x: x.softmax(-1).relu(), (A,)).outputs
    np.testing.assert_allclose(result.numpy(), Tensor(A).softmax(-1).numpy(), rtol=1e-6)
    assert isinstance(result, NumpyTensor)


def test_a_plain_tensor_keeps_its_meaning() -> None:
    weights = Tensor(A)
    outputs = results_of(lambda x, w: (w.std(), weights.std(), x.std()), (A, Tensor(A))).outputs
    stds = [float(each.numpy()) for each in outputs]
    np.testing.assert_allclose(stds, [A.std(ddof=1), A.std(ddof=1), A.std()], rtol=1e-5)


def test_a_plain_tensor_beside_an_array_gives_an_array() -> None:
    x, w = over(N), Tensor(N, device=BY_DEVICE)
    for got in (x / w.cast("int64"), w / x, np.add(w, x), np.where(x > 0, w, x)):
        assert isinstance(got, NumpyTensor)
    assert_equal(w / (x + 20), N / (N + 20), "w / x")


def test_a_jitted_function_takes_tensors() -> None:
    (result,) = results_of(TinyJit(lambda x: x.std(correction=0, keepdim=True)), (A,)).outputs
    assert not isinstance(result, NumpyTensor)
    np.testing.assert_allclose(result.numpy(), A.std(keepdims=True), rtol=1e-5)


def _set_element(array: Any, x: Any) -> Any:
    array[0] = x[0, 0]
    return array


def _add_to(array: Any, x: Any) -> Any:
    name = array
    name += x
    return array + name


# refusals


@by_rows(
    ("function", "words", "hint"),
    [
        (
            lambda x: x.max(-1, keepdim=True),
            "numpy's max takes axis, out, keepdims",
            "keepdims=True",
        ),
        (lambda x: x.flatten(1), "order=1 is not computed", ""),
        (lambda x: x.reshape(2, shape=3), "numpy's reshape takes", "Tensor(x)"),
        (lambda x: x.nonzero(), "the values decide the shape of its result", ""),
        (lambda x: x[x > 0], "a mask chooses elements of a Tensor", "np.sum(x, where=mask)"),
        (lambda x: np.unique(x), "the values decide", "np.unique before the call"),
        (lambda x: np.linalg.lstsq(x, x[:, 0]), "by steps that depend on the values", "before"),
        (lambda x: x.tolist(), "a Tensor is computed in the function", ""),
        (lambda x: x.sum().item(), "a Tensor is computed in the function", ""),
        (lambda x: x * float(x[0, 0]), "a number is made of a Tensor", "x itself for float(x)"),
        (lambda x: np.zeros(4).__setitem__(..., x[0]), "an array of numpy is made", "like=x"),
        (lambda x: _set_element(np.zeros(3), x), "a number is made of a Tensor", ""),
        (lambda x: _add_to(np.zeros((3, 4)), x), "other code can see it", "like=x"),
        (lambda x: _add_to(np.zeros((4, 4))[1:], x), "other code can see it", "like=x"),
        (lambda x: np.add.at(np.zeros(3), [0], x[0, 0]), "writes to an array", "like=x"),
        (lambda x: np.add.at(x, slice(0, 2), 1), "np.add.at with slice", "x[index] = value"),
        (lambda x: np.copyto(np.zeros((3, 4)), x), "writes to an array of numpy's", "like=x"),
        (lambda x: x if x.sum() > 0 else -x, "the truth of a Tensor decides what runs", ""),
        (lambda x: 3 in x, "the truth of a Tensor decides what runs", ""),
        (lambda x: x[: x.argmax()], "used as an index or a size", ""),
        (lambda x: range(x.sum()), "used as an index or a size", ""),
        (lambda x: x.sum().fill(2), "x.fill of no axes", "np.full_like"),
        (lambda x: x.strides, "it asks for the memory of arrays", ""),
        (lambda x: x.tobytes(), "it writes text or a file", ""),
        (lambda x: x.put(0, 1), "it writes to its argument", ""),
        (lambda x: x.astype(int, casting="safe"), "cannot cast float32 to int64", "unsafe"),
        (lambda x: x.max(where=x > 0), "of none of them there is no extreme", "initial="),
        (lambda x: x.sum(where=x), "where= has dtype float32", "x != 0"),
        (lambda x: np.exp(x, out=np.zeros((3, 4))), "holds no expression", "without it"),
    ],
    ids=(
        *(
            "keepdim",
            "flatten",
            "reshape",
            "nonzero",
            "mask",
            "unique",
            "lstsq",
            "tolist",
            "item",
            "number",
        ),
        *("asarray", "element", "alias", "view", "add.at", "slice at", "copyto"),
        *(
            "branch",
            "contains",
            "slice",
            "range",
            "fill",
            "strides",
            "bytes",
            "put",
            "casting",
            "where",
            "mask of floats",
        ),
        "out",
    ),
)
def test_what_is_refused(function: Callable[..., Any], words: str, hint: str) -> None:
    with pytest.raises(DTypeError) as refused:
        explore(function, A)
    error = refused.value
    assert words in str(error), str(error)
    assert hint in error.hint and error.hint
    assert "test_numpy_array.py, line" in error.where


def test_integers_are_not_overwritten_by_floats() -> None:
    def halved(x: Any) -> Any:
        x /= 2
        return x

    with pytest.raises(DTypeError, match="cannot write float64 to an array of int64"):
        results_of(halved, (N,))


# What makes a value without axes, of an array without axes.
MAKERS: dict[str, Callable[..., Any]] = {
    "itself": lambda b: b,
    "copy": lambda b: b.copy(),
    "astype": lambda b: b.astype(np.float32),
    "zeros_like": lambda b: np.zeros_like(b),
    "ones_like of a number": lambda b: np.ones_like(b.sum()),
    "full_like": lambda b: np.full_like(b, 2),
    "asarray of a number": lambda b: np.asarray(b * 1),
    "array": lambda b: np.array(b),
    "where": lambda b: np.where(b > 0, b, 1.0),
    "a number": lambda b: b * 2,
    "copy of a number": lambda b: b.sum().copy(),
}
VIEWERS: dict[str, Callable[..., Any]] = {
    "None": lambda v: v[None],
    "...": lambda v: v[...],
    "T": lambda v: v.T,
    "reshape": lambda v: v.reshape(1, 1),
    "ravel": lambda v: v.ravel(),
    "squeeze": lambda v: v.squeeze(),
    "atleast_1d": lambda v: np.atleast_1d(v),
    "expand_dims": lambda v: np.expand_dims(v, 0),
    "view": lambda v: v.view(),
}


def written_by_item(x: Any) -> None:
    x[...] = 9


def written_in_place(x: Any) -> None:
    x += 3


def value_and_view(make: str, view: str, write: Callable[[Any], None], of_view: bool) -> Any:
    def function(b: Any) -> Any:
        v = MAKERS[make](b)
        w = VIEWERS[view](v)
        write(w if of_view else v)
        return v * 1, w * 1

    return function


@by_rows("make", MAKERS)
def test_views_of_what_has_no_axes_share_memory_where_numpys_do(make: str) -> None:
    for view, write, of_view in product(
        VIEWERS, (written_by_item, written_in_place), (True, False)
    ):
        function = value_and_view(make, view, write, of_view)
        wanted = outcome(lambda f=function: f(np.array(-1.0)))  # type: ignore[misc]
        if isinstance(wanted, Exception):
            continue  # numpy writes to no number
        what = f"{make}, {view}, {write.__name__}, {of_view}"
        for got, want in zip(function(over(np.array(-1.0))), wanted, strict=True):
            assert_equal(got, want, what)


def test_a_number_is_rounded_and_an_array_is_not() -> None:
    x = np.array([1.26, 1.0])
    assert_equal(round(over(x).sum(), 1), round(x.sum(), 1), "round")
    with pytest.raises(TypeError, match="__round__"):
        round(over(x))
    with pytest.raises(DTypeError, match="np.round"):
        explore(lambda a: round(a.sum()) * a, x)


def test_an_element_is_a_number_where_something_is_computed() -> None:
    assert over(A).item(2) == A.item(2) and over(A).item(1, 2) == A.item(1, 2)
    with pytest.raises(DTypeError, match="is computed in the function"):
        explore(lambda a: a.item(0) * a, A)
