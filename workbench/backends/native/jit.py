"""The JIT compiler, by llvmlite: from LLVM IR to machine code that runs in this process.

llvmlite is imported on first use. Its LLVM aborts the process at an unsupported request, so the
text is parsed and verified before code is generated, the target is always the host's, and text for
another target (or an assembler) is refused. A fork waits for a call of LLVM to end: a child forked
within such a call could not compile.

Sections: The JIT compiler; Object files of LLVM IR, compiled once for all processes and cached on
disk.
"""

from __future__ import annotations

import importlib
import platform
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from workbench.backends.compilers.refusal import refusal
from workbench.backends.native import object_cache
from workbench.backends.native.machine import (
    absence,
    features_in_use,
    features_left_out,
    permits_amx,
    tensor_cores,
)
from workbench.base.errors import DeviceError
from workbench.base.interrupts import no_fork, raised_after
from workbench.base.recording import span
from workbench.base.tensor_cores import TensorCore

# --------------------------------------------------------------------------------------------------
# The JIT compiler.

_FOREIGN = re.compile(
    r"\basm\b"
    r"|@llvm\.(?:aarch64|amdgcn|arm|bpf|dx|hexagon|loongarch|mips|nvvm|ppc|r600|riscv"
    r"|s390|spv|ve|wasm|xcore)\."
)
UNLINKABLE = "it needs a function that this process does not have"
"""The reason for code that LLVM's linker cannot link; LLVM gives no other."""
Result = TypeVar("Result")
LIBRARIES_PER_LINKER = 16
"""Most libraries that one of LLVM's linkers loads. An unloaded library leaves 9 kB in its linker,
which only the linker's end frees; a new linker takes 0.5 ms."""


@dataclass(frozen=True, slots=True)
class Host:
    """This machine's processor and features, and LLVM's version: all that machine code depends
    on."""

    version: str
    triple: str
    cpu: str
    features: str

    @property
    def machine(self) -> tuple[str, str, str]:
        """The triple, processor and features: what machine code depends on besides the compiler."""
        return self.triple, self.cpu, self.features

    @property
    def vector_bytes(self) -> int:
        """Bytes of one vector register."""
        if "+avx512f" in self._enabled:
            return 64
        return 32 if "+avx2" in self._enabled else 16

    @property
    def vector_registers(self) -> int:
        """Vector registers that code can name."""
        return 32 if self.is_arm or "+avx512f" in self._enabled else 16

    @property
    def converts_float16(self) -> bool:
        """Whether conversions of float16 from and to float32 are instructions, not library
        functions."""
        return self.is_arm or "+f16c" in self._enabled

    @property
    def tensor_cores(self) -> tuple[TensorCore, ...]:
        """Its products of small matrices that this process may use, the preferred ones first."""
        features = {word[1:] for word in self._enabled if word.startswith("+")}
        if "amx-tile" in features and not permits_amx():
            features.discard("amx-bf16")
        return tensor_cores(features)

    @property
    def no_tensor_cores(self) -> str:
        """Why it has no tensor cores, "" if it has some."""
        if self.tensor_cores:
            return ""
        if "+amx-bf16" in self._enabled:
            return "the system does not let this process use AMX"
        return absence(platform.machine().lower())

    @property
    def is_arm(self) -> bool:
        """Whether it is a 64-bit processor of Arm's."""
        return platform.machine().lower() in ("aarch64", "arm64")

    @property
    def _enabled(self) -> list[str]:
        return self.features.split(",")


class Code:
    """Machine code in memory, with the address of its function. It is unloaded when this object
    dies."""

    __slots__ = ("_library", "address")

    def __init__(self, library: _Library, address: int):
        self._library, self.address = library, address


def is_x86() -> bool:
    """Return whether this machine's processor is an x86."""
    return platform.machine().lower() in ("x86_64", "amd64", "i686")


def host() -> Host:
    """Return the machine that code is generated for.

    Errors: DeviceError if llvmlite is not installed or does not load.
    """
    return _llvm().host


def compile_object(text: str) -> bytes:
    """Return the object file of LLVM IR, compiled without optimisation passes.

    Errors: CompileError if the text does not parse, does not verify, or is not for this host.
    """
    llvm = _llvm()
    return bytes(_run_step(text, lambda: llvm.machine.emit_object(_module(text))))


def compile_assembly(text: str) -> str:
    """Return the assembly of LLVM IR; errors as `compile_object`."""
    llvm = _llvm()
    return str(_run_step(text, lambda: llvm.machine.emit_assembly(_module(text))))


def as_read(text: str) -> str:
    """Return LLVM IR as LLVM prints what it has read; errors as `compile_object`."""
    return str(_run_step(text, lambda: _module(text)))


