"""Variants from before: of the last plan, whose opts stay where they are legal, and saved ones.

Sections: Transfer of variants to a new plan; Saved variants.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from workbench.base.errors import KernelOptError, WorkbenchError, plural
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import is_typed
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.model.words import kernel_number
from workbench.viz.record.kernels import structure_of
from workbench.viz.record.record import Recorder
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.record import RestoringRow
from workbench.viz.schema.saved import SavedEdit, SavedVariant
from workbench.viz.schema.variant import CheckRow, TimingRow, joined_searches
from workbench.viz.session import persistence
from workbench.viz.session.handlers import hand_choices
from workbench.viz.session.handlers.variants import (
    RESERVED,
    adopt,
    auto,
    edited_variant,
    show_elsewhere,
    variant_of,
)
from workbench.viz.session.live_record import Edited, LiveRecord
from workbench.viz.session.opt_text import parse_opt

# --------------------------------------------------------------------------------------------------
# Transfer of variants to a new plan.

TRANSFER_LIMIT = 24
"""Most variants that are transferred, the latest: the opts of each are applied again."""
AUTO = "auto"
"""The name of a kernel with its default opts."""
COMPARED = ("plan", "compared")
"""The path of the comparison of plans in the record."""


@dataclass(frozen=True)
class LastPlan:
    """The plan before the present one: its record, edited source, timings and checks."""

    recorder: Recorder
    edited: Mapping[int, Edited]
    timings: Mapping[tuple[int, str], TimingRow]
    checks: Mapping[tuple[int, str], CheckRow]


def transfer(session: LiveRecord, last_plan: LastPlan) -> None:
    """Add the variants of the plan before to the present record, where their opts are legal, and
    set the present position of each kernel and variant in the comparison of the plans."""
    before = last_plan.recorder
    kernels = places_now(before.exploration, session.recorder.exploration)
    variants = _variants_now(session, last_plan, kernels)
    for old, new in enumerate(variants):
        if new is not None:
            session.set(new, "note", before.record.variants[old].note)
            if session.kernels[new].ast is before.kernels[old].ast:
                transfer_timings(session, last_plan, old, new)
                own, found = session.row(new).searches, before.record.variants[old].searches
                session.set(new, "searches", joined_searches(own, found))
            if old == before.record.pinned:
                session.put(("pinned",), new)
    row = session.record.plan.compared
    assert row is not None
    places = {"kernels_now": kernels, "variants_now": variants}
    session.put(COMPARED, replace(row, number=session.number, **places))


def transfer_timings(session: LiveRecord, last_plan: LastPlan, old: int, new: int) -> None:
    """Give a variant whose kernel is the same the timings that it had in the plan before."""
    for (variant, device), timing in last_plan.timings.items():
        if variant == old:
            session.timings.setdefault((new, device), timing)
    session.set(new, "timing", session.timings.get((new, session.device)))
    show_elsewhere(session, new)


def places_now(before: Exploration, now: Exploration) -> list[int | None]:
    """Return the position in the next plan of each kernel of a plan: of an equal kernel, in order;
    else of the kernel that stores the same values; else None."""
    rest: dict[Hashable, list[int]] = {}
    for place, kernel in enumerate(now.kernels):
        rest.setdefault(structure_of(kernel), []).append(place)
    stored = {nodes: place for place, nodes in enumerate(_stored(now))}
    places: list[int | None] = []
    for kernel, nodes in zip(before.kernels, _stored(before), strict=True):
        equal = rest.get(structure_of(kernel))
        places.append(equal.pop(0) if equal else stored.get(nodes))
    return places


def _stored(ex: Exploration) -> list[tuple[UOp, ...]]:
    """Return the values that each kernel stores."""
    return [item.nodes for item in ex.items if item.kernel is not None]


def _variants_now(
    session: LiveRecord,
    last_plan: LastPlan,
    kernels: Sequence[int | None],
    wanted: int | None = None,
) -> list[int | None]:
    """Return the present position of each variant of the plan before; None if it was left out, as
    older ones are, but for one that is `wanted`."""
    record = last_plan.recorder.record
    roots = {kernel.root for kernel in record.kernels}
    others = [
        variant
        for variant, row in enumerate(record.variants)
        if variant not in roots and not row.deleted
    ]
    latest = {*others[-TRANSFER_LIMIT:], wanted}
    now: list[int | None] = []
    for variant, row in enumerate(record.variants):
        kernel = kernels[row.kernel]
        root = None if kernel is None else session.record.kernels[kernel].root
        if root is not None and variant in latest:
            parent = None if row.parent is None else now[row.parent]
            now.append(variant_now(session, last_plan, variant, root, parent))
        else:
            now.append(root if variant in roots else None)
    return now


def copy_variants(
    live: LiveRecord, other: LiveRecord, wanted: int | None = None
) -> list[int | None]:
    """Add the variants of another record of the same exploration, with their timings, `wanted` in
    any case; return the place of each (None: it was left out, or does not apply here)."""
    with other.lock:
        tried = LastPlan(other.recorder, other.edited, other.timings, other.checks)
        variants = _variants_now(live, tried, range(len(other.record.kernels)), wanted)
    for old, new in enumerate(variants):
        if new is not None:
            live.set(new, "note", tried.recorder.record.variants[old].note)
            transfer_timings(live, tried, old, new)
    return variants


def transferred(live: LiveRecord, session: LiveRecord, variant: int, root: int) -> int | None:
    """Return the place in another record of a variant of a session, added to the kernel whose plain
    variant is `root`, with its timings if the kernel is equal; None if it does not apply there."""
    last_plan = LastPlan(session.recorder, session.edited, session.timings, session.checks)
    place = root
    if session.record.kernels[session.row(variant).kernel].root != variant:
        found = variant_now(live, last_plan, variant, root, None)
        if found is None:
            return None
        place = found
    if live.kernels[place].ast is session.kernels[variant].ast:
        transfer_timings(live, last_plan, variant, place)
    return place


def variant_now(
    session: LiveRecord, last_plan: LastPlan, variant: int, root: int, parent: int | None
) -> int | None:
    """Return the present position of a variant, added to the kernel whose plain variant is `root`;
    None if it does not apply to that kernel."""
    row, before = last_plan.recorder.record.variants[variant], last_plan.recorder.kernels[variant]
    plain = session.kernels[root]
    source = last_plan.edited.get(variant)
    if source is not None and (parent is None or before.original is not plain.original):
        return None
    try:
        if source is not None and parent is not None:
            place = edited_variant(session, source, parent, row.name)
            _transfer_verdict(session, last_plan, variant, place)
            return place
        rules_off = [name for name in row.rules_off if name not in plain.rules_off]
        kernel = plain.without(*rules_off)
        if row.name == AUTO:  # another kernel may have other default opts
            kernel = kernel.optimized()
            if not kernel.applied_opts:
                return root
        else:
            kernel = kernel.apply(*before.applied_opts)
        parent = root if parent is None else parent
        place = variant_of(session, kernel, parent, row.name)
    except WorkbenchError:
        return None
    if row.name != AUTO:  # default opts have the steps of the new kernel
        session.set(place, "steps", row.steps)
    return place


def _transfer_verdict(session: LiveRecord, last_plan: LastPlan, old: int, new: int) -> None:
    """Give edited source the error and the check that it had in the plan before."""
    session.set(new, "error", last_plan.recorder.record.variants[old].error)
    device = session.edited[new].device
    outcome = last_plan.checks.get((old, device))
    if outcome is not None:
        session.checks[new, device] = outcome
        session.set(new, "check", outcome)


# --------------------------------------------------------------------------------------------------
# Saved variants: those of this notebook are restored at once, others on request. So is source that
# was edited by hand where other rules were off, or that failed: nothing runs it again unasked.


def show(session: LiveRecord) -> NoResult:
    """Show the variants that other notebooks saved of the expression."""
    with session.lock:
        session.shows_saved = True
    for _ in restored(session):
        session.send_changes()
    return NoResult()


def show_edits(session: LiveRecord, keys: Sequence[persistence.Key]) -> None:
    """Show saved edits, of the present plan. Errors: the first of those that do not fit it."""
    errors = []
    with session.lock:
        for key in keys:
            try:
                _restore(session, key, session.earlier[key])
            except WorkbenchError as error:
                errors.append(error)
        count(session)
    if errors:
        raise errors[0]


def edits_of(session: LiveRecord, words: str) -> list[persistence.Key]:
    """Return the saved edits, all of one plan, that these words of the record are about. Errors:
    WorkbenchError if there are none."""
    keys = saved_edits(session).get(words)
    if not keys:
        because = "they are shown, or were deleted"
        raise WorkbenchError("these edited texts are not among the saved ones", because)
    return keys


def forget(session: LiveRecord, plan: str) -> NoResult:
    """Delete from disk the variants that other notebooks saved, unless they are shown; or a plan by
    hand."""
    with session.lock:
        if plan:
            hand_choices.forget(session, plan)
            return NoResult()
        keys = _others(session)
        persistence.forget(session.saved_key, keys)
        for key in keys:
            del session.earlier[key]
        count(session)
    return NoResult()


def count(session: LiveRecord) -> None:
    """Set the number of variants of other notebooks that could be shown, the words on saved edits
    that could, and how many variants are still to be restored."""
    number, edits = len(_others(session)), list(saved_edits(session))
    if number != session.record.saved:
        session.put(("saved",), number)
    if edits != session.record.saved_edits:
        session.put(("saved_edits",), edits)
    rest = sum(entry.name not in RESERVED for _, entry in _to_restore(session))
    session.most_to_restore = max(rest, session.most_to_restore) if rest else 0
    total = session.most_to_restore
    restoring = RestoringRow(total - rest, total) if rest else None
    if restoring != session.record.restoring:
        session.put(("restoring",), restoring)


def _others(session: LiveRecord) -> list[persistence.Key]:
    """Return the variants of other notebooks that could be shown, and are not."""
    return [
        key
        for key, entry in _not_listed(session)
        if entry.name not in RESERVED and _is_restored(session, key, entry)
        if not is_own(session, entry)
    ]


def saved_edits(session: LiveRecord) -> dict[str, list[persistence.Key]]:
    """Return the saved edits of this notebook that are not restored by themselves, by the words
    that count them and say why; so are opts with a rule that a reader typed, or without a rule that
    this version does not have."""
    groups: dict[tuple[str, str], list[persistence.Key]] = {}
    shown = set(session.edited.values())
    for key, entry in _not_listed(session):
        edit = entry.edited
        if not (edit or _own_rules(session, key)) or not is_own(session, entry):
            continue
        if session.record.without.rules and not key.plan_off:
            continue  # it comes back when the rules are on again
        if _is_restored(session, key, entry) and key not in session.unfit:
            continue
        if edit is None or Edited(edit.device, edit.text, level=edit.level) not in shown:
            word = "variant" if edit is None else "edited text"
            groups.setdefault((word, _why_apart(session, key, edit)), []).append(key)
    return {f"{plural(len(keys), word)} {why}": keys for (word, why), keys in groups.items()}


def _own_rules(session: LiveRecord, key: persistence.Key) -> list[str]:
    """Return the rules that a variant switches, besides those that its whole plan does."""
    return [rule for rule in key.rules_off if rule not in session.record.without.rules]


def _why_apart(session: LiveRecord, key: persistence.Key, edit: SavedEdit | None) -> str:
    if key.plan_off != tuple(session.record.without.rules):
        return f"planned without {', '.join(key.plan_off)}"
    off = [rule for rule in key.rules_off if rule not in key.plan_off]
    typed = [rule for rule in off if is_typed(rule)]
    removed = [rule for rule in off if not is_typed(rule)]
    words = [f"without {', '.join(removed)}"] if removed else []
    words += [f"with the rule {', '.join(typed)}"] if typed else []
    words += [f"that failed ({edit.error.what})"] if edit and edit.error else []
    words += [session.unfit[key]] if key in session.unfit else []
    return " ".join(words) or "of another version"


def _unfit_words(session: LiveRecord, error: WorkbenchError) -> str:
    if isinstance(error, KernelOptError):
        return f"with opts that {session.device} refuses"
    return f"not shown ({error.what})"


def _not_listed(session: LiveRecord) -> Iterator[tuple[persistence.Key, SavedVariant]]:
    """Yield the saved variants that the record does not list."""
    listed = {
        persistence.key_for(session.record, place, session.edited.get(place))
        for place in range(len(session.record.variants))
    }
    yield from ((key, entry) for key, entry in session.earlier.items() if key not in listed)


def _is_restored(session: LiveRecord, key: persistence.Key, entry: SavedVariant) -> bool:
    """Whether a variant may be restored by itself: of this plan, with no rule that a reader typed,
    and if its source was edited, with the plan's rules, and not if that did not compile, crashed,
    or ran too long."""
    if key.plan_off != tuple(session.record.without.rules):
        return False
    if not 0 <= key.kernel < len(session.record.kernels):
        return False
    own_rules = _own_rules(session, key)
    if entry.edited is None:
        return not any(is_typed(rule) for rule in own_rules)
    return not own_rules and entry.edited.error is None


def is_own(session: LiveRecord, entry: SavedVariant) -> bool:
    """Whether a saved variant is restored: this notebook saved it, or all are shown."""
    return session.shows_saved or persistence.origin() in entry.origins


def restored(session: LiveRecord, waits: bool = False) -> Iterator[None]:
    """Add the variants that an earlier session of this notebook saved (of any notebook once all are
    shown), one per step, without running them. Left out are variants whose opts are no longer
    legal, and `saved_edits`. If it `waits`, the default opts and source edited from them are left
    out, too: they are applied anew, which takes longer, since this version may have others."""
    with session.lock:
        entries = sorted(_to_restore(session), key=lambda each: each[1].name != AUTO)
    for key, entry in entries:
        with session.lock:
            is_awaited = _is_awaited(session, key)
            if waits and is_awaited:
                continue
            try:
                if is_awaited and entry.name == AUTO:
                    auto(session, key.kernel)
                _restore(session, key, entry)
            except WorkbenchError as error:  # of other opts, or there are too many variants
                session.unfit[key] = _unfit_words(session, error)
            count(session)
        yield
    with session.lock:
        count(session)


def _to_restore(session: LiveRecord) -> list[tuple[persistence.Key, SavedVariant]]:
    """Return the saved variants that are still to be restored."""
    shown = set(session.edited.values())
    return [
        (key, entry)
        for key, entry in _not_listed(session)
        if is_own(session, entry) and _is_restored(session, key, entry)
        if key not in session.unfit and _source(entry) not in shown
    ]


def _is_awaited(session: LiveRecord, key: persistence.Key) -> bool:
    """Whether a saved variant has, or was edited from, default opts that this session has not
    applied yet."""
    autos = {each[:2] for each, entry in session.earlier.items() if entry.name == AUTO}
    rows = session.record.variants
    return key[:2] in autos and not any(
        (row.kernel, tuple(row.opts)) == key[:2] and not row.edited for row in rows
    )


def _restore(session: LiveRecord, key: persistence.Key, entry: SavedVariant) -> None:
    """Add a saved variant of this plan. Errors: WorkbenchError for opts and rules that another
    version had, and for too many variants."""
    if not 0 <= key.kernel < len(session.record.kernels):
        because = f"there is no kernel {kernel_number(key.kernel)}"
        raise WorkbenchError("a saved variant does not fit this plan", because)
    root = session.record.kernels[key.kernel].root
    plain = session.kernels[root]
    off = [rule for rule in key.rules_off if rule not in plain.rules_off]
    kernel = plain.without(*off) if off else plain
    variant = variant_of(session, kernel.apply(*map(parse_opt, key.opts)), root)
    origin = session.earlier.get(key._replace(source=""))
    if origin is not None:
        session.parents.setdefault(variant, origin.parent)
    if entry.edited is not None:
        _restore_edited(session, variant, entry, entry.edited)
    _find_parents(session)


def _find_parents(session: LiveRecord) -> None:
    """Set the parents of restored variants, as far as they are listed by now."""
    awaited = {child: digest for child, digest in session.parents.items() if digest}
    if not awaited:
        return
    places = {
        persistence.digest_of(persistence.key_for(session.record, place, session.edited.get(place)))
        : place for place in range(len(session.kernels))
    }  # fmt: skip
    for child, digest in awaited.items():
        place = places.get(digest)
        if place is None:
            continue
        session.parents[child] = ""
        # no file is trusted: its variants may be made from each other in a circle
        if session.row(place).kernel == session.row(child).kernel and not _is_above(
            session, child, place
        ):
            session.set(child, "parent", place)
            session.set(child, "default_of", session.row(place).default_of)


def _is_above(session: LiveRecord, variant: int, other: int | None) -> bool:
    """Whether a variant is another one, or one that it was made from."""
    while other is not None and other != variant:
        other = session.row(other).parent
    return other is not None


def _source(entry: SavedVariant) -> Edited | None:
    """Return the source of a saved variant that was edited by hand."""
    edit = entry.edited
    return None if edit is None else Edited(edit.device, edit.text, level=edit.level)


def _restore_edited(session: LiveRecord, parent: int, entry: SavedVariant, edit: SavedEdit) -> None:
    source = Edited(edit.device, edit.text, level=edit.level)
    if source in session.edited.values():
        return  # the user has added it meanwhile
    variant = edited_variant(session, source, parent, entry.name)
    session.parents[variant] = entry.parent
    adopt(session, variant)
    session.set(variant, "error", edit.error)
    session.set(variant, "check", edit.check)
    if edit.check is not None:
        session.checks[variant, source.device] = edit.check
