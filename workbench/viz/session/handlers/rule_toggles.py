"""Rules switched off and on again. Without a rule of compiling a kernel becomes another variant;
without a rule of scheduling every kernel may change, so the tensors are planned again."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.ir.rewriting.passes import Switch
from workbench.kernel.rule_trial import applied, tested
from workbench.pipeline import check_switches, compile_switches, switches
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.model.words import plural
from workbench.viz.record.links import writers
from workbench.viz.schema.messages import RuleReply, RuleTrialReply
from workbench.viz.schema.record import PageRecord
from workbench.viz.session.handlers import measurement, variants
from workbench.viz.session.live_record import LiveRecord


def rule_off(
    session: LiveRecord, kernel: int | None, rule: int | str, on: bool | None, of: int | None
) -> RuleReply | Exploration:
    """Switch a rule off, or on again; `rule` is its position in the record, or its name.

    If scheduling uses the rule, return the exploration planned again. Otherwise return the variant
    with the opts of the variant `of` (None: the plain one of the kernel) and the rule switched.

    Errors: WorkbenchError for a rule that is not used here; KernelOptError where an opt is not
    possible without the rule.
    """
    name = rule if isinstance(rule, str) else session.record.rules[rule].name
    ex = session.recorder.exploration
    if name in ex.rules_off or (not on and schedules(ex, name)):
        check_switches((name,), switches())
        others = tuple(other for other in ex.rules_off if other != name)
        try:
            return ex.planned_again(ex.choices, others if on else (*others, name))
        except WorkbenchError as error:
            if on:
                raise
            # the rule stays on, so its own hint, to switch it on again, would be wrong
            because = f"{error.what}: {error.because}"
            raise WorkbenchError(f"cannot plan without {name}", because, "leave it on") from error
    if kernel is None:
        raise WorkbenchError(f"{name} is not off", "there is no kernel without it")
    with session.lock:
        return _variant(session, kernel, name, bool(on), of)


def schedules(ex: Exploration, name: str) -> bool:
    """Whether scheduling depends on a rule or a step: it fired there, or has no other use."""
    fired = (m.rule for record in ex.passes for m in record.matches)
    if any(isinstance(rule, Switch) and rule.name == name for rule in fired):
        return True
    return all(rule.name != name for rule in compile_switches())


def _variant(session: LiveRecord, kernel: int, name: str, on: bool, of: int | None) -> RuleReply:
    root = session.record.kernels[kernel].root
    variant = root if of is None else of
    current, everywhere = session.kernels[variant], session.kernels[root].rules_off
    off = {n: None for n in current.rules_off if n != name and n not in everywhere}
    if not on:
        off[name] = None
    candidate = session.kernels[root].without(*off).apply(*current.applied_opts)
    parent = session.row(variant).parent if on else variant
    parent = root if parent is None else parent
    return RuleReply(variants.variant_of(session, candidate, parent))


def try_rule(session: LiveRecord, variant: int, text: str, language: str) -> RuleTrialReply:
    """Test a rule that the reader typed on values; unless it is wrong, add the variant with the
    rule, and check its answer. What becomes of the source is said in `language`, if the kernel can
    be written in it.

    Errors: ParseError, with the column, for a text that is no rule; CompileError for a rule that
    undoes another one, or that the device cannot follow; TaskStopped.
    """
    trial, device = tested(text), session.device
    if trial.test.agrees:
        languages = [
            (info.name, own.name if own else "") for info, own in writers(device, language)
        ]
        trial = applied(trial, session.kernels[variant], device, languages)
    changed = trial.kernel
    if changed is None or not trial.fired:
        return RuleTrialReply(trial.words, trial.is_wrong, None)
    with session.lock:
        child = variants.variant_of(session, changed, variant)
        session.send_changes()
    if changed.has_data and not Device[device].is_elsewhere:
        with measurement.use_worker(session, [child]) as worker:
            measurement.check_variant(session, worker, child)
    return RuleTrialReply(trial.words, trial.is_wrong, child)


def compare(session: LiveRecord, last_record: PageRecord) -> None:
    """Write to the record how the C of all un-optimised kernels differs from that of the record
    `last_record`, before the rules changed."""
    before, now = last_record.without, session.record.without
    difference = before.differs
    if before.rules != now.rules:
        difference = _differs(_plain_c(last_record), _plain_c(session.record)) if now.rules else ""
    session.put(("without", "differs"), difference)


def _plain_c(record: PageRecord) -> list[str]:
    rows = [record.variants[kernel.root] for kernel in record.kernels]
    first = Device.reader.name
    codes = [code for row in rows for code in row.code if code.device == first]
    return [line for code in codes for line in code.lines]


def _differs(before: Sequence[str], now: Sequence[str]) -> str:
    matched = SequenceMatcher(None, before, now, autojunk=False)
    changes = [change[1:] for change in matched.get_opcodes() if change[0] != "equal"]
    count = sum(max(b - a, d - c) for a, b, c, d in changes)
    if not count:
        return "the same C"
    return f"{plural(count, 'line')} of C {'differs' if count == 1 else 'differ'}"
