"""Kernels as text in CUDA C++, HIP, OpenCL C, Metal and WGSL, read by the emulator: linear programs
whose lines are those of the text."""
