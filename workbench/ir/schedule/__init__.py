"""Scheduling: from a tensor graph to kernels, with a reason for each boundary."""
