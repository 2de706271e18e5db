"""Tensors from values, ranges, random numbers and other libraries' memory."""
