"""Every state that a page can be in, by a name: the record that it shows, and what is done from one
scene to the next. A test that visits them finds what is wrong in any (test_scenes.py)."""

from __future__ import annotations

from tests.viz.browser.page.support import timing
from tests.viz.browser.scans.acts import (
    Act,
    answer,
    change,
    check,
    choose,
    click,
    fall_silent,
    fill,
    hear,
    point,
    press,
    unfold_everything,
    until,
)
from tests.viz.browser.scans.records import CANDIDATES

Scenes = dict[str, tuple[Act, ...]]
ERROR = {"what": "cannot compile", "because": "<stdin>:1:9: error: expected expression", "try": "x"}
FAULT = ERROR | {"line": 1}
STATUS = {"task": "search", "done": 3, "total": 10, "text": "3 of 10"}
SEARCH = {
    "tried": 4, "timed": 3, "best": 3, "speedup": 4.0, "seconds": 9.5, "ended": "over",
    "device": "LLVM", "candidates": CANDIDATES,
}  # fmt: skip

# fmt: off
RULES: Scenes = {
    "all rules": (press("5"),),
    "those that fired": (check(".wb-rules input[type=checkbox]"), until(".wb-rules-row:not(.wb-idle)")),
    "a rule that fired": (click(".wb-rules-row >> nth=0"), until(".wb-rules-uses")),
    "a use of it": (press("n"), until(".wb-rw-rule .wb-uses")),
    "no rule": (press("r"), fill(".wb-rules input[type=search]", "qzx"), until(".wb-rules >> text=nothing found")),
    "a rule that fired nowhere": (
        fill(".wb-rules input[type=search]", ""), click(".wb-rules .wb-filter label"),
        click(".wb-rules-row.wb-idle >> nth=0"), unfold_everything,
    ),
}
CODE: Scenes = {
    "diff": (press("1"), click("[role=treeitem]:has-text('auto')"), press("d"), until(".wb-code-pane .wb-added")),
    "diff of machine code": (click("[data-key=code-asm]"),),
    "help of an instruction": (
        press("d"), click(".wb-code-pane .wb-line:has(.wb-mnemonic) >> nth=2"),
        point(".wb-code-pane .wb-mnemonic >> nth=2"),
    ),
    "heat with ports": (press("4"), click("[data-key=right-asm]"), click("[data-key=right-heat]"), until(".wb-heat")),
    "a line of two columns": (click(".wb-side .wb-line.wb-statement >> nth=3"),),
    "two variants": (
        click("[data-key=left-asm]"), choose("[data-key='variant on the left']", "plain"),
        until(".wb-side .wb-added"),
    ),
    "passes of the compiler": (click("[data-key=right-passes]"), click("[data-key=made-1]")),
}
HEAT: Scenes = {
    "heat by count": (press("4"), click("[data-key=right-asm]"), click("[data-key=right-heat]"), until(".wb-heat")),
}
EXPORT: Scenes = {
    "export of Tune": (press("1 e"), until(".wb-export")),
    "export of a step": (press("e 2 j e"), until(".wb-export")),
    "export of Plan": (press("e 3 e"),),
    "export of Side by side": (press("e 4 e"),),
    "export of Rules": (press("e 5 e"),),
    "something copied": (click("[data-key='export-html']"), press("e")),
}
MANY: Scenes = {
    "repeats folded": (press("3"), until(".wb-plan .wb-g-label")),
    "by bytes": (press("["), click("[data-key=sort-bytes]"),),
    "by time": (click("[data-key=sort-time]"),),
    "a search of kernels": (fill(".wb-kernels input", "soft"),),
    "no kernel found": (fill(".wb-kernels input", "qzx"), until(".wb-kernels >> text=nothing found")),
    "a kernel of a repeat": (
        fill(".wb-kernels input", ""), click("[data-key=sort-place]"),
        click(".wb-kernels [data-key=kernel-3]"), press("["),
    ),
    "repeats unfolded": (press("o"), until(".wb-plan .wb-g-words-title")),
    "a kernel unfolded": (press("o"),),
    "all values": (click("[data-key=level-values]"),),
    "a value of many": (click(".wb-plan-list [data-item] >> nth=0"), unfold_everything),
    "many in Tune": (press("1"),),
    "many in Rules": (press("5"), click(".wb-rules-row >> nth=0")),
}
ASKED = {"asked": (press("1"),)}
GUESS_AND_READ: Scenes = {"a guess": (fill(".wb-ask input", "5"), click("[data-key=guess] >> nth=-1"), press("1"))}
QUESTIONS: dict[str, Scenes] = {
    "kernels": {f"asked in mode {mode}": (press(mode),) for mode in "12345"} | GUESS_AND_READ,
    "time": ASKED | GUESS_AND_READ,
    "opts": ASKED | {"a guess": (click(".wb-ask input >> nth=0"), click(".wb-ask button >> nth=-1"), press("1"))},
    "bound": ASKED | {"a guess": (click(".wb-ask button >> nth=0"), press("1"))},
}
"""Scenes by the name of a question: before the guess, and with all that it was hiding beside it."""
LIVE: Scenes = {
    "a search that runs": (press("1"), click("[data-key=search]"), hear({"status": STATUS})),
    "a search without figures": (hear({"status": {"task": "search", "done": 0, "total": 0, "text": ""}}),),
    "what a search tried": (
        hear({"status": {"task": None, "done": 0, "total": 0, "text": ""}}),
        answer("search", result={"variant": 0}), change([["variants", 0, "searches"], [SEARCH, SEARCH | {"when": 1_700_000_000, "budget_s": 10.0}]]),
        unfold_everything,
    ),
    "timing and checking": (press("1 t c"), until("text=Timing…")),
    "what went wrong": (
        answer("check", error=ERROR), until(".wb-results [role=alert]"), unfold_everything,
    ),
    "wrong answers": (
        change(
            [["variants", 0, "check"], {"ok": False, "text": "row 3 is 2.0, expected 1.0"}],
            [["variants", 1, "error"], ERROR], [["saved"], 3],
            [["variants", 0, "elsewhere"], [timing(3e-3, 0.05) | {"device": "C"}, timing(3, 0.05, True)]],
        ),
        unfold_everything,
    ),
    "no offers yet": (change([["variants", 0, "offers"], []]),),
    "a baseline": (change([["baselines"], [{"name": "numpy", "timing": timing(1e-3, 0.1), "error": None}]]),),
    "rules off in a variant": (change([["variants", 0, "rules_off"], ["form-fma"]]), press("2"),),
    "bisecting": (click("[data-key=bisect]"), until("text=computing states")),
    "bisected": (answer("bisect", result={"pass": 3, "step": 1, "rule": "form-fma", "text": "it was 2"}), until("[data-key=bisect-done]")),
    "plans compared": (
        press("3"),
        change([["plan", "compared"], {"predicted_s": 2e-5, "bytes": [4096, 2048], "operations": [9, 8],
            "kernels": [2, 2], "change": 0, "moved": [0, 1], "seconds": [1e-3, 2e-3],
            "speed": "x0.50", "verdict": "The plan before was faster.",
        }]),
    ),
    "rules off for all": (change([["without"], {"rules": ["form-fma"], "differs": "1 kernel differs"}]),),
    "rules with one off": (press("5"), click(".wb-rules-row >> nth=0")),
}
EDITOR: Scenes = {
    "an editor": (press("1"), click(".wb-code-bar [data-key=edit]"), until(".wb-editor")),
    "an error in the editor": (answer("compile", result={"code": [], "error": FAULT}), until(".wb-line-error")),
    "an editor beside machine code": (press("4"),),
    "an edit that runs": (click(".wb-side [data-key=run-edit]"), until(".wb-side >> text=Running…")),
}
SILENT: Scenes = {"Python is silent": (press("1"), fall_silent)}
# fmt: on
