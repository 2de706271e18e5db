"""The error function of float nodes: a polynomial near 0, and 1 minus a power of 2 farther out.

The polynomials are minimax fits (Remez exchange, 60 digits, rounded to the float at hand). Their
error is that of erf itself, relative.
"""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.functions.polynomial import fma, polynomial
from workbench.ir.functions.signs import magnitude, with_sign_of
from workbench.ir.node.uop import UOp

# erf(t)/t - 1 for t from 0 to 1, in powers of t**2. Error: 2**-28.6 and 2**-56.0.
NEAR = {
    dtypes.float32: (
        0.12837916612625122, -0.3761262595653534, 0.1128358542919159,
        -0.026853814721107483, 0.005188330542296171, -0.0008010202436707914,
        7.853849820094183e-05,
    ),
    dtypes.float64: (
        0.1283791670955126, -0.3761263890318375, 0.11283791670954858, -0.02686617064507296,
        0.00522397762478137, -0.0008548326978765149, 0.00012055331037551108,
        -1.4925593518728226e-05, 1.6460972954153765e-06, -1.635002619207727e-07,
        1.4657883530919653e-08, -1.136567067182716e-09, 5.945255584223488e-11,
    ),
}  # fmt: skip

# log2(1 - erf(t)) for t from 1 to END, in powers of t. Error: 2**-27.8 and 2**-57.5.
FAR = {
    dtypes.float32: (
        -0.0004927966510877013, -1.62604558467865, -0.920648992061615,
        -0.14875109493732452, 0.031505417078733444, -0.004252508282661438,
        0.00026888176216743886,
    ),
    dtypes.float64: (
        -2.591984145139335e-07, -1.6279043765663077, -0.9184607667286877,
        -0.1482329427412697, 0.027523942644526567, 0.00040468651583624657,
        -0.0025521592362325765, 0.0009250439503807928, -6.468425858220264e-05,
        -0.00010150690147793367, 6.497041145116697e-05, -2.382287517462256e-05,
        6.242127477840366e-06, -1.2270171994892423e-06, 1.8133734121891624e-07,
        -1.9657208777943506e-08, 1.4796116151807572e-09, -6.918395040576088e-11,
        1.5140873320340335e-12,
    ),
}  # fmt: skip

# From here on, erf rounds to 1.
END = {dtypes.float32: 4.0, dtypes.float64: 6.0}


def erf(x: UOp) -> UOp:
    """Return 2 / sqrt(pi) times the integral of e ** -t**2 from 0 to x, which is odd.

    Beyond 1 what lacks from 1 is at most 0.16, so its rounding counts for little.
    """
    size = magnitude(x)
    small = size.min(1.0)
    near = fma(small, polynomial(small * small, NEAR[x.dtype]), small)
    far = 1.0 - polynomial(size.min(END[x.dtype]), FAR[x.dtype]).exp2()
    return with_sign_of((size < 1.0).where(near, far), x)
