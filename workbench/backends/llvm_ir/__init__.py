"""Linear programs as LLVM IR, and LLVM's machine code of it for other machines."""
