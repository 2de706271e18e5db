"""Kernels that write over what they read."""
