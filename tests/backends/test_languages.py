"""Real compilers take what each language is written as; the whole table is
`python -m bench.languages.table`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.languages import compilers, preludes
from bench.languages.compilers import CHECKS, Check, by_clang, link_ptx, nvjitlink
from bench.languages.kernels import BY_HAND, EXPRESSIONS, GENERAL, kernels_of
from bench.languages.table import CompilerRow, error_of, row_of
from tests.support import LONG
from workbench.base.errors import CompileError
from workbench.pipeline import stages

FEW = ("elementwise", "softmax", "matmul", "transpose")


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: f"{c.language}-{c.compiler}")
def test_a_compiler_takes_each_kernel(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    if not check.is_here():
        pytest.skip(f"{check.compiler} is not here, which compiles {check.language}")
    if not LONG:
        few = {name: EXPRESSIONS[name] for name in FEW}
        monkeypatch.setattr("bench.languages.table.EXPRESSIONS", few)
    row = row_of(check)
    assert row.refusals == []
    assert all(total >= 1 and good == total for good, total in row.counts.values())


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_opts_by_hand_are_some(name: str) -> None:
    pairs = [*kernels_of(name, "CUDA", "H100")]
    by_hand = [kernel for opts, kernel in pairs if opts == "hand"]
    assert by_hand and all(kernel.applied_opts for kernel in by_hand)
    if name in BY_HAND:
        assert set(BY_HAND[name]) != set(GENERAL)
        kinds = {str(opt).partition("(")[0] for k in by_hand for opt in k.applied_opts}
        assert "STAGE" in kinds
        texts = [stages(k.ast, "CUDA:H100", "source").source.text for k in by_hand]
        assert all("__shared__" in text and "__syncthreads" in text for text in texts)


def test_a_sum_of_many_has_two_stages() -> None:
    assert len([*kernels_of("two-stage sum", "CUDA", "H100")]) == 4


def test_what_a_compiler_refuses_is_in_the_row() -> None:
    def refuse(device: str, kernel: object) -> None:
        raise CompileError("nvrtc", "x is undefined")

    check = replace(CHECKS[0], is_here=lambda: True, compile=refuse)
    row = CompilerRow("CUDA C++")
    (_, kernel), *_ = kernels_of("elementwise", "CUDA", "H100")
    row.add("elementwise", [("default", error_of(check, kernel))])
    assert row.counts == {"elementwise": (0, 1)} and "x is undefined" in row.refusals[0]


def test_a_row_says_that_its_compiler_is_not_here() -> None:
    assert str(row_of(replace(CHECKS[0], is_here=lambda: False))).endswith("(not here)")


def test_clang_refuses_what_is_no_metal(monkeypatch: pytest.MonkeyPatch) -> None:
    if compilers.zig() is None:
        pytest.skip("clang is not here: pip install ziglang")
    check = by_clang(preludes.METAL, *compilers.METAL_WORDS)
    (_, kernel), *_ = kernels_of("elementwise", "METAL", "M3")
    check("METAL:M3", kernel)
    text = compilers.text_of("METAL:M3", kernel)
    monkeypatch.setattr(compilers, "text_of", lambda *_: text.replace("float4(", "float5("))
    with pytest.raises(CompileError, match="float5"):
        check("METAL:M3", kernel)


def test_nvjitlink_refuses_what_is_no_ptx() -> None:
    if nvjitlink() is None:
        pytest.skip("nvJitLink is not here: pip install nvidia-nvjitlink")
    with pytest.raises(CompileError, match="nvjitlink"):
        link_ptx(".version 8.0\n.target sm_90\n.address_size 64\nnothing\n", "sm_90")


def test_kernels_are_for_the_machine() -> None:
    (_, kernel), *_ = kernels_of("matmul", "LLVM", "Graviton4")
    assert kernel.device == "LLVM:Graviton4"
