"""Print the map of the package: its folders from the bottom layer up, and of each module the first
sentence of its docstring (of a script of the page: of its first comment).

    make map                prints all of it
    make map ROOM=ir/opt    prints one folder, with those in it
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "workbench"

# One row per unit. Modules of one unit may import each other, units of one layer may not, and all
# other imports go to a lower layer. A module is in the row with the longest name that fits.
# fmt: off
LAYERS: dict[str, tuple[int, str]] = {
    "workbench.base":               (0, "values"),
    "workbench.pickles":            (0, "values"),
    "workbench.course":             (1, "course"),
    "workbench.ir":                 (1, "ir"),
    "workbench.ir.rules":           (2, "rules"),
    "workbench.ir.functions":       (2, "functions"),
    "workbench.ir.gradient":        (2, "gradient"),
    "workbench.ir.schedule":        (3, "schedule"),
    "workbench.ir.opt":             (3, "opt"),
    "workbench.ir.lower":           (3, "lower"),
    "workbench.backends":           (4, "backends"),
    "workbench.measure":            (5, "measure"),
    "workbench.emulator":           (5, "emulator"),
    "workbench.worker.client":      (5, "worker"),
    "workbench.worker.rows":        (5, "worker"),
    "workbench.worker.sandbox":     (5, "worker"),
    "workbench.pipeline":           (6, "pipeline"),
    "workbench.execution":          (6, "pipeline"),
    "workbench.portable":           (6, "pipeline"),
    "workbench.counters":           (6, "pipeline"),
    "workbench.debug":              (6, "pipeline"),
    "workbench.edited":             (6, "pipeline"),
    "workbench.cost":               (7, "cost"),
    "workbench.check":              (7, "check"),
    "workbench.registration":       (8, "registration"),
    "workbench.kernel":             (8, "kernel"),
    "workbench.search":             (8, "kernel"),
    "workbench.worker":             (8, "kernel"),
    "workbench.emulator.emulate":   (8, "kernel"),
    "workbench.tensor":             (9, "tensor"),
    "workbench.kernel_files":       (9, "kernel files"),
    "workbench.nn":                 (10, "nn"),
    "workbench.models":             (11, "models"),
    "workbench.viz":                (12, "viz"),
    "workbench":                    (13, "entry"),
    "workbench.bench":              (13, "entry"),
    "workbench.__main__":           (13, "entry"),
    "workbench.cli":                (13, "entry"),
}
# fmt: on


def row_of(module: str) -> str:
    """Return the name of the row of LAYERS that covers `module`."""
    while module not in LAYERS:
        module = module.rpartition(".")[0]
    return module


def code_map(room: str = "", package: Path = PACKAGE) -> str:
    """Return the lines of the map of `room`, a folder of the package, and of the folders in it."""
    folders = [package, *(path for path in package.rglob("*") if path.is_dir())]
    below = package / room
    rooms = [folder for folder in folders if folder == below or below in folder.parents]
    texts = [_room(package, each) for each in sorted(rooms, key=lambda each: _order(package, each))]
    return "\n\n".join(text for text in texts if text)


def _order(package: Path, folder: Path) -> tuple[int, str, str]:
    module = ".".join(("workbench", *folder.relative_to(package).parts))
    return *LAYERS[row_of(module)], module


def _room(package: Path, folder: Path) -> str:
    """Return the lines of a folder: its own, and one for each module; "" without modules."""
    modules = [*folder.glob("*.py"), *folder.glob("*.js")]
    files = sorted(path for path in modules if path.name != "__init__.py")
    if not files:
        return ""
    name = folder.relative_to(package.parent).as_posix()
    about = sentence(folder / "__init__.py")
    lines = [f"{name}/  (layer {_order(package, folder)[0]})" + (f"  {about}" if about else "")]
    width = max(len(path.name) for path in files)
    return "\n".join([*lines, *(f"  {path.name:{width}}  {sentence(path)}" for path in files)])


@cache
def sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring, or of a script's first comment."""
    if not path.exists():
        return ""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(source)) or ""
    else:
        comment = re.match(r"(?://.*\n)*", source)
        text = re.sub(r"^// ?", "", comment[0] if comment else "", flags=re.MULTILINE)
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", paragraph)[0]


if __name__ == "__main__":
    print(code_map("".join(sys.argv[1:2])))
