"""The list of what led to a node: complete, and reached from a line of code or from the graph."""

from __future__ import annotations

from typing import Any

from tests.viz.browser.rewrites.support import Record, where
from tests.viz.layouts import Functions
from workbench.ir.text.program import to_expr
from workbench.viz.model.provenance import links_of
from workbench.viz.record.record import Recorder


def test_what_led_to_a_node_is_what_python_says(
    functions: Functions, recorder: Recorder, record: Record
) -> None:
    compared = 0
    for variant, row in enumerate(record["variants"]):
        kernel, number = recorder.kernels[variant], row["kernel"]
        compiled = kernel.compile()
        ex = recorder.exploration
        value = [item.nodes[0] for item in ex.items if item.kernel is not None][number]
        links = links_of(compiled, ex.passes, ex.lines, value)
        places = [*range(len(ex.passes)), *row["passes"]]
        for node in dict.fromkeys(compiled.built.linear):
            if node not in recorder._nodes:
                continue
            expected = [(places[c.place], c.number) for c in links.why(node)]
            history = functions.evaluate(
                "([places, n]) => nodeHistory(record, places, [n]).rows",
                [places, recorder._nodes.add(node)],
            )
            steps = [(r["pass"], r["step"]) for r in history]
            # what is not in the record (ranges before they had names) ends no chain there
            visible = [w for w in expected if w[1] or w in steps]
            assert steps == visible, to_expr(node)
            compared += len(steps)
    assert compared > 500


def test_a_line_of_code_leads_to_its_rules(page: Any) -> None:
    """From an instruction in Tune to the rewrite that made it: one click, one key, one click."""
    page.keyboard.press("1")
    page.click('.wb-code-tabs button:has-text("LLVM"), [role=tab]:has-text("LLVM")')
    page.click('.wb-line:has-text(" shl i32") >> nth=0')
    maker = page.locator('.wb-code-origin [data-key^="made-by-"]').first
    rule = maker.inner_text().removesuffix(" ›")
    maker.click()
    page.wait_for_selector(f".wb-rw-rule:has-text('{rule}')")
    page.keyboard.press("1")
    page.click('.wb-line:has-text(" shl i32") >> nth=0')
    page.keyboard.press("2")
    page.click('.wb-rw-history [role=option]:has-text("exp2-polynomial")')
    assert "exp2-polynomial" in page.inner_text(".wb-rw-rule")
    assert "tensor graph" in page.inner_text(".wb-rw-history")


def test_history_names_the_rule_and_leads_to_it(page: Any) -> None:
    page.click('.wb-rw-list [role=option]:has-text("form-fma") >> nth=-1')
    last = where(page)
    page.click("g.wb-g-new")
    page.keyboard.press("k")
    page.click('.wb-rw-history [role=option]:has-text("form-fma")')
    assert where(page) == last
    assert page.locator(".wb-g-picked").count() == 1


def test_a_node_of_another_pass_or_variant_is_said_to_be_one(page: Any) -> None:
    """In an earlier pass what becomes it is named, with that; in another variant there is none."""
    page.click('.wb-rw-list [role=option]:has-text("form-fma") >> nth=-1')
    page.click("g.wb-g-new")
    panel = ".wb-rw-node"
    name = page.inner_text(f"{panel} .wb-heading h3")
    assert name.startswith("FMA")
    assert "It becomes" not in page.inner_text(panel)
    page.click('.wb-rw-pass:has-text("statement-tree")')
    now = page.inner_text(f"{panel} .wb-heading h3")
    assert not now.startswith("FMA")
    assert f"It becomes {name}" in page.inner_text(panel)
    assert "in a pass before statement-tree" not in page.inner_text(panel)
    page.click('.wb-rw-pass:has-text("decompose")')
    page.keyboard.press("j")
    page.click("[aria-label=variants] [role=treeitem] >> nth=1")
    text = page.inner_text(panel)
    assert "It existed before" not in text
    assert "picked in another variant" in text
