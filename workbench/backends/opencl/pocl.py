"""Binaries of PoCL for known sizes of work-groups.

PoCL compiles a kernel a second time when it is first launched, for the size of its work-groups.
With the variable POCL_BINARY_SPECIALIZE_WG (PoCL, "Environment variables") a binary contains that
code. It also contains code for any size, which takes two or three times as long to compile, and is
never used. PoCL does not compile code that is in its cache: so an empty kernel's code is put there
in its place.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

from workbench.backends.compilers.compilers import binary_in, build

KERNEL = "workbench_kernel"
"""The name of each kernel in its binary: the empty kernel must have the same name."""
_ANY_SIZE = "0-0-0"
_SMALL_ITEMS = (1 << 16) - 1
"""PoCL computes indexes in fewer bits if a launch has fewer work-items than this per dimension."""
_VARIABLE = "POCL_BINARY_SPECIALIZE_WG"
_numbers = itertools.count()
_LIST_BYTES = 64
"""The length of the variable, a list of launches that is filled up with commas."""


def is_pocl(device: Any) -> bool:
    """Whether a device is PoCL's."""
    return str(device.platform.name) == "Portable Computing Language"


@lru_cache(maxsize=1)
def own_cache() -> TemporaryDirectory[str]:
    """Return the folder of PoCL's cache in this process, which is deleted at its end. Call
    this before PoCL is loaded."""
    folder = TemporaryDirectory(prefix="workbench-pocl-")
    os.environ |= {"POCL_CACHE_DIR": folder.name, _VARIABLE: "," * _LIST_BYTES}
    return folder


def binary(
    context: Any, text: str, name: str, items: tuple[int, ...], group: tuple[int, ...]
) -> bytes:
    """Return the binary of a text whose kernel `name` is launched with `items` work-items in all,
    and `group` in a group. The kernel's name in the binary is KERNEL. Errors: CompileError."""
    renamed = f"-D{name}={KERNEL}"
    try:
        data = _specialized(context, text, renamed, _variant(items, group))
    except (OSError, ValueError, AttributeError):  # another version of PoCL
        data = None
    finally:
        _clear()
    return binary_in(build(context, text, renamed)) if data is None else data


def _specialized(context: Any, text: str, options: str, variant: str) -> bytes | None:
    """Return a binary with the code of a launch, None where PoCL does not add it.

    Errors: CompileError; OSError, ValueError or AttributeError where this version of PoCL has
    other files or functions.
    """
    empty = _empty(context)
    # PoCL does not write a program again that it has loaded before: the number makes each one new
    program = build(context, text, f"{options} -DWORKBENCH_{next(_numbers)}")
    (folder,) = _programs()
    _code(folder, _ANY_SIZE).parent.mkdir(parents=True)
    _code(folder, _ANY_SIZE).write_bytes(empty)
    _specialize(variant)
    data = binary_in(program)
    return data if _code(folder, variant).exists() else None


@lru_cache(maxsize=1)
def _empty(context: Any) -> bytes:
    """Return the code of a kernel that does nothing."""
    _specialize("")
    binary_in(build(context, f"__kernel void {KERNEL}(void) {{}}"))
    (folder,) = _programs()
    code = _code(folder, _ANY_SIZE).read_bytes()
    _clear()
    return code


def _programs() -> list[Path]:
    return [path.parent for path in Path(own_cache().name).glob("*/*/program.bc")]


def _clear() -> None:
    for folder in _programs():
        rmtree(folder, ignore_errors=True)


def _code(folder: Path, variant: str) -> Path:
    return folder / KERNEL / variant / f"{KERNEL}.so"


def _variant(items: tuple[int, ...], group: tuple[int, ...]) -> str:
    """Return PoCL's name for the code of a launch."""
    size = "-".join(map(str, group))
    return f"{size}-goffs0" + ("-smallgrid" if max(items) < _SMALL_ITEMS else "")


def _specialize(variant: str) -> None:
    """Make binaries contain the code of a launch. PoCL has copied the variable, so its copy is
    changed. Errors: ValueError where it has no such copy; others as `_specialized`."""
    option = _library().pocl_get_string_option
    option.restype = ctypes.c_void_p
    address = option(_VARIABLE.encode(), None)
    if not address or len(ctypes.string_at(address)) != _LIST_BYTES:
        raise ValueError(f"PoCL was loaded before {_VARIABLE} was set")
    ctypes.memmove(address, variant.ljust(_LIST_BYTES, ",").encode(), _LIST_BYTES)


@lru_cache(maxsize=1)
def _library() -> Any:
    """Return PoCL's library, which this process has loaded."""
    loaded = Path("/proc/self/maps").read_text()
    (path,) = set(re.findall(r"\s(/\S*/libpocl[^/]*\.so\S*)$", loaded, re.MULTILINE))
    return ctypes.CDLL(path)
