"""A linear program as LLVM IR, and what LLVM writes of it for other machines."""
