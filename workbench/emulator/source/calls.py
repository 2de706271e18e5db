"""Calls: of functions that the text defines, of memory, atomic operations and warps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from workbench.base.dtypes import dtypes
from workbench.base.tensor_cores import Fragment, TensorCore
from workbench.emulator.source.evaluation import ExpressionTranslation
from workbench.emulator.source.functions import as_bits, builtin
from workbench.emulator.source.meaning import (
    BOOL,
    Frame,
    Meaning,
    NamedValue,
    Pointer,
    RegisterVariable,
    fits,
    fits_exactly,
)
from workbench.emulator.source.scan import BARRIERS, SHUFFLES, returns_early
from workbench.emulator.source.syntax import (
    Call,
    Construct,
    JumpStatement,
    SourceFunction,
    SourceParameter,
    SourceStatement,
)
from workbench.emulator.source.tokens import Token
from workbench.emulator.source.values import Value
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

MOST_INLINED = 20
"""Most functions that are called inside of each other."""
_OF_WARPS = {
    f"{prefix}_{word}": op
    for prefix, names in (("sub_group_reduce", "add max min"), ("simd", "sum max min"))
    for word, op in zip(names.split(), (Ops.ADD, Ops.MAX, Ops.MIN), strict=True)
}
"""Functions of a value of all lanes of a warp, with the op that combines them."""
_ATOMICS = {
    "atomicStore": None, "atomicAdd": Ops.ADD, "atomicAnd": Ops.AND, "atomicOr": Ops.OR,
    "atomicXor": Ops.XOR, "atomicMax": Ops.MAX, "atomicMin": Ops.MIN,
}  # fmt: skip
"""Atomic operations of WGSL, with the op that they combine by (None: they only store)."""
_NUMBERS = {"get_group_id": "group", "get_local_id": "item", "get_global_id": "all",
            "get_local_size": "items", "get_num_groups": "groups",
            "get_global_size": "everything"}  # fmt: skip
_OPENCL_ACCESSES = frozenset("vload vstore vload_half vstore_half vloada_half vstorea_half".split())


class CallTranslation(ExpressionTranslation):
    """Writes calls: the statements of a function stand where it is called."""

    @abstractmethod
    def _body(self, statements: Sequence[SourceStatement]) -> None:
        """Translate statements, those after a jump in an IF."""

    def operator(self, sign: str, operands: Sequence[UOp], at: Token) -> UOp | None:
        """Return the result of an operator that the text defines for these types; None if it
        defines none."""
        for function in self.module.functions.get(f"operator{sign}", ()):
            kinds = [p.type.dtype for p in function.parameters]
            if kinds == [o.dtype for o in operands]:
                if function.parameters[0].is_reference:
                    return self._inline_reference(function, operands, at)
                return self._inlined(function, operands, at)
        return None

    def _inline_reference(
        self, function: SourceFunction, operands: Sequence[UOp], at: Token
    ) -> UOp:
        """Return the new value of the first operand of an operator such as `+=`."""
        register = self._register("target ", operands[0].dtype)
        self._set(register, operands[0])
        self._inlined(function, [register, *operands[1:]], at)
        return register

    def call(self, call: Call, may_be_void: bool) -> Value:
        name = call.name
        own = self.module.functions.get(name)
        if own is not None:
            return self._own_call(call, own, may_be_void)
        if name in _NUMBERS:
            dimension = self.value(call.arguments[0]) if call.arguments else None
            if not isinstance(dimension, UOp) or dimension.op is not Ops.CONST:
                raise self.fault(call.at, f"{name} gets the number of a dimension", "0")
            return self._number_along(_NUMBERS[name], int(dimension.arg), dtypes.uint64)
        if name in SHUFFLES:
            return self._shuffle(call)
        if name in _OF_WARPS:
            return self._combined(call)
        if name == "arrayLength" and self.language.is_wgsl and len(call.arguments) == 1:
            array = self.pointer(call.arguments[0])
            return UOp.const(dtypes.uint32, size_of(array.memory) // array.dtype.count)
        if name in BARRIERS:
            raise self.fault(call.at, "a barrier is a statement of its own")
        if name in ("bitcast", "as_type") and len(call.types) == 1 and len(call.arguments) == 1:
            node = self.values.concrete(self.value(call.arguments[0]), call.types[0].dtype)
            return as_bits(self.values, node, call.types[0].dtype, call)
        if name == "__builtin_bit_cast" and len(call.arguments) == 2:
            kind = call.arguments[0]
            if isinstance(kind, Construct):
                node = self.values.concrete(self.value(call.arguments[1]))
                return as_bits(self.values, node, kind.type.dtype, call)
        if name.startswith("atomic"):
            return self._atomic_call(call, may_be_void)
        if name.startswith("__builtin_amdgcn_") or name == "simdgroup_multiply_accumulate":
            return self._product(call)
        memory = self._memory_call(call)
        if memory is not None:
            return memory
        handler = builtin(name, self.language.vectors, self.language.types)
        if handler is None:
            raise self.fault(call.at, self._unknown(name), "a function that the emulator knows")
        return handler(self.values, call, [self.value(a) for a in call.arguments])

    def _atomic_call(self, call: Call, may_be_void: bool) -> UOp:
        """Write an atomic operation of WGSL; the others change memory that is accessed plainly,
        too, and return values that depend on their order."""
        name = call.name
        if not self.language.is_wgsl or name not in ("atomicLoad", *_ATOMICS):
            because = f"the emulator does not support {name}"
            raise self.fault(call.at, because, "a sum in shared memory")
        if len(call.arguments) != (1 if name == "atomicLoad" else 2):
            raise self.fault(call.at, f"{name} has another number of arguments")
        place = self.pointer(call.arguments[0])
        if place.memory not in self._atomic:
            raise self.fault(call.at, f"{name} of memory that is not atomic", "atomic<u32>")
        if name == "atomicLoad":
            return self.load(place)
        if not may_be_void:
            because = f"the value of {name} depends on the order of work-items"
            raise self.fault(call.at, because, "the operation as a statement")
        value = self.values.converted(self.value(call.arguments[1]), place.dtype, call.at)
        self.store(place, value)
        update = _ATOMICS[name]
        if update is not None:
            self._updates[len(self.linear) - 1] = update
        return value

    def _unknown(self, name: str) -> str:
        if name.startswith("subgroup"):
            return f"WGSL does not say how large a subgroup is, so {name} is not supported"
        if "shfl" in name or "shuffle" in name:
            return f"of shuffles the emulator supports {', '.join(SHUFFLES)}, and this is {name}"
        if name.startswith("__sync") or name == "simdgroup_barrier":
            return f"{name} is not supported: of barriers those of a whole group are"
        return f"the function {name} is not known here"

    def _memory_call(self, call: Call) -> Value | None:
        """Return the value of a call that reads or writes memory as OpenCL does: vload4(i, p)."""
        name, arguments = call.name, call.arguments
        base = name.replace("_rte", "")
        is_half = "_half" in base
        stem, digits = base.rstrip("0123456789"), base[len(base.rstrip("0123456789")) :]
        if stem not in _OPENCL_ACCESSES:
            return None
        lanes = int(digits or 1)
        is_store = stem.startswith("vstore")
        if len(arguments) != (3 if is_store else 2):
            raise self.fault(call.at, f"{name} has {3 if is_store else 2} arguments")
        *value, place, address = arguments
        pointer = self.pointer(address)
        dtype = pointer.dtype.scalar.vec(lanes)
        at = self._at(Pointer(pointer.memory, pointer.offset, dtype), self._index(place))
        if not is_store:
            node = self.load(at, is_aligned="a_" in stem)
            return self.values.cast(node, dtypes.float32.vec(lanes)) if is_half else node
        stored = self.values.converted(self.value(value[0]), dtype, call.at)
        self.store(at, stored, is_aligned="a_" in stem)
        return stored

    def _shuffle(self, call: Call) -> UOp:
        place = SHUFFLES[call.name]
        if len(call.arguments) < place + 2:
            raise self.fault(call.at, f"{call.name} has too few arguments")
        if len(call.arguments) > place + 2:
            raise self.fault(call.at, "the width of a shuffle is not supported", "the whole warp")
        if place:
            self._require_all_lanes(call)
        value = self.values.concrete(self.value(call.arguments[place]))
        distance = self.values.concrete(self.value(call.arguments[place + 1]))
        if distance.op is not Ops.CONST or not distance.dtype.is_int:
            because = "the distance of a shuffle is not a fixed number here"
            raise self.fault(call.at, because, "16, or a loop of known rounds")
        if distance.arg <= 0:
            raise self.fault(call.at, "the distance of a shuffle is above 0", "1")
        return self._of_warp(UOp(Ops.WARP_SHUFFLE, value.dtype, (value,), int(distance.arg)))

    def _combined(self, call: Call) -> UOp:
        """Return the sum, or the like, of the values of a warp's lanes: by shuffles."""
        if len(call.arguments) != 1:
            raise self.fault(call.at, f"{call.name} has 1 argument")
        value = self.values.concrete(self.value(call.arguments[0]))
        total = self._register("combined ", value.dtype)
        self._set(total, value)
        distance = self.warp_lanes // 2
        while distance:
            other = self._of_warp(UOp(Ops.WARP_SHUFFLE, value.dtype, (total,), distance))
            self._set(total, self.values.node(_OF_WARPS[call.name], value.dtype, [total, other]))
            distance //= 2
        return total

    def _require_all_lanes(self, call: Call) -> None:
        """Errors: SourceError for a shuffle whose mask has not all lanes of a warp."""
        mask = self.value(call.arguments[0])
        every = (1 << self.warp_lanes) - 1
        if not isinstance(mask, UOp) or mask.op is not Ops.CONST or int(mask.arg) & every != every:
            raise self.fault(call.at, "a shuffle of some lanes is not supported", f"{every:#x}")

    def _own_call(self, call: Call, own: Sequence[SourceFunction], may_be_void: bool) -> Value:
        if any(p.type.struct for f in own for p in f.parameters) or own[0].result.struct:
            because = f"the function {call.name} takes or returns a struct"
            raise self.fault(call.at, f"{because}: that is not supported", "its parts")
        arguments: list[Value | Pointer] = [self.value_or_pointer(a) for a in call.arguments]
        fitting = [f for f in own if fits(f, arguments)]
        exact = [f for f in fitting if fits_exactly(f, arguments)]
        if not fitting:
            handler = builtin(call.name, self.language.vectors, self.language.types)
            values = [a for a in arguments if not isinstance(a, Pointer)]
            if handler is not None and len(values) == len(arguments):
                return handler(self.values, call, values)
            raise self.fault(call.at, f"no function {call.name} has such arguments")
        function = (exact or fitting)[0]
        handler = builtin(call.name, self.language.vectors, self.language.types)
        if handler is not None and not exact:
            values = [a for a in arguments if not isinstance(a, Pointer)]
            if len(values) == len(arguments):
                return handler(self.values, call, values)
        if function.result.dtype is dtypes.void and not may_be_void:
            raise self.fault(call.at, f"{call.name} returns nothing")
        return self._inlined(function, arguments, call.at)

    def _inlined(
        self, function: SourceFunction, arguments: Sequence[Value | Pointer], at: Token
    ) -> UOp:
        """Return the result of a function, whose statements are written here."""
        if any(frame.function is function for frame in self.frames):
            raise self.fault(at, f"{function.name} calls itself: that is not supported", "a loop")
        if len(self.frames) > MOST_INLINED:
            raise self.fault(at, f"more than {MOST_INLINED} functions call each other here")
        body = function.body.body
        is_expression = (
            len(body) == 1 and isinstance(body[0], JumpStatement) and body[0].value is not None
        )
        scope: dict[str, Meaning] = {}
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            scope[parameter.name] = self._argument(function, parameter, argument, is_expression, at)
        scopes, loops = self.scopes, self.loops
        self.scopes, self.loops = [self.scopes[0], scope], []
        frame = Frame(function)
        self.frames.append(frame)
        result = self._expression_result(body, function, at) if is_expression else None
        if result is None:
            result = self._written_out(frame, body)
        self.frames.pop()
        self.scopes, self.loops = scopes, loops
        return result

    def _argument(
        self,
        function: SourceFunction,
        parameter: SourceParameter,
        argument: Value | Pointer,
        is_expression: bool,
        at: Token,
    ) -> Meaning:
        if isinstance(argument, Pointer):
            kind = parameter.type.dtype
            dtype = argument.dtype if kind is dtypes.void else kind
            pointer = Pointer(argument.memory, argument.offset, dtype)
            if is_expression or pointer.offset.op is Ops.CONST:
                return pointer
            register = self._register(f"{parameter.name} ", dtypes.int64)
            self._set(register, self.values.cast(pointer.offset, dtypes.int64))
            return Pointer(pointer.memory, UOp(Ops.CAST, dtypes.index, (register,)), dtype)
        if parameter.is_reference:
            if not isinstance(argument, UOp) or argument.op is not Ops.REG:
                because = f"{parameter.name} of {function.name} refers to what is no variable"
                raise self.fault(at, because, "a variable, or a pointer")
            if argument.dtype is not parameter.type.dtype:
                because = f"{parameter.name} refers to {parameter.type}, not {argument.dtype}"
                raise self.fault(at, because)
            return RegisterVariable(argument)
        value = self.values.converted(argument, parameter.type.dtype, at)
        if is_expression:
            return NamedValue(value)
        register = self._register(f"{parameter.name} ", value.dtype)
        self._set(register, value)
        return RegisterVariable(register)

    def _expression_result(
        self, body: Sequence[SourceStatement], function: SourceFunction, at: Token
    ) -> UOp | None:
        (jump,) = body
        assert isinstance(jump, JumpStatement) and jump.value is not None
        value = self.value(jump.value)
        return self.values.converted(value, function.result.dtype, at)

    def _written_out(self, frame: Frame, body: Sequence[SourceStatement]) -> UOp:
        """Write the statements of a function; return its result."""
        function = frame.function
        is_void = function.result.dtype is dtypes.void
        name = f"{function.name} "
        frame.result = None if is_void else self._register(name, function.result.dtype)
        if returns_early(body):
            frame.returned = self._flag("returned")
            self._set(frame.returned, UOp.const(BOOL, False))
        computed, gate, row = self.values.computed, self.gate, self.row
        depth, self.depth = self.depth, 1
        jumps, self._jumps = self._jumps, 0
        self.gate = self.values.gate = None
        if gate is None:
            self._body(body)
        else:
            with self._when(gate):
                self._body(body)
        self.values.computed, self.row, self.depth = computed, row, depth
        self.gate = self.values.gate = gate
        self._jumps = jumps
        return frame.result if frame.result is not None else UOp.const(dtypes.int32, 0)

    # tensor cores

    def multiplied(self, core: TensorCore, a: UOp, b: UOp, total: UOp) -> UOp:
        """Return the product of a warp's tiles, added to `total`."""
        return self._of_warp(UOp(Ops.WMMA, total.dtype, (a, b, total), core))

    def exchanged(self, rows: UOp, layouts: tuple[Fragment, Fragment]) -> UOp:
        """Return a warp's tile in another layout."""
        dtype = rows.dtype.scalar.vec(layouts[1].per_lane)
        return self._of_warp(UOp(Ops.EXCHANGE, dtype, (rows,), layouts))

    def _product(self, call: Call) -> UOp:
        """Return the product of tiles by a function of HIP, or of Metal, which sets its first
        argument to it."""
        is_metal = call.name == "simdgroup_multiply_accumulate"
        operands = call.arguments[1:] if is_metal else call.arguments[:3]
        if len(operands) != 3:
            raise self.fault(call.at, f"{call.name} has another number of arguments")
        a, b, total = (self.values.concrete(self.value(each)) for each in operands)
        kinds = a.dtype.scalar, total.dtype.scalar
        cores = [
            core
            for core in self.cores
            if core.instruction == call.name
            and (not is_metal or (core.operand, core.accumulator) == kinds)
        ]
        if not cores:
            raise self.fault(call.at, f"this machine has no instruction {call.name} of such tiles")
        core = cores[0]
        bits = dtypes.uint16 if core.operand.is_low_precision else core.operand
        counts = [f.per_lane for f in (core.a, core.b, core.c)]
        if [v.dtype.count for v in (a, b, total)] != counts or a.dtype.scalar.bits != bits.bits:
            raise self.fault(call.at, f"{call.name} has other operands")
        tiles = [self.values.bits(tile, bits.vec(tile.dtype.count)) for tile in (a, b)]
        result = self.multiplied(core, tiles[0], tiles[1], total)
        if is_metal:
            self.write(self.place(call.arguments[0]), result)
        return result
