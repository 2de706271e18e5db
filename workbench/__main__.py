"""`python -m workbench`: the console command, for installations whose folder is not on the PATH."""

from __future__ import annotations

import sys

from workbench.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
