"""Variables, arrays and elements of a text: what can be read and assigned."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeGuard

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.meaning import (
    Counter,
    Lane,
    Meaning,
    Place,
    Pointer,
    RegisterVariable,
    StructVariable,
    type_of,
)
from workbench.emulator.source.steps import StepWriter
from workbench.emulator.source.syntax import Binary, Cast, Expr, MemberOf, Name, Subscript, Unary
from workbench.emulator.source.tokens import SourceError, Token
from workbench.emulator.source.values import lanes_named
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_HALVES: dict[str, Callable[[int], slice]] = {
    "lo": lambda count: slice(0, count // 2), "hi": lambda count: slice(count // 2, None),
    "even": lambda count: slice(0, None, 2), "odd": lambda count: slice(1, None, 2),
}  # fmt: skip
"""The halves of a vector of OpenCL C, by name."""


class PlaceTranslation(StepWriter):
    """Reads and writes places."""

    def part_named(self, value: Expr) -> Expr:
        """Return the variable that a part of a struct is, or else the expression itself. Errors:
        SourceError for a part that the struct lacks."""
        if not isinstance(value, MemberOf):
            return value
        whole = self.part_named(value.value)
        meaning = self._find(whole.name) if isinstance(whole, Name) else None
        if not isinstance(whole, Name) or not isinstance(meaning, StructVariable):
            return value if whole is value.value else MemberOf(value.at, whole, value.name)
        names = [name for name, _ in meaning.struct.parts]
        if value.name not in names:
            because = f"the struct {meaning.struct.name} has no part `{value.name}`"
            raise self.fault(value.at, because, ", ".join(names))
        return Name(whole.at, f"{whole.name}.{value.name}")

    def place(self, target: Expr) -> Place:
        """Return what an expression names, to be read or assigned."""
        target = self.part_named(target)
        match target:
            case Name():
                meaning = self._meaning(target)
                if isinstance(meaning, RegisterVariable):
                    return meaning
                if isinstance(meaning, Pointer) and meaning.is_variable:
                    return meaning
                raise self._not_assignable(target, meaning)
            case MemberOf():
                whole = self.place(target.value)
                return self._lane_of(whole, target)
            case Subscript():
                return self._element(target)
            case Unary(sign="*"):
                return self.pointer(target.value)
        raise self.fault(target.at, "this cannot be assigned to", "a variable, or an element")

    def target(self, target: Expr) -> Place:
        """Return what an expression names, to be assigned. Errors: SourceError for a variable that
        the text declares as constant."""
        root = self.part_named(target)
        while isinstance(root, (MemberOf, Subscript)):
            root = self.part_named(root.value)
        meaning = self._find(root.name) if isinstance(root, Name) else None
        if isinstance(root, Name) and isinstance(meaning, RegisterVariable) and meaning.is_constant:
            raise self._not_assignable(root, meaning)
        return self.place(target)

    def _not_assignable(self, target: Name, meaning: Meaning) -> SourceError:
        """Return the error for an assignment to what is no variable."""
        name = target.name
        if isinstance(meaning, Pointer):
            because = f"{name} is an array or an address, which does not change here"
            return self.fault(target.at, because, f"{name}[i], or an index that changes")
        if isinstance(meaning, Counter):
            return self.fault(target.at, f"{name} counts the rounds of its loop", "a while loop")
        whole = name.partition(".")[0]  # of a part of a struct
        hint = f"var {whole}" if self.language.is_wgsl else f"{whole} without const"
        because = f"{name} is declared as a value that does not change"
        return self.fault(target.at, because, hint)

    def _lane_of(self, whole: Place, member: MemberOf) -> Lane:
        if isinstance(whole, Lane):
            raise self.fault(member.at, "a part of a part is not supported")
        return Lane(whole, tuple(self._places_of(type_of(whole), member)))

    def _places_of(self, dtype: DType, member: MemberOf) -> list[int]:
        if member.name == "s":  # an array of a struct, `v.s[3]`
            return [*range(dtype.count)]
        half = _HALVES.get(member.name) if self.language.name == "OpenCL C" else None
        if half is not None and dtype.count % 2 == 0:
            return [*range(dtype.count)][half(dtype.count)]
        return lanes_named(member.name, dtype.count, member.at)

    def _element(self, target: Subscript) -> Place:
        value = target.value
        index = self._index(target.index)
        if isinstance(value, MemberOf) and value.name == "s":
            whole = self.place(value.value)
            return self._numbered(whole, index, target.at)
        base = self._base(value)
        if base is None:
            return self._numbered(self.place(value), index, target.at)
        return self._at(base, index)

    def _numbered(self, whole: Place, index: UOp, at: Token) -> Lane:
        if isinstance(whole, Lane) or index.op is not Ops.CONST:
            raise self.fault(at, "a lane of a vector has a fixed number", "v.x")
        if not 0 <= index.arg < type_of(whole).count:
            raise self.fault(at, f"a vector of {type_of(whole).count} has no lane {index.arg}")
        return Lane(whole, (int(index.arg),))

    def _base(self, value: Expr) -> Pointer | None:
        """Return the array or pointer that is subscripted; None if it is a vector."""
        value = self.part_named(value)
        if isinstance(value, Name):
            meaning = self._meaning(value)
            return meaning if _is_address(meaning) else None
        if isinstance(value, Subscript):
            base = self._base(value.value)
            if base is None or len(base.sizes) < 2:
                return None
            return self._at(base, self._index(value.index))
        if isinstance(value, (Cast, Binary, Unary)):
            return self.pointer(value)
        return None

    def _at(self, base: Pointer, index: UOp) -> Pointer:
        """Return an element of an array, or a row of it."""
        scale = base.dtype.count * math.prod(base.sizes[1:])
        if scale != 1:
            index = self.values.node(Ops.MUL, dtypes.index, [index, UOp.index(scale)])
        return Pointer(base.memory, self._sum(base.offset, index), base.dtype, base.sizes[1:])

    def _sum(self, a: UOp, b: UOp) -> UOp:
        if a.op is Ops.CONST and a.arg == 0:
            return b
        if b.op is Ops.CONST and b.arg == 0:
            return a
        if a.op is Ops.CAST:  # a pointer's own offset
            self.values.step(a)
        return self.values.node(Ops.ADD, dtypes.index, [a, b])

    def _index(self, value: Expr) -> UOp:
        node = self.values.concrete(self.value(value))
        if node.dtype.count > 1 or not (node.dtype.is_int or node.dtype.is_bool):
            raise self.fault(value.at, f"an index is a whole number, and this is {node.dtype}")
        return self.values.cast(node, dtypes.index)

    def pointer(self, value: Expr) -> Pointer:
        """Return the address that an expression is."""
        value = self.part_named(value)
        match value:
            case Name():
                meaning = self._meaning(value)
                if _is_address(meaning):
                    return Pointer(meaning.memory, meaning.offset, meaning.dtype)
            case Unary(sign="&") if self.language.is_wgsl and self._is_pointer(value.value):
                return self.pointer(value.value)
            case Unary(sign="&"):
                place = self.place(value.value)
                if isinstance(place, Pointer):
                    return place
                raise self.fault(value.at, "the address of a variable is not supported")
            case Cast() if value.type.struct is not None:
                because = "a pointer to a struct is not supported"
                raise self.fault(value.at, because, "an array for each part")
            case Cast() if value.type.is_pointer:
                pointer = self.pointer(value.value)
                self._require_stride(value.type.dtype, value.at)
                return Pointer(pointer.memory, pointer.offset, value.type.dtype)
            case Binary(sign="+" | "-"):
                if self._is_pointer(value.left):
                    index = self._index(value.right)
                    if value.sign == "-":
                        index = self.values.node(Ops.NEG, dtypes.index, [index])
                    return self._at(self.pointer(value.left), index)
                return self._at(self.pointer(value.right), self._index(value.left))
            case Subscript():
                base = self._base(value)
                if base is not None and base.sizes:
                    return Pointer(base.memory, base.offset, base.dtype)
        raise self.fault(value.at, "an address is expected here", "&p[i]")

    def _is_pointer(self, value: Expr) -> bool:
        value = self.part_named(value)
        match value:
            case Name():
                return _is_address(self._find(value.name))
            case Unary(sign="&"):
                return True
            case Cast():
                return value.type.is_pointer
            case Binary(sign="+"):
                return self._is_pointer(value.left) or self._is_pointer(value.right)
            case Binary(sign="-"):
                return self._is_pointer(value.left)
            case Subscript():
                base = self._base_type(value)
                return base is not None and len(base) > 0
        return False

    def _base_type(self, value: Expr) -> tuple[int, ...] | None:
        """Return the sizes of the array that an expression is a part of; None if it is none."""
        value = self.part_named(value)
        if isinstance(value, Name):
            meaning = self._find(value.name)
            return meaning.sizes if _is_address(meaning) else None
        if isinstance(value, Subscript):
            sizes = self._base_type(value.value)
            return None if sizes is None else sizes[1:]
        return None

    def retyped(self, pointer: Pointer, dtype: DType) -> Pointer:
        """Return an address of other elements."""
        return Pointer(pointer.memory, pointer.offset, dtype)

    # memory

    def _read(self, place: Place) -> UOp:
        if isinstance(place, RegisterVariable):
            return place.register
        if isinstance(place, Pointer):
            return self.load(place)
        whole = place.whole
        if isinstance(whole, Pointer) and len(place.places) == 1:
            return self.load(self._lane_pointer(whole, place.places[0]))
        return self.values.parts(self._read(whole), place.places)

    def load(self, place: Pointer, is_aligned: bool = True) -> UOp:
        """Return what memory has at a place; `is_aligned`: an address of a vector is a multiple of
        its size."""
        memory, dtype = self._memory_type(place)
        offset = self._offset(place)
        mark = UOp(Ops.VAR, dtypes.index, (), (f"read{next(self._numbers)}", 0, 0))
        fresh = UOp(Ops.AFTER, memory.dtype, (memory, mark))
        gates = () if self.gate is None else (self.gate,)
        address = construct.index(fresh, offset)
        node = UOp(Ops.LOAD, dtype, (address, *gates))
        self._append(fresh)
        self._append(address)
        self._append(node)
        self.values.computed[-1].add(node)
        self._note()
        if is_aligned and place.dtype.itemsize > memory.dtype.itemsize:
            self._aligned[len(self.linear) - 1] = self._alignment(place.dtype)
        return self.values.bits(node, place.dtype)

    def store(
        self, place: Pointer, value: UOp, is_aligned: bool = True, is_copy: bool = False
    ) -> None:
        """Write a value to memory; `is_copy`: by an asynchronous copy."""
        memory, dtype = self._memory_type(place)
        node = self.values.bits(value, dtype)
        if self.gate is not None:
            raise self.fault(self.here(), "a store in a condition is not supported", "if")
        if memory in self._constant:
            because = "this writes to an argument that the text declares as read-only"
            raise self.fault(self.here(), because, "an argument without const, or `read_write`")
        address = construct.index(memory, self._offset(place))
        self._append(address)
        self._append(construct.store(address, node))
        self._note(is_main=True)
        if is_copy:
            self._copies.add(len(self.linear) - 1)
        if is_aligned and place.dtype.itemsize > memory.dtype.itemsize:
            self._aligned[len(self.linear) - 1] = self._alignment(place.dtype)

    def write(self, place: Place, value: UOp) -> None:
        """Assign a value to a place, whose type it has."""
        if isinstance(place, RegisterVariable):
            self._set(place.register, value, is_noted=True)
        elif isinstance(place, Pointer):
            self.store(place, value)
        else:
            self._set_lanes(place, value)

    def _set_lanes(self, lane: Lane, value: UOp) -> None:
        whole = self._read(lane.whole)
        count = whole.dtype.count
        lanes = [self.values.lane(whole, i) for i in range(count)]
        for number, place in enumerate(lane.places):
            lanes[place] = self.values.lane(value, number)
        if isinstance(lane.whole, RegisterVariable):
            self._set(lane.whole.register, self.values.vector(lanes), is_noted=True)
            return
        for number, place in enumerate(lane.places):
            pointer = self._lane_pointer(lane.whole, place)
            self.store(pointer, self.values.lane(value, number))

    def _lane_pointer(self, whole: Pointer, place: int) -> Pointer:
        offset = self._sum(whole.offset, UOp.index(place))
        return Pointer(whole.memory, offset, whole.dtype.scalar)

    def _alignment(self, dtype: DType) -> int:
        return dtype.scalar.itemsize if dtype.count == 3 else dtype.itemsize

    def _offset(self, place: Pointer) -> UOp:
        if place.offset.op is Ops.CAST:
            self.values.step(place.offset)
        return place.offset

    def _memory_type(self, place: Pointer) -> tuple[UOp, DType]:
        """Return the memory of a place, and its elements at the place as the memory has them."""
        memory = place.memory
        own, nbytes = memory.dtype.scalar, place.dtype.itemsize
        if nbytes % own.itemsize:
            because = f"{place.dtype} is read in the middle of an element of {own}"
            raise self.fault(self.here(), because)
        return memory, own.vec(nbytes // own.itemsize)

    def _require_stride(self, dtype: DType, at: Token) -> None:
        """Errors: SourceError for elements with gaps between them."""
        if dtype.count == 3 and self.language.name not in ("CUDA", "HIP"):
            raise self.fault(
                at, f"memory of vectors of 3 is not supported ({dtype})", "vectors of 4"
            )


def _is_address(meaning: Meaning | None) -> TypeGuard[Pointer]:
    """Whether a name is an array or a pointer, and not a variable in memory."""
    return isinstance(meaning, Pointer) and not meaning.is_variable
