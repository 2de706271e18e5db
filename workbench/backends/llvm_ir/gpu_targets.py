"""The GPUs that LLVM compiles for, and their names in LLVM IR (LLVM, "User Guide for NVPTX
Back-end", "User Guide for AMDGPU Backend", "User Guide for SPIR-V Target").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from workbench.backends.llvm_ir.products import Product, Step, amd_product, ptx_product
from workbench.backends.program.launch import LaunchShape, group_size
from workbench.backends.program.text import Language
from workbench.base.dtypes import DType
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.base.tensor_cores import TensorCore
from workbench.ir.node.ops import Ops
from workbench.ir.node.views import LoopRole

_LETTERS = "xyz"
_MNEMONIC = r"^\s+(?:@!?%?\w+\s+)?[a-z][\w.]*"

_UNREAD_INPUTS = (
    "dispatch-ptr", "queue-ptr", "implicitarg-ptr", "dispatch-id", "lds-kernel-id",
    "hostcall-ptr", "heap-ptr", "multigrid-sync-arg", "default-queue", "completion-action",
)  # fmt: skip
"""Inputs that kernels for AMD's GPUs never read: a runtime need not pass them."""


class GpuTarget(ABC):
    """A family of GPUs in LLVM IR. `spaces` has the number of each address space, `functions` the
    intrinsics for floats of 32 bits, `doubles` the ops that have one for 64 bits, too."""

    language: Language
    family: str
    triple: str
    convention: str
    spaces: Mapping[str, int]
    functions: ClassVar[Mapping[Ops, str]] = {
        Ops.EXP2: "exp2", Ops.LOG2: "log2", Ops.SIN: "sin", Ops.COS: "cos",
    }  # fmt: skip
    doubles: frozenset[Ops] = frozenset()
    declarations: Sequence[str] = ()
    features = ""
    common = ""
    """A common processor of the family."""
    has_masks = True
    """Whether LLVM compiles masked loads and stores of vectors."""
    has_processors = True
    """Whether code depends on the processor, such as "sm_90"."""
    products: ClassVar[Sequence[tuple[str, Product]]] = ()
    """The writers of products of tiles, each with the prefix of its instructions' names."""

    @property
    def name(self) -> str:
        """The name of the language that LLVM writes."""
        return self.language.name

    def processor(self, target: Target) -> str:
        """Return the processor that code is for: the Target's, or else a common one."""
        return target.hardware.arch if target.hardware else self.common

    @abstractmethod
    def number(self, role: LoopRole, dimension: int) -> str:
        """Return the call that gives the number of a work-item or a group, an i32 or an i64."""

    @abstractmethod
    def barrier(self) -> Sequence[str]:
        """Return the instructions of a barrier."""

    def product(
        self, core: TensorCore, kinds: Sequence[DType], values: Sequence[str], step: Step
    ) -> str:
        """Return the last instruction of C + A @ B, for the tiles of a warp; `step` writes each
        instruction before it. Errors: CompileError for an instruction of another family."""
        write = next((f for word, f in self.products if core.instruction.startswith(word)), None)
        if write is None:
            because = f"{self.name} has no instruction for {core}"
            raise CompileError("render", because, hint="the list of opts without TC")
        return write(core, kinds, values, step)

    @abstractmethod
    def exchange(self, word: str, distance: int, step: Step) -> str:
        """Return the last instruction of a shuffle of a word of 32 bits. A lane gets the value of
        the lane with its own number xor `distance`; `step` writes each instruction before it."""

    @abstractmethod
    def attributes(self, launch: LaunchShape) -> str:
        """Return the attributes of a kernel."""

    def metadata(self, launch: LaunchShape, warp_lanes: int) -> Mapping[str, Sequence[int]]:
        """Return the metadata of a kernel: numbers by name. `warp_lanes` is the size of a warp,
        or 0 if the kernel does not depend on it."""
        return {}


