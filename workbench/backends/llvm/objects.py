"""LLVM IR as an object file, compiled once for all processes: the file is cached on disk."""

from __future__ import annotations

from workbench.backends.llvm import jit
from workbench.backends.native import object_cache


def object_of(text: str) -> bytes:
    """Return the object file of `text`, from the cache if it is there.

    Errors: CompileError if LLVM refuses the text.
    """
    host = jit.host()
    key = object_cache.key_of(text, host.version, host.triple, host.cpu, host.features)
    image = object_cache.get(key)
    if image is None:
        image = jit.compile_object(text)
        object_cache.put(key, image)
    return image
