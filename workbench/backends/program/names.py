"""Unique names of generated code."""

from __future__ import annotations

from collections.abc import Callable


class Names:
    """Returns unique names. `spell` turns a text into an identifier of the language; `joint` stands
    between a name and the number that its second use gets."""

    def __init__(self, reserved: set[str], spell: Callable[[str], str], joint: str):
        self._used, self._spell, self._joint = reserved, spell, joint
        self._counts: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return `name` as an identifier of the language, with a number after it from its second
        use on."""
        name = self._spell(name)
        unique_name, number = name, 1
        while unique_name in self._used:
            number += 1
            unique_name = f"{name}{self._joint}{number}"
        self._used.add(unique_name)
        return unique_name

    def numbered(self, name: str) -> str:
        """Return `name0`, `name1`, ... in turn."""
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        return self.unique(f"{name}{number}")
