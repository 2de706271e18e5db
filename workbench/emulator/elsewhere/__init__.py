"""Kernels for machines elsewhere as programs that the emulator runs."""
