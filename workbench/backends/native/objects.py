"""Object files of LLVM IR, compiled once for all processes and cached on disk."""

from __future__ import annotations

from workbench.backends.native import jit, object_cache


def object_of(text: str) -> bytes:
    """Return the object file of `text`, from the cache if it is there.

    Errors: CompileError if LLVM refuses the text.
    """
    host = jit.host()
    return object_cache.object_of(text, [host.version], host.machine, jit.compile_object)
