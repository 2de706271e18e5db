"""C kernels that a user wrote: the parameters of the function, and the code around it.

    void scaled(float *out, const float *x) { for (int i = 0; i < 4; i++) out[i] = 2 * x[i]; }

The function has a pointer for each tensor; one to const it only reads. The frame is the function
that a launch calls: it unpacks the pointers.
"""

from __future__ import annotations

import re

from workbench.backends.c.expressions.types import memory_type
from workbench.backends.program.handwritten import (
    Declaration,
    DeclaredArgument,
    slots_of,
    source_of,
)
from workbench.backends.program.source import Source
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import ParseError
from workbench.ir.node.uop import UOp

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_FUNCTION = re.compile(
    r"(?P<before>[\w ]*)\bvoid\s+(?P<name>[A-Za-z_]\w*)\s*\((?P<args>[^()]*)\)\s*\{"
)
_ARGUMENT = re.compile(
    r"(?P<type>[\w ]+?)\s*(?:\*\s*(?P<words>(?:const|restrict|__restrict|__restrict__|\s)*)"
    r"(?P<name>[A-Za-z_]\w*)|\s(?P<array>[A-Za-z_]\w*)\s*\[\s*\d*\s*\])"
)
_MEMORY = [d for d in vars(dtypes).values() if isinstance(d, DType) and (d.is_int or d.is_bool)]
_TYPES: dict[str, DType] = {
    "float": dtypes.float32, "double": dtypes.float64, "_Float16": dtypes.float16,
    "_Bool": dtypes.bool, "bool": dtypes.bool,
    "char": dtypes.int8, "signed char": dtypes.int8, "unsigned char": dtypes.uint8,
    "short": dtypes.int16, "unsigned short": dtypes.uint16,
    "int": dtypes.int32, "unsigned": dtypes.uint32, "unsigned int": dtypes.uint32,
    "long": dtypes.int64, "long long": dtypes.int64, "size_t": dtypes.uint64,
    "unsigned long": dtypes.uint64, "unsigned long long": dtypes.uint64,
    **{f"{d.name}_t": d for d in _MEMORY if d.is_int},
}  # fmt: skip
"""Types of C by their words; other names of types are not read."""


def declaration(text: str) -> Declaration:
    """Return what the one function of C text that is not static takes.

    Errors: ParseError where there is none, there are several, or one takes what is not memory.
    """
    plain = _COMMENT.sub(" ", text)
    functions = [m for m in _FUNCTION.finditer(plain) if "static" not in m["before"].split()]
    if len(functions) != 1:
        names = ", ".join(m["name"] for m in functions) or "none"
        raise ParseError(
            "a kernel in C is one function",
            f"there must be one `void name(float *out, const float *x) {{`, and there is {names}",
            "`static` before the functions that it calls",
        )
    (match,) = functions
    words = match["args"].strip()
    arguments = [] if words in ("", "void") else words.split(",")
    return Declaration(match["name"], tuple(map(_argument, arguments)))


def framed(kernel: UOp) -> Source:
    """Return the Source of a kernel in C."""
    code = kernel.code
    assert code is not None
    name = f"{declaration(code.text).name}_launch"
    slots, copies = slots_of(kernel)
    moves = [
        f"  __builtin_memcpy(args[{to}], args[{begins_as}], {size});\n"
        for to, begins_as, size in copies
    ]
    values = ", ".join(f"args[{slot}]" for slot in slots)
    frame = (
        f"void {name}(void **args, long lo, long hi, long thread) {{\n"
        f"{''.join(moves)}  {declaration(code.text).name}({values});\n}}\n"
    )
    text = code.text.rstrip("\n").lstrip("\n")
    return source_of(kernel, name, "C", f"{text}\n\n{frame}")


def _argument(words: str) -> DeclaredArgument:
    match = _ARGUMENT.fullmatch(words.strip())
    kinds = [] if match is None else match["type"].split()
    dtype = _TYPES.get(" ".join(kind for kind in kinds if kind != "const"))
    if match is None or dtype is None:
        raise ParseError(
            f"`{' '.join(words.split())}` is not the memory of a tensor",
            "an argument is a pointer to a number: `const float *x`, or `int *out`",
            f"one of {', '.join(list(_TYPES)[:8])} .. or {memory_type(dtypes.int32)}",
        )
    return DeclaredArgument(match["name"] or match["array"], dtype, "const" not in kinds)
