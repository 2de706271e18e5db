"""Measurements: times of kernels, warm and cold, in turns; and the greatest speeds of a machine."""
