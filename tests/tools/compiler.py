"""Whether the device C can be tested here."""

from __future__ import annotations

import os

import pytest

from workbench.backends.c.c_device import find_compiler

# where everything must be tested, a missing compiler fails instead
NONE_HERE = find_compiler() is None and not os.environ.get("CI")
needs_c = pytest.mark.skipif(NONE_HERE, reason="no C compiler here")
