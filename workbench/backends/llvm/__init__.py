"""LLVM: machine code for this processor, compiled inside of this process."""
