"""A session about a machine that is not here: whatever a page asks is a value or a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.backends.shelf import NAME as SHELF
from tests.backends.shelf import Shelf
from tests.viz.record.support import broken, plain
from tests.viz.session.support import Page, ask, done, finish_jobs, session_of
from tests.viz.support import array, matmul
from workbench import OptOps, Tensor
from workbench.backends.device import Device
from workbench.viz import explore
from workbench.viz.exploration.explore import load
from workbench.viz.record.offers import offer_rows
from workbench.viz.session.session import Session

GPU = "CUDA:H100"
PROCESSOR = "LLVM:Graviton4"


@pytest.fixture(params=[GPU, PROCESSOR])
def there(nothing_saved: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session about a small matmul for a machine that is not here."""
    a, b = array(16, 8), array(8, 12)
    with session_of(explore((a @ b).relu(), device=request.param)) as session:
        page = Page(session)
        session.complete()
        yield session
        with session.lock:
            session.send_changes()
            assert page.is_record_of(session)
        assert broken(page.record) == []


def test_its_record_is_of_that_machine(there: Session) -> None:
    record, machine = there.record, there.device
    assert record.device == machine and record.headline.endswith(f"on {machine}")
    assert "not run here" in record.elsewhere
    assert f'device="{machine}"' in record.expr.python
    assert all(row.error is None and row.timing is None for row in record.variants)
    for row in record.variants:
        own = [c for c in row.code if c.device == machine]
        language = Device[machine].language
        assert language is not None and own[0].language == language.name
        assert own[0].lines and any(own[0].links) and row.loops and row.counts
    assert {row.name for row in record.variants} == {"plain", "auto"}
    assert record.variants[0].offers and record.variants[0].refused
    assert any(d.elsewhere and d.name == machine for d in record.devices)


def test_its_times_are_predicted_by_its_figures(there: Session) -> None:
    record = there.record
    assert record.machine.sources and record.machine.peak and record.machine.bandwidth
    levels = {row.level for row in record.machine.bandwidth}
    for row in record.variants:
        assert row.cost is not None and row.cost.predicted_s > 0 and row.bound
        assert set(row.cost.roofs) - {"peak"} <= levels
    assert all(run.predicted_s for run in record.plan.runs)
    predicted = [o.predicted for o in record.variants[0].offers if o.predicted]
    assert predicted and predicted == sorted(predicted, reverse=True)


def test_its_answer_is_checked_by_the_emulator(there: Session) -> None:
    for variant in range(len(there.record.variants)):
        done(there, "check", variant=variant)
        row = there.row(variant).check
        assert row is not None and row.ok, row


@pytest.mark.parametrize(
    "request_fields", [{"do": "measure", "variants": [0], "cold": False}, {"do": "kernels"}]
)
def test_its_times_are_refused(there: Session, request_fields: dict[str, object]) -> None:
    fields = dict(request_fields)
    reply = ask(there, str(fields.pop("do")), **fields)
    assert not reply["ok"] and "predicted, not run here" in reply["error"]["because"]


def test_a_search_is_by_predicted_times(there: Session) -> None:
    variant = done(there, "search", variant=0, budget_s=1.0)["variant"]
    row = there.row(variant)
    (search,) = row.searches
    assert search.predicted and row.timing is None
    assert search.timed >= 2 and row.cost is None or row.error is None
    assert there.kernels[variant].device == there.device


def test_nothing_is_wrong_there(there: Session) -> None:
    for variant in range(len(there.record.variants)):
        reply = done(there, "bisect", variant=variant)
        assert reply["pass"] is None, reply


def test_opts_are_tried_there(there: Session) -> None:
    group = next(o for o in there.row(0).offers if o.op in ("LOCAL", "UPCAST"))
    variant = done(there, "apply", variant=0, opt=group.opt)["variant"]
    done(there, "check", variant=variant)
    row = there.row(variant)
    assert row.check is not None and row.check.ok and row.error is None


