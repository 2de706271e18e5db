"""The installed distribution, and the commands that install its extras.

The distribution is called `tensor-workbench`; `workbench` is the name to import. On PyPI
`workbench` is another project's package, so a hint names the packages themselves.

Sections: The installed distribution, and the commands that install its extras; Optional
libraries.
"""

from __future__ import annotations

import importlib
import shlex
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from workbench.base.errors import WorkbenchError

# --------------------------------------------------------------------------------------------------
# The installed distribution, and the commands that install its extras.

DISTRIBUTION = "tensor-workbench"


@lru_cache(maxsize=1)
def version() -> str:
    """Return the version of the installed distribution, or of the checkout that is imported."""
    from importlib import metadata  # slow to import, and seldom needed

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return str(_project().get("version", "unknown"))


@lru_cache(maxsize=32)
def install_command(extra: str) -> str:
    """Return the command that installs the packages of `extra`, e.g. `pip install 'wasmtime>=25'`.

    Packages for other systems are left out, unless the extra has no others.
    Errors: KeyError where the distribution has no such extra.
    """
    from packaging.requirements import Requirement  # slow to import, and seldom needed

    rows = [Requirement(row) for row in _requirements(extra)]
    if not rows:
        raise KeyError(extra)
    installed = [row for row in rows if row.marker is None or row.marker.evaluate({"extra": extra})]
    packages = [f"{row.name}{row.specifier}" for row in installed or rows]
    return f"pip install {shlex.join(packages)}"


def _requirements(extra: str) -> list[str]:
    from importlib import metadata

    try:
        rows = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return list(_project().get("optional-dependencies", {}).get(extra, []))
    return [row for row in rows if f'extra == "{extra}"' in row.replace("'", '"')]


def _project() -> dict[str, dict[str, list[str]]]:
    """Return the [project] table of the checkout's pyproject.toml, {} if there is no such file."""
    import tomllib

    file = Path(__file__).parents[2] / "pyproject.toml"
    if not file.is_file():
        return {}
    project: dict[str, dict[str, list[str]]] = tomllib.loads(file.read_text(encoding="utf-8"))[
        "project"
    ]
    return project


# --------------------------------------------------------------------------------------------------
# Optional libraries: imported on first use, with an error that says how to install one.


_EXTRAS = {
    "Metal": "metal", "cuda": "cuda", "hip": "hip", "objc": "metal", "pyopencl": "opencl",
    "wasmtime": "wasm", "wgpu": "webgpu",
}  # fmt: skip
"""The extra that installs a module. Others are in a distribution that is called as they are."""


def is_installed(name: str) -> bool:
    """Whether the module `name` can be imported; nothing is loaded but the packages around it."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:  # the parent package is missing, too
        return False
    # a namespace package, such as a folder that other packages left behind, has no origin
    return spec is not None and spec.origin is not None


def library(name: str) -> ModuleType:
    """Return the module `name`, imported now.

    Errors: WorkbenchError that says which packages to install.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        extra = _EXTRAS.get(package)
        hint = f"pip install {package}" if extra is None else install_command(extra)
        raise WorkbenchError(f"{package} cannot be imported", str(error), hint) from error
