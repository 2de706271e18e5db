"""Scripts of explorations: they run without the framework, with what was chosen by hand."""

from __future__ import annotations

import ast
import copy
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peers import peer
from tests.tools.compiler import needs_c
from tests.viz.record.support import plain
from tests.viz.session.support import done, session_of
from workbench import Context, Exploration, Opt, OptOps, Tensor, explore, load
from workbench.base.errors import WorkbenchError
from workbench.viz.files.script import comment, identifier, script_of

RNG = np.random.default_rng(7)
RUN = """
import runpy, sys
import numpy as np
for name in ("torch", "onnx", "onnxruntime", "tinygrad"):
    sys.modules[name] = None
for stem in sys.argv[1:]:
    with np.load(f"{stem}_inputs.npz") as given:
        inputs = [given[f"arr_{place}"] for place in range(len(given.files))]
    results = runpy.run_path(f"{stem}.py")[stem](*inputs)
    each = results if isinstance(results, tuple) else (results,)
    np.savez(f"{stem}_results.npz", *[result.numpy() for result in each])
"""
"""Runs scripts on other inputs than those of their explorations, without any framework."""


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


Case = tuple[Exploration, Sequence[Any], Sequence[Any]]
"""An exploration, inputs of its function, and what its framework makes of them."""


def torch_network() -> Case:
    torch = peer("torch")

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(11, 6)
            self.conv = torch.nn.Conv1d(5, 8, 3)
            self.norm = torch.nn.BatchNorm1d(8)

        def forward(self, ids: Any, x: Any) -> Any:
            y = self.norm(self.conv(self.embed(ids) + x))
            return {"y": y, "greatest": y.argmax(1)}

    torch.manual_seed(1)
    module = Network().train()
    ex = explore(module, torch.arange(10).reshape(2, 5), torch.randn(2, 5, 6))
    inputs = [RNG.integers(0, 11, (2, 5)), floats(2, 5, 6)]
    module = copy.deepcopy(module)  # its statistics change, and the exploration has the memory
    results = module(*map(torch.tensor, inputs))
    written = [module.norm.running_mean, module.norm.running_var, module.norm.num_batches_tracked]
    return ex, inputs, [value.detach().numpy() for value in (*results.values(), *written)]


def exported_program() -> Case:
    torch = peer("torch")
    module = torch.nn.Sequential(torch.nn.Linear(6, 6, bias=False), torch.nn.GELU())
    program = torch.export.export(module, (torch.zeros(3, 6),))
    x = floats(3, 6)
    return explore(program, floats(3, 6)), [x], [module(torch.tensor(x)).detach().numpy()]


def onnx_model() -> Case:
    onnx = peer("onnx")
    text = """<ir_version: 9, opset_import: ["" : 17]>
    agraph (float[2, 6] x, int64[2] shape) => (float[m, n] y, float[2, 2] z)
    <float[6, 2] "the weight's" = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
      y = Reshape(x, shape)
      z = MatMul(x, "the weight's")
    }"""
    text = text.replace('"the weight\'s"', "w")
    model = onnx.parser.parse_model(text)
    model.graph.initializer[0].name = model.graph.node[1].input[1] = 'the "weight\'s"\nimport os'
    shape, x = np.array([3, 4]), floats(2, 6)
    weight = np.arange(1, 13, dtype=np.float32).reshape(6, 2)
    return explore(model.SerializeToString(), floats(2, 6), shape), [x, shape], [
        x.reshape(3, 4), x @ weight,
    ]  # fmt: skip


def numpy_function() -> Case:
    def scores(rows: Any, *more: Any) -> Any:
        return np.exp(rows - rows.max()) / more[0].sum(), rows.T

    rows, column = floats(3, 4), np.abs(floats(4))
    ex = explore(scores, floats(3, 4), floats(4))
    return ex, [rows, column], scores(rows, column)


def tensors() -> Case:
    """Arrays that variables name are the inputs; the others are data."""
    a, b = Tensor(floats(4, 5)), Tensor(floats(5, 4)).realize()
    kept = [Tensor(floats(4, 4)) * 2]
    ex = explore((a @ b).relu() + kept[0], Tensor.full((2, 3), 7.0), (a + 1).reshape(5, 4).T)
    names = [name.strip() for name in _signature(ex)]
    given = {"a": floats(4, 5), "b": floats(5, 4)}
    product = np.maximum(given["a"] @ given["b"], 0) + kept[0].numpy()
    others = np.full((2, 3), 7.0), (given["a"] + 1).reshape(5, 4).T
    return ex, [given[name] for name in names], [product, *others]


