"""Check the scripts of the page: format, the linter's rules, types. `make lint` runs it.

It runs deno, which comes from pip (the `deno` package of the extra `dev`), without the network, and
with its caches in a temporary folder. With `--format` the files are formatted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "workbench/viz/page"
ENTRIES = ("main.js", "layout/whole.js", "panels/plan/still.js")
"""Modules that no other module imports, besides those of the panels."""
OFFLINE = ("--no-remote", "--no-npm")


def deno(*arguments: str | Path, **more: str) -> int:
    """Run deno in the checkout, offline; return its exit status. `more`: environment variables."""
    try:
        from deno import find_deno_bin
    except ImportError:
        raise SystemExit(
            "cannot check the scripts of the page: deno is not installed\n"
            "  because  it is in the extra `dev`, or has no wheel for this platform\n"
            "  try      pip install -c constraints.txt deno; make lint"
        ) from None
    with tempfile.TemporaryDirectory() as caches:
        offline = {"DENO_DIR": caches, "DENO_NO_UPDATE_CHECK": "1"}
        command = [find_deno_bin(), *map(str, arguments)]
        return subprocess.run(
            command, cwd=ROOT, env={**os.environ, **offline, **more}, check=False
        ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", action="store_true", help="format the files, too")
    how = () if parser.parse_args().format else ("--check",)
    panels = PAGE.glob("panels/*/panel.js")
    steps = (
        ("fmt", "--quiet", *how),
        ("lint", "--quiet"),
        ("check", "--quiet", *OFFLINE, *(PAGE / name for name in ENTRIES), *panels),
    )
    return max(deno(*step) for step in steps)


if __name__ == "__main__":
    raise SystemExit(main())
