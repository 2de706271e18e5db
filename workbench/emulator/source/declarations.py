"""Declarations and assignments of a text."""

from __future__ import annotations

import math
from dataclasses import replace

from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import plural
from workbench.emulator.source.calls import CallTranslation
from workbench.emulator.source.meaning import (
    NamedValue,
    Place,
    Pointer,
    RegisterVariable,
    StructVariable,
    type_of,
)
from workbench.emulator.source.syntax import (
    AssignmentStatement,
    Braces,
    Construct,
    DeclarationStatement,
    Expr,
    Name,
    SourceStruct,
    Type,
)
from workbench.emulator.source.tokens import Token
from workbench.emulator.source.values import Abstract, Value
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

MOST_ELEMENTS = 1 << 22
"""Most elements of an array that a text declares."""


class DeclarationTranslation(CallTranslation):
    """Writes declarations and assignments."""

    def _declare(self, declaration: DeclarationStatement) -> None:
        at, kind, name = declaration.at, declaration.type, declaration.name
        if name in self.scopes[-1]:
            raise self.fault(at, f"there is a {name} in this block already", "another name")
        if kind is None and isinstance(declaration.value, Construct):
            kind = declaration.value.type
        struct = self._struct_of(kind, declaration.value)
        if struct is not None:
            self._declare_struct(declaration, struct)
            return
        if kind is not None and kind.dtype is dtypes.void:
            raise self.fault(at, f"{name} has no type")
        if kind is not None and kind.is_pointer and not kind.sizes:
            self._declare_pointer(declaration, kind)
            return
        if kind is not None and (kind.sizes or kind.space == "shared"):
            self._declare_array(declaration, kind)
            return
        value = None if declaration.value is None else self._initial(declaration)
        if isinstance(value, Pointer):
            self.scopes[-1][name] = value
            return
        if kind is None and value is None:
            raise self.fault(at, f"{name} has neither a type nor a value")
        if value is not None and kind is not None:
            value = self.values.converted(value, kind.dtype, at)
        if isinstance(value, Abstract) and at.text == "let":
            value = self.values.concrete(value)
        is_fixed = isinstance(value, Abstract) or value is not None and value.op is Ops.CONST
        if declaration.is_constant and is_fixed and value is not None:
            self.scopes[-1][name] = NamedValue(value)
            return
        if isinstance(value, Abstract):
            value = self.values.concrete(value)
        dtype = kind.dtype if kind is not None else value.dtype  # type: ignore[union-attr]
        if self.frames and name in self.frames[-1].addressed:
            self._declare_in_memory(name, dtype, value)
            return
        register = self._register(name, dtype)
        if value is None and self.language.is_zeroed:  # a variable without a value is 0
            value = self.values.zero(dtype)
        if value is not None:
            self._set(register, value, is_noted=True)
        is_constant = declaration.is_constant and value is not None
        self.scopes[-1][name] = RegisterVariable(register, is_constant)

    def _struct_of(self, kind: Type | None, value: Expr | None) -> SourceStruct | None:
        """Return the struct of a variable with a type and a value; None if it has none."""
        if kind is not None:
            return kind.struct
        named = None if value is None else self.part_named(value)
        meaning = self._find(named.name) if isinstance(named, Name) else None
        return meaning.struct if isinstance(meaning, StructVariable) else None

    def _declare_struct(self, declaration: DeclarationStatement, struct: SourceStruct) -> None:
        """Declare a variable for each part of a struct."""
        kind = declaration.type
        if kind is not None and (kind.space == "shared" or kind.sizes or kind.is_pointer):
            because = f"the struct {struct.name} in memory is not supported"
            raise self.fault(declaration.at, because, "an array for each part")
        values = self._parts_of(struct, declaration.value)
        for (part, of), value in zip(struct.parts, values, strict=True):
            name = f"{declaration.name}.{part}"
            self._declare(replace(declaration, name=name, type=of, value=value))
        self.scopes[-1][declaration.name] = StructVariable(struct)

    def _parts_of(self, struct: SourceStruct, value: Expr | None) -> list[Expr | None]:
        """Return the values of the parts of a struct that has a value: another variable, or a value
        for each part."""
        if value is None:
            return [None] * len(struct.parts)
        named = self.part_named(value)
        meaning = self._find(named.name) if isinstance(named, Name) else None
        if isinstance(named, Name) and meaning == StructVariable(struct):
            return [Name(value.at, f"{named.name}.{part}") for part, _ in struct.parts]
        is_made = isinstance(value, Construct) and value.type.struct == struct
        if not is_made and not isinstance(value, Braces):
            because = f"a value of the struct {struct.name} is expected here"
            raise self.fault(value.at, because, f"{struct.name}(..), or a variable of it")
        assert isinstance(value, (Braces, Construct))
        if not value.parts:
            zeros = (Construct(value.at, of, ()) for _, of in struct.parts)
            return [*zeros]
        if isinstance(value, Braces) and len(value.parts) < len(struct.parts):
            rest = struct.parts[len(value.parts) :]
            return [*value.parts, *(Construct(value.at, of, ()) for _, of in rest)]
        if len(value.parts) != len(struct.parts):
            has = plural(len(struct.parts), "part")
            because = f"the struct {struct.name} has {has}, and gets {len(value.parts)}"
            raise self.fault(value.at, because)
        return [*value.parts]

    def _assign_struct(self, statement: AssignmentStatement, name: str) -> None:
        """Assign each part of a struct, after all of their values are computed."""
        meaning = self._find(name)
        assert isinstance(meaning, StructVariable)
        at, whole = statement.at, self._unique(f"{name} ")
        value = DeclarationStatement(at, statement.end, whole, None, statement.value)
        if statement.sign:
            raise self.fault(at, f"`{statement.sign}=` of the struct {meaning.struct.name}")
        self._declare_struct(value, meaning.struct)
        for part, _ in meaning.struct.parts:
            target, source = (Name(at, f"{each}.{part}") for each in (name, whole))
            self._assign(replace(statement, target=target, value=source))

    def _declare_in_memory(self, name: str, dtype: DType, value: UOp | None) -> None:
        """Declare a variable whose address is used: an array of a work-item."""
        unique = self._unique(name)
        memory = construct.define(dtype.scalar, unique, (dtype.count,), "scratch")
        self._arrays.append(memory)
        place = Pointer(memory, UOp.index(0), dtype, is_variable=True)
        self.scopes[-1][name] = place
        if value is not None:
            self.store(place, value)

    def _initial(self, declaration: DeclarationStatement) -> Value | Pointer:
        value, kind = declaration.value, declaration.type
        assert value is not None
        if isinstance(value, Braces):
            if kind is None:
                raise self.fault(value.at, "values in braces need a type")
            return self._filled(value, kind)
        return self.value_or_pointer(value)

    def _filled(self, braces: Braces, kind: Type) -> UOp:
        """Return a vector or a scalar of the values in braces, each of a lane."""
        dtype = kind.dtype
        parts = [self.values.converted(self.value(p), dtype.scalar, p.at) for p in braces.parts]
        if not parts:
            return self.values.zero(dtype)
        lacking = dtype.count - len(parts)
        if lacking < 0 or lacking > 0 and not self.language.fills_lanes:
            raise self.fault(braces.at, f"{dtype} has {dtype.count} lanes, and gets {len(parts)}")
        return self.values.vector([*parts, *[self.values.zero(dtype.scalar)] * lacking])

    def _declare_pointer(self, declaration: DeclarationStatement, kind: Type) -> None:
        at = declaration.at
        if declaration.value is None:
            raise self.fault(at, "a pointer without a value is not supported")
        pointer = self.pointer(declaration.value)
        if pointer.dtype.scalar is not kind.dtype.scalar:
            raise self.fault(at, f"this points to {pointer.dtype}, and not to {kind.dtype}")
        self._require_stride(kind.dtype, at)
        if pointer.offset.op is not Ops.CONST:
            register = self._register(declaration.name, dtypes.int64)
            self._set(register, self.values.cast(pointer.offset, dtypes.int64))
            index = UOp(Ops.CAST, dtypes.index, (register,))
            pointer = Pointer(pointer.memory, index, kind.dtype)
        self.scopes[-1][declaration.name] = Pointer(pointer.memory, pointer.offset, kind.dtype)

    def _declare_array(self, declaration: DeclarationStatement, kind: Type) -> None:
        at, name = declaration.at, declaration.name
        sizes = tuple(self._size(size, at) for size in kind.sizes)
        length = math.prod(sizes) * kind.dtype.count
        if not 0 < length <= MOST_ELEMENTS:
            raise self.fault(at, f"an array of {length:,} elements is not supported")
        self._require_stride(kind.dtype, at)
        is_shared = kind.space == "shared"
        unique = self._unique(name)
        space = "shared" if is_shared else "scratch"
        memory = construct.define(kind.dtype.scalar, unique, (length,), space)  # type: ignore[arg-type]
        if len(sizes) == 2 and kind.dtype.count == 1:  # so that it is drawn as rows
            memory = construct.define(kind.dtype.scalar, unique, sizes, space)  # type: ignore[arg-type]
        self._arrays.append(memory)
        if kind.is_atomic:
            self._atomic.add(memory)
        pointer = Pointer(memory, UOp.index(0), kind.dtype, sizes, is_variable=not sizes)
        self.scopes[-1][name] = pointer
        value = declaration.value
        if value is None and self.language.is_zeroed and not is_shared:
            value = Braces(at, ())
        if value is None:
            return
        if is_shared or not isinstance(value, (Braces, Construct)):
            raise self.fault(at, "such an array begins without values", "a loop that sets it")
        self._fill(pointer, length, value)

    def _fill(self, array: Pointer, length: int, value: Braces | Construct) -> None:
        """Store the values of an array, and 0 beyond them."""
        dtype = array.dtype.scalar
        parts = [self.values.converted(self.value(p), array.dtype, p.at) for p in value.parts]
        lanes = [self.values.lane(p, i) for p in parts for i in range(array.dtype.count)]
        if len(lanes) > length:
            raise self.fault(value.at, f"the array has {length} elements, and {len(lanes)} values")
        if lanes:
            lanes += [UOp.const(dtype, 0)] * (length - len(lanes))
            whole = self.values.vector(lanes)
        else:
            whole = self.values.zero(dtype.vec(length))
        self.store(Pointer(array.memory, UOp.index(0), whole.dtype), whole, False)

    def _size(self, size: Expr | None, at: Token) -> int:
        if size is None:
            because = "an array without a size is not supported"
            raise self.fault(at, because, "its number of elements")
        value = self.value(size)
        if isinstance(value, UOp) and value.op is Ops.CONST and value.dtype.is_int:
            return int(value.arg)
        if isinstance(value, Abstract) and isinstance(value.value, int):
            return value.value
        raise self.fault(size.at, "the size of an array is a fixed whole number", "16")

    # assignments

    def _assign(self, statement: AssignmentStatement) -> None:
        target, at = self.part_named(statement.target), statement.at
        if isinstance(target, Name) and isinstance(self._find(target.name), StructVariable):
            self._assign_struct(statement, target.name)
            return
        place = self.target(target)
        dtype = type_of(place)
        if isinstance(statement.value, Braces):
            value: Value = self._filled(statement.value, Type(dtype))
        else:
            value = self.value(statement.value)
        if statement.sign:
            value = self._updated(place, statement.sign, value, at)
        node = self.values.converted(value, dtype, at)
        self.write(place, node)

    def _updated(self, place: Place, sign: str, value: Value, at: Token) -> Value:
        old = self._read(place)
        own = self.operator(f"{sign}=", [old, self.values.concrete(value, old.dtype)], at)
        if own is not None:
            return own
        own = self.operator(sign, [old, self.values.concrete(value, old.dtype)], at)
        result = self.values.binary(sign, old, value, at) if own is None else own
        return self.values.cast(result, old.dtype) if self.language.converts else result
