"""Kernels in HIP compile with clang, which zig brings, and convert halves by instructions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from workbench import Tensor, dtypes, explore
from workbench.base.dtypes import DType
from workbench.pipeline import stages, tuned

NAME = "HIP:MI300X"
LIMIT_S = 120.0
WORDS = """\
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#define __syncthreads() __builtin_amdgcn_s_barrier()
#define VECTOR(type, name) typedef type name __attribute__((ext_vector_type(4)));
struct Number { unsigned x, y, z; };
#define NUMBER(of) (Number{of##_x(), of##_y(), of##_z()})
#define blockIdx NUMBER(__builtin_amdgcn_workgroup_id)
#define threadIdx NUMBER(__builtin_amdgcn_workitem_id)
VECTOR(float, float4)
VECTOR(short, short4)
VECTOR(unsigned short, ushort4)
__device__ inline float4 make_float4(float a, float b, float c, float d) {
  return float4{a, b, c, d};
}
__device__ inline short4 make_short4(short a, short b, short c, short d) {
  return short4{a, b, c, d};
}
__device__ inline float __int_as_float(int a) { return __builtin_bit_cast(float, a); }
__device__ inline float __shfl_xor(float a, int mask) {
  int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)) ^ mask;
  int word = __builtin_amdgcn_ds_bpermute(lane << 2, __builtin_bit_cast(int, a));
  return __builtin_bit_cast(float, word);
}
__device__ inline float truncf(float a) { return __builtin_truncf(a); }
__device__ inline float exp2f(float a) { return __builtin_amdgcn_exp2f(a); }
"""
"""What HIP's header says of the words that kernels use."""
CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "elementwise": lambda x: (x * 2 + x).relu(),
    "softmax": lambda x: x.softmax(1),
    "matmul": lambda x: x @ x.T,
    "transposed": lambda x: x.T.contiguous(),
    "bits": lambda x: x.bitcast(dtypes.int16),
}


@pytest.fixture
def clang() -> list[str]:
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        pytest.skip("zig's clang is not here: pip install ziglang")
    device = (
        "-x hip --cuda-device-only --offload-arch=gfx942 -nogpulib -nogpuinc -O3 -S"
    )
    return [str(Path(spec.origin).parent / "zig"), "clang", *device.split()]


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_halves_compile(
    name: str, dtype: DType, clang: list[str], tmp_path: Path
) -> None:
    x = Tensor.empty(64, 256, dtype=dtype)
    kernel = tuned(explore(CASES[name](x), device=NAME).kernels[-1].ast, NAME)
    source = stages(kernel, NAME, "source").source
    (tmp_path / "kernel.hip").write_text(WORDS + source.text)
    run = subprocess.run(
        [*clang, "kernel.hip", "-o", "kernel.s"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert not run.returncode, run.stderr + source.text
    code = (tmp_path / "kernel.s").read_text()
    if dtype is dtypes.float16 and name in ("softmax", "matmul"):
        assert "v_cvt_f16_f32" in code
    if name == "elementwise":
        lines = [x for x in code.splitlines() if x.startswith(("\tv_", "\ts_"))]
        assert len(lines) < 40, code
