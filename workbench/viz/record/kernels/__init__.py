"""Rows of kernels: code, passes, GPU runs, costs."""
