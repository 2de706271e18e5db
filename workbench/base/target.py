"""The Target of a device: the limits and widths that passes and opts read, and the published
figures of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.base.dtypes import DType
from workbench.base.tensor_cores import TensorCore

Caches = tuple[tuple[str, int], ...]
"""(name, bytes) per level, the smallest first: ("L1", 32768)."""
TYPICAL_CACHES: Caches = (("L1", 32 << 10), ("L2", 512 << 10), ("L3", 8 << 20))
"""Caches of a common processor, where the system does not say."""
Ways = tuple[tuple[str, int], ...]
"""(name, lines of one set) per level: ("L1", 8)."""
TYPICAL_WAYS: Ways = (("L1", 8), ("L2", 8), ("L3", 16))
Starts = tuple[tuple[int, float], ...]
"""(bytes of an instruction, how many begin in a cycle), the narrowest first: ((32, 2), (64, 1))
begins two multiply-adds of up to 32 bytes in a cycle, or one of 64."""
TYPICAL_STARTS = 2.0


SHUFFLE_WORDS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")
"""Numbers that lanes of a warp hand each other as a word of 32 bits, at most."""
SHUFFLE_ALL = ("bool", *SHUFFLE_WORDS, "int64", "uint64", "float64")
"""What they do where the language has two words for longer numbers, and a word for bools."""

Rates = tuple[tuple[str, float], ...]
"""(name, units per second): ("float32", 6.7e13) of arithmetic, ("DRAM", 3.35e12) of memory."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The published figures of a machine.

    arch: what compilers call it ("sm_90"); LLVM also needs triple and features, where they do not
    follow. units: streaming multiprocessors, compute units, or cores, each with its own shared
    memory or first cache; in each of them `lanes` multiply-adds of float32 begin per cycle. peaks:
    operations per second by dtype (a multiply-add is two), tensor_peaks those of tensor cores, by
    the format of the operands; bandwidths: bytes per second from "DRAM", and from the caches and
    "shared" of all units together, where they are known. Limits of a unit, 0 where there is none or
    none is published: its 32-bit registers, work-items, work-groups and bytes of shared memory at a
    time. Its registers and warps are in `partitions` equal parts. Registers and shared memory are
    handed out in multiples of register_block (to a warp) and shared_block, and group_shared_bytes
    of each group are the system's; item_registers is the most that a work-item can have. sources:
    the documents that say so. Units: launch_s is the seconds from one launch to the next.
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
        """Return the operations per second in a dtype, 0 where it has none."""
        return dict(self.peaks).get(dtype, 0.0)

    def tensor_peak(self, operand_format: str) -> float:
        """Return the operations per second of tensor cores that take operands of a format ("tf32",
        or a dtype): those without tensor cores where none are published."""
        usual = self.peak(operand_format) or self.peak("float32")
        return dict(self.tensor_peaks).get(operand_format, usual)

    def at(self, units: int, clock_hz: float, memory_bytes: int) -> Hardware:
        """Return the figures of a machine of the same kind with other units, clock and memory; the
        memory is as fast."""
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
        """Return the bytes per second from a level, 0 where it is not known."""
        return dict(self.bandwidths).get(level, 0.0)


@dataclass(frozen=True, slots=True)
class Target:
    """Capabilities of one device.

    cores: how many run at once. native_low_precision: it computes in floats below 32 bits.
    conversions: low-precision floats that it loads, stores, and converts from and to float32;
    converts_in_memory: only where it loads and stores them, which may change the bits of a NaN.
    fma_cycles: from the operands of a multiply-add to its result; fma_starts: how many begin in a
    cycle, by their width. Where they are not given, they are those of `hardware`, or common ones.
    group_items: most work-items of a work-group, 0 where the device has none; group_limits: most of
    them along each dimension, x first, where fewer than group_items; grid_limits: most work-groups
    along each dimension of a launch; warp_lanes: neighbouring work-items that take each step
    together; shuffle_dtypes: the names of the dtypes whose values lanes of a warp hand each other
    without memory; serial_items: those of a group run one after another, as a processor's driver
    has it, and nothing is gained by sharing. There shared_bytes bounds the arrays of a group, and
    scratch_bytes those of a work-item.
    Units: vector_bytes is one vector register; `caches` are the data caches that a core sees, the
    first two its own, with lines of line_bytes, of which a set holds `ways`; Buffers and arrays in
    scratch memory begin at a multiple of alignment_bytes; a kernel that touches more than
    non_temporal_bytes writes with non-temporal stores (0: it never does); scratch_bytes bounds the
    arrays a kernel may hold;
    max_lanes bounds the lanes that one statement holds at once (the product of its UPCAST and
    UNROLL axes). `hardware` has the published figures of a GPU, or of a machine that need not be
    here. reads_matrices: the lanes of a warp read the rows of matrices in shared memory, and get
    fragments of them, in one instruction. copies_async: a copy to shared memory goes on while the
    program does. tensor_cores: the matrix products that a warp computes in one instruction, the
    preferred ones first; no two have the same sizes and dtypes; no_tensor_cores says why there are
    none. A processor's are of one lane, which holds whole tiles.
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
        """Whether work-items run together, in work-groups: else their axes are loops."""
        return self.group_items > 0

    def can_shuffle(self, dtype: DType) -> bool:
        """Whether lanes of a warp hand each other values of a dtype."""
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
        """Return the bytes of a level: those of a common processor where it is not known."""
        sizes = dict(TYPICAL_CACHES) | dict(self.caches)
        return sizes.get(level, self.last_cache_bytes)

    def cache_ways(self, level: str) -> int:
        """Return how many lines a set of a level holds: those of a common processor where it is
        not known."""
        return (dict(TYPICAL_WAYS) | dict(self.ways)).get(level, TYPICAL_WAYS[0][1])

    def cache_sets(self, level: str) -> int:
        """Return how many sets a level has: of neighbouring lines as many fall into one each."""
        lines = self.cache_bytes(level) // self.line_bytes
        return max(1, lines // self.cache_ways(level))

    def starts(self, size_bytes: int) -> float:
        """Return how many multiply-adds of `size_bytes` bytes begin in a cycle, one after the
        other where none waits: one that is wider than a register is several.

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
        """Return how many multiply-adds of `size_bytes` bytes a core must start before the first is
        done so that none waits: the cycles of one times the number that begin in a cycle."""
        return max(1, round(self.fma_cycles * self.starts(size_bytes)))

    @property
    def fmas_in_flight(self) -> int:
        """How many multiply-adds on whole vector registers must be under way so that none waits."""
        return self.fmas_in_flight_of(self.vector_bytes)

    def vector_width(self, itemsize: int) -> int:
        """Elements of `itemsize` bytes in one vector register."""
        return max(1, self.vector_bytes // itemsize)
