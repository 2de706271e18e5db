"""`NumpyTensor`: what a function over numpy's arrays gets, a Tensor with the meaning of an array.

Some names mean one thing on `np.ndarray` and another on a Tensor: `x.std()` divides by n or by
n - 1, `x.size` is a number or a method, `x / 2` of integers is float64 or float32. The user's code,
which was written for arrays, gets numpy's meaning: a table names the function or ufunc of numpy for
each method and operator, and these have rows over Tensors (`tensor/numpy/`). Code of this package,
such as those rows and the layers of `nn`, gets a Tensor's meaning. So each of these names looks
which code reads it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from inspect import signature
from typing import Any, cast

import numpy as np

from workbench.base.errors import DTypeError, short
from workbench.base.source import is_users_call
from workbench.models.array_layout import (
    is_contiguous,
    reshaped,
    strides_of,
    strides_of_result,
    twin,
)
from workbench.models.array_writes import WRITERS, bound_in_place, write_at, write_by, written
from workbench.tensor.lazily import refuse_to_compute
from workbench.tensor.numpy.dispatch import apply_function, apply_ufunc
from workbench.tensor.numpy.functions.reasons import MEMORY, TEXT, WRITES
from workbench.tensor.numpy.functions.table import name_of
from workbench.tensor.numpy.promotion import kind_of_dtype
from workbench.tensor.numpy.ufuncs import call
from workbench.tensor.operands.arguments import dtype_error
from workbench.tensor.tensor import Tensor
from workbench.tensor.variable_operators import changed, tensors

Method = Callable[..., Any]

METHODS: tuple[str, ...] = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip"),
    *("cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ravel"),
    *("repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace"),
    "var",
)
"""Methods of an array that are the function of numpy of that name, with the array as its first
argument."""

OPERATORS: dict[str, str] = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "divmod": "divmod",
    "pow": "power",
    "matmul": "matmul",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
"""The ufunc of each operator; with an array on the right, and in place, it is the same."""
COMPARISONS: dict[str, str] = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
SIGNS: dict[str, str] = {
    "neg": "negative",
    "pos": "positive",
    "abs": "absolute",
    "invert": "invert",
}

REASONS: dict[str, str] = {
    **dict.fromkeys(
        ("base", "byteswap", "ctypes", "data", "flags", "getfield", "setfield"), MEMORY
    ),
    **dict.fromkeys(("setflags", "strides"), MEMORY),
    **dict.fromkeys(("dump", "dumps", "tobytes", "tofile"), TEXT),
    **dict.fromkeys(("partition", "put", "resize"), WRITES),
}
"""Why a method or an attribute of an array is refused."""

AS_OF_A_TENSOR = ("device", "ndim", "shape", "to_device", "tolist")
"""Names that mean on a Tensor what they mean on an array; what needs values says so."""

VIEWS = frozenset(
    {
        *("reshape", "ravel", "transpose", "permute_dims", "matrix_transpose", "swapaxes"),
        *("linalg.matrix_transpose", "moveaxis", "rollaxis", "expand_dims", "squeeze", "flip"),
        *("fliplr", "flipud", "rot90", "broadcast_to", "broadcast_arrays", "atleast_1d"),
        *("atleast_2d", "atleast_3d", "asarray", "asanyarray", "ascontiguousarray", "require"),
        *("asfortranarray", "real", "real_if_close", "split", "array_split", "hsplit", "vsplit"),
        *("dsplit", "unstack", "diagonal", "linalg.diagonal"),
        "lib.stride_tricks.sliding_window_view",
    }
)
"""Functions of numpy whose result shares the memory of its argument: writes to one are seen in the
other. Results of all others have memory of their own."""
LAID_OUT = VIEWS - {
    *("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require", "real"),
    *("real_if_close", "reshape", "ravel"),
}
"""Functions of `VIEWS` that read no elements, so that they can be called with twins."""


ARRAYS = frozenset(
    {
        *("array", "asanyarray", "asarray", "block", "broadcast_to", "copy", "cov", "diff"),
        *("empty_like", "expand_dims", "full_like", "isin", "ones_like", "pad", "real_if_close"),
        *("require", "resize", "roll", "tile", "where", "zeros_like"),
        "lib.stride_tricks.sliding_window_view",
    }
)
"""Functions of numpy whose result is an array, also if it has no axes, and also of numbers."""


def _name_caller(function: Method, name: str) -> Method:
    """Give a function its name, also in frames: those of operations are named on the page."""
    function.__code__ = function.__code__.replace(co_name=name)
    function.__name__ = name
    return function


def _by_caller(name: str, of_array: Method, shown: str = "") -> Method:
    """Return the method `name`: `of_array` to the user's code, a Tensor's to this package."""
    of_tensor: Any = getattr(Tensor, name, None)

    def method(self: NumpyTensor, *args: Any, **named: Any) -> Any:
        if of_tensor is None or is_users_call():
            return of_array(self, *args, **named)
        return of_tensor.__get__(self, type(self))(*args, **named)

    return _name_caller(method, shown or name)


def _attribute(name: str, of_array: Callable[[Any], Any]) -> property:
    """Return the attribute `name`, or what is a method of a Tensor, as `_by_caller` does."""
    of_tensor: Any = getattr(Tensor, name, None)

    def value(self: NumpyTensor) -> Any:
        if of_tensor is None or is_users_call():
            return of_array(self)
        return of_tensor.__get__(self, type(self))

    return property(_name_caller(value, name))


# methods that are no function of numpy, or one with other arguments


def _astype(x: NumpyTensor, dtype: Any, order: str = "K", casting: Any = "unsafe",
            subok: bool = True, copy: bool = True) -> NumpyTensor:  # fmt: skip
    kind = kind_of_dtype(dtype)
    if not np.can_cast(x.dtype.numpy, kind.numpy, casting):
        raise dtype_error(
            f"cannot cast {x.dtype} to {kind}", f"casting={casting!r}", 'casting="unsafe"'
        )
    result = x.cast(kind)
    result = _own(result, [x]) if copy else result
    return result if _is_number(x) else _as_view(result)


def _copy(x: NumpyTensor, order: Any = "C") -> Any:
    return _own(x, [x]) if _is_number(x) else np.copy(x, order)


def _compress(x: NumpyTensor, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return np.compress(condition, x, axis, out)


def _conjugate(x: NumpyTensor) -> NumpyTensor:
    return x


def _fill(x: NumpyTensor, value: Any) -> None:
    if _is_number(x):
        raise dtype_error(
            "x.fill of no axes is not computed",
            "numpy fills an array of one element, and leaves a number as it is",
            "x = np.full_like(x, value)",
        )
    Tensor.__setitem__(x, ..., value)


def _flatten(x: NumpyTensor, order: Any = "C") -> Any:
    return _own(cast(Any, np.ravel(x, order)), [x])


def _item(x: NumpyTensor, *index: Any) -> Any:
    if not index:
        return Tensor.item(x)
    places = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
    element = x[places] if len(places) > 1 else Tensor.reshape(x, -1)[places[0]]
    return Tensor.item(element)


def _reshape(x: NumpyTensor, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
    sizes = shape[0] if len(shape) == 1 else shape
    result: Any = np.reshape(x, sizes, order=order)
    return _own(result, [x]) if copy else result


def _sort(x: NumpyTensor, axis: int = -1, kind: Any = None, order: Any = None, *,
          stable: Any = None) -> None:  # fmt: skip
    result: Any = np.sort(x, axis, kind, order, stable=stable)
    x.assign(result)


def _transpose(x: NumpyTensor, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return np.transpose(x, order)


def _view(x: NumpyTensor, dtype: Any = None, type: Any = None) -> Any:
    if dtype is None and type is None:
        return _as_view(Tensor.reshape(x, x.shape)) if not _is_number(x) else x.reshape(x.shape)
    if type is not None or not isinstance(dtype, str | np.dtype | builtin_type):
        raise dtype_error(
            f"x.view({short(type or dtype)}) is not computed",
            "a view has another dtype, and x stands for an array of numpy",
            "x.reshape(..) for another shape, x.view(np.int32) for the bits as integers",
        )
    bits = x.bitcast(kind_of_dtype(dtype))
    return bits if _is_number(x) else _as_view(bits)


builtin_type: type = type

ADAPTED: dict[str, Method] = {
    "astype": _astype,
    "compress": _compress,
    "conj": _conjugate,
    "conjugate": _conjugate,
    "copy": _copy,
    "fill": _fill,
    "flatten": _flatten,
    "item": _item,
    "reshape": _reshape,
    "sort": _sort,
    "transpose": _transpose,
    "view": _view,
}
"""Methods of an array with arguments of their own."""

ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: np.transpose(x),
    "dtype": lambda x: x.dtype.numpy if x.dtype.in_numpy else x.dtype,
    "flat": lambda x: Tensor.reshape(x, -1),
    "imag": lambda x: np.imag(x),
    "itemsize": lambda x: x.dtype.itemsize,
    "mT": lambda x: np.matrix_transpose(x),
    "nbytes": lambda x: x.numel() * x.dtype.itemsize,
    "real": lambda x: np.real(x),
    "size": lambda x: x.numel(),
}


_TO_WRITE_TO = "np.zeros(n, like=x) for an array that x is written to"
_NO_ARRAY = f"{_TO_WRITE_TO}, np.asarray(x) by that name for asarray(x)"
_NO_BRANCH = (
    "np.where(condition, a, b), a fixed number of steps for a loop until values say so, np.max(x)"
    " for max(x), np.isin(x, values) for a search"
)
_NO_NUMBER = (
    "np.exp(x) for math.exp(x), x itself for float(x), which is an expression, " + _TO_WRITE_TO
)
_NO_INDEX = (
    "x[i] for one element, np.where(np.arange(n) < i, x, 0) for x[:i], or the number as an argument"
)


class NumpyTensor(Tensor):
    """A Tensor that is an array of numpy to the user's code. Results are NumpyTensors, too.

    Errors: DTypeError for arguments that numpy's method does not have, and, where nothing is
    computed, for what needs values.
    """

    __slots__ = ("_is_array", "_strides")
    _is_array: bool
    """True for an array of no axes; unset for other Tensors of no axes, which are numbers to numpy:
    their views are copies, and `x += y` binds x to another number."""
    _strides: tuple[int, ...]
    """The strides of numpy's array, in elements; unset where they are those of row-major order."""

    __hash__ = Tensor.__hash__

    @property  # type: ignore[misc]  # of object it can be set
    def __class__(self) -> Any:
        """np.ndarray to the user's code, so that `isinstance(x, np.ndarray)` is true there."""
        return np.ndarray if is_users_call() else NumpyTensor

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Return what a ufunc makes of arrays; with `out=`, also of `x += y`, write it there."""
        out = keywords.pop("out", None)
        if method == "at":
            return write_at(ufunc.__name__, *inputs)
        if method == "__call__":
            result = call(ufunc.__name__, *inputs, **keywords)
        else:
            result = apply_ufunc(ufunc, method, inputs, keywords)
        result = _own(result, inputs)
        if method == "__call__" and isinstance(result, NumpyTensor):
            others = [x._strides for x in inputs if hasattr(x, "_strides")]
            _set_strides(result, strides_of_result(result.shape, others) if others else None)
        if out is None:
            return result
        if type(out[0]) is np.ndarray and out[0] is inputs[0]:
            references = sys.getrefcount(out[0])
            return bound_in_place(ufunc.__name__, out[0], result, references)
        return _all_written(ufunc.__name__, out, result)

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what a function of numpy makes of arrays; with `out=` write it there."""
        name = name_of(func)
        if name in WRITERS:
            return write_by(name, args, kwargs)
        args, kwargs, out = _without_out(func, args, kwargs)
        is_number = _is_number(self)
        result = apply_function(self, func, args, kwargs)
        if out is not None:
            return written(name, out, _own(result, [*args, *kwargs.values()]))
        if is_number or (name in ARRAYS and name not in VIEWS):
            result = _own(result, [*args, *kwargs.values()])
            return changed(result, _as_view) if name in ARRAYS else result
        if name == "reshape":
            return _reshaped(result, *args, **kwargs)
        if name == "ravel":  # unlike x.reshape(-1), it copies what is not contiguous
            is_view = is_contiguous(_twin(self), *args[1:], **kwargs)
            return _as_array(result) if is_view else _own(result, [self])
        if name in VIEWS:
            result = changed(result, _as_view)
            return _laid_out(result, func, args, kwargs) if name in LAID_OUT else result
        return _own(result, [*args, *kwargs.values()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        what = "an array of numpy is made of a Tensor"
        refuse_to_compute(what, "an array has values", _NO_ARRAY)
        return super().__array__(dtype, copy)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return numpy to the user's code, as an array does."""
        return np if is_users_call() else super().__array_namespace__(api_version=api_version)

    def __bool__(self) -> bool:
        refuse_to_compute("the truth of a Tensor decides what runs", "", _NO_BRANCH)
        return bool(self.item())

    def __float__(self) -> float:
        refuse_to_compute("a number is made of a Tensor", "", _NO_NUMBER)
        return super().__float__()

    def __int__(self) -> int:
        refuse_to_compute("a number is made of a Tensor", "", _NO_NUMBER)
        return super().__int__()

    def __round__(self, digits: Any = None) -> Any:
        """Return what `round(x, digits)` makes of a number. Errors: TypeError for an array; without
        digits DTypeError where nothing is computed."""
        if not _is_number(self):
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        if digits is not None:
            return np.round(self, digits)
        refuse_to_compute(
            "a number is made of a Tensor", "", f"np.round(x) for round(x), {_NO_NUMBER}"
        )
        return round(self.item())

    def __getitem__(self, index: Any) -> Any:
        """Return the elements that `index` names, as numpy does: an integer beside an index array
        is one, too, and an element has memory of its own."""
        if not is_users_call():
            return super().__getitem__(index)
        is_copy = _is_number(self)
        part = super().__getitem__(_index(index))
        entries = index if isinstance(index, tuple) else (index,)
        if part.ndim and part._memory is not None and part._memory is self._memory:
            _set_strides(part, strides_of(_twin(self)[index]))
        is_element = not part.ndim and not any(entry is Ellipsis for entry in entries)
        part = part._with(part.uop) if is_copy or is_element else part
        return part if is_element else _as_view(part)

    def __setitem__(self, index: Any, x: Any) -> None:
        super().__setitem__(_index(index) if is_users_call() else index, x)

    def __iter__(self) -> Iterator[Any]:
        if not is_users_call():
            return super().__iter__()
        parts = [super(NumpyTensor, self).__getitem__(i) for i in range(len(self))]
        if self.ndim < 2:
            return iter([part._with(part.uop) for part in parts])
        if hasattr(self, "_strides"):
            for part in parts:
                part._strides = self._strides[1:]
        return iter(parts)

    def __contains__(self, value: object) -> bool:
        return bool(np.any(np.equal(self, value)))  # type: ignore[call-overload]

    def __index__(self) -> int:
        refuse_to_compute("a Tensor's value is used as an index or a size", "", _NO_INDEX)
        return int(self.item())


# --------------------------------------------------------------------------------------------------
# What numpy's functions return and write.


def as_array(array: np.ndarray[Any, Any], device: str | None = None) -> NumpyTensor:
    """Return the Tensor that stands for an array of numpy."""
    tensor = NumpyTensor(array, device=device)
    _set_strides(tensor, strides_of(array))
    _as_view(tensor)
    return tensor


def own_copy(x: Tensor) -> Tensor:
    """Return a Tensor of the same value, and of the same layout, that is written to alone."""
    copy = x._with(x.uop)
    if not isinstance(x, NumpyTensor):
        return copy
    _set_strides(copy, getattr(x, "_strides", None))
    return copy if _is_number(x) else _as_view(copy)


def _as_array(leaf: Any) -> Any:
    if isinstance(leaf, Tensor) and not isinstance(leaf, NumpyTensor):
        return NumpyTensor(leaf)
    return leaf


def _is_number(x: NumpyTensor) -> bool:
    """Whether numpy has a number for a Tensor, and no array."""
    return not x.ndim and not hasattr(x, "_is_array")


def _as_view(leaf: Any) -> Any:
    """Return what numpy has as an array, also if it has no axes."""
    leaf = _as_array(leaf)
    if isinstance(leaf, NumpyTensor) and not leaf.ndim:
        leaf._is_array = True
    return leaf


def _own(result: Any, arguments: Any) -> Any:
    """Return a result of NumpyTensors that share no memory with the arguments."""
    operands = list(tensors(list(arguments)))
    memories = [x._memory for x in operands if x._memory is not None]

    def separate(leaf: Any) -> Any:
        leaf = _as_array(leaf)
        if not isinstance(leaf, Tensor):
            return leaf
        is_shared = any(leaf is x for x in operands) or any(leaf._memory is m for m in memories)
        return leaf._with(leaf.uop) if is_shared else leaf

    return changed(result, separate)


def _all_written(name: str, out: tuple[Any, ...], result: Any) -> Any:
    """Write results to the arrays of `out=`, and return these."""
    results = result if isinstance(result, tuple) else (result,)
    returned = [value if place is None else written(name, place, value)
                for place, value in zip(out, results, strict=True)]  # fmt: skip
    return returned[0] if len(returned) == 1 else tuple(returned)


def _without_out(function: Any, args: Any, named: Any) -> tuple[Any, Any, Any]:
    """Return arguments without `out=`, and what it was; None if it was not given."""
    try:
        bound = signature(function).bind(*args, **named)
    except (TypeError, ValueError):  # numpy states no names for it, or refuses them itself
        return args, {k: v for k, v in named.items() if k != "out"}, named.get("out")
    out = bound.arguments.pop("out", None)
    return (args, named, None) if out is None else (bound.args, bound.kwargs, out)


# --------------------------------------------------------------------------------------------------
# The layout of arrays.


def _twin(x: Any) -> Any:
    """Return the array without values that stands for the layout of `x`; of lists and tuples, too,
    of their parts."""
    if isinstance(x, NumpyTensor):
        return twin(x.shape, getattr(x, "_strides", None))
    if type(x) in (list, tuple):
        return type(x)(_twin(part) for part in x)
    return x


def _set_strides(x: Any, strides: Any) -> None:
    if isinstance(x, NumpyTensor) and strides is not None:
        x._strides = strides


def _laid_out(result: Any, function: Any, args: Any, named: Any) -> Any:
    """Give views, or one, the strides of those that numpy makes of the arguments' twins."""
    twins = function(*_twin(args), **{key: _twin(value) for key, value in named.items()})
    if isinstance(result, Tensor):
        _set_strides(result, strides_of(twins))
    else:
        for part, like in zip(result, twins, strict=True):
            _set_strides(part, strides_of(like))
    return result


def _reshaped(result: Any, a: Any, shape: Any, order: Any = "C", **named: Any) -> Any:
    """Return a reshaped array as a view if numpy would make one, else with memory of its own."""
    view = reshaped(_twin(a), shape, order) if isinstance(a, NumpyTensor) else None
    if view is None:
        result = _own(result, [a])
        if order == "F":  # of the copy, too
            _set_strides(result, strides_of(twin(result.shape[::-1], None).T))
        return result
    result = _as_view(result)
    _set_strides(result, strides_of(view))
    return result


def _index(index: Any) -> Any:
    """Return an index in which integers beside index arrays are index arrays, as in numpy. Errors:
    DTypeError for a slice that ends at a Tensor's value."""
    entries = index if isinstance(index, tuple) else (index,)
    is_advanced = any(
        isinstance(entry, list | range | np.ndarray | Tensor) and np.ndim(entry)
        for entry in entries
    )
    found = tuple(_entry(entry, is_advanced) for entry in entries)
    return found if isinstance(index, tuple) else found[0]


def _entry(entry: Any, is_beside_arrays: bool) -> Any:
    if isinstance(entry, slice):
        ends = (entry.start, entry.stop, entry.step)
        return slice(*[operator.index(end) if isinstance(end, Tensor) else end for end in ends])  # type: ignore[arg-type]
    is_integer = isinstance(entry, int | np.integer) and not isinstance(entry, bool)
    return NumpyTensor(int(entry)) if is_integer and is_beside_arrays else entry


# --------------------------------------------------------------------------------------------------
# The names of np.ndarray, made from the tables.


def _checked(name: str, function: Method, shown: Method) -> Method:
    """Return a method whose arguments are checked before: those of numpy's function `shown`."""

    def of_array(self: NumpyTensor, *args: Any, **named: Any) -> Any:
        try:
            signature(shown).bind(self, *args, **named)
        except ValueError:  # numpy states no names for it
            pass
        except TypeError as error:
            raise _no_argument(name, shown, named, str(error)) from None
        return function(self, *args, **named)

    return of_array


def _no_argument(name: str, function: Method, named: Any, text: str) -> DTypeError:
    own = list(signature(function).parameters)[1:]
    wrong = [key for key in named if key not in own]
    near = get_close_matches(wrong[0], own, 1) if wrong else []
    hint = "explore(f, Tensor(x)) for the methods of a Tensor"
    if near:
        hint = f"{near[0]}={short(named[wrong[0]])}, or {hint}"
    because = f"{text}; x stands for an array, and numpy's {name} takes {', '.join(own) or 'none'}"
    return dtype_error(f"x.{name} does not take these arguments", because, hint)


def _refused(name: str, reason: str) -> Method:
    def of_array(self: NumpyTensor, *args: Any, **named: Any) -> Any:
        raise dtype_error(
            f"x.{name} of an array is not computed for Tensors",
            f"{reason}; x stands for an array",
            "a function of numpy that returns a new array",
        )

    return of_array


def _operator(ufunc: np.ufunc, is_reflected: bool = False) -> Method:
    if is_reflected:
        return lambda self, other: ufunc(other, self)
    return lambda self, *other: ufunc(self, *other)


def _power(x: NumpyTensor, exponent: Any) -> Any:
    # numpy's operator, unlike np.power, squares for a 2: of bools, the result is int8.
    is_square = type(exponent) is int and exponent == 2
    return np.square(x) if is_square else np.power(x, exponent)


def _in_place(ufunc: np.ufunc) -> Method:
    # A number is not written to: x is another number after it.
    return lambda self, other: (
        ufunc(self, other) if _is_number(self) else ufunc(self, other, out=self)
    )


def _define() -> None:
    for name in METHODS:
        function = getattr(np, name)
        setattr(NumpyTensor, name, _by_caller(name, _checked(name, function, function)))
    for name, adapted in ADAPTED.items():
        setattr(NumpyTensor, name, _by_caller(name, _checked(name, adapted, adapted)))
    for name, of_array in ATTRIBUTES.items():
        setattr(NumpyTensor, name, _attribute(name, of_array))
    for name, reason in REASONS.items():
        refused = _refused(name, reason)
        is_method = callable(getattr(np.ndarray, name))
        made: Any = _by_caller(name, refused) if is_method else _attribute(name, refused)
        setattr(NumpyTensor, name, made)
    for name, of in (OPERATORS | COMPARISONS | SIGNS).items():
        ufunc = getattr(np, of)
        dunders = {f"__{name}__": _operator(ufunc)}
        if name in OPERATORS:
            dunders[f"__r{name}__"] = _operator(ufunc, is_reflected=True)
            if name != "divmod":
                dunders[f"__i{name}__"] = _in_place(ufunc)
        if name == "pow":
            dunders["__pow__"] = _power
        for dunder, method in dunders.items():
            setattr(NumpyTensor, dunder, _by_caller(dunder, method, of))


_define()
