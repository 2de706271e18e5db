#include <stdint.h>
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));  // 8 lanes
typedef int32_t i32x8 __attribute__((vector_size(32), aligned(4), may_alias));  // 8 lanes

static inline f32x8 splat_f32x8(float x) {  // one value in every lane
  return (f32x8){x, x, x, x, x, x, x, x};
}

#if defined(__FMA__) || defined(__FP_FAST_FMA)  // rounded once where the machine can
#define fma_f32(a, b, c) __builtin_fmaf(a, b, c)
#else
#define fma_f32(a, b, c) ((a) * (b) + (c))
#endif

#define fma_f32x8(a, b, c) ({ \
    f32x8 a_ = a, b_ = b, c_ = c; \
    (f32x8){ \
      fma_f32(a_[0], b_[0], c_[0]), fma_f32(a_[1], b_[1], c_[1]), fma_f32(a_[2], b_[2], c_[2]), fma_f32(a_[3], b_[3], c_[3]), \
      fma_f32(a_[4], b_[4], c_[4]), fma_f32(a_[5], b_[5], c_[5]), fma_f32(a_[6], b_[6], c_[6]), fma_f32(a_[7], b_[7], c_[7])}; })

static inline f32x8 select_f32x8(i32x8 mask, f32x8 a, f32x8 b) {  // a where mask, else b
  return (f32x8)((mask & (i32x8)a) | (~mask & (i32x8)b));
}

static inline f32x8 max_f32x8(f32x8 a, f32x8 b) {  // NaN if either is
  return select_f32x8((a > b) | (a != a), a, b);
}

// sample
//   p0  float32[512]
//   p1  float32[1280]
//   p2  float32[2560]
//   p3  float32[32]
//   u0  0..7 at once (upcast)
//   u1  0..1 at once (upcast)
void sample(void **args, long lo, long hi) {
  float *p0 = args[0];
  const float *p1 = args[1];
  const float *p2 = args[2];
  const float *p3 = args[3];
  for (long g0 = lo; g0 < hi; g0++) {  // global
    for (long g1 = 0; g1 < 4; g1++) {  // global
      f32x8 acc0_0 = {0};
      f32x8 acc0_8 = {0};
      for (long r0 = 0; r0 < 80; r0++) {  // reduce
        // acc0[u1, u0] += p1[(g0*2 + u1)*80 + r0] * p2[r0*32 + (g1*8 + u0)]
        const f32x8 p2_v0 = *(const f32x8 *)&p2[g1*8 + r0*32];
        acc0_0 = fma_f32x8(splat_f32x8(p1[g0*160 + r0]), p2_v0, acc0_0);
        acc0_8 = fma_f32x8(splat_f32x8(p1[g0*160 + r0 + 80]), p2_v0, acc0_8);
      }
      // p0[(g0*2 + u1)*32 + (g1*8 + u0)] = max(acc0[u1, u0] + p3[g1*8 + u0], 0.0)
      const f32x8 p3_v0 = *(const f32x8 *)&p3[g1*8];
      *(f32x8 *)&p0[g0*64 + g1*8] = max_f32x8((f32x8){0}, acc0_0 + p3_v0);
      *(f32x8 *)&p0[g0*64 + g1*8 + 32] = max_f32x8((f32x8){0}, acc0_8 + p3_v0);
    }
  }
}
