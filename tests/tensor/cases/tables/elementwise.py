"""Functions of one and two tensors, element by element, at ordinary and at special values."""

from __future__ import annotations

from tests.peers import torch
from tests.tensor.cases.case import ALL, FLOATS, INTS, case, mask, uniform, values

INF, NAN = float("inf"), float("nan")
SPECIAL = values(0.0, -0.0, 1.0, -2.5, INF, -INF, NAN, 3e-5, 6e4)
LEFT = values(5.5, -5.5, 5.5, -5.5, 0.0, -0.0, INF, 1.0, NAN, 3.0, 7.0)
RIGHT = values(2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 2.0, INF, 1.0, NAN, 0.5)
SUMMED = values(0.0, INF, -INF, INF, -INF, 3.0, -90.0, 1e4, NAN, 2.0, -INF)
BESIDE = values(0.0, INF, -INF, -INF, 1.0, 3.0, 90.0, -1e4, 1.0, 2.0, INF)
MIXED = (*FLOATS, "int32", "int64")

# fmt: off
CASES = [
    case("isinf", lambda x: x.isinf(), SPECIAL, torch=torch.isinf, dtypes=FLOATS),
    case("isinf", lambda x: x.isinf(detect_negative=False), SPECIAL, torch=torch.isposinf,
         dtypes=FLOATS),
    case("isinf", lambda x: x.isinf(detect_positive=False), SPECIAL, torch=torch.isneginf,
         dtypes=FLOATS),
    case("isinf", lambda x: x.isinf(False, False), SPECIAL,
         torch=lambda x: torch.zeros_like(x, dtype=torch.bool), dtypes=FLOATS),
    case("isinf", lambda x: x.isinf(), (3, 2), torch=torch.isinf, dtypes=("int32", "bool")),
    case("isfinite", lambda x: x.isfinite(), SPECIAL, torch=torch.isfinite, dtypes=FLOATS),
    case("isfinite", lambda x: x.isfinite(), (3, 2), torch=torch.isfinite, dtypes=("int8", "bool")),
    case("isnan", lambda x: x.isnan(), SPECIAL, torch=torch.isnan, dtypes=FLOATS),
    case("abs", lambda x: x.abs(), SPECIAL, torch=torch.abs, dtypes=FLOATS, ulps=0),
    case("abs", lambda x: x.abs(), (3, 2), torch=torch.abs, dtypes=INTS),
    case("sign", lambda x: x.sign(), (3, 2), torch=torch.sign, dtypes=ALL),
    case("log10", lambda x: x.log10(), uniform((4, 5), 0.01, 100), dtypes=FLOATS),
    case("log10", lambda x: x.log10(), SPECIAL, dtypes=FLOATS),
    case("erf", lambda x: x.erf(), (4, 5), torch=torch.erf, dtypes=FLOATS),
    case("erf", lambda x: x.erf(), SPECIAL, torch=torch.erf, dtypes=FLOATS),
    case("square", lambda x: x.square(), (3, 4), dtypes=MIXED),
    case("reciprocal", lambda x: x.reciprocal(), SPECIAL, dtypes=FLOATS),
    case("rsqrt", lambda x: x.rsqrt(), SPECIAL, dtypes=FLOATS),
    case("trunc", lambda x: x.trunc(), SPECIAL, dtypes=FLOATS),
    case("round", lambda x: x.round(), values(0.5, 1.5, 2.5, -0.5, -1.5, 2.4999), dtypes=FLOATS),
    # of two tensors
    case("fmod", lambda x, y: x.fmod(y), (4, 5), (5,), torch=torch.fmod, dtypes=FLOATS),
    case("fmod", lambda x, y: x.fmod(y), (4, 5), values(1, 2, -3, 5, -7), torch=torch.fmod,
         dtypes=("int32", "int64", "int8")),
    case("fmod", lambda x, y: x.fmod(y), LEFT, RIGHT, torch=torch.fmod, dtypes=FLOATS),
    case("fmod", lambda x: x.fmod(-3), (4, 5), torch=lambda x: torch.fmod(x, -3), dtypes=MIXED),
    case("mod", lambda x, y: x.mod(y), (4, 5), (4, 1), torch=torch.remainder, dtypes=FLOATS),
    case("mod", lambda x, y: x % y, LEFT, RIGHT, torch=torch.remainder, dtypes=FLOATS),
    case("copysign", lambda x, y: x.copysign(y), (3, 4), (4,), torch=torch.copysign,
         dtypes=FLOATS, ulps=0),
    case("copysign", lambda x, y: x.copysign(y), values(1.0, 0.0, -0.0, NAN, INF, -3.0),
         values(-0.0, -1.0, 1.0, 2.0, -INF, 0.0), torch=torch.copysign, dtypes=FLOATS, ulps=0),
    case("copysign", lambda x: x.copysign(-2.0), (3, 4),
         torch=lambda x: torch.copysign(x, -2.0), dtypes=FLOATS, ulps=0),
    case("lerp", lambda x, y: x.lerp(y, 0.25), (3, 4), (4,), torch=lambda x, y: x.lerp(y, 0.25),
         dtypes=FLOATS),
    case("lerp", lambda x, y: x.lerp(y, 0.75), (3, 4), (3, 4), dtypes=FLOATS),
    case("lerp", lambda x, y, w: x.lerp(y, w), (3, 1), (3, 4), (4,), dtypes=FLOATS),
    case("logaddexp", lambda x, y: x.logaddexp(y), (3, 4), (3, 1), torch=torch.logaddexp,
         dtypes=FLOATS),
    case("logaddexp", lambda x, y: x.logaddexp(y), SUMMED, BESIDE, torch=torch.logaddexp,
         dtypes=FLOATS, has_gradient=False),
    case("maximum", lambda x, y: x.maximum(y), LEFT, RIGHT, torch=torch.maximum, dtypes=FLOATS),
    case("minimum", lambda x, y: x.minimum(y), LEFT, RIGHT, torch=torch.minimum, dtypes=FLOATS),
    case("maximum", lambda x, y: x.maximum(y), (3, 4), (4,), torch=torch.maximum,
         dtypes=(*INTS, "bool")),
    case("div", lambda x, y: x.div(y, rounding_mode="trunc"), (3, 4), values(1, 2, -3, 5),
         torch=lambda x, y: torch.div(x, y, rounding_mode="trunc"), dtypes=MIXED),
    case("div", lambda x, y: x.div(y, rounding_mode="floor"), (3, 4), values(1, 2, -3, 5),
         torch=lambda x, y: torch.div(x, y, rounding_mode="floor"), dtypes=MIXED),
    case("clamp", lambda x: x.clamp(-0.5, 0.5), (3, 4), dtypes=FLOATS, ulps=0),
    case("clamp", lambda x: x.clamp(min_=1), (3, 4), torch=lambda x: x.clamp(min=1), dtypes=INTS),
    case("where", lambda c, x, y: c.where(x, y), mask((3, 4)), (3, 4), (4,), torch=torch.where,
         dtypes=ALL, ulps=0),
    case("where", lambda c, x: c.where(x, -1), mask((3, 1)), (4,),
         torch=lambda c, x: torch.where(c, x, -1), dtypes=FLOATS, ulps=0),
    case("bitwise_and", lambda x, y: x & y, (3, 4), (4,), dtypes=(*INTS, "bool")),
    case("bitwise_or", lambda x, y: x | y, (3, 4), (4,), dtypes=(*INTS, "bool")),
    case("bitwise_xor", lambda x, y: x ^ y, (3, 4), (4,), dtypes=(*INTS, "bool")),
    case("bitwise_not", lambda x: ~x, (3, 4), dtypes=(*INTS, "bool")),
    case("lshift", lambda x: x << 3, (3, 4), dtypes=INTS),
    case("rshift", lambda x: x >> 2, (3, 4), dtypes=INTS),
]
# fmt: on
