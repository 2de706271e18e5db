"""TinyJit."""

from workbench.tensor.jit.tinyjit import TinyJit

__all__ = ["TinyJit"]
