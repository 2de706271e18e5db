"""Sums of products by a formula, "ij,jk->ik"; matrix products.

Sections: Sums of products by a formula; Matrix products.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from workbench.base.dtypes import DType, promote
from workbench.base.errors import type_name
from workbench.tensor.base import Base, Operand
from workbench.tensor.operands.arguments import dtype_error, flag, shape_error, short, text
from workbench.tensor.operands.broadcast import wide_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.reductions.reduce import modular_dtype, sum_dtype

# --------------------------------------------------------------------------------------------------
# Sums of products by a formula.

_TERM = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")
_MOST_RATIO = 2
"""All operands are multiplied at once if that takes at most this many times the products of two
operands at a time, with a sum after each product."""


class Term(NamedTuple):
    """A factor: a tensor with a letter for each axis. The axes of `...` have letters of `_dots`."""

    tensor: Any
    letters: str


class Einsum(Base):
    """einsum."""

    __slots__ = ()

    @classmethod
    def einsum(
        cls, formula: str, *operands: Self | Sequence[Self], dtype: DType | str | None = None
    ) -> Self:
        """Return the sum of products that `formula` says, by Einstein's convention.

        A letter names an axis of the operands, `...` all axes that have no letter, which broadcast.
        Letters that the result lacks are summed over; a letter twice in a term is the diagonal.
        Without "->" the result has the letters that stand once, in the order of the alphabet.
        Dtypes: operands promote. If an axis of one operand alone is summed over, integers give the
        dtype of sum(), as in PyTorch. With `dtype` the sum and the result have it.
        Errors: ShapeError where formula and operands do not fit, DTypeError for operands that are
        not tensors.
        """
        tensors = _listed(operands)
        inputs, output = _terms(text(formula, "einsum: formula", "ij,jk->ik"), len(tensors))
        each = [
            _term(tensor, letters, formula) for tensor, letters in zip(tensors, inputs, strict=True)
        ]
        sizes = _sizes(each, formula)
        target = _output(output, inputs, each, formula)
        kind = _promoted(tensors) if dtype is None else as_dtype(dtype)
        if dtype is None and _sums_alone(each, target, sizes):
            kind = sum_dtype(kind)
        terms = [Term(t.tensor.cast(wide_dtype(kind)), t.letters) for t in each]
        while len(terms) > 1:
            count = len(terms) if _at_once(terms, target, sizes) else 2
            after = target + "".join(t.letters for t in terms[count:])
            terms = [_product(terms[:count], after, target), *terms[count:]]
        result: Self = _summed(terms[0], target).cast(kind)
        return result


def _listed(operands: Sequence[Any]) -> list[Any]:
    one = len(operands) == 1 and isinstance(operands[0], list | tuple)
    tensors = list(operands[0] if one else operands)
    for tensor in tensors:
        if not isinstance(tensor, Base):
            raise dtype_error(
                f"cannot einsum {type_name(type(tensor))} {short(tensor)}",
                "operands are tensors",
                'Tensor.einsum("ij,jk->ik", a, b)',
            )
    return tensors


def _terms(formula: str, count: int) -> tuple[list[str], str | None]:
    inputs, *output = formula.replace(" ", "").split("->")
    terms = inputs.split(",")
    if len(output) > 1:
        _refuse(formula, "it has two arrows")
    for term in (*terms, *output):
        if _TERM.fullmatch(term) is None:
            _refuse(formula, f"{term!r} must be letters, with ... once")
    if len(terms) != count:
        _refuse(formula, f"it has {len(terms)} terms, and there are {count} operands")
    return terms, output[0] if output else None


def _term(tensor: Any, term: str, formula: str) -> Term:
    """Return the operand with a letter for each axis, none of them twice."""
    before, dots, after = _TERM.fullmatch(term).groups()  # type: ignore[union-attr]
    rest = tensor.ndim - len(before) - len(after)
    if rest < 0 or (rest and not dots):
        _refuse(
            formula,
            f"{term!r} names {len(before + after)} axes, and shape {tensor.shape} has"
            f" {tensor.ndim}",
        )
    letters = before + _dots(rest) + after
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            tensor, letters = _diagonal(tensor, letters, letter, formula)
    return Term(tensor, letters)


def _sums_alone(terms: Sequence[Term], target: str, sizes: Mapping[str, int]) -> bool:
    """Whether an axis of one operand alone is summed over: others lack it, or have size 1 there.
    With several operands, an axis of size 1 in all of them does not count."""
    if len(terms) == 1:
        return len(target) < len(sizes)
    owners: Counter[str] = Counter()
    for term in terms:
        owners.update(
            letter
            for letter, size in zip(term.letters, term.tensor.shape, strict=True)
            if size == sizes[letter] != 1
        )
    return any(owners[letter] == 1 for letter in sizes if letter not in target)


def _dots(count: int) -> str:
    """Return a character beyond the letters for each axis of `...`, counted from the last one."""
    return "".join(chr(0x100 + i) for i in reversed(range(count)))


def _diagonal(tensor: Any, letters: str, letter: str, formula: str) -> tuple[Any, str]:
    first = letters.index(letter)
    second = letters.index(letter, first + 1)
    sizes = tensor.shape[first], tensor.shape[second]
    if sizes[0] != sizes[1]:
        _refuse(formula, f"{letter} has the sizes {sizes[0]} and {sizes[1]} in one term")
    rest = letters[:first] + letters[first + 1 : second] + letters[second + 1 :]
    return tensor.diagonal(0, first, second), rest + letter


def _sizes(terms: list[Term], formula: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term in terms:
        for letter, size in zip(term.letters, term.tensor.shape, strict=True):
            have = sizes.get(letter, 1)
            if 1 not in (have, size) and have != size:
                name = "an axis of ..." if ord(letter) >= 0x100 else letter
                _refuse(formula, f"{name} has the sizes {have} and {size}")
            sizes[letter] = size if have == 1 else have
    return sizes


def _output(output: str | None, inputs: list[str], terms: list[Term], formula: str) -> str:
    """Return the letters of the result, with those that `...` stands for."""
    letters = "".join(term.letters for term in terms)
    dots = _dots(len({n for n in letters if ord(n) >= 0x100}))
    if output is None:
        all_letters = "".join(inputs).replace(".", "")
        once = sorted(n for n in all_letters if all_letters.count(n) == 1)
        return dots + "".join(once)
    result = output.replace("...", dots)
    for letter in result:
        if letter not in letters:
            _refuse(formula, f"{letter} of the result is in no operand")
        if result.count(letter) > 1:
            _refuse(formula, f"{letter} stands twice in the result")
    return result


def _at_once(terms: list[Term], result: str, sizes: dict[str, int]) -> bool:
    """Whether to multiply all terms at once: few products more than in pairs (`_MOST_RATIO`)."""
    pairs, letters = 0, set(terms[0].letters)
    for i, term in enumerate(terms[1:], 1):
        letters |= set(term.letters)
        pairs += math.prod(sizes[n] for n in letters)
        letters &= set(result + "".join(t.letters for t in terms[i + 1 :]))
    everything = {letter for term in terms for letter in term.letters}
    return math.prod(sizes[n] for n in everything) <= _MOST_RATIO * pairs


def _product(terms: list[Term], after: str, result: str) -> Term:
    """Return the product of `terms`, summed over the letters that are not needed `after` it."""
    letters = "".join(dict.fromkeys("".join(t.letters for t in terms)))
    needed = "".join(n for n in dict.fromkeys(result + letters) if n in letters and n in after)
    order = needed + "".join(n for n in letters if n not in needed)
    tensor = _aligned(terms[0], order)
    for term in terms[1:]:
        tensor = tensor * _aligned(term, order)
    return Term(_summed(Term(tensor, order), needed), needed)


def _aligned(term: Term, order: str) -> Any:
    """Return the tensor with the axes of `order`; those that it lacks have size 1."""
    own = [n for n in order if n in term.letters]
    tensor = term.tensor.permute(*(term.letters.index(n) for n in own))
    sizes = dict(zip(own, tensor.shape, strict=True))
    return tensor.reshape(*(sizes.get(n, 1) for n in order))


def _summed(term: Term, result: str) -> Any:
    """Return the tensor with the axes `result`, summed over the others."""
    axes = tuple(i for i, n in enumerate(term.letters) if n not in result)
    rest = [n for n in term.letters if n in result]
    tensor = term.tensor.sum(axes, dtype=term.tensor.dtype) if axes else term.tensor
    return tensor.permute(*(rest.index(n) for n in result))


def _promoted(tensors: list[Any]) -> DType:
    kind: DType = tensors[0].dtype
    for tensor in tensors[1:]:
        kind = promote(kind, tensor.dtype)
    return kind


def _refuse(formula: str, because: str) -> NoReturn:
    raise shape_error(
        f"cannot einsum {short(formula)}", because, 'Tensor.einsum("ij,jk->ik", a, b)'
    )


# --------------------------------------------------------------------------------------------------
# Matrix products: a broadcast multiplication and a sum, which scheduling fuses.


class Matmul(Base):
    """`@`, `matmul`, `dot` and `linear`."""

    __slots__ = ()

    def matmul(self, x: Operand, reverse: bool = False, dtype: DType | str | None = None) -> Self:
        """Return the matrix product self @ x (`reverse`: x @ self).

        Shapes: (..., m, k) @ (..., k, n) -> (..., m, n), leading axes broadcast; a vector is a row
        on the left and a column on the right, and its axis is absent from the result.
        Dtypes: operands promote, and integers wrap; low-precision floats are multiplied and summed
        in float32, and the result is cast back; with `dtype` the operands are cast before, and the
        result has it.
        Errors: ShapeError if the inner sizes differ or an operand is a scalar; DTypeError for an
        operand that is neither a tensor nor an array.
        """
        other = self._matrix(x)
        if flag(reverse, "reverse"):
            return other.dot(self, dtype)
        return self.dot(other, dtype)

    def dot(self, w: Operand, dtype: DType | str | None = None) -> Self:
        """Return self @ w (see `matmul`)."""
        other = self._matrix(w)
        _check(self.shape, other.shape)
        kind = promote(self.dtype, other.dtype) if dtype is None else as_dtype(dtype)
        left = self.unsqueeze(0) if self.ndim == 1 else self
        right = other.unsqueeze(1) if other.ndim == 1 else other
        left, right = (
            t.cast(wide_dtype(t.dtype if dtype is None else kind)) for t in (left, right)
        )
        products = left.unsqueeze(-2) * right.transpose(-1, -2).unsqueeze(-3)
        output = products.sum(-1, dtype=modular_dtype(kind)).cast(kind)
        if self.ndim == 1:
            output = output.squeeze(-2)
        return output.squeeze(-1) if other.ndim == 1 else output

    def linear(
        self, weight: Self, bias: Self | None = None, dtype: DType | str | None = None
    ) -> Self:
        """Return self @ `weight` + `bias`; a `weight` of one axis multiplies the last axis of self.

        Shapes: (.., in) with (in, out) -> (.., out). Dtypes: with `dtype` all are cast to it first.
        Errors: as `matmul`.
        """
        value, kernel = self, self._matrix(weight)
        offset = None if bias is None else self._lift(bias, "add")
        if dtype is not None:
            value, kernel = value.cast(dtype), kernel.cast(dtype)
            offset = None if offset is None else offset.cast(dtype)
        output = value * kernel if kernel.ndim == 1 else value.dot(kernel)
        return output if offset is None else output + offset

    def __matmul__(self, x: Operand) -> Self:
        return self.matmul(x)

    def __rmatmul__(self, x: Operand) -> Self:
        return self.matmul(x, reverse=True)

    def _matrix(self, operand: Operand) -> Self:
        if not isinstance(operand, Base | np.ndarray):
            raise dtype_error(
                f"cannot multiply a matrix and {type_name(type(operand))} {short(operand)}",
                "a matrix product is of two tensors",
                "* to scale, or Tensor(...) of a list",
            )
        return self._lift(operand, "multiply")


def _check(a: tuple[Any, ...], b: tuple[Any, ...]) -> None:
    if not a or not b:
        raise shape_error(
            f"cannot multiply matrices of shapes {a} and {b}",
            "a scalar is not a matrix",
            "* to scale",
        )
    inner = -2 if len(b) > 1 else -1
    if a[-1] != b[inner]:
        hint = f"a right one with {a[-1]} elements on axis {inner}"
        if len(b) > 1 and a[-1] == b[-1]:
            hint = "transpose the right one: a @ b.transpose(-1, -2)"
        elif len(a) > 1 and a[-2] == b[inner]:
            hint = "transpose the left one: a.transpose(-1, -2) @ b"
        raise shape_error(
            f"cannot multiply matrices of shapes {a} and {b}",
            f"the last axis of the left one has {a[-1]} elements,"
            f" and axis {inner} of the right one {b[inner]}",
            hint,
        )
