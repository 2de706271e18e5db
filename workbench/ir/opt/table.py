"""The opts of the package, one file each. An opt more is a file beside it and a name here.

They stand in the order in which menus and searches try them: of opts that make the same kernel,
the first is listed.
"""

from __future__ import annotations

from workbench.ir.opt.group import GROUP, GROUPTOP
from workbench.ir.opt.local import LOCAL
from workbench.ir.opt.nolocals import NOLOCALS
from workbench.ir.opt.opt import OptOps
from workbench.ir.opt.order import ORDER, SWAP
from workbench.ir.opt.padto import PADTO
from workbench.ir.opt.split import SPLIT
from workbench.ir.opt.stage import STAGE
from workbench.ir.opt.tc import TC
from workbench.ir.opt.thread import THREAD
from workbench.ir.opt.unroll import UNROLL
from workbench.ir.opt.upcast import UPCAST

OptOps.add(
    UPCAST, UNROLL, LOCAL, THREAD, GROUP, GROUPTOP, SPLIT, PADTO,
    ORDER, SWAP, STAGE, NOLOCALS, TC,
)  # fmt: skip
