"""Names of variants, and deleted variants. A variant without a name of its own is called by its
opts: those beyond its parent's after the name of the parent.
"""

from __future__ import annotations

from workbench.base.errors import WorkbenchError, cut
from workbench.kernel.kernel import Kernel
from workbench.viz.model.words import opts_words
from workbench.viz.schema.messages import NoResult
from workbench.viz.session import persistence
from workbench.viz.session.live_record import LiveRecord

MOST_NAME = 80
"""Most characters of a name."""
RESERVED = ("plain", "auto")
"""Names of the kernel without opts, and of the one that `realize` runs: no other variant has them.
"""
THEN = " + "
"""Between the name of a parent and the opts that a variant adds to it; the page knows it, too."""


def name(session: LiveRecord, variant: int, text: str) -> NoResult:
    """Name a variant; without text it is called by its opts again.

    Errors: WorkbenchError for "plain" and "auto", and for a name that another variant has.
    """
    row = session.row(variant)
    if row.name in RESERVED:
        because = "every kernel has one of this name, and the page compares with it"
        raise WorkbenchError(f"cannot rename {row.name}", because, "a note")
    named = require_free(session, row.kernel, text, variant)
    session.set(variant, "name", named or _by_opts(session, variant))
    return NoResult()


def require_free(session: LiveRecord, number: int, text: str, but: int | None) -> str:
    """Return `text` as the name of a variant of a kernel, which the variant `but` may have.

    Errors: WorkbenchError for "plain" and "auto", and for a name that another variant has.
    """
    named = " ".join(text.split())[:MOST_NAME]
    if named in {*RESERVED, *_names(session, number, but=but)}:
        because = "another variant of this kernel has that name"
        raise WorkbenchError(f"cannot name it {named!r}", because, "another name")
    return named


def delete(session: LiveRecord, variants: list[int], back: bool) -> NoResult:
    """Delete variants, or bring them back. Their children stay.

    Errors: WorkbenchError for the un-optimised variant of a kernel.
    """
    for variant in variants:
        row = session.row(variant)
        if session.record.kernels[row.kernel].root == variant:
            because = "the others are compared with it"
            what = f"cannot delete {row.name}, the kernel without opts"
            raise WorkbenchError(what, because, "another variant")
    for variant in variants:
        session.set(variant, "deleted", not back)
        key = persistence.key_for(session.row(variant), session.edited.get(variant))
        session.earlier.pop(key, None)
        if not back and session.record.pinned == variant:
            session.put(("pinned",), None)
    return NoResult()


def default_name(session: LiveRecord, kernel: Kernel, parent: int, but: int | None = None) -> str:
    """Return what a new variant is called: "UPCAST g1 4" on a kernel without opts, "auto + UNROLL
    r0 8" after another variant, "UPCAST g1 4 without form-fma" where a rule is off. The name of the
    variant `but` may be the same."""
    row, before = session.row(parent), session.kernels[parent]
    number, opts = row.kernel, kernel.applied_opts
    root = session.record.kernels[number].root
    plain = session.kernels[root]
    off = [rule for rule in kernel.rules_off if rule not in plain.rules_off]
    count = len(before.applied_opts)
    goes_on = opts[:count] == before.applied_opts and len(opts) > count
    if goes_on and parent != root and before.rules_off == kernel.rules_off:
        words = row.name + THEN + opts_words(opts[count:])
        return free_name(session, number, words, but=but)
    words = opts_words(opts) or ("" if off else "plain")
    words = f"{words} without {', '.join(off)}".strip() if off else words
    return free_name(session, number, words, but=but)


def free_name(
    session: LiveRecord, number: int, word: str, counts: bool = False, but: int | None = None
) -> str:
    """Return `word`, or with a number where a variant of the kernel has it; with `counts` always
    with one: "search 1"."""
    names = _names(session, number, but)
    names |= {entry.name for entry in session.earlier.values()} if counts else set()
    word = cut(word, MOST_NAME)
    if not counts and word not in names:
        return word
    count = 1 if counts else 2
    while f"{word} {count}" in names:
        count += 1
    return f"{word} {count}"


def _by_opts(session: LiveRecord, variant: int) -> str:
    row, kernel = session.row(variant), session.kernels[variant]
    if row.edited:
        return free_name(session, row.kernel, "edited", counts=True)
    root = session.record.kernels[row.kernel].root
    parent = root if row.parent is None else row.parent
    return default_name(session, kernel, parent, but=variant)


def _names(session: LiveRecord, number: int, but: int | None = None) -> set[str]:
    rows = enumerate(session.record.variants)
    return {v.name for i, v in rows if v.kernel == number and not v.deleted and i != but}
