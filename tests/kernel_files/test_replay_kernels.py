"""Replays of kernel files: what is right, what changed, and what is never run."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.tools.compiler import needs_c
from workbench import Kernel, Opt, OptOps, Rule, RuleSet, Tensor, explore, register, unregister, var
from workbench.cli.command import main
from workbench.kernel_files.capture_kernels import kernel_row
from workbench.kernel_files.kernel_file import CapturedKernel, KernelFile
from workbench.kernel_files.replay_kernels import KernelReplay, replay_kernel, replay_kernels
from workbench.search.realization import ChosenOpts

MACHINE = "LLVM:Raspberry Pi 5"
"""A machine with the same code everywhere."""


def row_of(kernel: Kernel, device: str = MACHINE) -> CapturedKernel:
    chosen = ChosenOpts(kernel.ast, kernel.applied_opts, "default")
    return kernel_row((kernel.original, kernel.ast, device), chosen)


def product() -> Kernel:
    (kernel,) = explore(Tensor.empty(16, 32) @ Tensor.empty(32, 8), device=MACHINE).kernels
    return kernel.optimized()


@pytest.fixture(scope="module")
def row() -> CapturedKernel:
    return row_of(product())


def replayed(row: CapturedKernel, **changes: object) -> KernelReplay:
    return replay_kernel(replace(row, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["", "LLVM", "PYTHON", "CUDA:H100"])
def test_an_unchanged_kernel_is_right_on_any_device(row: CapturedKernel, device: str) -> None:
    replay = replay_kernel(row, device)
    assert replay.is_good
    if not device:
        assert not replay.changes


def test_it_says_which_default_opts_differ_and_why(row: CapturedKernel) -> None:
    replay = replayed(row, opts='UPCAST("g1", 4)', steps=row.steps[1:])
    assert replay.is_good
    text = "\n".join(replay.changes)
    assert 'default opts  UPCAST("g1", 4)' in text and f"-> {row.opts}" in text
    assert f"because {row.steps[0]}" in text and row.steps[-1] not in text.replace(row.steps[0], "")
    assert "source differs" in text
    assert not replayed(row, opts="", origin="search", source="").changes


def test_opts_that_are_not_legal_any_more_are_named(row: CapturedKernel) -> None:
    replay = replayed(row, opts='UPCAST("g1", 5), UPCAST("g1", 4)', origin="search", source="")
    assert replay.is_good and len(replay.changes) == 1
    assert replay.changes[0].startswith('UPCAST("g1", 5) is not legal: ')
    assert "not known" in replayed(row, opts=None).changes[0]


def test_a_wrong_rewrite_is_found(row: CapturedKernel) -> None:
    x = var("x", "float")
    (kernel,) = explore(Tensor.empty(8) * 2, device="LLVM").kernels
    plain = row_of(kernel, "LLVM")
    wrong = Rule("two-is-three", x * 2, x * 3)
    register(RuleSet("wrong-rules", [wrong]), into="decompose")
    try:
        replays = replay_kernels(KernelFile.of([plain, row]))
    finally:
        unregister("wrong-rules")
    assert [each.outcome for each in replays.replays] == ["WRONG", "right"]
    assert not replays.is_good
    assert "2 kernels: 1 WRONG, 1 right; 1 changed" in str(replays)
    assert replay_kernel(plain).is_good


C_KERNEL = """void twice(float* out, const float* x) {
  for (int i = 0; i < 8; i++) out[i] = x[i] * 2;
}"""


@needs_c
def test_source_text_of_a_file_is_never_run() -> None:
    out, x = Tensor.empty(8, device="C"), Tensor.empty(8, device="C")
    own = out.custom_kernel(x, fxn=C_KERNEL)[0]
    (kernel,) = explore(own).kernels
    replay = replay_kernel(row_of(kernel, kernel.device))
    assert replay.outcome == "refused" and "stranger" in replay.why


@pytest.mark.parametrize(
    ("change", "outcome", "why"),
    [
        ({"ir": "exit()"}, "refused", "exit"),
        ({"ir": "v0 = CONST.float32 {1.0}"}, "refused", "not a kernel"),
        ({"device": "DISK:/etc/passwd"}, "not here", "no device"),
        ({"device": "CUDA:H9000"}, "not here", "no machine"),
        ({"device": "\0"}, "not here", "no device"),
    ],
)
def test_a_hostile_row_is_refused_by_itself(
    row: CapturedKernel, change: dict[str, str], outcome: str, why: str
) -> None:
    replay = replayed(row, **change)
    assert replay.outcome == outcome and why in replay.why and not replay.is_good


def test_a_kernel_that_would_not_end_or_leaves_its_memory_is_not_run(row: CapturedKernel) -> None:
    endless = row.ir.replace("RANGE.index 32 ", f"RANGE.index {1 << 50} ")
    outside = row.ir.replace("RANGE.index 16 ", "RANGE.index 17 ")
    large = row.ir.replace("{1, 512}", f"{{1, {1 << 45}}}")
    for text in (endless, outside, large):
        assert text != row.ir
        replay = replayed(row, ir=text, opts="")
        assert replay.outcome in ("refused", "fails"), replay


def test_the_command_replays_diffs_and_merges(
    row: CapturedKernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, both = (tmp_path / f"{name}.jsonl" for name in ("old", "new", "both"))
    KernelFile.of([row]).write(old)
    new.write_text(KernelFile.of([replace(row, opts="", steps=[])]).text() + "<<<<<<< HEAD\n")
    assert main(["kernels", "replay", str(old)]) == 0
    assert "1 kernel: 1 right; none changed" in capsys.readouterr().out
    assert main(["kernels", "diff", str(old), str(new)]) == 1, "a line is no row"
    out = capsys.readouterr().out
    assert "1 kernel differs in 1 program, 0 are as before" in out
    assert f"no more  {row.steps[0]}" in out and "new file: 1 line refused: line 2" in out
    assert main(["kernels", "merge", str(both), str(old), str(new)]) == 1, "a line is no row"
    assert "2 kernels in" in capsys.readouterr().out
    assert len(KernelFile.read(both).kernels) == 2
    new.write_text("nothing\n")
    assert main(["kernels", "replay", str(new)]) == 1
    assert "0 kernels: none" in capsys.readouterr().out


def test_the_command_captures_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, path = tmp_path / "net.py", tmp_path / "net.jsonl"
    script.write_text(
        "import sys\nfrom workbench import Tensor\n"
        "(Tensor([1.0, 2.0]) * len(sys.argv)).realize()\nsys.exit(3)\n"
    )
    assert main(["kernels", "capture", str(path), str(script), "more"]) == 3
    (row,) = KernelFile.read(path).kernels.values()
    assert (row.program, row.line, row.launches) == ("net.py", "net.py:3", 1)
    assert main(["kernels", "capture", str(path), str(tmp_path / "none.py")]) == 1


def test_opts_by_hand_replay(row: CapturedKernel) -> None:
    plain = Kernel.from_text(row.ir).apply(Opt(OptOps.UPCAST, "g1", 8))
    assert replay_kernel(row_of(plain)).is_good
