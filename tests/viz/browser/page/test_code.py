"""The code pane: its languages, the diff, and code that is edited."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.tools.compiler import needs_c
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import Record, keys, selected, send_reply, texts
from tests.viz.session.support import done, finish_jobs, session_of
from tests.viz.support import array, matmul
from workbench import explore

WIDTH_OF_LETTER = """(el) => {
  const context = document.createElement("canvas").getContext("2d");
  context.font = getComputedStyle(el).font;
  return context.measureText("x").width;
}"""


def test_languages_have_tabs(page: Any, record: Record) -> None:
    for code in record["variants"][0]["code"]:
        page.click(f"[data-key=code-{code['language']}]")
        assert selected(page, "language") == [code["language"]]
        lines = page.locator(".wb-code-body [data-line]")
        last = len(code["lines"])
        assert lines.last.get_attribute("data-line") == str(last)
        assert lines.last.locator("code").inner_text() == code["lines"][-1]


def test_the_diff_is_between_the_pinned_variant_and_this_one(page: Any, record: Record) -> None:
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
    assert page.get_attribute("[data-key=diff]", "aria-pressed") == "true"
    page.click("[role=treeitem]:has(.wb-pin:text('\u25c6'))")
    assert page.get_attribute("[data-key=diff]", "aria-pressed") == "false"
    assert "the pinned variant" in page.get_attribute("[data-key=diff]", "title")
    page.click(f"[data-key=variant-{auto}]")
    keys(page, "d")
    page.wait_for_selector(".wb-added", state="detached")


def test_what_a_compiler_says_stands_over_the_code(session: Any, record: Record) -> None:
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


def test_a_text_that_is_unchanged_is_said_to_be_so(session: Any) -> None:
    """No variant is made of it."""
    session.click(".wb-code-bar >> text=edit")
    session.click("[data-key=run-edit]")
    send_reply(session, "edit", result={"variant": 0, "said": "the text is unchanged"})
    session.wait_for_selector(".wb-notices >> text=the text is unchanged")
    session.wait_for_selector(".wb-editor", state="detached")


def test_code_is_asked_for_again_on_another_device(session: Any, record: Record) -> None:
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


def test_an_error_of_one_program_does_not_stand_over_another(session: Any, record: Record) -> None:
    number = len(record["variants"])
    other = record["variants"][0] | {"name": "other", "parent": 0}
    session.click("[data-key=code-asm]")
    code = [c for c in record["variants"][0]["code"] if c["language"] == "C"]
    changes = [[["variants", 0, "code"], code]]
    patch = {"append": {"variants": [other]}, "set": changes}
    session.evaluate("p => hear({patch: p})", patch)
    error = {"what": "cannot compile", "because": "it holds too much", "try": ""}
    send_reply(session, "code", error=error)
    session.wait_for_selector(".wb-code-pane [role=alert] >> text=cannot compile")
    session.click(f"[data-key=variant-{number}]")
    session.wait_for_selector(".wb-code-pane [role=alert]", state="detached")


@needs_c
def test_an_editor_can_be_written_in_at_once(session: Any) -> None:
    session.click(".wb-code-bar >> text=edit")
    session.wait_for_function("document.activeElement.matches('.wb-editor')")
    session.click("[data-key=run-edit]")
    assert session.inner_text("[data-key=run-edit]") == "Running…"
    send_reply(session, "edit", error={"what": "no", "because": "", "try": ""})
    session.wait_for_selector("[data-key=run-edit]:has-text('Run the edited code')")


@needs_c
def test_an_editor_opens_at_the_function(session: Any, record: Record) -> None:
    """What stands before it, types and helpers, may fill the pane."""
    above = [f"// helper {number}" for number in range(200)] + [""]
    code = copy.deepcopy(record["variants"][0]["code"])
    for row in code:
        row["lines"] = [*above, *row["lines"]]
        row["links"] = [*[None for _ in above], *row["links"]]
    session.evaluate(
        "p => hear({patch: p})", {"append": {}, "set": [[["variants", 0, "code"], code]]}
    )
    session.click(".wb-code-bar >> text=edit")
    session.wait_for_function("document.activeElement.matches('.wb-editor')")
    session.wait_for_function("document.querySelector('.wb-editor-box').scrollTop > 17 * 100")
    rest = session.locator(".wb-editor").evaluate("(el) => el.value.slice(el.selectionStart)")
    assert "// helper" not in rest and "for (" in rest


@needs_c
def test_an_editor_opens_where_the_reader_was(session: Any, record: Record) -> None:
    """A long listing that is scrolled; of a selected loop at a line that it lights."""
    code = copy.deepcopy(record["variants"][0]["code"])
    for row in code:
        row["lines"] += [f"// below {number}" for number in range(200)]
        row["links"] += [None for _ in range(200)]
    session.evaluate(
        "p => hear({patch: p})", {"append": {}, "set": [[["variants", 0, "code"], code]]}
    )

    def line_of_the_caret() -> str:
        session.click(".wb-code-bar >> text=edit")
        session.wait_for_function("document.activeElement.matches('.wb-editor')")
        rest = session.locator(".wb-editor").evaluate("(el) => el.value.slice(el.selectionStart)")
        session.click("text=Cancel")
        return str(rest.split("\n")[0])

    body = session.locator(".wb-code-body")
    body.evaluate("(el) => { el.scrollTop = 17 * 100; }")
    first = body.evaluate("""(el) => [...el.querySelectorAll('.wb-line')].find((line) =>
        line.getBoundingClientRect().top >= el.getBoundingClientRect().top).innerText""")
    assert "// below" in first and first.endswith(line_of_the_caret())
    session.locator(".wb-loops .wb-statement").last.click()
    lit = session.locator(".wb-code-body .wb-lit").all_inner_texts()
    session.wait_for_function("document.querySelector('.wb-code-body').scrollTop < 17 * 50")
    assert lit[0].endswith(line_of_the_caret())


@needs_c
def test_an_editor_has_the_room_of_the_board_until_the_edit_ends(session: Any) -> None:
    session.set_viewport_size({"width": 1066, "height": 900})  # as in JupyterLab at 1400
    session.click("[data-key=mode-board]")
    box, others = session.locator(".wb-editor-box"), session.locator("[data-pane=opts]")
    edit, cancel = ".wb-code-bar >> text=edit", ".wb-edit >> text=Cancel"
    session.click(edit)
    expect(others).to_be_hidden()
    letter = session.locator(".wb-editor").evaluate(WIDTH_OF_LETTER)
    lines = session.locator(".wb-editor-lines .wb-line code").first.bounding_box()
    room = box.bounding_box()
    assert room["height"] >= 20 * 17
    assert room["x"] + room["width"] - lines["x"] >= 80 * letter
    session.fill(".wb-editor", "mine")
    session.click("[data-key=large-code] >> text=all panes")
    expect(others).to_be_visible()
    assert session.input_value(".wb-editor") == "mine"
    session.click(cancel)
    session.click(edit)
    expect(others).to_be_hidden()
    assert session.input_value(".wb-editor") == "mine"
    session.click("[data-key=mode-tune]")
    expect(others).to_be_visible()
    session.click("[data-key=mode-board]")
    session.click(cancel)
    expect(others).to_be_visible()
    assert session.locator("[data-key=reset-layout]").count() == 0, "nothing is stored"


@needs_c
def test_only_the_lines_in_sight_of_a_long_text_are_elements(session: Any) -> None:
    """Else a key in a text of 500 kB takes seconds."""
    session.click(".wb-code-bar >> text=edit")
    session.wait_for_selector(".wb-editor")
    lines = [f"// line {number} {'x' * 30}" for number in range(1, 11_001)]
    written = "(el, text) => { el.value = text; el.dispatchEvent(new Event('input')); }"
    session.locator(".wb-editor").evaluate(written, "\n".join(lines))
    rows = ".wb-editor-lines .wb-line"
    session.locator(rows, has_text="// line ").first.wait_for()
    shown = [row.rstrip("\n") for row in session.locator(rows).all_text_contents()]
    first = lines.index(shown[0])
    assert shown == lines[first : first + len(shown)] and len(shown) < 400
    session.evaluate("document.querySelector('.wb-editor-box').scrollTop = 17 * 5000")
    session.wait_for_function(f"document.querySelector('{rows}').textContent.includes('line 49')")
    box = session.locator(".wb-editor-box").bounding_box()
    middle = session.locator(rows, has_text="// line 5005 ").bounding_box()
    assert box["y"] <= middle["y"] <= box["y"] + box["height"]
    counted = "el => getComputedStyle(el.parentElement).counterReset"
    number = session.locator(rows).first.evaluate(counted)
    first = lines.index(session.locator(rows).first.text_content().rstrip("\n"))
    assert number == f"line {first}"
    area = session.locator(".wb-editor").bounding_box()
    assert area["height"] >= 17 * len(lines)
    session.locator(".wb-editor").evaluate(written, "short")
    session.locator(rows, has_text="short").wait_for()
    assert session.locator(rows).all_text_contents() == ["short\n"]


def _edit(session: Any, record: Record) -> str:
    """Begin to edit beside machine code; return the text."""
    session.click("[data-key=mode-side_by_side]")
    session.click("[data-key=left-edit]")
    session.wait_for_function("document.activeElement.matches('.wb-editor')")
    return "\n".join(record["variants"][0]["code"][0]["lines"])


def _answer(session: Any, result: Record) -> None:
    """Answer the compiler's part until it has seen what stands in the editor: a page that is typed
    in slowly asks about parts of it, too."""
    text = None
    while text != session.input_value(".wb-editor"):
        session.wait_for_function("sent.some((m) => m.do === 'compile')")
        text = session.evaluate("sent.findLast((m) => m.do === 'compile').text")
        send_reply(session, "compile", result=result)


def _compiled(text: str, assembly: list[str]) -> Record:
    lines = text.split("\n")
    link = {"axes": [], "nodes": [], "lines": [], "source": [], "statement": 1}
    rows = [("C", lines), ("asm", assembly)]
    code = [
        {"language": name, "device": "C", "lines": own, "links": [link] * len(own)}
        for name, own in rows
    ]
    return {"code": code, "error": None}


def test_what_one_statement_became_lights_up_on_both_sides(page: Any, record: Record) -> None:
    source, machine = (
        next(c for c in record["variants"][0]["code"] if c["language"] == name)
        for name in ("C", "asm")
    )
    numbers = [link and link["statement"] for link in machine["links"]]
    statement = max(filter(None, numbers), key=numbers.count)
    page.click("[data-key=mode-side_by_side]")
    left, right = (page.locator(f".wb-side-column >> nth={i}") for i in (0, 1))
    assert left.locator(".wb-line").last.inner_text().split("\n")[-1] == source["lines"][-1]
    line = f"[data-line='{statement}']"
    left.locator(line).hover()
    lit = right.locator(".wb-near")
    assert lit.count() == numbers.count(statement)
    colours = "rows => [...new Set(rows.map((row) => getComputedStyle(row).backgroundColor))]"
    [colour] = lit.evaluate_all(colours)
    assert left.locator(line).evaluate_all(colours) == [colour]
    assert set(right.locator(".wb-near .wb-of").all_inner_texts()) == {str(statement)}
    left.locator(line).click()
    assert right.locator(".wb-lit").count() == numbers.count(statement)
    left.locator(".wb-unfold").click()
    page.select_option("[data-key='variant on the right']", label="auto")
    page.click("[data-key=right-C]")
    assert right.locator(".wb-added").count() and left.locator(".wb-removed").count()


def test_code_is_compiled_beside_the_editor_while_it_is_typed(session: Any, record: Record) -> None:
    text = _edit(session, record)
    first = _compiled(text, ["first:", "  retq"])
    _answer(session, first)
    beside = session.locator(".wb-side-column >> nth=1")
    beside.locator("text=first:").wait_for()
    session.keyboard.press("Control+Home")
    session.keyboard.type("int x = ;\n")
    error = {
        "what": "cannot compile", "because": "<stdin>:1:9: error: expected expression",
        "try": "", "line": 1,
    }  # fmt: skip
    _answer(session, {"code": [], "error": error})
    assert session.inner_text(".wb-line-error").strip() == "int x = ;"
    faults = session.locator(":text('expected expression')")
    assert faults.all_inner_texts() == ["✗ line 1: expected expression"], "once"
    assert session.locator(".wb-editor").count() == 1, "none that nobody sees"
    assert beside.locator("text=first:").count(), "what compiled last stays"
    session.keyboard.press("Control+Enter")
    send_reply(session, "edit", error=error)
    assert session.input_value(".wb-editor") == "int x = ;\n" + text
    assert faults.count() == 1, "the editor stays, and nothing is said twice"
    session.keyboard.press("Control+Home")
    session.keyboard.type("//")
    _answer(session, _compiled("//int x = ;\n" + text, ["second:"]))
    beside.locator("text=second:").wait_for()
    assert session.locator(".wb-line-error").count() == 0
    rows = session.locator(".wb-editor-lines .wb-line").all_text_contents()
    written = session.input_value(".wb-editor")
    assert "".join(rows).rstrip("\n") == written
    session.click("[data-key=fold-right]")
    both = session.locator(".wb-editor")
    assert [field.input_value() for field in both.all()] == [written] * 2, "if wanted"


def test_the_passes_of_the_compiler_say_what_they_changed(session: Any, record: Record) -> None:
    session.click("[data-key=mode-side_by_side]")
    session.click("[data-key=right-passes]")
    code = copy.deepcopy(record["variants"][0]["code"])
    machine = next(row for row in code if row["language"] == "asm")
    states = {"first": [0, 1, 2], "second": [0, 3, 2]}
    machine["made_by"] = {
        "lines": ["entry:", "  COPY $rdi", "  RET", "  MOV $rdi"],
        "passes": [{"name": n, "title": "", "lines": s} for n, s in states.items()],
    }
    patch = {"append": {}, "set": [[["variants", 0, "code"], code]]}
    send_reply(session, "compiler_passes", patch=patch)
    session.locator("[data-key=made-1]:has-text('second')").click()
    diff = session.locator(".wb-made-diff")
    assert diff.locator(".wb-removed code").all_inner_texts() == ["  COPY $rdi"]
    assert diff.locator(".wb-added code").all_inner_texts() == ["  MOV $rdi"]


@needs_c
def test_a_kernel_can_be_read_as_other_devices_would_get_it(
    browser: Any, nothing_saved: Path, tmp_path: Path
) -> None:
    with session_of(matmul()) as two, LivePage(browser, tmp_path, two, width=1400) as live:
        page, choice = live.page, "[data-key='other languages']"
        others = texts(page, f"{choice} option")
        assert "CUDA" in others and "Metal" in others and "LLVM" not in others
        page.select_option(choice, label="CUDA")
        while not any(r.get("language") == "CUDA" for r in live.answer("code")):
            pass
        page.wait_for_selector(".wb-code-body [data-line]")
        assert "blockIdx" in "".join(texts(page, ".wb-code-body code"))
        assert selected(page, "language") == [] and page.faults == []


@needs_c
def test_machine_code_of_two_devices_stands_side_by_side(
    browser: Any, nothing_saved: Path, tmp_path: Path
) -> None:
    """What one statement became has its colour on both sides, and lights up on both."""
    with session_of(matmul()) as two, LivePage(browser, tmp_path, two, width=953) as live:
        page = live.page
        page.click("[data-key=mode-side_by_side]")
        live.answer("code")
        page.click("[data-key=left-asm]")
        choice = "[data-key='device on the right']"
        page.select_option(choice, label="by C")
        requests = live.answer("code")
        assert [r["device"] for r in requests if r["do"] == "code"] == ["C"]
        left, right = (page.locator(f".wb-side-column >> nth={i}") for i in (0, 1))
        both = [side.locator(".wb-statement .wb-of") for side in (left, right)]
        first, second = (set(numbers.all_inner_texts()) for numbers in both)
        statement = max(first & second, key=int)
        left.locator(f".wb-statement:has(.wb-of:text-is('{statement}'))").first.hover()
        for side in (left, right):
            lit = set(side.locator(".wb-near .wb-of").all_inner_texts())
            assert lit == {statement}
        page.select_option(choice, label="by PYTHON")
        live.answer("code")
        assert selected(page, "language on the right") == []
        page.click("[data-key=right-IR]")
        assert right.locator(".wb-line").count() and page.faults == []


@needs_c
def test_passes_are_listed_once(browser: Any, nothing_saved: Path, tmp_path: Path) -> None:
    """After three opts, other devices and machine code, a variant has its own passes, and `plain`
    none that an opt made."""
    opts = 'UPCAST("g1", 2), UPCAST("g0", 2), UNROLL("r0", 4)'
    with session_of(matmul()) as session, LivePage(browser, tmp_path, session) as live:

        def listed(variant: int) -> list[str]:
            live.page.click(f"[data-key=variant-{variant}]")
            live.answer()
            finish_jobs(session.jobs)
            live.answer()
            return [name.strip() for name in texts(live.page, ".wb-strip [role=option]")]

        opted = done(session, "paste", variant=0, text=opts)["variant"]
        live.answer()
        for device in ("C", "PYTHON", "LLVM"):
            live.page.select_option("select[aria-label=device]", device)
            live.answer("device")
            names = listed(opted)
            live.page.click(f"[data-key=code-{'IR' if device == 'PYTHON' else 'asm'}]")
            live.answer()
            assert names.count("statement-tree") == 1, names
            assert names.count("opt-upcast") == 2 and names.count("opt-unroll") == 1, names
            assert listed(opted) == names
            plain_names = listed(0)
            assert plain_names.count("statement-tree") == 1
            assert not [name for name in plain_names if name.startswith("opt-")]


def test_what_is_edited_for_a_machine_that_is_not_here_is_compiled(
    browser: Any, tmp_path: Path
) -> None:
    product = explore(array(16, 8) @ array(8, 12), device="LLVM", target="Graviton4")
    with session_of(product) as session, LivePage(browser, tmp_path, session) as live:
        page = live.page
        page.click("[data-key=code-LLVM]")
        live.answer()
        page.click(".wb-code-bar >> text=edit")
        page.wait_for_function("document.activeElement.matches('.wb-editor')")
        assert page.inner_text("[data-key=run-edit]") == "Compile it as a variant"
        page.keyboard.type("; mine\n")
        live.answer("compile")
        page.click("[data-key=run-edit]")
        live.answer("edit")
        row = page.locator(".wb-name:has-text('edited 1')")
        assert row.inner_text().split() == ["edited", "1", "not", "run"]
        page.click("[data-key=code-asm]")
        lines = texts(page, ".wb-code-body .wb-line > code")
        assert lines == session.row(1).code[-1].lines
        page.evaluate("hear({patch: {append: {}, set: [[['device'], 'LLVM']]}})")
        row.get_by_text("LLVM:Graviton4").wait_for()  # of what machine it is
        assert "neoverse" in page.inner_text(".wb-code-body .wb-quiet")
        page.click("[data-key=mode-tune]")
        assert page.locator(":text('LLVM:Graviton4, another machine')").count() == 1


TILES = (
    'LOCAL("g0", 16), LOCAL("g1", 16), SPLIT("r0", 16), ORDER("r0", "l0"), STAGE("r0", 1),'
    ' STAGE("r0", 2)'
)


def test_a_barrier_deleted_from_cuda_is_a_race_that_is_played(
    browser: Any, tmp_path: Path, nothing_saved: Path
) -> None:
    """No GPU is here, and no compiler for one need be: the emulator runs the text."""
    with session_of(explore(array(32, 32) @ array(32, 32))) as session:
        tiled = done(session, "paste", variant=0, text=TILES)["variant"]
        with LivePage(browser, tmp_path, session) as live:
            page = live.page
            page.evaluate(f"show({{ mode: 'tune', variant: {tiled}, language: 'CUDA' }})")
            live.answer("code")
            page.click(".wb-code-bar >> text=edit")
            text = page.input_value(".wb-editor")
            begin = text.index("    __syncthreads();\n")
            end = text.index("\n", begin) + 1
            page.fill(".wb-editor", text[:begin] + text[end:])
            live.answer("compile")
            page.wait_for_selector(".wb-editor-status >> text=the emulator can run it")
            assert page.inner_text("[data-key=run-edit]") == "Run it on the emulator"
            page.click("[data-key=run-edit]")
            live.answer("edit")
            words = page.inner_text(".wb-code-emulated")
            line = text.count("\n", 0, begin) - 1
            assert f"race lines {line} and" in words and "no barrier is between" in words
            page.click("[data-key=step-edited]")
            page.wait_for_selector(".wb-gpu-lines [aria-selected=true]")
            assert "As[" in page.inner_text(".wb-gpu-lines [aria-selected=true]")
            assert f"line {line}" in page.inner_text("[data-key=gpu-finding-0]")


def test_ir_is_edited_as_text_that_parses(
    browser: Any, tmp_path: Path, nothing_saved: Path
) -> None:
    """The tree that is for reading leads to its text; a fault has its line and its column."""
    with session_of(explore(array(6, 4) @ array(4, 5), device="LLVM")) as session:
        with LivePage(browser, tmp_path, session) as live:
            page = live.page
            live.answer()
            page.click("[data-key=code-IR]")
            live.answer()
            page.click(".wb-code-bar >> text=edit")
            live.answer("code", "compile")
            page.wait_for_function("document.activeElement.matches('.wb-editor')")
            page.wait_for_selector(".wb-editor-status >> text=✓ compiles")
            text = page.input_value(".wb-editor")
            line = next(i for i, words in enumerate(text.split("\n"), 1) if "FMA" in words)
            column = text.split("\n")[line - 1].index("FMA") + 1
            page.fill(".wb-editor", text.replace("FMA", "FMMA", 1))
            live.answer("compile")
            fault = page.locator(".wb-editor-fault")
            fault.wait_for()
            assert fault.inner_text() == (
                f"✗ line {line}, column {column}: FMMA is neither an op nor a value named above:"
                " expected an op"
            )
            assert f"try at line {line}, as it was:" in page.inner_text(".wb-editor-status")
            assert "FMMA" in page.inner_text(".wb-line-error")
            fault.click()
            caret = page.evaluate("document.activeElement.selectionStart")
            assert page.input_value(".wb-editor")[caret:].startswith("FMMA")
            page.fill(".wb-editor", f"# mine\n{text}")
            live.answer("compile")
            page.click("[data-key=run-edit]")
            live.answer("edit")
            row = session.record.variants[-1]
            assert row.edited and row.check is not None and row.check.ok
            assert "edited 1" in page.inner_text("[role=treeitem][aria-selected=true]")
            assert texts(page, ".wb-code-body .wb-line > code")[0] == "# mine"
            page.click("[data-key=code-LLVM]")
            assert "define" in page.inner_text(".wb-code-body")
            assert page.faults == []
