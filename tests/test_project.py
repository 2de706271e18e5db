"""What a person does first: install, ask what is there, run the tour, use make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.support import ROOT
from workbench.base.errors import WorkbenchError
from workbench.cli import command
from workbench.cli.command import main
from workbench.cli.tour import FETCHED, static_page
from workbench.course import TOUR

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def run(command: Sequence[str | Path], **options: object) -> str:
    """Run `command` and return what it printed; fail with that where it failed."""
    process = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert process.returncode == 0, process.stdout + process.stderr
    return str(process.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out], cwd=ROOT)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel in it; returns its folder of commands.

    The libraries are those of the environment that runs the tests, so nothing is
    downloaded. Its .pth files do not count there, so the checkout cannot be imported.
    """
    place = tmp_path_factory.mktemp("clean")
    venv.create(place, with_pip=False)
    bases = {"base": str(place), "platbase": str(place)}
    paths = sysconfig.get_paths(scheme="venv", vars=bases)
    python = Path(paths["scripts"]) / ("python.exe" if os.name == "nt" else "python")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "--python", python, "install", "-q", "--no-deps", "--no-index", wheel])
    here = sysconfig.get_paths()
    libraries = dict.fromkeys([here["purelib"], here["platlib"]])
    Path(paths["purelib"], "libraries.pth").write_text("\n".join(libraries))
    return Path(paths["scripts"])


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Work in an empty folder, with nothing of the checkout on Python's path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    shared = Path(sysconfig.get_paths()["data"], "share", "jupyter")
    monkeypatch.setenv("JUPYTER_PATH", str(shared))
    return tmp_path


def test_wheel_holds_the_package_and_the_course(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "workbench/py.typed" in names
    assert "workbench/_notebooks/01_tour.ipynb" in names
    assert "workbench/_notebooks/data/digits.npz" in names
    panels = (ROOT / "workbench/viz/page/panels").rglob("*.*")
    files = {p.relative_to(ROOT).as_posix() for p in panels if p.suffix != ".pyc"}
    assert files and files <= set(names)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"workbench"}


def test_installed_package_is_the_wheels(clean: Path, elsewhere: Path) -> None:
    python = clean / "python"
    where = run([python, "-c", "import workbench; print(workbench.__file__)"])
    assert Path(where.strip()).is_relative_to(clean.parent)


def test_installed_doctor(clean: Path, elsewhere: Path) -> None:
    lines = run([clean / "workbench", "doctor"]).splitlines()
    fields = {line[:12].strip() for line in lines}
    assert {"workbench", "python", "numpy", "llvmlite", "cpu", "cache"} <= fields
    assert "device      LLVM: available" in lines
    assert "device      PYTHON: available" in lines


@pytest.mark.timeout(400)
def test_installed_tour(clean: Path, elsewhere: Path) -> None:
    output = run([clean / "workbench", "tour", "--html", Path("sub", "tour.html")])
    page = (elsewhere / "sub" / "tour.html").read_text(encoding="utf-8")
    assert output.startswith("wrote sub")
    assert "<svg" in page or "data:image/svg+xml" in page
    assert not FETCHED.search(page)
    assert [path.name for path in elsewhere.iterdir()] == ["sub"]


def test_no_text_installs_somebody_elses_package() -> None:
    """`workbench` on PyPI is another project's, so nothing that is read says to install it."""
    command = re.compile(
        r"(pip|uv|poetry|conda) +(install|add) [^`\n]*(?<![\w./-])workbench\b(?![/.])"
    )
    wrong = re.compile(r"""['"`]workbench\[""")
    listed = run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT).split("\n")
    for name in filter(None, listed):
        if name == "tests/test_project.py" or not (ROOT / name).is_file():
            continue
        text = (ROOT / name).read_bytes().decode("utf-8", "replace")
        assert not command.search(text), name
        assert not wrong.search(text), name


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://host.org/a.js"></script>',
        "<script src='//host.org/a.js'></script>",
        '<link rel="stylesheet" href="http://host.org/a.css">',
        '<img alt="x" src="https://host.org/a.png">',
        '<style>@import url("https://host.org/a.css");</style>',
        '<script type="module">import a from "https://host.org/a.js"</script>',
    ],
)
def test_page_that_fetches_is_refused(html: str) -> None:
    output = new_output("display_data", data={"text/html": html})
    notebook = new_notebook(cells=[new_code_cell("1", outputs=[output])])
    with pytest.raises(WorkbenchError, match="would not open offline"):
        static_page(notebook)


def test_page_shows_what_stands_in_for_a_widget() -> None:
    data = {VIEW: {"model_id": "a"}, "text/html": "<b>picture</b>"}
    output = new_output("display_data", data=data)
    notebook = new_notebook(
        cells=[new_code_cell("1", outputs=[output])],
        metadata={"widgets": {STATE: {"state": {"a": {}}}}},
    )
    page = static_page(notebook)
    assert "<b>picture</b>" in page
    assert "<script" not in page


def test_page_may_link() -> None:
    page = static_page(new_notebook(cells=[new_markdown_cell("[a](https://host.org)")]))
    assert "https://host.org" in page
    assert "<script" not in page


