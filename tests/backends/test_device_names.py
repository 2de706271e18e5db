"""No device is named, and no module of one imported, outside its own folder."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from tests.support import ROOT
from tests.tools.package_modules import imported_names, package_modules
from workbench.backends.native.host_memory import HOST

NOT_A_DEVICE = {
    ("emulator/source/evaluation.py", "CUDA"),  # a language
    ("emulator/source/evaluation.py", "HIP"),
    ("emulator/source/languages.py", "CUDA"),
    ("emulator/source/languages.py", "HIP"),
    ("emulator/source/places.py", "CUDA"),
    ("emulator/source/places.py", "HIP"),
    ("viz/glossary.py", "NULL"),  # a word that is explained
    ("backends/gpu/cpp.py", "OPENCL"),  # a word of the language
    ("backends/gpu/cpp.py", "CL"),  # its standard
    ("viz/model/graph.py", "C"),  # a letter for constants
    ("viz/still/picture.py", "C"),
    ("viz/run/chrome_trace.py", "C"),  # the letter of counters there
    ("bench/peers.py", "CPU"),  # a device of tinygrad's
    ("bench/peers.py", "LLVM"),
    ("bench/training.py", "CPU"),
    ("bench/training.py", "LLVM"),
    ("tensor/reductions/convolution.py", "C"),  # a type variable
    ("models/numpy_array.py", "C"),
    ("models/tinygrad/reference.py", "PYTHON"),  # a device of tinygrad's
    ("models/array_layout.py", "C"),  # an order of numpy's
    ("tensor/numpy/functions/movement.py", "C"),
    ("tensor/numpy/functions/table.py", "C"),
    ("tensor/numpy/ufuncs.py", "C"),
    ("backends/native/jit.py", "LLVM"),  # a library
    ("measure/far_lines.py", "LLVM"),  # a language
    ("viz/glossary.py", "LLVM"),  # a word that the page explains
    ("backends/llvm_ir/gpu_render.py", "LLVM"),
    ("backends/llvm_ir/gpu_code.py", "LLVM"),
    ("backends/llvm_ir/gpu_targets.py", "LLVM"),
    ("backends/llvm_ir/render.py", "LLVM"),
    ("backends/llvm_ir/render.py", "LLVM"),
    ("backends/wasm/wasm_module.py", "LLVM"),
    ("backends/wasm/wasm_device.py", "LLVM"),
    ("measure/peak.py", "LLVM"),  # the language of a text
    ("measure/bandwidth.py", "LLVM"),
}
"""What looks like the name of a device and is none."""


def device_modules() -> list[Path]:
    """Return the module of each device: of the folder `cuda`, `cuda_device.py`."""
    paths = (ROOT / "workbench/backends").glob("*/*_device.py")
    return [path for path in paths if path.stem == f"{path.parent.name}_device"]


def test_no_device_is_named_outside_its_folder() -> None:
    """Whoever wants to know something of a device asks for a fact of it; that of host data has a
    constant."""
    package = ROOT / "workbench"
    folders = {HOST: package / "backends" / "native"}
    for path in device_modules():
        module = import_module(f"workbench.backends.{path.parent.name}.{path.stem}")
        for name in (module.DEVICE.name, *module.DEVICE.aliases):
            folders[name] = path.parent
    names = {
        (path.relative_to(package).as_posix(), name)
        for path in sorted(package.rglob("*"))
        for text in _texts(path)
        for name in _device_names(text, folders)
        if folders[name] not in path.parents
    }
    assert names == NOT_A_DEVICE
    assert len(folders) >= 7


def test_no_module_of_a_device_is_imported_outside_its_folder() -> None:
    """Devices are asked for in the registry. (Those of this processor share `backends/native/`.)"""
    folders = [path.parent.name for path in device_modules()]
    imports = [
        f"{module} imports {target}"
        for module, source in package_modules().items()
        for target in imported_names(source)
        for folder in folders
        if f"{target}.".startswith(f"workbench.backends.{folder}.")
        and not f"{module}.".startswith(f"workbench.backends.{folder}.")
    ]
    assert imports == [] and len(folders) >= 3


def _device_names(text: str, folders: Iterable[str]) -> set[str]:
    """Return the names of devices that are words of a text; one of a letter is the whole text."""
    words = set(re.findall(r"(?<![A-Za-z_])[A-Z]+(?![A-Za-z_])", text))
    return {n for n in folders if (n in words if len(n) > 1 else n == text)}


def _texts(path: Path) -> Iterator[str]:
    """Yield the strings of a file's code: no docstrings, no comments, and not how numpy calls an
    order."""
    if path.suffix == ".js":
        code = re.sub(r"/\*.*?\*/|(?<!:)//.*", "", path.read_text("utf-8"), flags=re.DOTALL)
        yield from (a or b or c for a, b, c in _QUOTED.findall(code))
    if path.suffix != ".py":
        return
    tree = ast.parse(path.read_text("utf-8"))
    orders = (k.value for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg == "order")
    lines = (n.value for n in ast.walk(tree) if isinstance(n, ast.Expr))
    skipped = {id(node) for node in (*orders, *lines)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in skipped:
                yield node.value


_QUOTED = re.compile(r'"([^"\n]*)"|\'([^\'\n]*)\'|`([^`]*)`')
