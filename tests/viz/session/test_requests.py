"""Requests of a page, good and bad: what each answers, where nothing is run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import ask, finish_jobs
from tests.viz.support import check_golden
from workbench.viz.session.requests import KINDS, OF_EVERY
from workbench.viz.session.session import LONG, QUICK, Session


def test_every_request_is_known() -> None:
    assert set(KINDS) == set(QUICK) | set(LONG)


@pytest.mark.parametrize("do", KINDS)
def test_whoever_answers_takes_what_the_schema_says(do: str) -> None:
    parameters = list(inspect.signature((QUICK | LONG)[do]).parameters)
    assert parameters[0] == "session"
    assert set(parameters[1:]) == set(KINDS[do].__struct_fields__) - {*OF_EVERY}


def test_replies(session: Session) -> None:
    """Every request that is answered without running anything, good and bad."""
    requests: list[Any] = [
        {"do": "ping"},
        {"do": "ping", "have": 0},
        {"do": "apply", "variant": 0, "opt": 'UPCAST("g1", 4)'},
        {"do": "apply", "variant": 0, "opt": 'Opt(OptOps.UPCAST, "g1", 4)'},
        {"do": "apply", "variant": 1, "opt": 'UNROLL("r0", 2)'},
        {"do": "apply", "variant": 0, "opt": 'UPCAST("g1", 3)'},
        {"do": "apply", "variant": 0, "opt": 'UPCAST("g9", 4)'},
        {"do": "apply", "variant": 0, "opt": "print(1)"},
        {"do": "apply", "variant": 99, "opt": 'UPCAST("g1", 4)'},
        {"do": "apply", "variant": True, "opt": 'UPCAST("g1", 4)'},
        {"do": "apply", "variant": 0},
        {"do": "apply", "variant": 0, "opt": 4},
        {"do": "apply", "variant": 0, "opt": "x", "then": 1},
        {"do": "opts", "variant": 2, "opts": ['UPCAST("g0", 2)', 'UPCAST("g1", 3)']},
        {"do": "opts", "variant": 0, "opts": ["import os"]},
        {"do": "opts", "variant": 0, "opts": ["NOLOCALS()"], "place": 0, "amount": 2},
        {"do": "opts", "variant": 0, "opts": [], "place": 0},
        {"do": "paste", "variant": 2, "text": 'UPCAST("g0", 2), UPCAST("g1", 2)'},
        {"do": "paste", "variant": 2, "text": 'UPCAST("g0", 3), UPCAST("g1", 3)'},
        {"do": "paste", "variant": 2, "text": 'UPCAST("g1", 3)'},
        {"do": "paste", "variant": 2, "text": ""},
        {"do": "paste", "variant": 2, "text": "import os"},
        {"do": "auto", "kernel": 0},
        {"do": "auto", "kernel": 1},
        {"do": "code", "variant": 0, "language": "LLVM"},
        {"do": "code", "variant": 0, "language": "COBOL"},
        {"do": "offers", "variant": 0},
        {"do": "pin", "variant": 1},
        {"do": "pin", "variant": None},
        {"do": "pin", "variant": "1"},
        {"do": "name", "variant": 1, "text": "my best"},
        {"do": "name", "variant": 3, "text": " my  best "},
        {"do": "name", "variant": 3, "text": "auto"},
        {"do": "name", "variant": 0, "text": "first"},
        {"do": "delete", "variants": [1, 2]},
        {"do": "delete", "variants": [2], "back": True},
        {"do": "delete", "variants": [0]},
        {"do": "note", "variant": 1, "text": "<b>read me</b>"},
        {"do": "device", "name": "PYTHON"},
        {"do": "device", "name": "LLVM"},
        {"do": "device", "name": "ABACUS"},
        {"do": "edit", "variant": 0, "language": "asm", "text": "nop"},
        {"do": "measure", "variants": []},
        {"do": "search", "variant": 0, "budget_s": 0},
        {"do": "search", "variant": 0, "budget_s": float("nan")},
        {"do": "replan", "node": 10**9, "store": True},
        {"do": "replan", "node": 0, "store": 1},
        {"do": "bisect", "variant": None},
        {"do": "rule_off", "kernel": 0, "rule": 10**9, "on": False},
        {"do": "measure", "variants": [0, "1"]},
        {"do": "measure", "variants": list(range(99))},
        {"do": "check", "variant": -1},
        {"do": "baseline"},
        {"do": "stop"},
        {"do": "dance"},
        {"do": 4},
        {},
        [],
        None,
        "apply",
    ]
    lines = [line for request in requests for line in shown(session, request)]
    check_golden("live_replies.txt", "\n".join(lines))


def shown(session: Session, request: Any) -> Iterator[str]:
    label = request
    if isinstance(request, dict):
        label = " ".join(str(v) for v in request.values())
    finish_jobs(session.jobs)  # else a "stop" counts them
    reply = plain(session.handle(request))
    if reply["ok"]:
        result = dict(reply["result"])
        if result.get("record"):
            result["record"] = "(whole)"
        yield f"{label}: {result}"
    else:
        error = reply["error"]
        yield f"{str(label)[:40]}: {error['what'][:60]} | {error['because'][:60]}"


@pytest.mark.parametrize("do", [[], {}, ["apply"], 1.5, "\ud800"])
def test_what_is_no_request_is_answered(session: Session, do: Any) -> None:
    assert not ask(session, do)["ok"]


@pytest.mark.parametrize("do", ["note", "paste", "name"])
def test_half_a_megabyte_is_refused_in_words(session: Session, do: str) -> None:
    error = ask(session, do, variant=0, text="UPCAST('g0', 2)\n" * 32_000)["error"]
    assert len(str(error)) < 1000
    assert do == "name" or "at most 400,000 characters" in error["because"]


def test_half_a_character_is_no_text(session: Session) -> None:
    reply = ask(session, "note", variant=0, text="a\ud800")
    assert reply["error"]["what"] == "note cannot take this text"
