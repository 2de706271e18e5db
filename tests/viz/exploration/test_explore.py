"""`explore`: what an Exploration holds, says and exports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tests.peers import torch
from tests.viz.support import array, matmul, softmax
from workbench.base.errors import WorkbenchError
from workbench.base.trace import observer
from workbench.ir.node.ops import OPS
from workbench.nn.optim import SGD
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore
from workbench.viz.schema.messages import ViewState


def test_kernels_in_execution_order_with_titles_and_lines() -> None:
    ex = softmax()
    assert [k.title for k in ex.kernels] == ["max+exp", "sum+div"]
    assert all(k.applied_opts == () for k in ex.kernels)
    assert all(k.line is not None and k.line.name.endswith("support.py") for k in ex.kernels)
    assert [p.name for p in ex.passes][:4] == [
        "simplify-tensor",
        "split-reductions",
        "decide",
        "rangeify",
    ]
    assert all(d.reason for d in ex.decisions)
    assert observer() is None


def test_kernels_run_on_the_data_of_the_expression() -> None:
    x = array(64, 48)
    e = (x - x.max(axis=1, keepdim=True)).exp().contiguous()
    y = e / e.sum(axis=1, keepdim=True)
    (actual,) = explore(y).kernels[1].run("LLVM")
    np.testing.assert_allclose(actual, y.numpy(), rtol=1e-6)


def test_exploring_computes_nothing() -> None:
    y = array(4) + 1
    explore(y)
    assert "not computed" in repr(y)


def test_text_has_kernels_and_reasons() -> None:
    text = str(matmul())
    assert "1 kernel, 3 copies, on LLVM" in text
    assert "kernel 1: matmul+bias+relu" in text
    assert "it is a result that was asked for" in text
    assert "matmul+bias+relu" in repr(matmul())


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (lambda: Tensor(2.0), "constants, or in memory already"),
        (lambda: array(4), "only copied"),
        (lambda: (array(4) + 1).realize(), "in memory already"),
    ],
)
def test_nothing_to_compute_is_said(tensor: object, words: str) -> None:
    ex = explore(tensor())  # type: ignore[operator]
    assert ex.kernels == ()
    assert words in str(ex)


def test_devices_side_by_side() -> None:
    on_python = Tensor([1.0, 2.0], device="PYTHON") * 2
    ex = explore(array(4) + 1, on_python)
    assert len(ex.kernels) == 2
    assert ex.headline == "2 kernels, 2 copies, on LLVM and PYTHON"
    (actual,) = ex.kernels[1].run("PYTHON")
    assert actual.tolist() == [2.0, 4.0]


def test_bad_input_is_explained() -> None:
    with pytest.raises(WorkbenchError, match=r"(?s)cannot explore argument 1, a list.*explore\(\*"):
        explore([array(4)])  # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="argument 2, an int"):
        explore(array(4), 3)  # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match=r"(?s)argument 2, a function.*explore\(f, x\)"):
        explore(array(4), lambda x: x)
    with pytest.raises(WorkbenchError, match="nothing to explore"):
        explore()


class Weights:
    """As a module of PyTorch looks from outside."""

    __module__ = "torch.nn"

    def state_dict(self) -> dict[str, object]:
        return {}


class OwnModule(torch.nn.Module):
    """A class of the user's is PyTorch's all the same."""


def optimizer() -> object:
    """Return one of PyTorch's without a parameter. Its `__init__` imports PyTorch's compiler, which
    every process of a run would do."""
    result = torch.optim.SGD.__new__(torch.optim.SGD)
    result.param_groups = []
    return result


@pytest.mark.parametrize(
    ("value", "kind", "hint"),
    [
        (np.ones(3), "a numpy.ndarray", "explore(Tensor(x) + 1)"),
        (Weights(), "a torch.nn.Weights", "explore(module, x)"),
        (OwnModule, f"the class {__name__}.OwnModule", "explore(C(), x)"),
        (torch.ones(3), "a torch.Tensor", "explore(Tensor(x) + 1)"),
        (optimizer(), "a torch.optim.sgd.SGD", "schedule_step()"),
        (torch.relu, "a builtin_function_or_method", "explore(Tensor(x).relu())"),
        (SGD([array(4)]), "a LARS", "explore(loss, *optimiser.schedule_step())"),
        ({"x": array(4)}, "a dict", "explore(*tensors.values())"),
        (iter([array(4)]), "a list_iterator", "explore(*tensors)"),
        (Tensor, "the class Tensor", "explore(Tensor(x) + 1)"),
        ("a.txt", "a str", "workbench.load(path)"),
        (None, "a NoneType", "explore(Tensor(x) + 1)"),
    ],
)
def test_what_else_people_explore_has_advice(value: object, kind: str, hint: str) -> None:
    with pytest.raises(WorkbenchError) as refused:
        explore(value)  # type: ignore[arg-type]
    assert refused.value.what == f"cannot explore argument 1, {kind}"
    assert hint in refused.value.hint


def test_a_tab_is_the_whole_page_with_it_open() -> None:
    ex = explore(array(4) + 1, show="tune")
    assert ex.show == "" and ex.display.view.mode == "tune"
    with pytest.raises(WorkbenchError, match="of layouts, board, tune, side_by_side"):
        explore(array(4) + 1, show="side by side")


def test_only_variants_are_renamed_and_deleted() -> None:
    ex = explore(array(4) + 1)
    for value in (ex.kernels[0], "plain", 0):
        for act in (lambda v: ex.rename(v, "x"), ex.delete):
            with pytest.raises(WorkbenchError, match=r"this is not a variant"):
                act(value)  # type: ignore[operator]


@pytest.mark.parametrize(
    "act",
    [
        lambda ex: ex.select(mode="nope"),
        lambda ex: ex.select(kernel=9),
        lambda ex: ex.select(variant="plain"),
        lambda ex: ex.select(node=-1),
        lambda ex: ex.select(axis=0),
        lambda ex: ex.select(language="COBOL"),
        lambda ex: ex.select(zoom=2),
        lambda ex: ex.select(mode=np.ones(2)),
        lambda ex: ex.baseline("numpy", 3),
        lambda ex: ex.baseline("", len),
        lambda ex: ex.baseline(len, "numpy"),
        lambda ex: ex.values("x"),
        lambda ex: ex.values(ex.tensors[0], {"0": 64}),
        lambda ex: ex.values(ex.tensors[0], {"7": 0}),
        lambda ex: ex.values(ex.tensors[0], [0]),
        lambda ex: ex.values(ex.kernels[0].ast),
        lambda ex: ex.kernels[0].values(None),
        lambda ex: ex.kernels[0].values(ex.kernels[0].compile()["lowered"]),
        lambda ex: ex.bisect("x"),
        lambda ex: ex.bisect(True),
        lambda ex: ex.code(-1),
        lambda ex: ex.rewrites("0"),
        lambda ex: ex.replan(3),
        lambda ex: ex.replan({"x": True}),
        lambda ex: ex.replan({ex.tensors[0]: 5}),
        lambda ex: ex.kernels[0].compare(3),
        lambda ex: ex.kernels[0].compare_times([ex.kernels[0]]),
        lambda ex: ex.kernels[0].compare_times({"numpy": 3}),
        lambda ex: explore(*ex.tensors, show="Loops"),
        lambda ex: explore(*ex.tensors, show=3),
        lambda ex: explore(*ex.tensors, without=3),
        lambda ex: explore(*ex.tensors, device=np.ones(2)),
        lambda ex: explore(*ex.tensors, device=[]),
        lambda ex: explore(*ex.tensors, target=np.ones(2)),
        lambda ex: explore(ex),
        lambda ex: explore(ex.kernels[0]),
    ],
)  # fmt: skip
def test_wrong_arguments_are_explained(act: Callable[[Exploration], object]) -> None:
    with pytest.raises(WorkbenchError) as error:
        act(softmax())
    assert error.value.what and error.value.because and error.value.hint


def test_a_lowered_node_says_where_its_value_is() -> None:
    kernel = matmul().kernels[0]
    loops = kernel.compile()["lowered"].toposort()
    lowered = [n for n in loops if "k" not in OPS[n.op].levels]
    value = next(n for n in loops if n.dtype.is_float and lowered[0] in n.toposort())
    with pytest.raises(WorkbenchError, match="pass before statement-tree"):
        kernel.values(value)


def test_select_names_kernels_by_number() -> None:
    ex = softmax()
    ex.select(kernel=ex.kernels[1].optimized(), mode="rewrites", axis="g0", node=None)
    assert ex.display.view == ViewState(kernel=1, mode="rewrites", axis="g0", node=None)


def test_networkx() -> None:
    ex = softmax()
    graph = ex.to_networkx()
    by_op = {data["op"]: (node, data) for node, data in graph.nodes(data=True)}
    division, data = by_op["FDIV"]
    assert data["shape"] == (64, 48)
    assert data["dtype"] == "float32"
    assert (data["kernel"], data["title"], data["stored_by"]) == (1, "sum+div", 1)
    assert by_op["EXP"][1]["kernel"] == 0 and "EXP2" not in by_op
    assert by_op["BUFFER"][1]["kernel"] is None
    assert sorted(d["position"] for _, _, d in graph.in_edges(division, data=True)) == [0, 1]


def test_the_graph_as_plain_data() -> None:
    ex = softmax()
    graph = ex.graph
    assert graph.titles == ("max+exp", "sum+div")
    division = next(node for node in graph.nodes if node.op == "FDIV")
    assert (division.shape, division.dtype, division.label) == ((64, 48), "float32", "÷")
    assert (division.kernels, division.stored_by, division.is_requested) == ((1,), 1, True)
    assert (division.role, division.size_bytes) == ("value", 64 * 48 * 4)
    assert division.family.name == "arithmetic"
    sources = [edge.source for edge in graph.edges if edge.target == division.number]
    assert sources == list(ex.to_networkx().predecessors(division.number))


def test_both_places_of_one_source() -> None:
    x = array(4)
    graph = explore(x * x).to_networkx()
    assert [d["positions"] for *_, d in graph.edges(data=True) if len(d["positions"]) > 1] == [
        (0, 1)
    ]


def test_graphviz_source_without_dot() -> None:
    dot = softmax().to_graphviz().source
    assert dot.count("subgraph cluster_") == 2
    assert 'label="1  max+exp"' in dot
    assert "->" in dot


def test_importing_pictures_is_light() -> None:
    heavy = "{'IPython', 'ipywidgets', 'anywidget', 'networkx', 'graphviz', 'llvmlite'}"
    script = f"import sys, workbench.viz; print(sorted({heavy} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert process.stdout.strip() == "[]", process.stderr
