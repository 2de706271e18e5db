"""Products of tiles by NVRTC: the machine code has the instructions of tensor cores."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.backends.gpu.test_tiles import text_of
from tests.tools.tensor_cores import core_named
from workbench import Opt, OptOps
from workbench.backends.cuda import nvrtc
from workbench.backends.cuda.dialect import CudaCpp

TOOLS = nvrtc.toolkit()
pytestmark = pytest.mark.skipif(
    TOOLS is None or not TOOLS.nvdisasm,
    reason=f"NVRTC and nvdisasm are not here: {nvrtc.how_to_get()}",
)
STAGED = [Opt(OptOps.UPCAST, "g0", 2), Opt(OptOps.STAGE, "r0", 1), Opt(OptOps.STAGE, "r0", 2)]


@pytest.mark.parametrize("opts", [[], STAGED], ids=["global", "shared"])
@pytest.mark.parametrize(
    ("arch", "words", "instruction"),
    [
        ("sm_75", "16x8x8 float16 -> float32", "HMMA.1688.F32"),
        ("sm_80", "16x8x16 float16 -> float32", "HMMA.16816.F32"),
        ("sm_80", "16x8x16 bfloat16 -> float32", "HMMA.16816.F32.BF16"),
        ("sm_80", "16x8x8 float32 as tf32 -> float32", "HMMA.1688.F32.TF32"),
        ("sm_80", "16x8x32 int8 -> int32", "IMMA.16832.S8.S8"),
        ("sm_80", "8x8x4 float64 -> float64", "DMMA.884"),
        ("sm_89", "16x8x32 fp8e4m3 -> float32", "QMMA.16832.F32.E4M3.E4M3"),
        ("sm_90", "16x8x16 float16 -> float32", "HMMA.16816.F32"),
    ],
)
def test_machine_code(
    arch: str, words: str, instruction: str, opts: list[Opt], tmp_path: Path
) -> None:
    assert TOOLS is not None
    image = nvrtc.compile_text(text_of(core_named(arch, words), CudaCpp, opts), arch)
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(image.data)
    listing = subprocess.run(
        [TOOLS.nvdisasm, "-c", str(cubin)], capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"\b[A-Z]MMA[.\w]*", listing)) == {instruction}
    assert "LDS" in listing if opts else "LDS" not in listing


AHEAD = [
    *(Opt(OptOps.UPCAST, name, 2) for name in ("g0", "g1")),
    *(Opt(OptOps.STAGE, "r0", slot) for slot in (1, 2)),
    Opt(OptOps.UPCAST, "a_w2", 8), Opt(OptOps.UPCAST, "b_u1", 8), Opt(OptOps.PIPELINE, "r0", 3),
]  # fmt: skip


@pytest.mark.parametrize("words", ["float16", "bfloat16"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_copies_and_rows(arch: str, words: str, tmp_path: Path) -> None:
    """Copies of 16 bytes that go on by themselves, and rows that the warp exchanges: those of the
    second operand transposed; no other access of shared memory."""
    assert TOOLS is not None
    core = core_named(arch, f"16x8x16 {words} -> float32")
    text = text_of(core, CudaCpp, AHEAD, shape=(64, 64, 64))
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(nvrtc.compile_text(text, arch).data)
    listing = subprocess.run(
        [TOOLS.nvdisasm, "-c", str(cubin)], capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in listing.splitlines() if "@!PT" not in line]  # never run
    found = {*re.findall(r"\b(?:LDGSTS|LDSM|LDS|STS|LDG)\b[.\w]*", "\n".join(lines))}
    copies = {word for word in found if word.startswith("LDGSTS")}
    assert copies and all(word.endswith(".128") for word in copies)
    rows = found - copies
    assert rows and all(word.startswith("LDSM.16.M") for word in rows)
