"""C text with bounds checks, which name the line of an access outside of an argument's memory.

Each access that is written as `p0[index]`, where the text declares `p0` as an element of `args`,
looks first whether it is inside. One that is not is noted in front of the memory, and goes to the
first element instead: the run goes on. An edited text runs there between strips of memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.backends.program.text import OUTSIDE, CheckedText

_COMMENT = re.compile(r"//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/", re.DOTALL)
_ARGUMENT = re.compile(
    r"\*\s*(?:restrict\s+|__restrict\s+)?(?P<name>\w+)\s*=\s*args\[(?P<slot>\d+)\]"
)
_LANES = re.compile(r"\*\s*\(\s*(?P<type>(?:const\s+)?\w+)\s*\*\s*\)\s*&\s*$")
"""Before an access to neighbouring elements at once: `*(const f32x4 *)&p0[index]`."""
_ADDRESS = re.compile(r"(?:[(=,?:{;\[<>+\-*/%|^!]|\*\s*\)|\breturn)\s*&\s*$")
"""Before an address, which may be that of the end."""
_CHECK = f"""\
#define wb_inside(p, slot, size, line, bytes, ...) ({{ \\
    long long i_ = (__VA_ARGS__), from_ = (char *)(p) - (char *)args[slot], of_ = sizeof *(p), \\
        at_ = i_ + from_ / of_; \\
    if (at_ < 0 || at_ * of_ + (long long)(bytes) > (size) * of_) {{ \\
      long long note_[3] = {{{OUTSIDE}LL, line, at_}}, before_; \\
      char *to_ = (char *)args[slot] - sizeof note_; \\
      __builtin_memcpy(&before_, to_, sizeof before_); \\
      if (before_ != note_[0]) __builtin_memcpy(to_, note_, sizeof note_); \\
      i_ = -(from_ / of_); \\
    }} \\
    i_; }})
"""


def bounds_checked(text: str, sizes: Sequence[int]) -> CheckedText:
    """Return C text with bounds checks; `sizes` are the elements of its arguments, by slot."""
    code = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = {match["name"]: int(match["slot"]) for match in _ARGUMENT.finditer(code)}
    slots = {name: slot for name, slot in found.items() if slot < len(sizes)}
    if not slots:
        return CheckedText(text, {})
    checked = _Checks(code, slots, sizes).of(0, len(code))
    return CheckedText(_CHECK + checked, {slot: name for name, slot in slots.items()})


class _Checks:
    """The text of a kernel without comments, and the names, slots and sizes of its arguments."""

    def __init__(self, code: str, slots: dict[str, int], sizes: Sequence[int]):
        self._code, self._slots, self._sizes = code, slots, sizes
        self._access = re.compile(rf"\b(?P<name>{'|'.join(map(re.escape, slots))})\s*\[")

    def of(self, begin: int, end: int) -> str:
        """Return a part of the code with a check in each access, also in those within an index."""
        parts, at = [], begin
        while match := self._access.search(self._code, at, end):
            close = self._closing(match.end(), end)
            if close is None:
                break
            name, line = match["name"], self._code.count("\n", 0, match.start()) + 1
            lanes = _LANES.search(self._code, at, match.start())
            if lanes is None and _ADDRESS.search(self._code, at, match.start()):
                parts.append(self._code[at : match.end()])
                at = match.end()
                continue
            size = f"sizeof({'*' + name if lanes is None else lanes['type']})"
            slot = self._slots[name]
            values = f"{name}, {slot}, {self._sizes[slot]}, {line}, {size}"
            index = self.of(match.end(), close)
            parts += [self._code[at : match.end()], f"wb_inside({values}, {index})]"]
            at = close + 1
        return "".join([*parts, self._code[at:end]])

    def _closing(self, at: int, end: int) -> int | None:
        """Return the place of the bracket that closes the one before `at`."""
        depth = 1
        for place in range(at, end):
            depth += {"[": 1, "]": -1}.get(self._code[place], 0)
            if depth == 0:
                return place
        return None
