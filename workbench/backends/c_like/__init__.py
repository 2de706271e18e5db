"""Kernels as text in languages like C: one writer, and a dialect for each language."""
