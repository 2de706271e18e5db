"""WGSL functions for kernels that need more accuracy than the built-in ones have.

WGSL's own sine may be off by 2**-11, its exp2(x) by 2 |x| units in the last place, and each may be
anything for NaN (W3C, WGSL, section "Accuracy"). Sums that only rounding makes what they are, as in
the polynomials of other devices, do not help: an implementation may reassociate them. Here powers
of two are split at an integer by `round`, and arguments of sines reduced by `fma`, which nothing
reassociates; a remainder is a long division of integers, eight bits a step. Source of the
reduction: Cody and Waite 1980; beyond 2**16 a sine is WGSL's own.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.ir.node.ops import Ops

NAN = "var<private> nan_bits: u32 = 0x7fc00000u;"
INFINITY = "var<private> infinity_bits: u32 = 0x7f800000u;"
"""A constant expression that is not finite is an error: its bits are a variable."""
_EXP2 = """\
fn exp2_float32(x: f32) -> f32 {
  let n: f32 = round(clamp(x, -160.0f, 160.0f));
  let low: i32 = i32(n) >> 1u;
  let high: i32 = i32(n) - low;
  let power: f32 = exp2(x - n) * bitcast<f32>(u32(low + 127) << 23u);
  return select(power * bitcast<f32>(u32(high + 127) << 23u), x, !(x == x));
}"""
_LOG2 = """\
fn log2_float32(x: f32) -> f32 {
  let value: f32 = select(log2(x), -bitcast<f32>(infinity_bits), x == 0.0f);
  return select(value, bitcast<f32>(nan_bits), !(x >= 0.0f));
}"""
_SINE = """\
fn sine_float32(x: f32, quadrant: i32) -> f32 {
  let n: f32 = round(x * 0.63661975f);
  let r: f32 = fma(-n, 7.54979e-8f, fma(-n, 0.0004837513f, fma(-n, 1.5703125f, x)));
  let q: i32 = i32(n) + quadrant;
  let s: f32 = r * r;
  let sine: f32 = ((-0.00019518292f * s + 0.008332189f) * s - 0.16666655f) * s * r + r;
  let c: f32 = ((2.4432327e-5f * s - 0.001388731f) * s + 0.041666646f) * s - 0.5f;
  let cosine: f32 = c * s + 1.0f;
  let value: f32 = select(sine, cosine, (q & 1) != 0);
  return select(value, -value, (q & 2) != 0);
}"""
_PERIODIC = """\
fn {name}_float32(x: f32) -> f32 {{
  let value: f32 = select({name}(x), sine_float32(x, {quadrant}), abs(x) <= 65536.0f);
  return select(bitcast<f32>(nan_bits), value, abs(x) <= 3.4028234e38f);
}}"""
_SIN = _PERIODIC.format(name="sin", quadrant=0)
_COS = _PERIODIC.format(name="cos", quadrant=1)
_FMOD = """\
fn fmod_float32(x: f32, y: f32) -> f32 {
  let sign: u32 = bitcast<u32>(x) & 0x80000000u;
  let size: u32 = bitcast<u32>(x) & 0x7fffffffu;
  let by: u32 = bitcast<u32>(y) & 0x7fffffffu;
  if (by == 0u || size >= 0x7f800000u || by > 0x7f800000u) { return bitcast<f32>(nan_bits); }
  if (size < by) { return x; }
  var high: i32 = max(i32(size >> 23u), 1);
  let low: i32 = max(i32(by >> 23u), 1);
  let divisor: u32 = (by & 0x7fffffu) | select(0u, 0x800000u, by >= 0x800000u);
  var rest: u32 = ((size & 0x7fffffu) | select(0u, 0x800000u, size >= 0x800000u)) % divisor;
  while (high > low && rest != 0u) {
    let step: i32 = min(high - low, 8);
    rest = (rest << u32(step)) % divisor;
    high -= step;
  }
  let up: i32 = select(min(i32(countLeadingZeros(rest)) - 8, low - 1), 0, rest == 0u);
  rest <<= u32(up);
  let exponent: u32 = select(0u, u32(low - up) << 23u, rest >= 0x800000u);
  return bitcast<f32>(sign | exponent | (rest & 0x7fffffu));
}"""

FUNCTIONS: Mapping[Ops, tuple[str, tuple[str, ...]]] = {
    Ops.EXP2: ("exp2_float32", (_EXP2,)),
    Ops.LOG2: ("log2_float32", (INFINITY, NAN, _LOG2)),
    Ops.SIN: ("sin_float32", (NAN, _SINE, _SIN)),
    Ops.FMOD: ("fmod_float32", (NAN, _FMOD)),
    Ops.COS: ("cos_float32", (NAN, _SINE, _COS)),
}
"""The name of the function for an op, and the declarations that it needs, in their order."""
