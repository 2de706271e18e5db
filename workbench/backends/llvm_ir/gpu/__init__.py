"""LLVM IR of a work-item, and PTX, AMDGCN and SPIR-V from it."""
