"""LLVM's code generators for other machines, in the process of compilers, since they abort at
unsupported requests.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from importlib import metadata
from typing import Any, NamedTuple

from workbench.backends.compilers.refusal import refusal
from workbench.base.errors import DeviceError


class Isa(NamedTuple):
    """A machine as LLVM names it: its triple, processor, and features."""

    triple: str
    cpu: str = ""
    features: str = ""


def assembly_of(text: str, isa: Isa, optimise: bool = False) -> str:
    """Return the assembly of LLVM IR, after LLVM's own passes where `optimise`.

    Errors: CompileError with the line of the text.
    """
    machine, module = _module(text, isa)
    if optimise:
        llvm = _llvm()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
    machine.set_asm_verbosity(True)
    return str(machine.emit_assembly(module))


def object_of(text: str, isa: Isa) -> bytes:
    """Return the object file of LLVM IR; errors as `assembly_of`."""
    machine, module = _module(text, isa)
    return bytes(machine.emit_object(module))


@lru_cache(maxsize=1)
def package_version() -> str:
    """Return the version of llvmlite, which brings LLVM; "" where it is not installed. Nothing is
    loaded."""
    try:
        return f"of llvmlite {metadata.version('llvmlite')}"
    except metadata.PackageNotFoundError:
        return ""


@lru_cache(maxsize=1)
def _llvm() -> Any:
    try:
        binding: Any = importlib.import_module("llvmlite.binding")
    except (ImportError, OSError) as error:
        what = "machine code of other machines needs llvmlite"
        how = "pip install 'llvmlite>=0.50'"
        raise DeviceError(what, f"it cannot be imported: {error}", how) from error
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def _module(text: str, isa: Isa) -> tuple[Any, Any]:
    llvm = _llvm()
    try:
        machine = _machine(isa)
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = isa.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise refusal("llvm", str(error).strip(), text) from None
    return machine, module


def _machine(isa: Isa) -> Any:
    """Return LLVM's machine, a new one each time: that of SPIR-V keeps what it has met, as does a
    context."""
    target = _llvm().Target.from_triple(isa.triple)
    return target.create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=3, reloc="pic", codemodel="default"
    )