def print_passes() -> None:
    """Make LLVM print to stderr, from now on, the program after each pass of its code generator."""
    for option in ("-print-after-all", "-print-module-scope"):
        _llvm().binding.set_option("workbench", option)


def load_object(image: bytes, name: str) -> Code:
    """Load an object file into this process and find `name` in it.

    Errors: CompileError if it lacks `name`, or needs a symbol that the process does not have.
    """
    return load_functions(image, [name])[0]


def load_functions(image: bytes, names: Sequence[str]) -> list[Code]:
    """Load an object file and find several functions in it; its code is unloaded when the last
    Code dies.

    Errors: as `load_object`.
    """
    llvm = _llvm()
    return _run_step(None, lambda: llvm.linkers.link(image, names))


@dataclass(frozen=True, slots=True)
class _LLVMLibrary:
    """llvmlite, set up: its bindings, the host's target machine, and the linkers."""

    binding: Any
    machine: Any
    linkers: _Linkers
    host: Host


class _Linkers:
    """Linkers, one after another. A linker is freed when the last library that it loaded is
    unloaded."""

    def __init__(self, binding: Any, machine: Any):
        self._binding, self._machine = binding, machine
        self._linker: Any = None
        self._left = 0

    def link(self, image: bytes, names: Sequence[str]) -> list[Code]:
        """Return the functions `names` of an object file, loaded. One thread calls it at a time."""
        if not self._left:
            # JITLink puts the parts of a program into one piece of memory. The older linker puts
            # them anywhere, and ends the process where they are more than 2 GB apart: beside
            # V8, say, or PyTorch.
            self._linker = self._binding.create_lljit_compiler(
                self._machine, use_jit_link=True, suppress_errors=True
            )
            self._left = LIBRARIES_PER_LINKER
        self._left -= 1
        builder = self._binding.JITLibraryBuilder().add_object_img(image)
        for name in names:
            builder = builder.export_symbol(name)
        # The name of a library cannot be used again, even after it is unloaded.
        tracker = builder.link(self._linker, f"kernel{self._left}")
        library = _Library(tracker)
        return [Code(library, int(tracker[name])) for name in names]


class _Library:
    """Loaded machine code; it is unloaded when this object dies."""

    __slots__ = ("_tracker",)

    def __init__(self, tracker: Any):
        self._tracker = tracker

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():  # at exit LLVM may be unloaded already
            try:
                with no_fork:
                    self._tracker.close()
            except KeyboardInterrupt:
                _ = [*raised_after()]


def _llvm() -> _LLVMLibrary:
    if _set_up.cache_info().currsize:  # waits for no thread that compiles
        return _set_up()
    with no_fork, span("compile", "LLVM is loaded"):
        return _set_up()


@lru_cache(maxsize=1)
def _set_up() -> _LLVMLibrary:
    try:
        binding: Any = importlib.import_module("llvmlite.binding")
    except (ImportError, OSError) as error:
        raise DeviceError(
            "machine code needs llvmlite",
            f"it cannot be imported: {error}",
            "pip install 'llvmlite>=0.50', or another device: Device lists them",
        ) from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple, cpu = binding.get_process_triple(), binding.get_host_cpu_name()
    every = binding.get_host_cpu_features().flatten()
    features = features_in_use(every, features_left_out())
    machine = binding.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default", jit=True
    )
    version = ".".join(str(part) for part in binding.llvm_version_info)
    host = Host(version, triple, cpu, features)
    if "+amx-tile" in features.split(","):
        permits_amx()  # needed even if another process compiled the code
    return _LLVMLibrary(binding, machine, _Linkers(binding, machine), host)


def _module(text: str) -> Any:
    llvm = _llvm()
    for foreign in _FOREIGN.finditer(text):
        if foreign[0] != "@llvm.aarch64." or not llvm.host.is_arm:
            raise RuntimeError(f"{foreign[0]!r} is not for this machine's LLVM")
    module = llvm.binding.parse_assembly(text)
    module.triple = llvm.host.triple
    module.data_layout = str(llvm.machine.target_data)
    module.verify()
    return module


def _run_step(text: str | None, step: Callable[[], Result]) -> Result:
    """Run a step of LLVM's, one at a time; its errors become CompileErrors about `text`."""
    try:
        with no_fork:
            return step()
    except RuntimeError as error:
        words = str(error).strip() or type(error).__name__
        if "Failed to materialize" in words:
            words = UNLINKABLE
        raise refusal("llvm", words, text or "") from error


# --------------------------------------------------------------------------------------------------
# Object files of LLVM IR, compiled once for all processes and cached on disk.


def object_of(text: str) -> bytes:
    """Return the object file of `text`, from the cache if it is there.

    Errors: CompileError if LLVM refuses the text.
    """
    own = host()
    return object_cache.object_of(text, [own.version], own.machine, compile_object)