def test_a_page_has_the_title_of_its_notebook() -> None:
    cells = [new_code_cell("# 1"), new_markdown_cell("# A tour <3>\n\nText\n# More")]
    assert "<title>A tour &lt;3&gt;</title>" in static_page(new_notebook(cells=cells))
    assert "<title>workbench</title>" in static_page(new_notebook(cells=cells[:1]))


def test_tour_needs_somewhere_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["tour"])
    assert stopped.value.code == 2
    assert "--html" in capsys.readouterr().err


def test_python_m_is_the_command() -> None:
    output = run([sys.executable, "-m", "workbench", "--help"])
    assert output.startswith("usage: workbench ")
    assert all(command in output for command in ("lab", "tour", "doctor", "bench"))


def test_missing_library_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    assert main(["lab"]) == 1
    message = capsys.readouterr().err
    assert "jupyterlab cannot be imported" in message
    assert "pip install jupyterlab" in message


def test_lab_opens_a_copy_of_the_notebooks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    course = tmp_path / "checkout" / "notebooks"
    (course / "data").mkdir(parents=True)
    (course / "__pycache__").mkdir()
    for name in (TOUR, "02_more.ipynb", "data/digits.txt", "__pycache__/x.pyc"):
        (course / name).write_text("ours")
    monkeypatch.setattr(command, "course_folder", lambda: course)
    copy = command._editable_notebooks()
    assert copy == course.parent / "workbench-notebooks"
    names = {str(p.relative_to(copy)) for p in copy.rglob("*") if p.is_file()}
    assert names == {TOUR, "02_more.ipynb", "data/digits.txt"}
    (copy / TOUR).write_text("mine")
    (copy / "02_more.ipynb").unlink()
    (course / "data/digits.txt").write_text("newer")
    command._editable_notebooks()
    assert (copy / TOUR).read_text() == "mine"
    assert (copy / "02_more.ipynb").read_text() == "ours"
    assert (copy / "data/digits.txt").read_text() == "newer"
    ignored = (ROOT / ".gitignore").read_text().split("\n")
    assert "/workbench-notebooks/" in ignored, "git sees nothing of what somebody runs"


def test_pins_cover_what_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = project["dependencies"] + project["optional-dependencies"]["dev"]
    pins = (ROOT / "constraints.txt").read_text().lower()
    for requirement in requirements:
        name = re.split(r"[<>=~!\[; ]", requirement)[0]
        assert re.search(rf"^{re.escape(name)}==", pins, re.MULTILINE), name
    assert re.fullmatch(r"([\w.-]+==[\w.+!-]+\n)+", pins), "only name==version lines"


@needs_make
@pytest.mark.parametrize(
    ("target", "steps"),
    [
        ("lab", ["workbench lab"]),
        ("test", ["ruff check", "ruff format --check", "mypy", "pytest -n 2"]),
        ("test-long", ["WORKBENCH_TEST_PROFILE=long", "pytest -n 2"]),
        ("tour", ["workbench tour --html build/tour.html"]),
        ("notebooks", ["scripts/run_notebooks.py"]),
        ("bench", ["bench/*.py"]),
        ("kernels", ["scripts/kernel_changes.py"]),
        ("map", ["scripts/code_map.py"]),
    ],
)
def test_make_targets(target: str, steps: list[str], tmp_path: Path) -> None:
    plan = run(["make", "-n", target, f"VENV={tmp_path}/venv", "WORKERS=2"], cwd=ROOT)
    places = [plan.index(step) for step in ["-m venv --clear", *steps]]
    assert places == sorted(places)


@needs_make
@pytest.mark.parametrize(
    ("lacking", "sentence"),
    [("version_info < ", "older than Python 3.11"), ("import venv", "has no venv module")],
)
def test_make_explains_what_is_missing(lacking: str, sentence: str, tmp_path: Path) -> None:
    python = tmp_path / "python3.10"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *"{lacking}"*) exit 1;; esac\nexec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    process = subprocess.run(
        ["make", "test", f"PYTHON={python}", f"VENV={tmp_path}/venv"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert process.returncode != 0
    assert sentence in process.stderr
    assert not (tmp_path / "venv").exists()


def test_ci_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().rstrip().endswith("exec make test")
    run(["bash", "-n", script])


CLIENT = re.compile(
    r"^ *(?:import|from) (?:urllib|http|socket|ftplib|requests|httpx|aiohttp)\b", re.M
)
TALK_TO_A_NOTEBOOK = {
    "workbench/cli/tour.py",
    "tests/viz/browser/lab.py",
    "tests/viz/browser/hosts/test_marimo.py",
}
"""They talk to a server that they start on this machine."""


def test_no_module_needs_a_network() -> None:
    """Neither the package, nor its data sets, notebooks and tests."""
    importers = {
        str(path.relative_to(ROOT))
        for folder in ("workbench", "tests", "notebooks", "bench", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if CLIENT.search(path.read_text(encoding="utf-8"))
    }
    assert importers == TALK_TO_A_NOTEBOOK