def _signature(ex: Exploration) -> list[str]:
    functions = [n for n in ast.parse(ex.to_python()).body if isinstance(n, ast.FunctionDef)]
    return [argument.arg for argument in functions[-1].args.args]


CASES: dict[str, Callable[[], Case]] = {
    "torch_network": torch_network,
    "exported_program": exported_program,
    "onnx_model": onnx_model,
    "numpy_function": numpy_function,
    "tensors": tensors,
}


def test_scripts_compute_what_the_framework_does_without_it(tmp_path: Path) -> None:
    cases = {name: make() for name, make in CASES.items()}
    for name, (ex, inputs, _) in cases.items():
        path = ex.to_python(tmp_path / f"{name}.py")
        assert path == tmp_path / f"{name}.py" and path.read_text().isascii()
        np.savez(tmp_path / f"{name}_inputs.npz", *inputs)
    command = [sys.executable, "-W", "error", "-c", RUN, *cases]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for name, (_, _, expected) in cases.items():
        with np.load(tmp_path / f"{name}_results.npz") as results:
            assert len(results.files) == len(expected), name
            for place, values in enumerate(expected):
                actual = results[f"arr_{place}"]
                assert actual.shape == np.shape(values), name
                np.testing.assert_allclose(actual, values, rtol=1e-4, atol=1e-5, err_msg=name)


def test_as_a_program_it_prints_the_results_of_the_inputs_that_were_explored(
    tmp_path: Path,
) -> None:
    x = Tensor([1.0, 2.0])
    explore(x * 3, x.sum()).to_python(tmp_path / "2 class.py")
    command = [sys.executable, "-W", "error", "2 class.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("[3. 6.]\n3.0\n", "")


def _values(ex: Exploration, path: Path) -> tuple[Any, Exploration]:
    """Return the values of a script of one result, and the exploration of its function."""
    ex.to_python(path)
    function = runpy.run_path(str(path))[path.stem]
    return function().numpy(), explore(function())


def test_opts_that_were_added_last_stay(tmp_path: Path) -> None:
    a, b = floats(16, 8), floats(8, 16)
    ex = explore((Tensor(a) @ Tensor(b)).contiguous().sum(0) + 1)
    chosen = [(Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UNROLL, "r0", 2)), ()]
    _, again = _values(ex, tmp_path / "net.py")
    assert [k.opts_in_code for k in again.kernels] == ["", ""], "the machine's default opts"
    with session_of(ex) as session:
        ex.display.session = session
        ex.add(ex.kernels[0].apply(Opt(OptOps.UPCAST, "g0", 8)))
        last = ex.add(ex.kernels[0].apply(*chosen[0]), "mine")
        values, again = _values(ex, tmp_path / "net.py")
        assert [k.optimized().applied_opts for k in again.kernels][0] == chosen[0]
        assert again.kernels[1].opts_in_code == ""
        assert "; mine" in (tmp_path / "net.py").read_text()
        np.testing.assert_allclose(values, (a @ b).sum(0) + 1, rtol=1e-4, atol=1e-5)
        ex.delete(last)
        assert "Opt(OptOps.UPCAST, 'g0', 8)" in ex.to_python()


@needs_c
def test_edits_stay_as_c(tmp_path: Path) -> None:
    """Also with threads, and edited IR, which becomes C."""
    x = floats(64, 64)
    ex = explore((Tensor(x) * 2).contiguous() + 1)
    with session_of(ex) as session:
        ex.display.session = session
        roots = [row.root for row in session.record.kernels]
        threaded = done(session, "apply", variant=roots[0], opt='THREAD("g0", 2)')["variant"]
        done(session, "code", variant=threaded, language="C")
        lines = next(r for r in plain(session.row(threaded))["code"] if r["language"] == "C")
        text = "\n".join(lines["lines"]).replace("2.0f", "(1.0f + 1.0f)")
        assert "(1.0f + 1.0f)" in text and "thread" in text
        done(session, "edit", variant=threaded, language="C", text=text)
        linear = ex.kernels[1].compile().text("linear")
        done(session, "edit", variant=roots[1], language="IR linear", text=linear)
        written = ex.to_python()
        assert written.count("_on_tensors") == 2 and "(1.0f + 1.0f)" in written
        values, _ = _values(ex, tmp_path / "net.py")
        np.testing.assert_allclose(values, x * 2 + 1, rtol=1e-6)


