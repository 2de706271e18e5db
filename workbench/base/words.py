"""Plurals, lists and other short texts that every layer writes alike."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, word: str) -> str:
    """Return "1 kernel", "2 kernels", "2 passes", "2 copies"."""
    if count == 1:
        return f"1 {word}"
    if word.endswith("y"):
        return f"{count:,} {word[:-1]}ies"
    return f"{count:,} {word}{'es' if word.endswith(('s', 'ch')) else 's'}"


def cut(text: str, most: int) -> str:
    """Return `text` with at most that many characters; where some are missing, it says so."""
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def shape_text(shape: Sequence[int]) -> str:
    """Return "64x48"; "scalar" for no axes."""
    return "x".join(map(str, shape)) or "scalar"


def kind_of(value: object) -> str:
    """Return "a function", "the class Net", "a torch.Tensor": the name of its type, with the module
    that it is of, but for Python's own types, the workbench's, and those of the user's cells."""
    if isinstance(value, type):
        return f"the class {type_name(value)}"
    name = type_name(type(value))
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def type_name(kind: type) -> str:
    module = str(kind.__module__)
    is_plain = module.partition(".")[0] in ("builtins", "__main__", "workbench")
    return kind.__qualname__ if is_plain else f"{module}.{kind.__qualname__}"
