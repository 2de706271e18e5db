"""The meanings of names while a text is translated, and the context of its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from workbench.backends.program.launch import LaunchShape
from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores import Fragment, TensorCore
from workbench.emulator.source.scan import addressed_in, expressions_in
from workbench.emulator.source.syntax import SourceFunction, SourceStruct
from workbench.emulator.source.values import Value
from workbench.ir.node.uop import UOp

BOOL = dtypes.bool


@dataclass(frozen=True)
class RegisterVariable:
    """A variable: the register that holds it; `is_constant`: the text declares that it does not
    change."""

    register: UOp
    is_constant: bool = False


@dataclass(frozen=True)
class Counter:
    """The variable of a loop whose rounds are known: `first` + round * `step`."""

    axis: UOp
    dtype: DType
    first: int
    step: int


@dataclass(frozen=True)
class NamedValue:
    """A name for a value."""

    value: Value


@dataclass(frozen=True)
class Pointer:
    """An address: `offset` elements of the memory from its begin, read as elements of `dtype`.
    `sizes` are those of an array, () for a pointer. `is_variable`: a variable stands there, so that
    its name means the value, and not the address."""

    memory: UOp
    offset: UOp
    dtype: DType
    sizes: tuple[int, ...] = ()
    is_variable: bool = False


@dataclass(frozen=True)
class Lane:
    """Lanes of a variable or of a vector in memory, which can be assigned to."""

    whole: RegisterVariable | Pointer
    places: tuple[int, ...]


@dataclass(frozen=True)
class StructVariable:
    """A variable of a struct: each part is a variable of its own, of the name `variable.part`."""

    struct: SourceStruct


Meaning = RegisterVariable | Counter | NamedValue | Pointer | StructVariable
Place = RegisterVariable | Pointer | Lane


@dataclass
class SourceRow:
    """A line of the program: its text, depth, line in the text, and the positions of its steps.
    `main` has the step that it is of (none: the last of `positions`)."""

    text: str
    depth: int
    number: int
    positions: list[int] = field(default_factory=list)
    main: list[int] = field(default_factory=list)
    name: str = ""


@dataclass
class Frame:
    """A function that is being written: the register of its result, and the register that says
    that it has returned (None: only its last statement returns)."""

    function: SourceFunction
    result: UOp | None = None
    returned: UOp | None = None

    @cached_property
    def addressed(self) -> set[str]:
        """The names of the variables whose address is used."""
        values = [*expressions_in(self.function.body)]
        named = (n for value in values for n in addressed_in(value))
        return {name.name for name in named}


@dataclass
class LoopFlags:
    """The registers that a break and a continue of a loop set (None: there is none)."""

    broken: UOp | None = None
    skipped: UOp | None = None


@dataclass(frozen=True)
class KernelArguments:
    """The arguments of a kernel, in their order: slot, bytes, and the dtype of its elements."""

    slots: tuple[int, ...]
    nbytes: tuple[int, ...]


@dataclass(frozen=True)
class KernelContext:
    """Facts about a kernel that its text does not state: the `launch` that runs it, its arguments,
    the lanes of a warp, the tensor cores, and the layouts of rows of matrices, by their number and
    whether they are transposed."""

    launch: LaunchShape
    params: KernelArguments
    warp_lanes: int
    cores: tuple[TensorCore, ...] = ()
    layouts: Mapping[tuple[int, bool], tuple[Fragment, Fragment]] = field(default_factory=dict)


def type_of(place: Place) -> DType:
    """Return the dtype of what a place holds."""
    if isinstance(place, RegisterVariable):
        return place.register.dtype
    if isinstance(place, Pointer):
        return place.dtype
    whole = type_of(place.whole)
    return whole.scalar.vec(len(place.places))


def fits(function: SourceFunction, arguments: Sequence[Value | Pointer]) -> bool:
    """Whether a function takes arguments of these numbers, addresses and lanes."""
    if len(function.parameters) != len(arguments):
        return False
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        if isinstance(argument, Pointer) != parameter.type.is_pointer:
            return False
        if isinstance(argument, UOp) and argument.dtype.count != parameter.type.dtype.count:
            return False
    return True


def fits_exactly(function: SourceFunction, arguments: Sequence[Value | Pointer]) -> bool:
    """Whether the arguments of a function that `fits` also have the dtypes of its parameters."""
    return all(
        not isinstance(a, UOp) or a.dtype is p.type.dtype
        for p, a in zip(function.parameters, arguments, strict=True)
    )
