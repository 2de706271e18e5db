"""HIP (AMD, HIP documentation): CUDA's words, and vectors with operators."""

from __future__ import annotations

from workbench.backends.cuda.dialect import CUDA_CPP, CudaCpp
from workbench.backends.program.language import Language
from workbench.base.dtypes import DType

HIP_CPP = Language(
    "HIP",
    "HIP, the program of one work-item",
    CUDA_CPP.comment,
    CUDA_CPP.word,
    CUDA_CPP.head,
)


class HipCpp(CudaCpp):
    """The dialect."""

    language = HIP_CPP

    def operator(self, sign: str, dtype: DType, left: bool, right: bool) -> None:
        """Do nothing: vectors have operators."""
