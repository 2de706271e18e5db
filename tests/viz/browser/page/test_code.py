"""The code pane: its languages, the diff, and code that is edited."""

from __future__ import annotations

from typing import Any

from tests.viz.browser.page.support import Record, keys, selected, send_reply, texts


def test_languages_have_tabs(page: Any, record: Record) -> None:
    for code in record["variants"][0]["code"]:
        page.click(f"[data-key=code-{code['language']}]")
        assert selected(page, "language") == [code["language"]]
        lines = page.locator(".wb-code-body [data-line]")
        last = len(code["lines"])
        assert lines.last.get_attribute("data-line") == str(last)
        assert lines.last.locator("code").inner_text() == code["lines"][-1]


def test_the_diff_is_between_the_pinned_variant_and_this_one(
    page: Any, record: Record
) -> None:
    auto = next(i for i, v in enumerate(record["variants"]) if v["name"] == "auto")
    page.click(f"[data-key=kernel-{record['variants'][auto]['kernel']}]")
    page.click(f"[data-key=variant-{auto}]")
    page.click("[data-key=code-asm]")
    keys(page, "d")
    page.wait_for_selector(".wb-added")
    [old, new] = [
        next(c["lines"] for c in v["code"] if c["language"] == "asm")
        for v in (record["variants"][record["variants"][auto]["parent"]],
                  record["variants"][auto])
    ]  # fmt: skip
    plain_lines = texts(page, ".wb-line:not(.wb-removed) > code")
    gone = texts(page, ".wb-removed > code")
    assert set(plain_lines) <= set(new) and set(gone) <= set(old)
    assert len(new) - len(texts(page, ".wb-added")) == len(old) - len(gone)
    keys(page, "d")
    page.wait_for_selector(".wb-added", state="detached")


def test_what_a_compiler_says_stands_over_the_code(
    session: Any, record: Record
) -> None:
    number = len(record["variants"])
    error = {"what": "line 3: expected ';'", "because": "", "try": ""}
    broken = record["variants"][0] | {"name": "edited 1", "parent": 0, "edited": True}
    session.click(".wb-code-bar >> text=edit")
    session.click("[data-key=run-edit]")
    patch = {"append": {"variants": [broken | {"error": error}]}, "set": []}
    send_reply(session, "edit", patch=patch, result={"variant": number})
    session.wait_for_selector(".wb-code-pane [role=alert] >> text=expected ';'")
    row = session.inner_text(f"[data-key=variant-{number}] .wb-name")
    assert row.split() == ["edited", "1", "!"]


def test_code_is_asked_for_again_on_another_device(
    session: Any, record: Record
) -> None:
    """Once: a patch that comes after does not ask again."""
    session.click("[data-key=code-asm]")
    code = [c for c in record["variants"][0]["code"] if c["language"] == "C"]
    for device in ("C", "LLVM"):
        gone = [[["device"], device], [["variants", 0, "code"], code]]
        for note in ("one", "two"):
            changes = [*gone, [["variants", 0, "note"], note]]
            patch = {"append": {}, "set": changes}
            session.evaluate("p => hear({patch: p})", patch)
        requests = session.evaluate("sent.filter((m) => m.do === 'code')")
        assert [m["language"] for m in requests] == ["asm"], device
        send_reply(session, "code", result={"variant": 0})


def test_an_editor_can_be_written_in_at_once(session: Any) -> None:
    session.click(".wb-code-bar >> text=edit")
    session.wait_for_function("document.activeElement.matches('.wb-editor')")
    session.click("[data-key=run-edit]")
    assert session.inner_text("[data-key=run-edit]") == "Running…"
    send_reply(session, "edit", error={"what": "no", "because": "", "try": ""})
    session.wait_for_selector("[data-key=run-edit]:has-text('Run the edited code')")
