"""Expressions of a text as values."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.functions import constructed
from workbench.emulator.source.meaning import (
    BOOL,
    Counter,
    Lane,
    NamedValue,
    Place,
    Pointer,
    RegisterVariable,
    StructVariable,
    type_of,
)
from workbench.emulator.source.places import PlaceTranslation
from workbench.emulator.source.syntax import (
    AssignmentOf,
    Binary,
    Call,
    Cast,
    Choice,
    Construct,
    Expr,
    MemberOf,
    Name,
    Number,
    SizeOf,
    StepOf,
    Subscript,
    Unary,
)
from workbench.emulator.source.tokens import Token
from workbench.emulator.source.values import Abstract, Value
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_INDEX_NAMES = {"blockIdx": "group", "threadIdx": "item", "blockDim": "items", "gridDim": "groups"}


class ExpressionTranslation(PlaceTranslation):
    """Evaluates expressions. `call` is for calls of functions, `operator` for operators that the
    text defines."""

    @abstractmethod
    def call(self, call: Call, may_be_void: bool) -> Value:
        """Return the result of a call."""

    @abstractmethod
    def operator(self, sign: str, operands: Sequence[UOp], at: Token) -> UOp | None:
        """Return the result of an operator that the text defines for these types; None if it
        defines none."""

    def value(self, value: Expr, may_be_void: bool = False) -> Value:
        result = self.value_or_pointer(value, may_be_void)
        if isinstance(result, Pointer):
            raise self.fault(value.at, "an address stands here, and a value is expected", "p[i]")
        return result

    def value_or_pointer(self, value: Expr, may_be_void: bool = False) -> Value | Pointer:
        value = self.part_named(value)
        match value:
            case Number(dtype=None):
                return Abstract(value.value)
            case Number():
                assert value.dtype is not None
                return UOp.const(value.dtype, value.value)
            case Name():
                return self._named(value)
            case Unary(sign="&") | Subscript() | Unary(sign="*"):
                return self._read_element(value)
            case Unary():
                return self._signed(value)
            case Binary(sign="&&" | "||"):
                return self._both_or_either(value)
            case Binary():
                if value.sign in ("+", "-") and self._is_pointer(value):
                    return self.pointer(value)
                left, right = self.value(value.left), self.value(value.right)
                if isinstance(left, Abstract) and isinstance(right, Abstract):
                    return self.values.folded(value.sign, left, right, value.at)
                operands = [self.values.concrete(x) for x in (left, right)]
                own = self.operator(value.sign, operands, value.at)
                return own or self.values.binary(value.sign, left, right, value.at)
            case Choice():
                return self._choice(value)
            case Cast():
                if value.type.struct is not None:
                    because = "a cast to a struct is not supported"
                    raise self.fault(value.at, because, "an array for each part")
                if value.type.is_pointer:
                    return self.pointer(value)
                if value.type.dtype is dtypes.void and may_be_void:
                    return self.value(value.value, may_be_void)
                return self._cast(self.value(value.value), value.type.dtype, value.at)
            case Construct():
                return self._constructed(value)
            case MemberOf():
                return self._member(value)
            case Call():
                return self.call(value, may_be_void)
            case StepOf():
                return self._stepped(value)
            case AssignmentOf():
                return self._assigned(value)
            case SizeOf():
                return self._size_of(value)
        raise self.fault(value.at, "values in braces stand only in a declaration")

    def _stepped(self, value: StepOf) -> UOp:
        """Step a variable; return its value before or after that."""
        place = self.target(value.target)
        before = self._register("before ", type_of(place))
        self._set(before, self._read(place))
        one = UOp.const(dtypes.int32, 1)
        after = self.values.binary(value.sign, before, one, value.at)
        after = self.values.cast(after, before.dtype)
        self._change(place, before, after)
        if not value.is_before:
            return before
        register = self._register("after ", before.dtype)
        self._set(register, after)
        return register

    def _assigned(self, value: AssignmentOf) -> UOp:
        """Assign to a variable; return its value."""
        place = self.target(value.target)
        result = self.value(value.value)
        if value.sign:
            result = self._updated(place, value.sign, result, value.at)
        register = self._register("assigned ", type_of(place))
        self._set(register, self.values.converted(result, register.dtype, value.at))
        self._change(place, self._read(place), register)
        return register

    def _change(self, place: Place, before: UOp, after: UOp) -> None:
        """Write a value inside of an expression: a variable keeps the one `before` where this part
        of the expression is not computed."""
        if self.gate is not None and isinstance(place, RegisterVariable):
            after = self.values.node(Ops.WHERE, after.dtype, [self.gate, after, before])
        elif self.gate is not None:
            because = "a change in a part of an expression that a condition decides on"
            raise self.fault(self.here(), f"{because} is not supported", "if")
        self.write(place, after)

    @abstractmethod
    def _updated(self, place: Place, sign: str, value: Value, at: Token) -> Value:
        """Return the new value of a place that an operator such as `+=` changes."""

    def _size_of(self, value: SizeOf) -> UOp:
        """Return the bytes of a type or of a name."""
        kind, inner = value.type, value.value
        sizes: tuple[int, ...] = ()
        if kind is not None and kind.struct is not None and not kind.is_pointer:
            raise self.fault(value.at, "the size of a struct is not supported", "its parts")
        if kind is not None:
            dtype, is_pointer = kind.dtype, kind.is_pointer
        elif isinstance(inner, (Name, Subscript)):
            below = 0
            while isinstance(inner, Subscript):
                inner, below = inner.value, below + 1
            meaning = self._meaning(inner) if isinstance(inner, Name) else None
            if isinstance(meaning, StructVariable):
                raise self.fault(value.at, "the size of a struct is not supported", "its parts")
            if isinstance(meaning, Pointer) and not meaning.is_variable:
                sizes = meaning.sizes[below:]
                dtype, is_pointer = meaning.dtype, not meaning.sizes and not below
            elif meaning is None or below:
                because = "the size of this expression is not known here"
                raise self.fault(value.at, because, "sizeof of a type or of a name")
            else:
                named = self.values.concrete(self.value(inner))
                dtype, is_pointer = named.dtype, False
        else:
            because = "the size of this expression is not known here"
            raise self.fault(value.at, because, "sizeof of a type or of a name")
        nbytes = dtype.itemsize
        if dtype.count == 3 and self.language.name not in ("CUDA", "HIP"):
            nbytes = 4 * dtype.scalar.itemsize
        return UOp.const(dtypes.uint64, 8 if is_pointer else nbytes * math.prod(sizes))

    def _named(self, name: Name) -> Value | Pointer:
        meaning = self._meaning(name)
        match meaning:
            case RegisterVariable():
                return meaning.register
            case Counter():
                return self._counted(meaning)
            case NamedValue():
                if isinstance(meaning.value, UOp):
                    self._again(meaning.value)
                return meaning.value
            case StructVariable():
                because = f"{name.name} is a struct, and one value is expected here"
                parts = (f"{name.name}.{part}" for part, _ in meaning.struct.parts)
                raise self.fault(name.at, because, ", ".join(parts))
        if meaning.is_variable:
            return self.load(meaning)
        return Pointer(meaning.memory, meaning.offset, meaning.dtype, meaning.sizes)

    def _again(self, node: UOp) -> None:
        """Compute the nodes of a named value, unless this statement has done so."""
        if node.op in (Ops.CONST, Ops.REG, Ops.LOAD):
            return
        for source in node.src:
            if source.op not in (Ops.CONST, Ops.RANGE, Ops.REG, Ops.LOAD):
                self._again(source)
        if node.op not in (Ops.RANGE, Ops.LOAD):
            self.values.step(node)

    def _counted(self, counter: Counter) -> UOp:
        node = UOp(Ops.CAST, counter.dtype, (counter.axis,))
        self.values.step(node)
        if counter.step != 1:
            node = self.values.node(
                Ops.MUL, counter.dtype, [node, UOp.const(counter.dtype, counter.step)]
            )
        if counter.first:
            first = UOp.const(counter.dtype, counter.first)
            node = self.values.node(Ops.ADD, counter.dtype, [node, first])
        return node

    def _read_element(self, value: Expr) -> Value | Pointer:
        if isinstance(value, Unary) and value.sign == "&":
            return self.pointer(value)
        if isinstance(value, Subscript) and self._base_type(value):
            return self.pointer(value)
        if isinstance(value, Subscript) and self._base_type(value) is None:
            inner = value.value
            vector = inner.value if isinstance(inner, MemberOf) and inner.name == "s" else inner
            if not isinstance(vector, (Cast, Binary, Unary)):
                whole = self.values.concrete(self.value(vector))
                index = self._index(value.index)
                if index.op is not Ops.CONST or not 0 <= index.arg < whole.dtype.count:
                    raise self.fault(value.at, "a lane of a vector has a fixed number", "v.x")
                return self.values.lane(whole, int(index.arg))
        place = self.place(value)
        return self._read(place)

    def _signed(self, value: Unary) -> Value:
        operand = self.value(value.value)
        if isinstance(operand, UOp):
            own = self.operator(value.sign, [operand], value.at)
            if own is not None:
                return own
        return self.values.unary(value.sign, operand, value.at)

    def _both_or_either(self, value: Binary) -> UOp:
        """Return a && b, or a || b: memory in b is read only where a does not decide."""
        left = self.values.truth(self.value(value.left), value.left.at)
        goes_on = left
        if value.sign == "||":
            goes_on = self.values.node(Ops.NOT, BOOL, [left])
        with self.gated(goes_on):
            right = self.values.truth(self.value(value.right), value.right.at)
        op = Ops.AND if value.sign == "&&" else Ops.OR
        return self.values.node(op, BOOL, [left, right])

    def _choice(self, value: Choice) -> Value:
        condition = self.values.truth(self.value(value.condition), value.condition.at)
        with self.gated(condition):
            yes = self.value(value.yes)
        with self.gated(self.values.node(Ops.NOT, BOOL, [condition])):
            no = self.value(value.no)
        return self.values.choose(condition, yes, no, value.at)

    def _cast(self, value: Value, dtype: DType, at: Token) -> UOp:
        if dtype is dtypes.void:
            raise self.fault(at, "nothing is used as a value here")
        node = self.values.concrete(value, dtype)
        if node.dtype.count > 1 and dtype.count != node.dtype.count:
            raise self.fault(at, f"{node.dtype} does not become {dtype}")
        return self.values.cast(node, dtype)

    def _constructed(self, value: Construct) -> UOp:
        dtype = value.type.dtype
        if value.type.struct is not None:
            because = f"{value.type} stands here, and one value is expected"
            raise self.fault(value.at, because, f"a variable: let a = {value.type.struct.name}(..)")
        parts = [self.value(part) for part in value.parts]
        call = Call(value.at, str(dtype), value.parts)
        if not parts:
            return self.values.zero(dtype)
        if dtype.count == 1:
            if len(parts) != 1:
                raise self.fault(value.at, f"{dtype} is made of one value")
            return self._cast(parts[0], dtype, value.at)
        return constructed(self.values, dtype, call, parts)

    def _member(self, value: MemberOf) -> UOp:
        inner = value.value
        if isinstance(inner, Name) and self._find(inner.name) is None:
            role = _INDEX_NAMES.get(inner.name)
            if role is not None:
                return self._number(role, value.name, value.at)
            meaning = None
        else:
            meaning = self._find(inner.name) if isinstance(inner, Name) else None
        if isinstance(meaning, NamedValue) and isinstance(meaning.value, UOp):
            whole = meaning.value
            if whole.op is Ops.STACK:
                parts = self._places_of(whole.dtype, value)
                lanes = [whole.src[part] for part in parts]
                for lane in lanes:
                    self._again(lane)
                return self.values.vector(lanes)
        if isinstance(inner, (Subscript, Unary)):
            place = self.place(inner)
            if not isinstance(place, Lane):
                return self._read(self._lane_of(place, value))
        whole = self.values.concrete(self.value(inner))
        if whole.dtype.count == 1:
            raise self.fault(value.at, f"a value of {whole.dtype} has no part `{value.name}`")
        return self.values.parts(whole, self._places_of(whole.dtype, value))

    # numbers of groups and work-items

    def _number(self, role: str, part: str, at: Token) -> UOp:
        if part not in "xyz":
            raise self.fault(at, f"it has no part `{part}`", "x, y, z")
        dtype = dtypes.uint32
        return self._number_along(role, "xyz".index(part), dtype)

    def _number_along(self, role: str, dimension: int, dtype: DType) -> UOp:
        if role in ("items", "groups"):
            sizes = self.group if role == "items" else self.grid
            size = sizes[dimension] if dimension < len(sizes) else 1
            return UOp.const(dtype, size)
        if role == "everything":
            both = [self._number_along(r, dimension, dtype) for r in ("items", "groups")]
            return self.values.node(Ops.MUL, dtype, both)
        if role == "all":
            group, items, item = (
                self._number_along(r, dimension, dtype) for r in ("group", "items", "item")
            )
            product = self.values.node(Ops.MUL, dtype, [group, items])
            return self.values.node(Ops.ADD, dtype, [product, item])
        axes = self.numbers["grid" if role == "group" else "item"]
        if dimension >= len(axes):
            return UOp.const(dtype, 0)
        node = UOp(Ops.CAST, dtype, (axes[dimension],))
        self.values.step(node)
        return node

    def _numbers_of(self, role: str, dtype: DType, at: Token) -> UOp:
        """Return the value of a parameter that the launch passes."""
        if role == "number":
            total: UOp = UOp.const(dtype, 0)
            for dimension in reversed(range(len(self.group))):
                size = UOp.const(dtype, self.group[dimension])
                total = self.values.node(Ops.MUL, dtype, [total, size])
                along = self._number_along("item", dimension, dtype)
                total = self.values.node(Ops.ADD, dtype, [total, along])
            return total
        parts = [
            self._number_along(role, dimension, dtype.scalar) for dimension in range(dtype.count)
        ]
        return UOp(Ops.STACK, dtype, tuple(parts)) if len(parts) > 1 else parts[0]
