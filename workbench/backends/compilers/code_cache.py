"""Machine code of other machines on disk, beside the object files of this one."""

from __future__ import annotations

from collections.abc import Callable

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.native import object_cache
from workbench.base.cache.folder import key_of
from workbench.base.typed import to_json, typed_json


def code_of(compile_code: Callable[[], MachineCode], *parts: str) -> MachineCode:
    """Return the machine code of `parts`, which determine it (the text, the compiler with its
    version, the machine): from disk, or what `compile_code` returns."""
    key = key_of("machine code", *parts)
    image = object_cache.get(key)
    if image is not None:
        try:
            return typed_json(image.decode(), MachineCode)
        except ValueError:
            pass  # of another version of the workbench
    code = compile_code()
    object_cache.put(key, to_json(code).encode())
    return code
