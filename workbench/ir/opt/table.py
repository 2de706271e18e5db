"""The table of the package's opts, each in a file of `kinds/`. A new opt is a file and a name here.

Menus and searches try the opts in this order. Of opts with equal results the first is listed.
"""

from __future__ import annotations

from workbench.ir.opt.kinds.group import GROUP, GROUPTOP
from workbench.ir.opt.kinds.local import LOCAL
from workbench.ir.opt.kinds.nolocals import NOLOCALS
from workbench.ir.opt.kinds.order import ORDER, SWAP
from workbench.ir.opt.kinds.padto import PADTO
from workbench.ir.opt.kinds.pipeline import PIPELINE
from workbench.ir.opt.kinds.split import SPLIT
from workbench.ir.opt.kinds.stage import STAGE
from workbench.ir.opt.kinds.tc import TC
from workbench.ir.opt.kinds.thread import THREAD
from workbench.ir.opt.kinds.unroll import UNROLL
from workbench.ir.opt.kinds.upcast import UPCAST
from workbench.ir.opt.opt import OptOps

OptOps.add(
    UPCAST, UNROLL, LOCAL, THREAD, GROUP, GROUPTOP, SPLIT, PADTO,
    ORDER, SWAP, STAGE, PIPELINE, NOLOCALS, TC,
)  # fmt: skip
