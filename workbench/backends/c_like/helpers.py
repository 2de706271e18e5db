"""Helper functions before a kernel, for operations without an operator in a language: each once,
and only those that are called.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.c_like.dialect import CopyText, Dialect, FragmentText
from workbench.backends.program.text import ADD, ATOM, EITHER, LESS, Expression, call
from workbench.base.dtypes import DType
from workbench.base.tensor_cores import TensorCore
from workbench.ir.node.ops import Ops

_A: Expression = ("a", ATOM)
_B: Expression = ("b", ATOM)


class Helpers:
    """Functions by name, in the order of their first call. A method returns a call, and its
    docstring says what the function computes."""

    def __init__(self, dialect: Dialect):
        self.dialect = dialect
        self.texts = dialect.declarations

    def extreme(self, op: Ops, dtype: DType, a: Expression, b: Expression) -> Expression:
        """The greater or lesser of two values; NaN if either is."""
        word = op.name.lower()
        if self.dialect.has_extremes and dtype.is_int and dtype.bits == 32:
            return call(word, a[0], b[0])
        name = f"{word}_{self.dialect.part_of_name(dtype)}"
        own = self.dialect.extreme_function(name, op, dtype)
        if own:
            self.texts.setdefault(name, own)
            return call(name, a[0], b[0])
        sign = ">" if op is Ops.MAX else "<"
        test = f"a {sign} b", LESS
        if dtype.is_float:
            test = f"{test[0]} || {self.dialect.differ(_A, _A)[0]}", EITHER
        value = self.dialect.choose(test, _A, _B)
        about = "NaN if either is" if dtype.is_float else ""
        return self._called(name, dtype, value, a, b, about=about)

    def quotient(self, op: Ops, dtype: DType, a: Expression, b: Expression) -> Expression:
        """A quotient or remainder that wraps where INT_MIN / -1 is possible."""
        is_minus_one = f"b == {self.dialect.constant(-1, dtype)[0]}", LESS
        if op is Ops.CDIV:
            wrapped, unwrapped, name = ("-a", ATOM), ("a / b", ADD), "quotient"
        else:
            zero, unwrapped = (self.dialect.constant(0, dtype), self.dialect.rest(_A, _B, dtype))
            wrapped, name = zero, "rest"
        value = self.dialect.choose(is_minus_one, wrapped, unwrapped)
        name = f"{name}_{self.dialect.part_of_name(dtype)}"
        return self._called(name, dtype, value, a, b, about="the least // -1 wraps")

    def saturate(self, source: DType, dtype: DType, value: Expression) -> Expression:
        """A float as an integer: truncated, clamped to the integer's limits, 0 for NaN."""
        dialect = self.dialect
        low = dialect.constant(float(dtype.min), source)[0]
        high = dialect.constant(float(int(dtype.max) + 1), source)[0]
        least, most = (dialect.constant(v, dtype) for v in (dtype.min, dtype.max))
        inside = dialect.cast(_A, source, dtype)
        nan = dialect.choose((f"a < {low}", LESS), least, dialect.constant(0, dtype))
        below = dialect.choose((f"a >= {low}", LESS), inside, nan)
        text = dialect.choose((f"a >= {high}", LESS), most, below)
        name = f"{dialect.part_of_name(dtype)}_from_{dialect.part_of_name(source)}"
        return self._called(name, dtype, text, value, source=source, about="clamped; NaN: 0")

    def multiply(self, core: TensorCore, tiles: Sequence[FragmentText]) -> Expression:
        """C + A @ B of the tiles of a warp, from their fragments."""
        a, b, c = tiles
        name = f"wmma_{core.shape}_{core.operand.name}"
        if name not in self.texts:
            self.texts[name] = self.dialect.tile_function(name, core, a.dtype.scalar)
        of_operands = [w for t in (a, b) for w in self.dialect.tile_arguments(t)]
        return call(name, *of_operands, c.whole())

    def exchange(self, matrices: int, transposed: bool, place: str) -> Expression:
        """The fragments of the rows that the lanes of a warp read."""
        name = f"load_matrix_x{matrices}" + ("_trans" if transposed else "")
        if name not in self.texts:
            self.texts[name] = self.dialect.exchange_function(name, matrices, transposed)
        return call(name, f"&{place}")

    def begin_copy(self, copy: CopyText) -> str | None:
        """The statement that begins an asynchronous copy; None where the language has none."""
        name = f"begin_copy_{copy.nbytes}"
        if name not in self.texts:
            text = self.dialect.copy_function(name, copy.nbytes)
            if not text:
                return None
            self.texts[name] = text
        size = str(copy.nbytes)
        if copy.condition:
            size = f"{copy.condition} ? {size} : 0"
        return f"{name}(&{copy.to}, &{copy.source}, {size});"

    def _called(
        self,
        name: str,
        dtype: DType,
        value: Expression,
        *arguments: Expression,
        source: DType | None = None,
        about: str = "",
    ) -> Expression:
        if name not in self.texts:
            kind = self.dialect.scalar(source or dtype)
            parameters = [(kind, letter) for letter in "ab"[: len(arguments)]]
            result = self.dialect.scalar(dtype)
            self.texts[name] = self.dialect.function(result, name, parameters, value[0], about)
        return call(name, *[words for words, _ in arguments])
