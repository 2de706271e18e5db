"""HIP (AMD, HIP documentation): CUDA's words, and vectors with operators."""

from __future__ import annotations

from workbench.backends.gpu.cpp import COMMENT, HEAD, WORD, GpuCpp
from workbench.backends.program.language import Language

HIP_CPP = Language(
    "HIP",
    "HIP, the program of one work-item",
    COMMENT,
    WORD,
    HEAD,
)


class HipCpp(GpuCpp):
    """The dialect."""

    language = HIP_CPP