class Nvptx(GpuTarget):
    """PTX, which NVIDIA's assembler compiles to machine code."""

    language = Language(
        "PTX", "PTX, which LLVM writes of the program of one thread", "//.*$", _MNEMONIC
    )
    family = "ptx"
    triple = "nvptx64-nvidia-cuda"
    convention = "ptx_kernel"
    common = "sm_80"
    products = (("mma.sync", ptx_product),)
    spaces: Mapping[str, int] = {"global": 1, "shared": 3, "private": 0}

    def number(self, role: LoopRole, dimension: int) -> str:
        register = ("ctaid" if role == "grid" else "tid") + "." + _LETTERS[dimension]
        return f"call i32 @llvm.nvvm.read.ptx.sreg.{register}()"

    def barrier(self) -> Sequence[str]:
        return ["call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"]

    def exchange(self, word: str, distance: int, step: Step) -> str:
        lanes = f"i32 -1, i32 {word}, i32 {distance}, i32 31"
        return f"call i32 @llvm.nvvm.shfl.sync.bfly.i32({lanes})"

    def attributes(self, launch: LaunchShape) -> str:
        sizes = ",".join(str(n) for n in group_size(launch))
        return f'"nvvm.maxntid"="{sizes}"'


class Amdgcn(GpuTarget):
    """The machine code of AMD's GPUs."""

    language = Language("AMDGCN", "the machine code of AMD's GPUs, by LLVM", ";.*$", _MNEMONIC)
    family = "amdgcn"
    triple = "amdgcn-amd-amdhsa"
    convention = "amdgpu_kernel"
    common = "gfx1100"
    products = (("__builtin_amdgcn_", amd_product),)
    spaces: Mapping[str, int] = {"global": 1, "shared": 3, "private": 5}

    def number(self, role: LoopRole, dimension: int) -> str:
        what = "workgroup" if role == "grid" else "workitem"
        return f"call i32 @llvm.amdgcn.{what}.id.{_LETTERS[dimension]}()"

    def barrier(self) -> Sequence[str]:
        return [
            'fence syncscope("workgroup") release',
            "call void @llvm.amdgcn.s.barrier()",
            'fence syncscope("workgroup") acquire',
        ]

    def exchange(self, word: str, distance: int, step: Step) -> str:
        """A lane reads the value at an address: four times the number of the lane that has it. A
        lane's own number is the number of lanes before it."""
        low = step("call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)")
        own = step(f"call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 {low})")
        other = step(f"xor i32 {own}, {distance}")
        address = step(f"shl i32 {other}, 2")
        return f"call i32 @llvm.amdgcn.ds.bpermute(i32 {address}, i32 {word})"

    def attributes(self, launch: LaunchShape) -> str:
        items = math.prod(group_size(launch))
        unused = " ".join(f'"amdgpu-no-{what}"' for what in _UNREAD_INPUTS)
        sizes = f'"amdgpu-flat-work-group-size"="{items},{items}"'
        return f'{sizes} "uniform-work-group-size"="true" {unused}'


class SpirV(GpuTarget):
    """OpenCL's SPIR-V, which drivers compile to machine code."""

    language = Language("SPIR-V", "SPIR-V, which drivers compile, by LLVM", ";.*$", r"\bOp[A-Z]\w+")
    has_processors = False
    has_masks = False
    family = "spirv"
    triple = "spirv64-unknown-unknown"
    convention = "spir_kernel"
    spaces: Mapping[str, int] = {"global": 1, "shared": 3, "private": 0}
    doubles = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS})
    declarations = (
        "declare spir_func i64 @_Z12get_group_idj(i32)",
        "declare spir_func i64 @_Z12get_local_idj(i32)",
        "declare spir_func void @_Z7barrierj(i32) convergent",
        "declare spir_func i32 @_Z21sub_group_shuffle_xorij(i32, i32) convergent",
    )

    def number(self, role: LoopRole, dimension: int) -> str:
        what = "group" if role == "grid" else "local"
        return f"call spir_func i64 @_Z12get_{what}_idj(i32 {dimension})"

    def barrier(self) -> Sequence[str]:
        return ["call spir_func void @_Z7barrierj(i32 1)"]

    def exchange(self, word: str, distance: int, step: Step) -> str:
        arguments = f"i32 {word}, i32 {distance}"
        return f"call spir_func i32 @_Z21sub_group_shuffle_xorij({arguments})"

    def attributes(self, launch: LaunchShape) -> str:
        return ""

    def metadata(self, launch: LaunchShape, warp_lanes: int) -> Mapping[str, Sequence[int]]:
        sizes: dict[str, Sequence[int]] = {"reqd_work_group_size": group_size(launch)}
        return sizes | ({"intel_reqd_sub_group_size": [warp_lanes]} if warp_lanes else {})


PTX = Nvptx()
AMDGCN = Amdgcn()
SPIRV = SpirV()