@needs_c
def test_an_edit_that_no_script_runs_is_refused_with_its_remedy() -> None:
    ex = explore(Tensor(floats(64)) * 2)
    with session_of(ex) as session:
        ex.display.session = session
        done(session, "code", variant=0, language="LLVM")
        code = next(c for c in plain(session.row(0))["code"] if c["language"] == "LLVM")
        text = "\n".join(code["lines"])
        edit = done(session, "edit", variant=0, language="LLVM", text=f"; mine\n{text}")
        with pytest.raises(WorkbenchError, match=r"(?s)edit of kernel 1.*it is LLVM.*delete"):
            ex.to_python()
        done(session, "delete", variants=[edit["variant"]], back=False)
        assert "KERNEL_1" in ex.to_python()


def test_other_inputs_are_refused_in_the_names_of_the_function(tmp_path: Path) -> None:
    def scaled(x: Any, y: Any) -> Any:
        return x * 2 + y

    ex = explore(scaled, floats(2, 3), floats(3))
    path = ex.to_python(tmp_path / "scaled.py")
    function = runpy.run_path(str(path))["scaled"]
    wrong: list[tuple[tuple[Any, ...], str]] = [
        ((floats(3, 2), floats(3)), r"x must be float32 of shape \(2, 3\), and is .*\(3, 2\)"),
        ((floats(2, 3), np.ones(3, np.int32)), "y must be float32 of shape .*is int32"),
    ]
    for inputs, words in wrong:
        with pytest.raises(ValueError, match=words):
            function(*inputs)
    assert function(y=np.zeros(3, np.float32)).shape == (2, 3)


def test_a_value_that_the_kernels_are_made_for_cannot_be_another(tmp_path: Path) -> None:
    ex, (x, shape), _ = onnx_model()
    function = runpy.run_path(str(ex.to_python(tmp_path / "net.py")))["net"]
    with pytest.raises(ValueError, match=r"shape must be \[3, 4\], for which the kernels"):
        function(x, shape[::-1].copy())


def test_one_array_for_two_parameters_is_one_parameter() -> None:
    x = Tensor(floats(3)).realize()
    ex = explore(lambda a, b: a * b, x, x)
    assert _signature(ex) == ["a"] and "b is a part of the kernels" in ex.to_python()


HOSTILE = ["\nimport os\n", '"""', "'''", "\\", "x'] + [print('x')", "\r#", "\u2028", "é", "class"]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_code(name: str) -> None:
    ex = explore(Tensor(floats(3)).realize() * 2)
    ex.lines.add_names({ex.items[0].buffers[-1]: (name,), ex.outputs[0]: (name,)})
    script = script_of(ex, name)
    statements = [
        node for node in ast.parse(script.text).body if not isinstance(node, ast.FunctionDef)
    ]
    kinds = [type(node).__name__ for node in statements]
    assert kinds == ["Expr", *["ImportFrom"] * 3, "Assign", "Assign", "If"]
    assert comment(name).isprintable() and identifier(f"x{name}", ()).isidentifier()
    if name.isidentifier():
        return
    (key,) = script.data
    assert key == name and repr(name) in script.text


def test_what_cannot_be_written_says_why(tmp_path: Path) -> None:
    x = Tensor(floats(4))
    loaded = load(explore(x + 1).save(tmp_path / "x.json"))
    with pytest.raises(WorkbenchError, match="loaded without data"):
        loaded.to_python()
    with pytest.raises(WorkbenchError, match="which is not here"):
        explore(x + 1, device="CUDA", target="H100").to_python()
    with pytest.raises(WorkbenchError, match="cannot write"):
        explore(x + 1).to_python(tmp_path / "no folder" / "net.py")
    with pytest.raises(WorkbenchError, match="the data have that name"):
        explore(x + 1).to_python(tmp_path / "net.safetensors")
    with Context(DEV="PYTHON"):
        ex = explore(Tensor(floats(4)) + 1)
    assert 'Device.DEFAULT = "PYTHON"' in ex.to_python()


@needs_c
def test_a_kernel_that_the_user_wrote_in_c_stays_as_it_is(tmp_path: Path) -> None:
    """Also one that adds to what is in its output."""
    counts, at = np.array([10, 20, 30], np.int32), np.array([0, 1, 1, 2, 2], np.int32)
    text = "void added(int *n, const int *at) { for (int i = 0; i < 5; i++) n[at[i]] += 1; }"
    with Context(DEV="C"):
        added = Tensor(counts).custom_kernel(Tensor(at), fxn=text)[0]
        values, _ = _values(explore(added * 2), tmp_path / "net.py")
    np.testing.assert_array_equal(values, (counts + [1, 2, 2]) * 2)
