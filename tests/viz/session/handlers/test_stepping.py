"""A run on the emulator in the record: what its rows say is what the trace has."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator.test_machine import TILED
from tests.viz.session.support import session_of
from tests.viz.support import array
from workbench import Opt, OptOps, Tensor, emulate, explore
from workbench.base.errors import DeviceError
from workbench.emulator import checks as duration
from workbench.emulator.emulate import emulate_for_steps, seconds_for_steps, target_of
from workbench.emulator.steps import HistoryStep, Trace
from workbench.viz.schema.gpu import GpuTrace, NumberArray
from workbench.viz.session.handlers import inspection as stepping
from workbench.viz.session.opt_text import parse_opts
from workbench.viz.session.session import Session

Array = np.ndarray[Any, Any]


def numbers(row: NumberArray) -> Array:
    return np.frombuffer(b64decode(row.data), f"<{row.kind}")


def bits(data: str, count: int) -> Array:
    packed = np.frombuffer(b64decode(data), np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little").astype(bool)


def tiled(session: Session) -> int:
    """Apply a tiling to the kernel of a product; return the variant."""
    variant = 0
    for opt in TILED:
        request = {"id": 1, "do": "apply", "variant": variant, "opt": str(opt)}
        reply = session.handle(request)
        assert reply.ok, reply.error
        variant = reply.result.variant
    return variant


@pytest.fixture
def product(nothing_saved: Path) -> Any:
    with session_of(explore(array(32, 32) @ array(32, 32))) as session:
        yield session


def stepped(session: Session, group: list[int] | None) -> tuple[GpuTrace, Trace]:
    """Return the rows of a run, and the same run."""
    variant = tiled(session)
    request = {"id": 2, "do": "emulate", "variant": variant, "group": group}
    reply = session.handle(request)
    assert reply.ok, reply.error
    row = session.row(variant).gpu
    assert row is not None
    history = True if group is None else group
    return row, emulate(session.kernels[variant], history=history)


def test_rows_are_what_the_trace_has(product: Session) -> None:
    row, trace = stepped(product, [1, 0])
    history = trace.history
    assert history is not None
    assert (row.grid, row.items, row.group) == ([2, 2], [16, 16], [1, 0])
    assert len(row.line) == len(history) and not row.cut and not row.findings
    accesses = {access.step: access for access in row.accesses}
    for number in range(len(history)):
        step = HistoryStep(history, number)
        assert row.lines[row.line[number]].text == step.line.text
        on = bits(row.masks[row.mask[number]], history.items)
        np.testing.assert_array_equal(on, step.active)
        rounds = {n: r[number] for n, r in row.rounds.items() if r[number] >= 0}
        assert rounds == step.rounds
        assert (number in accesses) == (step.access is not None)
        if step.access is None:
            continue
        access = accesses[number]
        assert row.memories[access.memory].name == step.access.name
        np.testing.assert_array_equal(numbers(access.first), step.access.first)
        np.testing.assert_array_equal(numbers(access.values), step.access.values.ravel())
        assert bits(access.active, history.items * access.lanes).all()
        assert access.transactions == step.access.transactions
    total = trace.total("global")
    costs = [cost for line in row.lines for cost in line.accesses]
    main = [c for c in costs if row.memories[c.memory].space == "global"]
    assert sum(c.transactions for c in main) == total.transactions
    assert sum(c.bytes_moved for c in main) == total.bytes_moved


def test_registers_are_what_work_items_hold(product: Session) -> None:
    row, trace = stepped(product, None)
    last = trace.step(-1)
    for item in (0, 5, 255):
        expected = last.registers(item)
        for register in row.registers:
            values = numbers(register.values[-1])
            value = values[item % values.size] if values.size > 1 else values[0]
            assert value == expected[register.name], register.name


def test_offers_say_what_they_do_to_the_accesses(
    product: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "COUNT_S", 60.0)
    monkeypatch.setattr(stepping, "OFFER_S", 0.2)
    kernel = product.kernels[0].apply(Opt(OptOps.LOCAL, "g1", 32))
    reply = product.handle(
        {"id": 1, "do": "apply", "variant": 0, "opt": str(kernel.applied_opts[-1])}
    )
    variant = reply.result.variant
    product.handle({"id": 1, "do": "offers", "variant": variant})
    known = {"UPCAST", "ORDER", "LOCAL", "STAGE"}
    rows = product.row(variant).offers
    product.set(variant, "offers", [o for o in rows if o.op in known][:24])
    assert product.handle({"id": 2, "do": "emulate", "variant": variant}).ok
    before = emulate(kernel)
    offers = product.row(variant).offers
    assert {o.op for o in offers if o.counts} == known
    for offer in [o for o in offers if o.counts][::5]:
        after = emulate(kernel.apply(*parse_opts(offer.opt)))
        first, last = (t.total("global").transactions for t in (before, after))
        as_before = f"sectors {first:,}, as before"
        words = as_before if first == last else f"sectors {first:,} -> {last:,}"
        assert offer.counts.startswith(words) or offer.counts.startswith("conflicts")


def halves(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((32, 32)).astype(np.float16)


def test_tiles_of_a_tensor_core_are_what_its_lanes_hold(nothing_saved: Path) -> None:
    """Put together by the places of the record, they are the tiles of the operands, and the result
    is their product."""
    a, b = halves(0), halves(1)
    there = explore(Tensor(a) @ Tensor(b), device="CUDA", target="H100")
    with session_of(there) as session:
        opt = str(Opt(OptOps.TC, "g0 g1 r0", "16x8x16"))
        variant = session.handle({"do": "apply", "variant": 0, "opt": opt}).result.variant
        reply = session.handle({"do": "emulate", "variant": variant, "group": [2, 1]})
        assert reply.ok, reply.error
        row = session.row(variant).gpu
    assert row is not None
    (place,) = [n for n, line in enumerate(row.lines) if line.product is not None]
    product = row.lines[place].product
    assert product is not None
    core = row.cores[product.core]
    loads = {access.step for access in row.accesses}
    steps = [n for n, at in enumerate(row.line) if at == place and n not in loads]
    assert len(steps) == 2, "one for each of the two rounds"
    registers = {register.name: register for register in row.registers}

    def tile(number: int, name: str, step: int) -> Array:
        of, register = core.tiles[number], registers[name]
        before = [n for n, at in enumerate(register.steps) if at <= step]
        values = np.broadcast_to(numbers(register.values[before[-1]]), core.lanes * of.each)
        whole = np.full(of.rows * of.columns, np.nan)
        whole[numbers(of.places)] = values
        return whole.reshape(of.rows, of.columns)

    for round_, step in enumerate(steps):
        rows, columns, sums = (slice(16, 32), slice(16, 24), slice(16 * round_, 16 * round_ + 16))
        left, right, added, result = product.registers
        np.testing.assert_array_equal(tile(0, left, step), a[rows, sums])
        np.testing.assert_array_equal(tile(1, right, step), b[sums, columns])
        expected = tile(2, added, step) + a[rows, sums].astype(float) @ b[sums, columns]
        np.testing.assert_allclose(tile(2, result, step), expected, 1e-5, 1e-5)


def test_what_cannot_be_stepped(product: Session) -> None:
    def because(**request: Any) -> str:
        reply = product.handle({"id": 1, "do": "emulate", **request})
        assert reply.error is not None
        return f"{reply.error.what}: {reply.error.because}"

    assert because(variant=0, group=[2000, 0]).startswith("there is no group (2000, 0)")
    assert "at most 3 numbers" in because(variant=0, group=[0, 0, 0, 0])
    assert "at most 3 numbers" in because(variant=0, group=[-1])
    assert "the program has 0 barriers" in because(variant=0, without=0)
    assert "99 is not a variant here" in because(variant=99)


def test_what_nobody_asked_for_is_left_out_where_it_takes_long(
    product: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = tiled(product)
    request = {"id": 1, "do": "emulate", "variant": variant}
    monkeypatch.setattr(stepping, "UNASKED_S", 1e-9)
    assert product.handle({**request, "unasked": True}).ok
    assert product.row(variant).gpu is None
    assert product.handle(request).ok
    assert product.row(variant).gpu is not None


def test_a_run_is_of_one_group_where_all_take_long(product: Session) -> None:
    kernel = product.kernels[tiled(product)]
    whole, one = (emulate_for_steps(kernel, target_of(kernel), most_s=s) for s in (10.0, 0.0))
    assert whole.is_whole and not one.is_whole
    groups = 4
    counts = [t.total("global").transactions for t in (whole, one)]
    assert counts[0] == groups * counts[1]


def test_a_group_that_takes_minutes_is_refused(
    product: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = product.kernels[0]
    assert seconds_for_steps(kernel) < 1
    monkeypatch.setattr(duration, "STEP_S", 60.0)
    assert seconds_for_steps(kernel) > 120
    with pytest.raises(DeviceError, match="too large to be emulated"):
        emulate_for_steps(kernel, target_of(kernel))
