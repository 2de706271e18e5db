"""A model as a stranger writes it, in a real JupyterLab: its class in a file next to the notebook,
helper functions, several cells. Plan shows its modules and phases, a gradient leads to the line of
its forward, and the gradient pass is in Rewrites."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.lab import LAB, Notebook

pytestmark = LAB

MODULE = """from workbench import Tensor, nn


class Encoder:
    def __init__(self, wide):
        self.first = nn.Linear(12, wide)
        self.second = nn.Linear(wide, wide)

    def __call__(self, x):
        x = self.first(x).tanh()
        return self.second(x).tanh()


class Reader:
    def __init__(self, wide=24):
        self.encoder = Encoder(wide)
        self.head = nn.Linear(wide, 5)

    def __call__(self, x):
        return self.head(self.encoder(x))
"""
CELLS = (
    "import numpy as np\nfrom workbench import Tensor, explore, nn\nfrom reading import Reader\n"
    "net = Reader()\nweights = nn.state.get_parameters(net)\nTensor.realize(*weights);",
    "def batch(n):\n    rng = np.random.default_rng(0)\n"
    "    return Tensor(rng.random((n, 12), np.float32)), Tensor(rng.integers(0, 5, n))\n"
    "def loss_of(x, labels):\n    return net(x).cross_entropy(labels)",
    "x, labels = batch(32)\nTensor.realize(x, labels);\nloss = loss_of(x, labels)",
    "explore(loss, *loss.gradient(*weights))",
)
TANH_LINE = MODULE.splitlines().index("        x = self.first(x).tanh()") + 1


@pytest.fixture
def wb(notebook: Notebook) -> Any:
    """The workbench of the model, in Plan, with the list of kernels."""
    (notebook.lab.folder / "reading.py").write_text(MODULE)
    for source in CELLS[:-1]:
        notebook.cell(source)
    page = notebook.cell(CELLS[-1]).locator(".wb")
    page.locator("[role=treeitem]:has-text('auto')").wait_for(state="attached")
    page.locator("[data-key=mode-plan]").click()
    return page


def test_a_model_of_a_file_is_read_kernel_by_kernel(wb: Any) -> None:
    kernels_have_modules_and_phases(wb)
    activations_lead_to_the_forward(wb)
    a_gradient_kernel_leads_to_its_forward(wb)
    memory_has_a_bar_for_each_kernel(wb)
    gradient_steps_say_what_they_did(wb)


def kernels_have_modules_and_phases(wb: Any) -> None:
    legend = wb.locator(".wb-plan-phase")
    expect(legend).to_have_count(2)
    assert [text.split()[:2] for text in legend.all_inner_texts()] == [
        ["F", "forward"],
        ["B", "backward"],
    ]
    letters = wb.locator(".wb-plan .wb-g-letter").all_text_contents()
    assert {"F", "B"} <= set(letters)
    if wb.locator(".wb-kernels").is_hidden():
        wb.locator("[data-key=fold-left]").click()
    rows = wb.locator(".wb-kernels [data-item]")
    count = rows.count()
    wb.locator(".wb-kernels input").fill("net.encoder.first")
    expect(rows).not_to_have_count(count)
    hints = [row.get_attribute("title") or "" for row in rows.all()]
    assert hints and all("net.encoder.first: " in hint for hint in hints)
    wb.locator(".wb-kernels input").fill("backward")
    expect(rows.locator(".wb-phase", has_text="F")).to_have_count(0)
    marks = rows.locator(".wb-phase").all_text_contents()
    assert marks and set(marks) == {"B"}


def activations_lead_to_the_forward(wb: Any) -> None:
    """Hovering one marks its lines in the graph."""
    tanh = wb.locator(".wb-plan-activations [data-item]:has-text('32x24')").first
    expect(tanh).to_contain_text(f"reading.py:{TANH_LINE}")
    expect(tanh).to_contain_text("net.encoder: tanh")
    tanh.hover()
    wb.locator(".wb-plan .wb-g-lit-line").first.wait_for(state="attached")


def a_gradient_kernel_leads_to_its_forward(wb: Any) -> None:
    """To the user's line in the file, from Plan and from a line of its code."""
    wb.locator(".wb-kernels input").fill("")
    made_by = "net.encoder.first: gradient of linear"
    row = wb.locator(f".wb-kernels [data-item][title*='{made_by}']").first
    expect(row).to_contain_text("matmul")
    row.click()
    expect(row).to_have_attribute("aria-selected", "true")
    made = wb.locator(".wb-plan-made")
    expect(made).to_contain_text(made_by)
    expect(made).to_contain_text(f"reading.py:{TANH_LINE}")
    wb.locator("[data-key=mode-tune]").click()
    if wb.locator(".wb-code-body").is_hidden():
        wb.locator("[data-key=fold-right]").click()
    wb.locator(".wb-code-body [data-line]:has-text('= fma_f32(')").first.click()
    lit = wb.locator(".wb-sources .wb-lit")
    expect(lit.filter(has_text=f"reading.py:{TANH_LINE}").first).to_be_attached()
    wb.page.keyboard.press("Escape")


def memory_has_a_bar_for_each_kernel(wb: Any) -> None:
    wb.locator("[data-key=mode-plan]").click()
    wb.locator(".wb-kernels input").fill("")
    bars = wb.locator(".wb-held-bar").count()
    assert bars >= wb.locator(".wb-kernels [data-item]").count() > 6


def gradient_steps_say_what_they_did(wb: Any) -> None:
    wb.locator(".wb-strip [role=option]:has-text('gradient')").click()
    steps = wb.locator(".wb-rw-list [data-item]")
    tanh = steps.filter(has_text="gradient-tanh").first
    tanh.click()
    rule = wb.locator(".wb-rw-rule")
    expect(rule).to_contain_text("workbench/ir/gradient/rules.py")
    expect(rule).to_contain_text("g * (1.0 - n * n)")
    change = wb.locator(".wb-rw-change")
    expect(change).to_contain_text("GRADIENT(of ")
    expect(change).to_contain_text("where")
    assert wb.locator("[data-key=rule-off]").count() == 0
