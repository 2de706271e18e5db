"""Source edited by hand is a variant: compiled, checked, timed, and never trusted."""

from __future__ import annotations

import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import done
from workbench.backends.device import Device
from workbench.viz.session.handlers import measurement
from workbench.viz.session.session import Session

NEEDS_C = pytest.mark.skipif(not Device.available("C"), reason="no C compiler")


@NEEDS_C
def test_edited_source_is_a_variant(session: Session) -> None:
    text = "\n".join(plain(session.row(0))["code"][0]["lines"])
    pid = session.jobs.worker.pid
    good = done(session, "edit", variant=0, language="C", text=text + "// same")[
        "variant"
    ]
    row = plain(session.row(good))
    assert row["edited"] and row["parent"] == 0 and row["error"] is None
    assert row["check"]["ok"] and row["timing"]["device"] == "C"
    assert row["code"][0]["lines"][-1].endswith("// same")
    wrong = text.replace("float *p0 = args[0];", "float *p0 = args[0]; return;")
    bad = done(session, "edit", variant=0, language="C", text=wrong)["variant"]
    assert (
        plain(session.row(bad))["check"]["ok"] is False
        and plain(session.row(bad))["timing"]
    )
    crash = text.replace("float *p0 = args[0];", "float *p0 = 0; p0[1] = 1;")
    gone = done(session, "edit", variant=0, language="C", text=crash)["variant"]
    assert plain(session.row(gone))["error"]["what"] == "the program crashed"
    assert (
        plain(session.row(gone))["timing"] is None
        and plain(session.row(gone))["check"] is None
    )
    assert session.jobs.worker.pid == pid, "each ran in a process of its own"
    assert plain(session.row(0))["timing"], (
        "the one it was made from is timed beside it"
    )


@NEEDS_C
def test_edited_source_that_hangs(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "EDITED_S", 0.7)
    text = "\n".join(plain(session.row(0))["code"][0]["lines"])
    endless = text.replace("float *p0 = args[0];", "float *p0 = args[0]; for (;;) {}")
    number = done(session, "edit", variant=0, language="C", text=endless)["variant"]
    assert plain(session.row(number))["error"]["what"] == "the program did not end"


def test_edited_llvm(session: Session) -> None:
    done(session, "code", variant=0, language="LLVM")
    code = next(c for c in plain(session.row(0))["code"] if c["language"] == "LLVM")
    text = "\n".join(code["lines"])
    number = done(session, "edit", variant=0, language="LLVM", text=text)["variant"]
    assert plain(session.row(number))["check"]["ok"]
    broken_text = text.replace("define", "undefine")
    number = done(session, "edit", variant=0, language="LLVM", text=broken_text)[
        "variant"
    ]
    assert plain(session.row(number))["error"]["what"].startswith("cannot compile")
