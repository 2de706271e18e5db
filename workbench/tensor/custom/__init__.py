"""Kernels that users write, as functions, IR text or C."""
