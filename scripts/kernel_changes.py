"""Print how the kernels of the benchmark's models differ from those of another commit, and why.

    python scripts/kernel_changes.py           those of the last commit
    python scripts/kernel_changes.py main~5    those of any other

The last commit is HEAD while the package has changes that are not committed, else HEAD~1. Nothing
runs but the compiler of each side, in a process of its own, for the processor of this machine. A
difference is no error: the script returns 0, and says so where there is nothing to compare with.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workbench.base.errors import FileError
from workbench.kernel_files.differences import kernel_differences
from workbench.kernel_files.kernel_file import KernelFile

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "workbench"
MOST_S = 600
"""Seconds after which a side is given up: it takes some ten where nothing else runs."""


class NothingToCompare(Exception):
    """There are no kernels to compare with; its text says why."""


def kernel_changes(root: Path = ROOT, commit: str = "", models: tuple[str, ...] = ()) -> str:
    """Return the differences as text. `models` are the models to compare (none named: all).

    Errors: NothingToCompare.
    """
    is_changed = bool(_git(root, "status", "--porcelain", "--", PACKAGE))
    commit = commit or ("HEAD" if is_changed else "HEAD~1")
    name = _commit(root, commit)
    if not is_changed and not _git(root, "diff", "--name-only", name, "HEAD", "--", PACKAGE):
        return f"nothing in {PACKAGE}/ has changed since {name}"
    with tempfile.TemporaryDirectory(prefix="workbench-kernels-") as folder:
        old_tree = Path(folder, "tree")
        archive = io.BytesIO(_git(root, "archive", name, PACKAGE))
        with tarfile.open(fileobj=archive) as sources:
            sources.extractall(old_tree, filter="data")
        sides = [(name, old_tree, Path(folder, "old.jsonl"), models)]
        sides += [("the working tree", root, Path(folder, "new.jsonl"), models)]
        with ThreadPoolExecutor() as pool:
            old, new = pool.map(_kernels, *zip(*sides, strict=True))
        return f"kernels since {name}: {kernel_differences(old, new)}"


def _commit(root: Path, commit: str) -> str:
    """Return the short hash of a commit. Errors: NothingToCompare for one that is not here."""
    try:
        verified = _git(root, "rev-parse", "--verify", "--short", f"{commit}^{{commit}}")
    except NothingToCompare as error:
        because = "this is the first one, or a clone without its history"
        raise NothingToCompare(f"there is no commit {commit}: {because} ({error})") from None
    return verified.decode().strip()


def _git(root: Path, *arguments: str) -> bytes:
    """Return what git prints. Errors: NothingToCompare with its reason."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except OSError as error:
        raise NothingToCompare(f"git cannot be run: {error.strerror}") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        because = words[-1] if words else f"it returned {done.returncode}"
        raise NothingToCompare(f"git {arguments[0]} has no answer: {because}")
    return done.stdout


def _kernels(name: str, tree: Path, path: Path, models: tuple[str, ...]) -> KernelFile:
    """Return the kernels that the package in a folder writes to a file.

    Errors: NothingToCompare with its reason.
    """
    command = [sys.executable, "-m", PACKAGE, "kernels", "models", str(path)]
    command += ["--only", *models] if models else []
    environment = os.environ | {"PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, check=False, timeout=MOST_S
        )
    except subprocess.TimeoutExpired:
        raise NothingToCompare(f"the kernels of {name} are not listed after {MOST_S} s") from None
    words = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        because = words[-1] if words else f"its process returned {done.returncode}"
        raise NothingToCompare(f"the kernels of {name} cannot be listed: {because}")
    try:
        return KernelFile.read(path)
    except FileError as error:
        raise NothingToCompare(f"{name} has written no kernels: {error.because}") from None


if __name__ == "__main__":
    try:
        print(kernel_changes(commit="".join(sys.argv[1:2]), models=tuple(sys.argv[2:])))
    except NothingToCompare as reason:
        print(f"kernels are not compared: {reason}")
