"""The Target of a device: the limits and widths that passes and opts read, and the published
figures of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.base.dtypes import DType
from workbench.base.tensor_cores import TensorCore
from workbench.pickles import pickled

Caches = tuple[tuple[str, int], ...]
"""(name, bytes) per level, the smallest first: ("L1", 32768)."""
TYPICAL_CACHES: Caches = (("L1", 32 << 10), ("L2", 512 << 10), ("L3", 8 << 20))
"""Caches of a common processor, used where the system does not describe its own."""
Ways = tuple[tuple[str, int], ...]
"""(name, cache lines in a set) per level: ("L1", 8)."""
TYPICAL_WAYS: Ways = (("L1", 8), ("L2", 8), ("L3", 16))
Starts = tuple[tuple[int, float], ...]
"""(bytes of an instruction, how many begin in a cycle), the narrowest first: with ((32, 2),
(64, 1)) two multiply-adds of up to 32 bytes begin in a cycle, or one of 64."""
TYPICAL_STARTS = 2.0


SHUFFLE_WORDS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")
"""Dtypes of at most 32 bits, which lanes of a warp exchange as one word."""
SHUFFLE_ALL = ("bool", *SHUFFLE_WORDS, "int64", "uint64", "float64")
"""Dtypes that lanes of a warp exchange where a language has bools and words of 64 bits, too."""

Rates = tuple[tuple[str, float], ...]
"""(name, units per second): ("float32", 6.7e13) of arithmetic, ("DRAM", 3.35e12) of memory."""


@pickled
@dataclass(frozen=True, slots=True)
class Hardware:
    """The published figures of a machine; 0 is a limit that does not exist or is not published.

    arch, triple, features: the machine's name for compilers ("sm_90"), and what LLVM needs besides.
    units: streaming multiprocessors, compute units, or cores, each with its own shared memory or
    first cache. lanes: multiply-adds of float32 that begin in a unit per cycle.
    peaks: operations per second by dtype (a multiply-add is two); tensor_peaks: those of tensor
    cores, by the format of the operands.
    bandwidths: bytes per second from "DRAM", and, where known, from the caches and the "shared"
    memory of all units together.
    Limits of a unit at a time: unit_registers (of 32 bits), unit_items (work-items), unit_groups
    (work-groups), unit_shared_bytes. Its registers and warps are in `partitions` equal parts.
    Registers are allocated to a warp in multiples of register_block, shared memory in multiples of
    shared_block; group_shared_bytes of each group are for the system. item_registers: most
    registers of a work-item.
    launch_s: seconds from one launch to the next. sources: the documents with these figures.
    """

    name: str
    about: str
    sources: tuple[str, ...]
    arch: str
    units: int
    lanes: int
    clock_hz: float
    peaks: Rates
    bandwidths: Rates
    triple: str = ""
    features: str = ""
    tensor_peaks: Rates = ()
    memory_bytes: int = 0
    unit_registers: int = 0
    unit_items: int = 0
    unit_groups: int = 0
    unit_shared_bytes: int = 0
    item_registers: int = 0
    partitions: int = 1
    register_block: int = 1
    shared_block: int = 1
    group_shared_bytes: int = 0
    launch_s: float = 5e-6

    def peak(self, dtype: str) -> float:
        """Return the operations per second in a dtype, 0 if it has no peak."""
        return dict(self.peaks).get(dtype, 0.0)

    def tensor_peak(self, operand_format: str) -> float:
        """Return the operations per second of tensor cores with operands of a format ("tf32", or a
        dtype). If none are published, it is the peak without tensor cores, or that of float32."""
        usual = self.peak(operand_format) or self.peak("float32")
        return dict(self.tensor_peaks).get(operand_format, usual)

    def at(self, units: int, clock_hz: float, memory_bytes: int) -> Hardware:
        """Return the figures of a machine of the same kind with other units, clock and memory. All
        speeds are scaled by units and clock, except for that of DRAM, which stays the same."""
        factor = units * clock_hz / (self.units * self.clock_hz)
        scaled = {level: speed * factor for level, speed in self.bandwidths}
        if "DRAM" in scaled:
            scaled["DRAM"] = self.bandwidth("DRAM")
        return replace(
            self,
            units=units,
            clock_hz=clock_hz,
            memory_bytes=memory_bytes,
            peaks=tuple((name, speed * factor) for name, speed in self.peaks),
            tensor_peaks=tuple((name, s * factor) for name, s in self.tensor_peaks),
            bandwidths=tuple(scaled.items()),
        )

    def bandwidth(self, level: str) -> float:
        """Return the bytes per second from a level, 0 if it is not known."""
        return dict(self.bandwidths).get(level, 0.0)


@pickled
@dataclass(frozen=True, slots=True)
class Target:
    """Capabilities of one device.

    cores: how many run at once. `hardware`: the published figures of a GPU, or of a machine that
    need not be here.
    Arithmetic: vector_bytes is the size of one vector register. fma_cycles: cycles from the
    operands of a multiply-add to its result. fma_starts: how many begin in a cycle, by their width;
    (): that of `hardware`, or a common value. native_low_precision: the device computes in
    floats below 32 bits. conversions: the low-precision floats that it loads, stores, and converts
    from and to float32. converts_in_memory: it converts only in loads and stores, which may change
    the bits of a NaN. max_lanes: most lanes that one statement holds at once (the product of its
    UPCAST and UNROLL axes).
    Memory: `caches` are the data caches that a core sees, the first two its own, with lines of
    line_bytes; `ways` is the number of lines in a set. Buffers and arrays in scratch memory begin
    at a multiple of alignment_bytes. A kernel that touches more than non_temporal_bytes writes with
    non-temporal stores (0: never). scratch_bytes: most bytes of the arrays of a kernel.
    Work-groups: group_items is the most work-items of a group, 0 if the device has no groups;
    group_limits: the most along each dimension, x first, where fewer than group_items; grid_limits:
    the most work-groups along each dimension of a launch. shared_bytes: most bytes of the arrays of
    a group; scratch_bytes then is for one work-item. serial_items: the work-items of a group run
    one after another, as on a processor's driver, and sharing gains nothing.
    Warps: warp_lanes neighbouring work-items take each step together. shuffle_dtypes: names of the
    dtypes whose values they exchange without memory. reads_matrices: one instruction reads rows of
    matrices from shared memory, and gives each lane its fragment. copies_async: a copy to shared
    memory goes on while the program does. tensor_cores: the matrix products that a warp computes
    in one instruction, the preferred ones first; no two have the same sizes and dtypes. (A
    processor's have one lane, which holds whole tiles.) no_tensor_cores: why there are none.
    """

    device: str
    vector_bytes: int = 32
    vector_registers: int = 16
    fma_cycles: int = 4
    fma_starts: Starts = ()
    caches: Caches = TYPICAL_CACHES
    ways: Ways = TYPICAL_WAYS
    line_bytes: int = 64
    alignment_bytes: int = 64
    non_temporal_bytes: int = 0
    max_lanes: int = 512
    scratch_bytes: int = 64 << 20
    stack_bytes: int = 64 << 10
    native_transcendentals: bool = False
    native_low_precision: bool = False
    conversions: tuple[DType, ...] = ()
    converts_in_memory: bool = False
    cores: int = 1
    grid_limits: tuple[int, ...] = ()
    group_items: int = 0
    group_limits: tuple[int, ...] = ()
    warp_lanes: int = 1
    shuffle_dtypes: tuple[str, ...] = ()
    serial_items: bool = False
    shared_bytes: int = 0
    hardware: Hardware | None = None
    reads_matrices: bool = False
    copies_async: bool = False
    tensor_cores: tuple[TensorCore, ...] = ()
    no_tensor_cores: str = ""

    @property
    def has_groups(self) -> bool:
        """Whether work-items run together, in work-groups; if not, their axes are loops."""
        return self.group_items > 0

    def can_shuffle(self, dtype: DType) -> bool:
        """Whether lanes of a warp exchange values of a dtype without memory."""
        return dtype.name in self.shuffle_dtypes

    @property
    def l1_bytes(self) -> int:
        """Bytes of the first cache of a core."""
        return self.cache_bytes("L1")

    @property
    def l2_bytes(self) -> int:
        """Bytes of the second cache of a core."""
        return self.cache_bytes("L2")

    @property
    def last_cache_bytes(self) -> int:
        """Bytes of the largest cache, which cores share."""
        return max((dict(TYPICAL_CACHES) | dict(self.caches)).values())

    def cache_bytes(self, level: str) -> int:
        """Return the bytes of a cache level: if it is not known, those of a common processor."""
        sizes = dict(TYPICAL_CACHES) | dict(self.caches)
        return sizes.get(level, self.last_cache_bytes)

    def cache_ways(self, level: str) -> int:
        """Return the number of lines in a set of a level: if it is not known, that of a common
        processor."""
        return (dict(TYPICAL_WAYS) | dict(self.ways)).get(level, TYPICAL_WAYS[0][1])

    def cache_sets(self, level: str) -> int:
        """Return the number of sets of a level: this many consecutive lines have a set each."""
        lines = self.cache_bytes(level) // self.line_bytes
        return max(1, lines // self.cache_ways(level))

    def starts(self, size_bytes: int) -> float:
        """Return how many independent multiply-adds of `size_bytes` bytes begin in a cycle; one
        that is wider than a register counts as several instructions.

        >>> zen4 = Target("LLVM", vector_bytes=64, fma_starts=((32, 2), (64, 1)))
        >>> [zen4.starts(n) for n in (4, 32, 64, 128)]
        [2, 2, 1, 0.5]
        """
        table = self.fma_starts
        if not table:
            lanes = 0 if self.hardware is None else self.hardware.lanes
            each = lanes / self.vector_width(4) or TYPICAL_STARTS
            table = ((self.vector_bytes, each),)
        for widest, each in table:
            if size_bytes <= widest:
                return each
        return each * widest / size_bytes

    def fmas_in_flight_of(self, size_bytes: int) -> int:
        """Return how many multiply-adds of `size_bytes` bytes must be in flight to keep a core
        busy: the cycles of one times the number that begin in a cycle."""
        return max(1, round(self.fma_cycles * self.starts(size_bytes)))

    @property
    def fmas_in_flight(self) -> int:
        """How many multiply-adds on whole vector registers must be in flight for a busy core."""
        return self.fmas_in_flight_of(self.vector_bytes)

    def vector_width(self, itemsize: int) -> int:
        """Elements of `itemsize` bytes in one vector register."""
        return max(1, self.vector_bytes // itemsize)
