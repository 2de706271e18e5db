"""What somebody registers from a cell is everywhere, and the package is not touched."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backends.shader import a_renderer, shader
from tests.support import eventually
from tests.viz.record.support import plain
from tests.viz.session.support import Page, ask, done, session_of
from workbench import (
    AxisType,
    Context,
    Device,
    Kernel,
    Opt,
    OptKind,
    OptOps,
    Tensor,
    TinyJit,
    explore,
    register,
    unregister,
)  # fmt: skip
from workbench.backends.contract import DeviceInfo
from workbench.backends.python.python_device import PythonDevice
from workbench.base.errors import CompileError, DeviceError, KernelOptError, RegisterError
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.node.ops import Ops
from workbench.ir.rewriting.patterns import op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.search.moves import in_turns, moves
from workbench.viz.record.record import build
from workbench.viz.session.opt_text import parse_opts
from workbench.worker.candidate import compiled, row_of
from workbench.worker.client import Worker

HELPERS = '''
from workbench import AxisType, OptKind, OptOps, Rule, RuleSet, register, var
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.node.ops import Ops
from workbench.ir.opt.divide import amount_of, divide, refuse_amount
from workbench.ir.opt.opt import ranges

x = var("x", "float")

def why_not(kernel, opt, target):
    return refuse_amount(kernel, opt, "output")

def halve(kernel, opt):
    kind = ranges(kernel)[opt.axis].axis_kind
    return divide(kernel, opt.axis, amount_of(kernel, opt), kind)

def twice(x):
    """A sum takes a unit that a product leaves idle."""
    return x + x
'''
OPT = """
register(OptKind(
    "HALVE", here="the loop as two loops", on_a_gpu="the same", why_not=why_not, apply=halve,
    applies_to=frozenset({AxisType.GLOBAL}), amounts=(2,), promise=1,
))
"""
RULES = """
register(RuleSet("mine", [
    Rule("double-is-sum", x * 2, twice),
    Rule("fourfold", x * 4, (x + x) + (x + x), doc="as a tree"),
]), into={into!r})
"""


def in_one_cell(parts: list[str], folder: Path) -> None:
    exec("\n".join(parts), {"__name__": "__main__"})


def in_several_cells(parts: list[str], folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for part in parts:
        exec(compile(part, "<cell>", "exec"), names)


def in_a_module(parts: list[str], folder: Path) -> None:
    path = folder / "strangers.py"
    path.write_text("\n".join(parts))
    spec = importlib.util.spec_from_file_location("strangers", path)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


Way = Callable[[list[str], Path], None]
WAYS = pytest.mark.parametrize("way", [in_one_cell, in_several_cells, in_a_module])


pytestmark = pytest.mark.usefixtures("clean_registry")


def product(rows: int = 6) -> Kernel:
    a, b = (np.random.default_rng(0).random((rows, rows), np.float32) for _ in "ab")
    kernel = explore(Tensor(a) @ Tensor(b)).kernels[0]
    assert isinstance(kernel, Kernel)
    return kernel


def doubled() -> Kernel:
    kernel = explore(Tensor(np.arange(8, dtype=np.float32)) * 2).kernels[0]
    assert isinstance(kernel, Kernel)
    return kernel


# opts


@WAYS
def test_an_opt_is_offered_refused_applied_and_read(way: Way, tmp_path: Path) -> None:
    way([HELPERS, OPT], tmp_path)
    kernel, opt = product(), Opt(OptOps.HALVE, "g0", 2)
    assert {o.axis for o in kernel.legal_opts() if o.op is OptOps.HALVE} == {"g0", "g1"}
    assert kernel.why_not(opt) is None
    assert "(legal here: 2, 3, 6)" in str(kernel.why_not(Opt(OptOps.HALVE, "g0", 4)))
    assert "HALVE applies to output axes" in str(kernel.why_not(Opt(OptOps.HALVE, "r0", 2)))
    assert kernel.why_not(Opt(OptOps.HALVE, 0, 2)) is None, "an integer counts its axes"
    halved = kernel.apply(opt, Opt(OptOps.UPCAST, "g1", 2))
    assert [a.size for a in halved.axes] == [3, 2, 3, 6, 2]
    assert halved.check("LLVM").ok and halved.check("PYTHON").ok
    assert [p.doc for p in halved.compile().passes if p.name == "opt-halve"] == [
        "HALVE on a processor: the loop as two loops. On a GPU: the same."
    ]
    assert eval(repr(opt), {"Opt": Opt, "OptOps": OptOps}) == opt
    assert parse_opts(f'{opt}, Opt("HALVE", "g0", 2)') == (opt, opt)
    assert parse_opts(halved.to_python()) == halved.applied_opts
    assert pickle.loads(pickle.dumps(opt)) == opt


def test_an_opt_is_in_the_record_and_in_a_session() -> None:
    in_one_cell([HELPERS, OPT], Path())
    a, b = (Tensor(np.ones(shape, np.float32)) for shape in ((6, 5), (5, 6)))
    with session_of(explore(a @ b)) as session:
        for _ in session.recorder.rest():
            pass
        rows = plain(session.record)["variants"][0]
        offers = [row for row in rows["offers"] if row["op"] == "HALVE"]
        assert offers and offers[0]["does"] == "the loop as two loops"
        assert {*offers[0]["axes"], *offers[1]["axes"]} == {"g0", "g1"}
        variant = done(session, "paste", variant=0, text='Opt("HALVE", "g0", 2)')["variant"]
        row = plain(session.record)["variants"][variant]
        bars = [[row["axes"][place]["name"] for place in bar] for bar in row["bars"]]
        assert row["opts"] == ['HALVE("g0", 2)'] and ["g0", "g2"] in bars
        unregister("HALVE")
        reply = ask(session, "paste", variant=0, text='HALVE("g0", 2)')
        assert not reply["ok"] and "is not an opt" in str(reply["error"])


def test_what_cannot_be_applied_is_listed_with_its_reason() -> None:
    in_one_cell([HELPERS, OPT], Path())
    record = plain(build(explore(Tensor(np.ones((5, 7), np.float32)).sum(1))))
    refused = {row["opt"]: row["why"] for row in record["variants"][0]["refused"]}
    assert refused['HALVE("g0", 2)'] == "axis g0 has 5 elements, and 2 does not divide 5"


def test_a_search_tries_an_opt_by_its_promise() -> None:
    in_one_cell([HELPERS, OPT], Path())
    ast, target = product().ast, Device["LLVM"].target
    tried = [move.opts[-1] for move, _ in moves(ast, (), ast, target)]
    assert tried[0] == Opt(OptOps.HALVE, "g0", 2)
    assert in_turns([Opt(OptOps.UPCAST, "g0", 2), tried[0]])[0] == tried[0]


def test_an_opt_that_raises_hides_no_other() -> None:
    def fails(kernel: Any, opt: Any) -> Any:
        raise ZeroDivisionError("no such luck")

    kinds = frozenset({AxisType.GLOBAL})
    common: Any = {"here": "", "on_a_gpu": "", "applies_to": kinds, "amounts": (2,)}
    register(OptKind("FAILS", why_not=lambda kernel, opt, target: None, apply=fails, **common))
    register(OptKind("NOTHING", why_not=lambda k, o, t: None, apply=lambda k, o: 3, **common))  # type: ignore[arg-type, return-value]
    kernel = product()
    assert kernel.legal_opts() and OptOps.FAILS not in {o.op for o in kernel.legal_opts()}
    with pytest.raises(KernelOptError, match="ZeroDivisionError: no such luck"):
        kernel.apply(Opt(OptOps.FAILS, "g0", 2))
    with pytest.raises(KernelOptError, match="NOTHING raised"):
        kernel.apply(Opt(OptOps.NOTHING, "g0", 2))


def test_an_opt_that_another_process_has_is_told() -> None:
    in_one_cell([HELPERS, OPT], Path())
    tasks = pickle.dumps(Opt(OptOps.HALVE, "g0", 2))
    unregister("HALVE")
    with pytest.raises(RegisterError, match=r"(?s)no opt HALVE.*register it here"):
        pickle.loads(tasks)


# rules


@WAYS
def test_rules_are_used_named_shown_and_switched_off(way: Way, tmp_path: Path) -> None:
    way([HELPERS, RULES.format(into="simplify-kernel")], tmp_path)
    data = np.arange(8, dtype=np.float32)
    assert ((Tensor(data) * 2).numpy() == 2 * data).all()
    y = Tensor(data) * 2
    ex = explore(y)
    ours = [(p.name, m) for p in ex.passes for m in p.matches if "is-sum" in str(m.rule)]
    assert [(name, m.rule.name) for name, m in ours] == [("simplify-kernel", "double-is-sum")]
    row = next(r for r in plain(build(ex))["rules"] if r["name"] == "double-is-sum")
    assert row["set"] == "mine" and row["doc"].startswith("A sum takes a unit")
    assert row["text"] == "(x:float * 2) -> twice" and row["line"] > 0
    without = explore(y, without=("double-is-sum",))
    assert "add" not in str(without.kernels[0].ast) and without.kernels[0].check().ok
    before = ours[0][1].before
    assert ex.why_not("double-is-sum", before, "simplify-kernel").fires
    assert not ex.why_not("fourfold", before, "simplify-kernel").fires


def test_programs_are_never_stale() -> None:
    kernel = doubled()
    plain = kernel.compile("C").source
    jitted = TinyJit(lambda x: (x * 2).realize())
    data = np.arange(8, dtype=np.float32)
    for _ in range(3):
        assert (jitted(Tensor(data).realize()).numpy() == 2 * data).all()
    x = var("x", "float")
    # a wrong rule shows where it is used
    wrong = register(RuleSet("wrong", [Rule("wrong", x * 2, x)]), into="decompose")
    assert kernel.compile("C").source != plain
    assert (kernel.run("LLVM")[0] == data).all() and not kernel.check("LLVM").ok
    assert (jitted(Tensor(data).realize()).numpy() == data).all(), "captured anew"
    assert kernel.without("wrong").check("LLVM").ok
    register(RuleSet("wrong", [Rule("wrong", x * 2, x + x)]), into="decompose")
    assert (kernel.run("LLVM")[0] == 2 * data).all(), "a set of the same name is replaced"
    unregister(wrong.name)
    assert kernel.compile("C").source == plain
    assert (jitted(Tensor(data).realize()).numpy() == 2 * data).all()


def test_what_a_rule_made_wrong_is_not_shared_without_it() -> None:
    x = var("x", "float")
    a = Tensor(np.ones((2, 2), np.float32)).realize()
    held = explore((a * 2).sqrt())  # so are its values, which are noted by their nodes
    right = (a * 2 + 1).realize()
    wrong = RuleSet("wrong", [Rule("wrong", x * 2, x * 3)])
    register(wrong, into="simplify-kernel")
    kept = (a * 2).realize()
    assert (kept.numpy() == 3).all() and (right.numpy() == 3).all()
    again = explore(a * 2)
    assert not again.kernels and not again.check(), "compared with the expression"
    unregister("wrong")
    assert (kept.numpy() == 3).all(), "it is in memory"
    assert ((a * 2).numpy() == 2).all() and explore(a * 2).check()
    register(wrong, into="simplify-kernel")
    assert ((a * 2).numpy() == 2).all(), "what the package's own rules made is shared"
    assert held.kernels


def test_an_exploration_without_a_wrong_rule_is_right() -> None:
    """Its results, too, and what a later kernel reads of an earlier one."""
    x = var("x", "float")
    a = Tensor(np.ones((4, 4), np.float32)).realize()
    register(RuleSet("wrong", [Rule("wrong", x * 2, x * 3)]), into="simplify-kernel")
    y = ((a * 2).contiguous() * 2).sum(axis=0)
    assert not explore(y).check()
    without = explore(y, without=("wrong",))
    assert len(without.kernels) == 2 and without.check()
    unregister("wrong")


def test_what_a_rule_made_wrong_is_computed_again_of_old_versions() -> None:
    x = var("x", "float")
    a = Tensor(np.ones((2, 2), np.float32)).realize()
    y = a * 2
    held = y + 0
    register(RuleSet("wrong", [Rule("wrong", x * 2, x * 3)]), into="simplify-kernel")
    wrong = y.numpy()
    unregister("wrong")
    a += 1
    a.realize()
    assert (wrong == 3).all() and (a.numpy() == 2).all()
    assert (held.numpy() == 2).all(), "its old version is not written over"
    assert ((a * 2).numpy() == 4).all()


def test_a_rule_that_a_device_needs_is_named() -> None:
    x = var("x", "float")
    own = [r.name for r in DECOMPOSE_RULES.rules if Ops.SIN in (r.match.ops or ())]
    register(RuleSet("mine", [Rule("my-sine", op(Ops.SIN, x), x * 1.0)]), into="decompose")
    kernel = explore(Tensor([1.0, 2.0]).sin()).kernels[0]
    passes = {p.name: p.matches for p in kernel.compile("LLVM").passes}
    assert "my-sine" in {m.rule.name for m in passes["decompose"]}, "it comes first"
    assert kernel.without("my-sine").check("LLVM").ok
    with pytest.raises(CompileError, match="needs what is switched off, .*my-sine"):
        kernel.without("my-sine", *own).compile("LLVM")


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_a_worker_process_runs_what_was_compiled_here(device: str) -> None:
    x = var("x", "float")
    kernel, data = doubled(), np.arange(8, dtype=np.float32)
    register(RuleSet("mine", [Rule("sevenfold", x * 2, x * 7.0)]), into="decompose")
    with Context(DEV=device):
        buffers = kernel.data.buffers(kernel.original, "LLVM")
    form = row_of(kernel.ast, device, ())
    unregister("mine")  # as in another process, which never knew it
    source, program = compiled(pickle.loads(pickle.dumps(form)))
    program(buffers)
    factor = 7 if device == "LLVM" else 2  # the emulator has no such pass
    assert (buffers[0].array == factor * data).all()
    with Worker() as worker:
        worker.hold("data", lambda: [(b, slot == 0) for slot, b in enumerate(buffers)])
        task = {"do": "check", "data": "data", "kernel": form, "original": kernel.to_text()}
        outcome = worker.ask(task, quiet_s=250.0)
    assert outcome["ok"] is (device != "LLVM")


def test_a_session_times_and_checks_with_registered_rules() -> None:
    in_one_cell([HELPERS, RULES.format(into="decompose")], Path())
    with session_of(explore(Tensor(np.arange(8, dtype=np.float32)) * 2)) as session:
        done(session, "check", variant=0)
        assert plain(session.record)["variants"][0]["check"]["ok"]
        done(session, "measure", variants=[0])
        assert plain(session.record)["variants"][0]["timing"]["samples"]


def test_a_page_of_before_runs_nothing_else_than_it_shows() -> None:
    with session_of(explore(Tensor(np.arange(8, dtype=np.float32)) * 2)) as session:
        in_one_cell([HELPERS, RULES.format(into="decompose")], Path())
        reply = ask(session, "check", variant=0)
        assert not reply["ok"] and reply["error"]["try"] == "run the cell again"
        unregister("mine")
        done(session, "check", variant=0)
        assert plain(session.record)["variants"][0]["check"]["ok"]


# devices


class Mine(PythonDevice):
    """An emulator by another name."""

    name = "MINE"
    about = "an emulator of somebody's"
    how_to_get = "run the cell"
    rank = 200


def test_a_device_is_in_the_menu_and_runs() -> None:
    device: DeviceInfo = register(Mine())
    assert Device["MINE"] is device and Device.DEFAULT != "MINE"
    assert any(row["name"] == "MINE" for row in plain(build(explore(Tensor([1.0]) + 1)))["devices"])
    kernel = doubled()
    assert kernel.check("MINE").ok
    with session_of(explore(Tensor([1.0, 2.0]) * 3)) as session:
        done(session, "device", name="MINE")
        done(session, "check", variant=0)  # in this process: another one does not know it
        assert plain(session.record)["variants"][0]["check"]["ok"]
    unregister("MINE")
    with pytest.raises(DeviceError, match="there is no device"):
        kernel.check("MINE")


# pages that are open


def test_an_open_page_learns_what_is_registered() -> None:
    """When the reader comes back to it, it asks whether Python is there."""
    a, b = (Tensor(np.ones(shape, np.float32)) for shape in ((6, 5), (5, 6)))
    with session_of(explore(a @ b)) as session:
        session.complete()
        page = Page(session)
        number = page.record["n"]
        in_one_cell([HELPERS, OPT], Path())
        register(Mine())
        register(a_renderer(shader))
        done(session, "ping", have=number)
        shown_page = page.record
        assert "MINE" in [row["name"] for row in shown_page["devices"]]
        assert "Shader" in [row["name"] for row in shown_page["languages"]]

        def offered() -> set[str]:
            return {row["op"] for row in page.record["variants"][0]["offers"]}

        eventually(lambda: "HALVE" in offered())
        unregister("HALVE")
        unregister("MINE")
        done(session, "ping", have=page.record["n"])
        assert "MINE" not in [row["name"] for row in page.record["devices"]]
        eventually(lambda: "HALVE" not in offered())
        done(session, "ping", have=page.record["n"])
        assert page.is_record_of(session)
