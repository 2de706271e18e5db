"""The layers of `scripts/code_map.py`, compared with every import. No function is long.

Imports inside functions count as much as those at the top: hiding an upward import there
does not make it point downward, and neither does `if TYPE_CHECKING:`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from fnmatch import fnmatch

import pytest
from code_map import LAYERS, row_of

from tests.tools.package_modules import Modules, imported_names, imports, outline, package_modules

# Downward imports that are forbidden all the same: a device knows what the compiler hands
# it (a linear program, a source), not how the compiler came to it.
STRANGERS = {"backends": {"schedule", "opt", "lower"}, "measure": {"schedule", "opt", "lower"}}


def test_every_import_points_downward() -> None:
    assert violations(package_modules()) == []


def test_no_import_cycle() -> None:
    assert cycles(package_modules()) == []


def test_the_entry_hands_nothing_down() -> None:
    """A function that it gave to a lower layer would be an edge that no import shows."""
    entry = ast.parse(package_modules()["workbench"])
    calls = [n.value for n in entry.body if isinstance(n, ast.Expr)]
    assert not any(isinstance(call, ast.Call) for call in calls)


def test_a_class_name_stands_once() -> None:
    """A reader searches for a class by its name, and errors show it alone."""
    places = defaultdict(list)
    for module, source in package_modules().items():
        for name in outline(source).classes:
            places[name].append(module)
    assert {n: p for n, p in places.items() if len(p) > 1} == {}


def test_import_is_light() -> None:
    heavy = {
        *("IPython", "ipywidgets", "anywidget", "llvmlite", "networkx", "graphviz"),
        *("msgspec", "py_mini_racer"),
    }
    script = f"import sys, workbench; print(sorted({heavy} & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]", "import workbench loads heavy libraries"


def test_compiler_never_imports_viz() -> None:
    upward = [
        f"{edge.module} line {edge.line}"
        for edge in imports(package_modules())
        if _unit(edge.target)[1] == "viz" and _unit(edge.module)[0] < LAYERS["workbench.viz"][0]
    ]
    assert upward == []


STEPS = {
    "schedule": "workbench.ir.schedule.schedule.schedule",
    "statement tree": "workbench.ir.lower.statement_tree.build_tree",
    "lower": "workbench.ir.lower.lower",
    "linearize": "workbench.ir.lower.linearize.linearize",
    "render": "workbench.backends.*.render.render",
}
"""The steps of a compilation, by what a module imports to take one."""
LOWERING = "workbench.ir.lower.lower"
"""The one step that is several."""


def test_only_the_pipeline_knows_which_pass_follows_which() -> None:
    """Whoever takes two steps of a compilation has written their order out again."""
    takers = {
        module: steps
        for module, source in package_modules().items()
        if (steps := _steps(module, source))
    }
    several = {module for module, steps in takers.items() if len(steps) > 1}
    assert several == {"workbench.pipeline", LOWERING}, takers
    single = {m for m in takers if not fnmatch(m, "workbench.backends.*device")}
    assert single - several == {
        "workbench.execution.realize",  # schedules, and asks the pipeline for each kernel
        "workbench.execution.schedule_cache",  # schedules each structure once
        "workbench.check.oracle",  # emulates a statement tree that it is handed
    }


def _steps(module: str, source: str) -> set[str]:
    """Return the steps of a compilation that a module takes."""
    steps = {
        step
        for name in imported_names(source)
        for step, entry in STEPS.items()
        if fnmatch(name, entry) or fnmatch(name, f"{entry}.*")
    }
    is_viz = module.startswith("workbench.viz")  # a page renders too
    renders = "render" in outline(source).attributes and not is_viz
    return steps | ({"render"} if renders else set())


PRINTERS = ("workbench.viz.text", "workbench.viz.decision_text", "workbench.viz.still")
PRINTED = {
    "workbench.viz.schema": "the rows that are printed",
    "workbench.viz.model": "words and looks, plain models of the graph and of rewrites",
    "workbench.viz.javascript": "where the boxes of a graph stand",
    "workbench.measure.kernel_time": "seconds as words",
    "workbench.base": "errors",
}
"""What text and still pictures may import, and for what."""


def test_printers_know_nothing_of_the_compiler() -> None:
    """Text and still pictures print rows: whoever has a kernel builds those."""
    edges = [e for e in imports(package_modules()) if e.module.startswith(PRINTERS)]
    assert {p for p in PRINTERS for e in edges if e.module.startswith(p)} == set(PRINTERS)
    strange = [e for e in edges if not e.target.startswith((*PRINTERS, *PRINTED))]
    assert [f"{e.module} imports {e.target}" for e in strange] == []


MOST_LINES = 50
"""Lines of a function that a reader takes in at once, without its docstring; scripts of the page
have the same bound."""


def test_no_function_is_long() -> None:
    functions = [
        (f"{module}.{name}", lines)
        for module, source in package_modules().items()
        for name, lines in outline(source).functions
    ]
    assert len(functions) > 2000
    assert [name for name, lines in functions if lines > MOST_LINES] == []


# The checks themselves, on packages small enough to see the fault.

FINE = {
    "workbench": "from workbench.tensor.tensor import Tensor",
    "workbench.base.errors": "",
    "workbench.ir": "from workbench.ir.node.uop import UOp",
    "workbench.ir.node.uop": "from workbench.base import errors",
    "workbench.ir.opt.kinds.split": "from workbench.ir.node.uop import UOp\nimport math",
    "workbench.pipeline": "from workbench.ir.opt.kinds.split import split",
    "workbench.tensor.tensor": "import workbench.pipeline",
}


def test_a_layered_package_passes() -> None:
    assert violations(FINE) == []
    assert cycles(FINE) == []


@pytest.mark.parametrize(
    ("module", "source", "sentence"),
    [
        (
            "workbench.ir.node.uop",
            "def f():\n    from workbench.pipeline import run",
            "workbench.ir.node.uop line 2 imports workbench.pipeline: ir (layer 1)"
            " may not look up to pipeline (layer 6)",
        ),
        (
            "workbench.base.errors",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n import workbench.ir.node.uop",
            "workbench.base.errors line 3 imports workbench.ir.node.uop: values (layer 0)"
            " may not look up to ir (layer 1)",
        ),
        (
            "workbench.ir.lower.lanes",
            "from workbench.ir.opt.kinds import split",
            "workbench.ir.lower.lanes line 1 imports workbench.ir.opt.kinds.split:"
            " lower and opt are strangers",
        ),
        (
            "workbench.backends.llvm.llvm_device",
            "from workbench.ir.opt.kinds.split import split",
            "workbench.backends.llvm.llvm_device line 1 imports workbench.ir.opt.kinds.split:"
            " backends and opt are strangers",
        ),
        ("workbench.misc", "", "workbench.misc has no layer: give it a row in LAYERS"),
    ],
)
def test_a_violation_is_told(module: str, source: str, sentence: str) -> None:
    assert violations({**FINE, module: source}) == [sentence]


def test_a_cycle_is_told() -> None:
    hidden = "def f():\n    from workbench.ir.b import g"
    modules = {"workbench.ir.a": hidden, "workbench.ir.b": "import workbench.ir.a"}
    assert cycles(modules) == ["workbench.ir.a -> workbench.ir.b -> workbench.ir.a is a cycle"]
    typed = f"if TYPE_CHECKING:\n    {hidden.splitlines()[1].strip()}"
    assert len(cycles({**modules, "workbench.ir.a": typed})) == 1


def violations(modules: Modules) -> list[str]:
    """Return a sentence for each module without a layer and each import against them."""
    homeless = [name for name in modules if not _has_row(name)]
    problems = [f"{name} has no layer: give it a row in LAYERS" for name in homeless]
    for each in imports(modules):
        if each.module in homeless or each.target in homeless:
            continue
        reason = _why_not(each.module, each.target)
        if reason:
            problems.append(f"{each.module} line {each.line} imports {each.target}: {reason}")
    return problems


def cycles(modules: Modules) -> list[str]:
    """Return a sentence for each cycle that a depth-first walk of the imports closes."""
    edges: dict[str, list[str]] = {name: [] for name in modules}
    for each in imports(modules):
        edges[each.module].append(each.target)
    loops: list[str] = []
    visited: set[str] = set()

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            loop = [*path[path.index(module) :], module]
            loops.append(" -> ".join(loop) + " is a cycle")
            return
        if module in visited:
            return
        for target in edges[module]:
            visit(target, [*path, module])
        visited.add(module)

    for module in modules:
        visit(module, [])
    return loops


def _why_not(module: str, target: str) -> str | None:
    """Return the reason why `module` may not import `target`, or None where it may."""
    (layer, unit), (layer_below, unit_below) = _unit(module), _unit(target)
    if unit == unit_below:
        return None
    if layer_below > layer:
        return f"{unit} (layer {layer}) may not look up to {unit_below} (layer {layer_below})"
    if layer_below == layer or unit_below in STRANGERS.get(unit, ()):
        return f"{unit} and {unit_below} are strangers"
    return None


def _has_row(module: str) -> bool:
    """Whether a row other than that of the package's own `__init__` covers `module`."""
    return module == "workbench" or row_of(module) != "workbench"


def _unit(module: str) -> tuple[int, str]:
    return LAYERS[row_of(module)]
