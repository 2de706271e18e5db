"""Products of tiles in LLVM IR, by instructions of matrices."""
