"""Kernels that store several values."""