def test_a_page_changes_to_it_and_back(session: Session) -> None:
    done(session, "device", name=GPU)
    assert session.record.elsewhere and session.record.machine.sources
    finish_jobs(session.jobs)
    own = next(v for v in session.record.variants if v.name == f"auto on {GPU}")
    assert own.steps and own.cost is not None and own.error is None
    language = Device[GPU].language
    assert language is not None
    done(session, "code", variant=0, language=language.name)
    done(session, "check", variant=0)
    here = next(d.name for d in Device if d.is_available)
    done(session, "device", name=here)
    assert not session.record.elsewhere and session.record.device == here
    assert not session.record.machine.sources
    done(session, "check", variant=0)


def test_a_file_and_a_page_of_it(there: Session, tmp_path: Path) -> None:
    ex = there.recorder.exploration
    page = ex.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page
    saved = load(ex.save(tmp_path / "saved"))
    assert saved.device == there.device and saved.kernels[0].device == there.device
    with session_of(saved) as session:
        assert session.record.device == there.device


@pytest.mark.parametrize("do", ["check", "emulate"])
def test_what_is_too_large_is_refused_before_memory_is_made(
    do: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ex = explore(Tensor.empty(1 << 15, 1 << 15) * 2, device="CUDA:H100")

    def no_buffers(*_: object) -> None:
        raise AssertionError("memory is made")

    monkeypatch.setattr(type(ex.kernels[0].data), "buffers", no_buffers)
    fields = {"group": None, "without": None} if do == "emulate" else {}
    with session_of(ex) as session:
        reply = ask(session, do, variant=0, **fields)
    assert not reply["ok"] and "too large to be emulated" in reply["error"]["what"]


@pytest.mark.parametrize(
    "name",
    ["LLVM", "C", "PYTHON", "OPENCL", "WASM", GPU, PROCESSOR]
    + ["HIP:MI300X", "METAL:M3", "WEBGPU:BROWSER", "OPENCL:Iris Xe"],
)
def test_a_page_knows_which_devices_have_machine_code(name: str, nothing_saved: Path) -> None:
    """It offers to show it there alone."""
    device = Device[name]
    if not (device.is_available or device.is_elsewhere):
        pytest.skip(f"{name} is not here: {device.how_to_get}")
    with session_of(explore(array(8, 8) + 1, device=name)) as session:
        (row,) = [d for d in session.record.devices if d.name == device.name]
        reply = ask(session, "code", variant=0, language="asm", device=None)
        assert reply["ok"] == row.machine_code


def test_an_offer_has_the_caption_of_its_device(nothing_saved: Path) -> None:
    """What LOCAL does on a GPU, and what on a processor."""
    product = array(16, 8) @ array(8, 12)
    for name, caption in ("LLVM", OptOps.LOCAL.here), (GPU, OptOps.LOCAL.on_a_gpu):
        offers = offer_rows(explore(product, device=name).kernels[0])
        local = [offer for offer in offers if offer.op == "LOCAL"]
        assert local and {offer.why for offer in local} == {caption}


def test_default_opts_are_those_of_a_device(nothing_saved: Path) -> None:
    """Also what came from them; a page folds those of other devices."""
    a, b = array(16, 8), array(8, 12)
    with session_of(explore((a @ b).relu())) as session:
        session.complete()
        (auto,) = (v for v in session.record.variants if v.name == "auto")
        child = done(session, "apply", variant=1, opt='UPCAST("g0", 2)')["variant"]
        done(session, "device", name=GPU)
        finish_jobs(session.jobs)
        again = done(session, "auto", kernel=0)["variant"]
        own = session.row(again)
        assert (own.name, own.default_of) == (f"auto on {GPU}", GPU)
        here = session.recorder.exploration.device
        assert auto.default_of == session.row(child).default_of == here
        assert session.record.variants[0].default_of == ""
        assert auto.cost is None, "it is not asked for on another device"


def test_a_device_comes_step_by_step_the_default_opts_before_machine_code(
    nothing_saved: Path,
) -> None:
    """With a count of the steps: machine code of a machine that is not here takes long."""
    a, b = array(16, 8), array(8, 12)
    with session_of(explore((a @ b).relu())) as session:
        page, seen = Page(session), []

        def receive(message: Any) -> None:
            Page.receive(page, message)
            if page.messages[-1].get("status"):
                names = [row["name"] for row in page.record["variants"]]
                seen.append((page.messages[-1]["status"], f"auto on {GPU}" in names))

        page.receive = receive  # type: ignore[method-assign]
        done(session, "device", name=GPU)
        finish_jobs(session.jobs)
        steps = [(row["done"], row["total"], row["text"], is_there) for row, is_there in seen]
        assert steps[:-1] == [
            (0, 5, "source", False),
            (1, 5, "default opts", False),
            (2, 5, "machine code", True),
            (3, 5, "machine code with default opts", True),
            (4, 5, "passes with default opts", True),
        ]
        assert seen[-1][0]["task"] is None


def test_variants_that_nobody_selected_are_predicted_too() -> None:
    a, b = array(16, 8), array(8, 12)
    with session_of(explore((a @ b).relu())) as session:
        for text in ("UPCAST g1 4", "UPCAST g0 4", "UNROLL r0 4"):
            done(session, "paste", variant=0, text=text)
        done(session, "device", name=GPU)
        finish_jobs(session.jobs)
        rows = [row for row in session.record.variants if row.error is None]
        assert len(rows) >= 4 and all(row.cost for row in rows)


REQUESTS: dict[str, dict[str, Any]] = {
    "ping": {}, "offers": {"variant": 1}, "apply": {"variant": 1, "opt": 'UPCAST("g0", 2)'},
    "auto": {"kernel": 0}, "passes": {"variant": 1}, "measure": {"variants": [0, 1]},
    "check": {"variant": 1}, "search": {"variant": 0, "budget_s": 0.1}, "bisect": {"variant": 1},
    "compare": {"variants": [0, 1]}, "kernels": {}, "check_all": {}, "costs": {"variant": 1},
    "accesses": {"variant": 1, "axis": "", "at": {}, "first": 0, "steps": 1},
}  # fmt: skip


def test_a_device_that_vanishes_is_said_and_nothing_is_lost(nothing_saved: Path) -> None:
    """Between two requests: each is answered, in words; on another device all goes on."""
    Device.register(Shelf())
    with session_of(matmul()) as session:
        page = Page(session)
        done(session, "device", name=SHELF)
        done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
        done(session, "measure", variants=[0, 1])
        done(session, "check", variant=1)
        finish_jobs(session.jobs)
        before = plain(session.record)["variants"]
        Device.unregister(SHELF)
        refused = set()
        for do, fields in REQUESTS.items():
            reply = ask(session, do, **fields)
            if not reply["ok"]:
                refused.add(do)
                assert SHELF in reply["error"]["what"] and reply["error"]["try"], do
        assert {"apply", "measure", "check", "search"} <= refused
        finish_jobs(session.jobs)
        now = plain(session.record)["variants"]
        for field in ("name", "opts", "timing", "check", "code", "deleted"):
            assert [row[field] for row in now] == [row[field] for row in before], field
        assert SHELF not in [row.name for row in session.record.devices]
        done(session, "device", name="LLVM")
        done(session, "check", variant=1)
        assert session.row(1).check is not None and session.row(1).check.ok
        finish_jobs(session.jobs)
        session.send_changes()
        assert page.is_record_of(session) and broken(page.record) == []


def test_a_device_whose_library_refuses_is_said(nothing_saved: Path) -> None:
    shelf = Device.register(Shelf())
    try:
        with session_of(matmul()) as session:
            done(session, "device", name=SHELF)
            done(session, "measure", variants=[0])
            timing = session.row(0).timing

            def gone(source: object) -> None:
                raise OSError("libshelf.so: cannot open shared object file")

            shelf.load = gone  # type: ignore[assignment, method-assign]
            variant = done(session, "apply", variant=0, opt='UPCAST("g0", 3)')["variant"]
            reply = ask(session, "measure", variants=[0, variant])
            words = plain([reply["error"], session.row(variant).error])
            assert "libshelf.so" in str(words)
            assert session.row(0).timing is not None and timing is not None
            done(session, "device", name="LLVM")
            done(session, "check", variant=variant)
    finally:
        Device.unregister(SHELF)
