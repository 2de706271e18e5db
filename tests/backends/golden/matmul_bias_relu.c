#include <stdint.h>
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));  // 8 lanes
typedef int32_t i32x8 __attribute__((vector_size(32), aligned(4), may_alias));  // 8 lanes

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
        acc0_0 += p1[g0*160 + r0] * p2_v0;
        acc0_8 += p1[g0*160 + r0 + 80] * p2_v0;
      }
      // p0[(g0*2 + u1)*32 + (g1*8 + u0)] = max(acc0[u1, u0] + p3[g1*8 + u0], 0.0)
      const f32x8 p3_v0 = *(const f32x8 *)&p3[g1*8];
      *(f32x8 *)&p0[g0*64 + g1*8] = max_f32x8((f32x8){0}, acc0_0 + p3_v0);
      *(f32x8 *)&p0[g0*64 + g1*8 + 32] = max_f32x8((f32x8){0}, acc0_8 + p3_v0);
    }
  }
}
