"""What a compiler says of a text that it refuses, as an error."""

from __future__ import annotations

import re

from workbench.base.errors import CompileError

CLANG = re.compile(r":(?P<line>\d+):\d+: (?:fatal )?error: (?P<what>.*)")
"""How compilers on Clang say where an error is."""
TOO_MUCH = "other opts: this text is too much for the compiler"
"""What to try where a compiler ends without an answer."""
_LAST_WORDS = 400


def refusal(
    stage: str, words: str, text: str, pattern: re.Pattern[str] = CLANG
) -> CompileError:
    """Return the error of a compiler: what the groups `what` and `line` of the pattern are in its
    words; the last of the words, where the pattern is not in them."""
    match = pattern.search(words)
    if match is None:
        because = " ".join(words.split())[-_LAST_WORDS:]
        return CompileError(stage, because, last_good=text)
    line = int(match["line"])
    return CompileError(stage, match["what"], last_good=text, line=line)
